"""A real server, one role of it, a relay or an issuer in a process of its own: for tests, simulations and benchmarks.

`ldp_client.testing` has a server in memory. This one has a socket and a disk, and can be killed. The simulator, tests,
benchmarks and an app's own tests start servers with it. The server's other modules do not need it.
"""

from __future__ import annotations

import json
import select
import signal
import subprocess
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import BinaryIO, Literal, Self

from ldp_client.errors import Unavailable
from ldp_server.analyst import Analyst
from ldp_server.child import safe_command, safe_environment

__all__ = ["IssuerProcess", "RelayProcess", "RoleProcess", "ServedProcess", "ServerProcess"]


class ServedProcess:
    """A command of `ldp-server` that listens, until the `with` block ends.

    The port is a free one unless `listen` says otherwise, and stays the same when the process is started again. What it
    logs is in the file `log`. It ends, at the latest, with this process, even if this process is killed.
    """

    name = "server"
    """What listens, in the line that says where."""

    def __init__(
        self,
        command: Sequence[str],
        log: Path,
        *,
        listen: str = "127.0.0.1:0",
        environment: Mapping[str, str] | None = None,
        before: Sequence[str] = (),
    ) -> None:
        """`before` is a command that runs the server's command, given to it as arguments (to set a limit first)."""
        self.log = log
        self.restarts = 0
        self.target = ""
        """HOST:PORT for apps."""
        self._command = [*before, *safe_command("ldp_server", *command, "--json", "--until-stdin-closes")]
        self._listen = listen
        self._environment = {**safe_environment(), **(environment or {})}
        self._process: subprocess.Popen[str] | None = None
        self._lock = threading.RLock()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()

    @property
    def process(self) -> subprocess.Popen[str]:
        if self._process is None:
            raise Unavailable(f"the {self.name} has not been started")
        return self._process

    @property
    def pid(self) -> int:
        return self.process.pid

    @property
    def running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def start(self, patience: float = 60.0) -> Self:
        """Start it and wait until it listens."""
        with self._lock:
            if self.running:
                return self
            with self.log.open("ab") as log:
                listen = ("--listen", self._listen) if self._listen else ()
                self._process = self._launch([*self._command, *listen], log)
            try:
                self._wait_until_it_listens(self._process, patience)
            except BaseException:
                self.kill()
                raise
        return self

    def _launch(self, command: Sequence[str], log: BinaryIO) -> subprocess.Popen[str]:
        return subprocess.Popen(  # noqa: S603 - our own program
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
            env=self._environment,
            start_new_session=True,  # Ctrl-C is for the process that started it; that one stops it
        )

    def _wait_until_it_listens(self, process: subprocess.Popen[str], patience: float) -> None:
        assert process.stdout is not None  # noqa: S101 - opened above
        ready, _, _ = select.select([process.stdout], [], [], patience)
        line = process.stdout.readline() if ready else ""
        if not line:
            raise Unavailable(f"the {self.name} did not start: {self._last_words()} (its log is {self.log})")
        self._listens(json.loads(line)["listening"])
        self._listen = self.target

    def _listens(self, listening: Mapping[str, str]) -> None:
        """Note where it listens."""
        self.target = listening[self.name]

    def _last_words(self) -> str:
        lines = self.log.read_text("utf-8", "replace").strip().splitlines()
        if not lines:
            return "it said nothing"
        try:
            return str(json.loads(lines[-1])["event"])
        except (ValueError, TypeError, KeyError):
            return lines[-1]

    def kill(self) -> None:
        """End it at once with SIGKILL, as a power cut would."""
        with self._lock:
            self._end(signal.SIGKILL, None)

    def restart(self) -> None:
        """Kill it, and start it again on the same port."""
        with self._lock:
            if self.running:
                self.kill()
                self._start_on_the_same_port()
                self.restarts += 1

    def _start_on_the_same_port(self) -> None:
        """Start it, with retries: another process's connection may have taken the free port for a moment."""
        until = time.monotonic() + 10.0
        while True:
            try:
                self.start()
                return
            except Unavailable:
                if time.monotonic() > until:
                    raise
                time.sleep(0.2)

    def stop(self, patience: float = 30.0) -> int:
        """Let it finish the batches that it has taken, and return its exit code. Kill it after the timeout."""
        with self._lock:
            return self._end(signal.SIGTERM, patience)

    def _end(self, number: signal.Signals, patience: float | None) -> int:
        if self._process is None:
            return 0
        process = self._process
        if process.poll() is None:
            process.send_signal(number)
        try:
            code = process.wait(patience)
        except subprocess.TimeoutExpired:
            process.kill()
            code = process.wait()
        for pipe in (process.stdin, process.stdout):
            if pipe is not None:
                pipe.close()
        return code


class ServerProcess(ServedProcess):
    """`ldp-server serve` on a data directory, until the `with` block ends.

        with ServerProcess(folder / "data") as server, server.analyst() as analyst:
            analyst.create(collection)
            client = Client(server.target, tls=False, ...)

    `options` are more options of `serve`.
    """

    def __init__(
        self,
        data: Path,
        *options: str,
        listen: str = "127.0.0.1:0",
        log: Path | None = None,
        environment: Mapping[str, str] | None = None,
        before: Sequence[str] = (),
    ) -> None:
        self.data = data
        self.analyst_target = ""
        """HOST:PORT for operators; the same unless the configuration says otherwise."""
        command = ("serve", "--data", str(data), *options)
        log = log or data.parent / f"{data.name}.log"
        super().__init__(command, log, listen=listen, environment=environment, before=before)

    def _listens(self, listening: Mapping[str, str]) -> None:
        self.target, self.analyst_target = listening["collector"], listening["analyst"]

    def analyst(self) -> Analyst:
        """Return an operator's connection to it, with the token that it leaves in its data directory."""
        return Analyst.local(self.data)


class RoleProcess(ServedProcess):
    """`ldp-server collect`, `answer` or `upkeep` with a configuration that names a shared store, until the block ends.

    `data` is the directory in which `answer` and `upkeep` keep counts. A collector keeps no files.
    """

    def __init__(
        self,
        role: Literal["collect", "answer", "upkeep"],
        config: Path,
        log: Path,
        *,
        data: Path | None = None,
        listen: str = "127.0.0.1:0",
        before: Sequence[str] = (),
    ) -> None:
        self.data = data
        self.name = {"collect": "collector", "answer": "analyst", "upkeep": "upkeep"}[role]
        options = () if data is None else ("--data", str(data))
        where = "" if role == "upkeep" else listen
        super().__init__((role, "--config", str(config), *options), log, listen=where, before=before)

    def _listens(self, listening: Mapping[str, str]) -> None:
        self.target = listening.get(self.name, "")

    def analyst(self) -> Analyst:
        """Return an operator's connection to one that answers, with the token that it leaves in its data directory."""
        if self.data is None:
            raise Unavailable(f"a {self.name} without a data directory answers no operator")
        return Analyst.local(self.data)


class RelayProcess(ServedProcess):
    """`ldp-server relay serve` with a configuration in a file, until the `with` block ends."""

    name = "relay"

    def __init__(
        self, config: Path, *, listen: str = "127.0.0.1:0", log: Path | None = None, before: Sequence[str] = ()
    ) -> None:
        command = ("relay", "serve", "--config", str(config))
        super().__init__(command, log or config.with_suffix(".log"), listen=listen, before=before)


class IssuerProcess(ServedProcess):
    """`ldp-server token issuer` with a configuration in a file, until the `with` block ends."""

    name = "issuer"

    def __init__(self, config: Path, *, listen: str = "127.0.0.1:0", log: Path | None = None) -> None:
        super().__init__(("token", "issuer", "--config", str(config)), log or config.with_suffix(".log"), listen=listen)
