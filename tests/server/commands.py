"""Runs `ldp-server` again and again without importing its libraries each time.

A process imports them once and then forks for each command. Every command is a process of its own, with its own
arguments, environment, standard streams and exit code, like one that a shell starts. It is started some 0.6 s of
computing time sooner. The process never opens a connection or a thread, so a fork is safe.
"""

from __future__ import annotations

import atexit
import importlib
import json
import os
import select
import signal
import socket
import subprocess
import sys
import tempfile
from pathlib import Path

__all__ = ["run_command"]

_LIMIT = 1 << 20
_STARTED: list[subprocess.Popen] = []
_PLACE: list[Path] = []


def run_command(arguments, environment, stdin, timeout):
    """Run one command; return what `subprocess.run` would."""
    with tempfile.TemporaryDirectory() as folder:
        files = [Path(folder) / name for name in ("stdin", "stdout", "stderr")]
        files[0].write_text(stdin or "")
        request = {"arguments": list(arguments), "environment": environment, "files": list(map(str, files))}
        with socket.socket(socket.AF_UNIX) as asking:
            asking.settimeout(timeout)
            asking.connect(str(_place()))
            asking.sendall(json.dumps(request).encode() + b"\n")
            answer = asking.makefile().readline()
        if not answer:
            raise RuntimeError("the process that runs commands has ended")
        return subprocess.CompletedProcess(
            ["ldp-server", *arguments], int(answer), files[1].read_text(), files[2].read_text()
        )


def _place() -> Path:
    """The socket of the process that runs commands, which is started by the first one."""
    if not _STARTED:
        _PLACE.append(Path(tempfile.mkdtemp(prefix="commands-")) / "socket")
        ready, theirs = os.pipe()
        environment = {**os.environ, "GRPC_VERBOSITY": "NONE"}
        command = [sys.executable, str(Path(__file__)), str(_PLACE[0]), str(theirs)]
        root = Path(__file__).parents[2]
        environment["PYTHONPATH"] = str(root)
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
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
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


def _answer(connection: socket.socket, main) -> int:
    """Read the command, fork once more to run it, and send its exit code. If the caller goes away, end it."""
    request = json.loads(connection.makefile().readline())
    process = os.fork()
    if process == 0:
        connection.close()
        os._exit(_run(request, main))
    descriptor = os.pidfd_open(process)
    while descriptor not in select.select([connection, descriptor], [], [])[0]:
        if not connection.recv(1, socket.MSG_PEEK):
            os.kill(process, signal.SIGKILL)
    code = os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])
    connection.sendall(f"{code}\n".encode())
    return 0


def _run(request, main) -> int:
    for number, (name, flags) in enumerate(zip(request["files"], (os.O_RDONLY, os.O_WRONLY, os.O_WRONLY), strict=True)):
        opened = os.open(name, flags | os.O_CREAT, 0o600)
        os.dup2(opened, number)
        os.close(opened)
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
    sys.path[0] = str(Path(__file__).parents[2])
    _serve(sys.argv[1], int(sys.argv[2]))
