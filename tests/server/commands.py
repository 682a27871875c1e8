"""Runs `ldp-server` again and again without importing its libraries each time.

A process imports them once and then forks for each command. Every command is a process of its own, with its own
arguments, environment, standard streams and exit code, like one that a shell starts. It is started some 0.6 s of
computing time sooner. The process never opens a connection or a thread, so a fork is safe.

`run_command` waits for the end of a command. `Started` is one that goes on, such as a server. What needs a fresh
interpreter is started as a user would (`ldp_server.testing`, tests/server/test_testing.py). `run_here` runs a command
in the test's own process: there a test can replace a part of it.
"""

from __future__ import annotations

import atexit
import gc
import importlib
import io
import json
import os
import select
import signal
import socket
import subprocess
import sys
import tempfile
from contextlib import suppress
from pathlib import Path

from tests import forks

__all__ = ["Started", "run_command", "run_here"]

_LIMIT = 1 << 20
_FORKS = "HEARSAY_TESTS_FORKS"
_STARTED: list[subprocess.Popen] = []
_PLACE: list[Path] = []
_LATER = (
    "ldp_server.service.assemble",
    "ldp_server.web.app",
    "uvicorn.lifespan.on",
    "uvicorn.loops.auto",
    "uvicorn.protocols.http.auto",
)
"""Modules that a server imports when it starts, and no command imports before."""


class Started:
    """A command that goes on: the part of `subprocess.Popen` that tests use, with pipes of text.

    It has a session of its own. It is killed, at the latest, when the process that started it ends.
    """

    def __init__(self, arguments, environment, errors) -> None:
        theirs_in, ours_in = os.pipe()
        ours_out, theirs_out = os.pipe()
        self.stdin = os.fdopen(ours_in, "w")
        self.stdout = os.fdopen(ours_out, "r")
        self.returncode: int | None = None
        self.args = ["ldp-server", *arguments]
        request = {"arguments": list(arguments), "environment": environment, "folder": str(Path.cwd())}
        self._asking = _asked(request, (theirs_in, theirs_out, errors.fileno()))
        os.close(theirs_in)
        os.close(theirs_out)
        self._answers = self._asking.makefile()
        self.pid = int(self._answers.readline())
        self._descriptor = os.pidfd_open(self.pid)

    def poll(self):
        """The exit code, if it has ended."""
        with suppress(subprocess.TimeoutExpired):
            self.wait(0)
        return self.returncode

    def wait(self, timeout=None):
        if self.returncode is None:
            if not select.select([self._asking], [], [], timeout)[0]:
                raise subprocess.TimeoutExpired(self.args, timeout)
            self.returncode = int(self._answers.readline())
            self._answers.close()
            self._asking.close()
            os.close(self._descriptor)
        return self.returncode

    def send_signal(self, number) -> None:
        if self.poll() is None:
            with suppress(ProcessLookupError):
                signal.pidfd_send_signal(self._descriptor, number)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)


def run_here(monkeypatch, capsys, *arguments, stdin=None):
    """Run `ldp-server` in this process, as its program does; return exit code, output and errors."""
    from ldp_server.cli.main import run  # here: the process that forks imports it in its own order

    monkeypatch.setattr(sys, "argv", ["ldp-server", *map(str, arguments)])
    if stdin is not None:
        monkeypatch.setattr(sys, "stdin", io.StringIO(stdin) if isinstance(stdin, str) else stdin)
    capsys.readouterr()
    code = 0
    try:
        run()
    except SystemExit as left:
        code = left.code
    return code, *capsys.readouterr()


def run_command(arguments, environment, stdin, timeout):
    """Run one command; return what `subprocess.run` would."""
    with tempfile.TemporaryFile() as given, tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as errors:
        given.write((stdin or "").encode())
        given.seek(0)
        request = {"arguments": list(arguments), "environment": environment, "folder": None}
        asking = _asked(request, [file.fileno() for file in (given, out, errors)])
        with asking, asking.makefile() as answers:
            asking.settimeout(timeout)
            answers.readline()  # its number
            code = answers.readline()
        if not code:
            raise RuntimeError("the process that runs commands has ended")
        texts = []
        for file in (out, errors):
            file.seek(0)
            texts.append(file.read().decode())
        return subprocess.CompletedProcess(["ldp-server", *arguments], int(code), *texts)


def _asked(request, streams) -> socket.socket:
    """A connection to the process that runs commands, which has been asked for one with these standard streams."""
    asking = socket.socket(socket.AF_UNIX)
    asking.connect(str(_place()))
    socket.send_fds(asking, [b"."], list(streams))
    asking.sendall(json.dumps(request).encode() + b"\n")
    return asking


def _place() -> Path:
    """The socket of the process that runs commands, which is started by the first one."""
    if not _STARTED:
        _PLACE.append(Path(tempfile.mkdtemp(prefix="commands-")) / "socket")
        ready, theirs = os.pipe()
        environment = {**os.environ, "GRPC_VERBOSITY": "NONE"}
        command = [sys.executable, "-m", "tests.server.commands", str(_PLACE[0]), str(theirs)]
        root = Path(__file__).parents[2]
        environment["PYTHONPATH"] = str(root)
        environment[_FORKS] = str(forks.folder())
        _STARTED.append(
            subprocess.Popen(
                command, env=environment, cwd=root, pass_fds=[theirs], stdin=subprocess.PIPE, start_new_session=True
            )
        )
        os.close(theirs)
        assert os.read(ready, 1) == b"."
        os.close(ready)
        atexit.register(_stop)
    return _PLACE[0]


def _stop() -> None:
    _STARTED[0].stdin.close()
    _STARTED[0].wait()
    _PLACE[0].unlink()
    _PLACE[0].parent.rmdir()


def _serve(place: str, ready: int) -> None:
    """Fork for each connection, until standard input is closed."""
    from ldp_server.cli import main  # before its module `main` takes this name in the package

    importlib.import_module("ldp_server.cli.main").load()
    for module in _LATER:
        with suppress(ImportError):
            importlib.import_module(module)
    forks.adopt(Path(os.environ.pop(_FORKS)))
    forks.fork_children()
    gc.collect()
    gc.freeze()
    signal.signal(signal.SIGCHLD, _reap)
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(place)
        listening.listen(16)
        os.write(ready, b".")
        os.close(ready)
        while listening in select.select([listening, 0], [], [])[0]:
            connection, _ = listening.accept()
            if os.fork() == 0:
                signal.signal(signal.SIGCHLD, signal.SIG_DFL)
                listening.close()
                os._exit(_answer(connection, main))
            connection.close()


def _reap(*_) -> None:
    with suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass


def _answer(connection: socket.socket, main) -> int:
    """Read the command, fork once more to run it, send its number and exit code. If the caller goes away, end it."""
    _, streams, _, _ = socket.recv_fds(connection, 1, 3)
    request = json.loads(connection.makefile().readline())
    process = os.fork()
    if process == 0:
        connection.close()
        os._exit(_run(request, streams, main))
    for stream in streams:
        os.close(stream)
    connection.sendall(f"{process}\n".encode())
    descriptor = os.pidfd_open(process)
    while descriptor not in select.select([connection, descriptor], [], [])[0]:
        if not connection.recv(1, socket.MSG_PEEK):
            os.kill(process, signal.SIGKILL)
    code = os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])
    with suppress(BrokenPipeError):
        connection.sendall(f"{code}\n".encode())
    return 0


def _run(request, streams, main) -> int:
    for number, opened in enumerate(streams):
        os.dup2(opened, number)
        os.close(opened)
    if request["folder"] is not None:
        os.setsid()
        os.chdir(request["folder"])
    os.environ.clear()
    os.environ.update(request["environment"])
    sys.argv = ["ldp-server", *request["arguments"]]
    code = 0
    try:
        main()
    except SystemExit as ended:
        code = ended.code if isinstance(ended.code, int) else 0 if ended.code is None else 1
        if isinstance(ended.code, str):
            sys.stderr.write(ended.code)
    except BaseException:
        sys.excepthook(*sys.exc_info())
        code = 1
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    return code


if __name__ == "__main__":
    _serve(sys.argv[1], int(sys.argv[2]))
