"""A `python` that has imported the project already: it forks for each program instead of starting anew.

A new process spends 0.3 to 1 s of computing time on its imports, and tests start dozens. Here one process imports
them, and every program is a fork of it. The program has its own arguments, environment, directory, standard streams,
signals and exit code, and ends as an interpreter ends: its threads are joined, exit handlers run, objects are freed.

`folder()` is a directory for PATH with the commands `python`, `ldp-server`, `ldp-client` and `ldp-simulate`. Each is a
small program that hands its arguments and streams to the process that forks, passes signals on, and ends as the fork
ends. If it is killed, the fork is killed. Options that the fork does not know (such as -P, with which servers are
started) go to the real interpreter. `pytest --slow` uses the real interpreter everywhere.

The process that forks never opens a connection or a thread, so a fork is safe. What is said about imports, or about a
machine that lacks a library, needs the real interpreter: its tests start `sys.executable`.
"""

from __future__ import annotations

import atexit
import contextlib
import gc
import importlib
import marshal
import os
import select
import shlex
import signal
import socket
import subprocess
import sys
import tempfile
import warnings
from pathlib import Path
from typing import NoReturn

from ldp_server.child import safe_command
from tests.effort import at_length

__all__ = ["adopt", "child_command", "folder", "fork_children", "python"]

ROOT = Path(__file__).parents[1]
MODULES = ("ldp_client.cli.main", "ldp_server.analyst", "ldp_server.testing", "simulator.cli", "multiprocessing.spawn",
           "multiprocessing.resource_tracker", "tests.client.conftest", "ldp_server.worker.__main__",
           "ldp_server.sealing.__main__")  # fmt: skip
PARENTS = ("ldp_server.worker.client", "ldp_server.sealing.pool")
"""Modules of a server that start its children."""
COMMANDS = {"ldp-server": "ldp_server", "ldp-client": "ldp_client.cli", "ldp-simulate": "simulator.cli"}
LAUNCHER = r"""#!{real} -IS
import _socket, marshal, os, sys
from _signal import SIG_DFL, SIG_IGN, SIGHUP, SIGINT, SIGTERM, getsignal, signal
arguments = {first} + sys.argv[1:]
known = list(arguments)
while known[:1] == ["-W"]:
    known = known[2:]
if not known or (known[0].startswith("-") and known[0] not in ("-c", "-m")):
    os.execv({real!r}, [{real!r}, *arguments])
line = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
line.connect({place!r})
for number in (SIGHUP, SIGINT, SIGTERM):
    if getsignal(number) is not SIG_IGN:
        signal(number, lambda number, _frame: line.send(bytes([number])))
request = marshal.dumps((arguments, dict(os.environb), os.getcwd()))
line.sendmsg([len(request).to_bytes(4, "little")], [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS,
             b"".join(number.to_bytes(4, sys.byteorder) for number in (0, 1, 2)))])
while request:
    request = request[line.send(request):]
code = int.from_bytes(line.recv(4) or b"\x01", "little", signed=True)
if code < 0:
    if -code in (SIGHUP, SIGINT, SIGTERM):
        signal(-code, SIG_DFL)
    os.kill(os.getpid(), -code)
os._exit(code)
"""
_STARTED: list[tuple[subprocess.Popen[bytes] | None, Path]] = []


def python() -> str:
    """Return the path of the interpreter with which tests start programs."""
    return sys.executable if at_length() else str(folder() / "python")


def child_command(module: str, *arguments: str) -> list[str]:
    """Return the command that runs a module as a server's child: in the tests' place of `child.safe_command`."""
    return safe_command(module, *arguments) if at_length() else [python(), "-m", module, *arguments]


def fork_children() -> None:
    """Let servers in this process fork their children. tests/server/worker/test_isolation.py has the real command."""
    for name in PARENTS:
        vars(importlib.import_module(name))["safe_command"] = child_command


def folder() -> Path:
    """Return the directory with the commands; the process that forks is started by the first call."""
    if not _STARTED:
        made = Path(tempfile.mkdtemp(prefix="forks-"))
        place = made / "socket"
        for name in ("python", *COMMANDS):
            (made / name).write_text(_launcher(name, str(place)))
            (made / name).chmod(0o755)
        ready, theirs = os.pipe()
        environment = {**os.environ, "GRPC_VERBOSITY": "NONE", "PYTHONPATH": str(ROOT)}
        _STARTED.append(
            (
                subprocess.Popen(
                    [sys.executable, "-m", "tests.forks", str(place), str(theirs)],
                    cwd=ROOT, env=environment, pass_fds=[theirs], stdin=subprocess.PIPE, start_new_session=True,
                ),
                made,
            )
        )  # fmt: skip
        os.close(theirs)
        assert os.read(ready, 1) == b"."
        os.close(ready)
        atexit.register(_stop)
    return _STARTED[0][1]


def adopt(made: Path) -> None:
    """Use the commands of another process, which started the one that forks."""
    _STARTED.append((None, made))


def _launcher(name: str, place: str) -> str:
    real = ["-m", COMMANDS[name]] if name in COMMANDS else []
    if at_length():
        return f'#!/bin/sh\nexec {shlex.join([sys.executable, *real])} "$@"\n'
    return LAUNCHER.format(real=sys.executable, first=real, place=place)


def _stop() -> None:
    process, made = _STARTED.pop()
    assert process is not None and process.stdin is not None
    process.stdin.close()
    process.wait()
    for file in made.iterdir():
        file.unlink()
    made.rmdir()


def _preload() -> None:
    import ldp_server.cli

    main = ldp_server.cli.main  # its module `main` takes this name in the package
    for name in MODULES:
        importlib.import_module(name)
        if name.endswith(".__main__"):
            del sys.modules[name]  # what it imports stays; it runs anew
    importlib.import_module("ldp_server.cli.main").load()
    ldp_server.cli.main = main
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGCHLD, _reap)
    gc.collect()
    gc.freeze()


def _serve(place: str, ready: int) -> None:
    """Fork for each connection until standard input is closed. Only the fork of a program gets beyond this."""
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(place)
        listening.listen(64)
        os.write(ready, b".")
        os.close(ready)
        while listening in select.select([listening, 0], [], [])[0]:
            connection, _ = listening.accept()
            with connection:
                if os.fork() == 0:
                    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
                    listening.close()
                    arguments = _become(connection)
                    break
        else:
            os._exit(0)
    _run(arguments)


def _reap(*_: object) -> None:
    """Take the exit codes of those who wait for programs, so that their computing time counts as this process's."""
    while True:
        try:
            if os.waitpid(-1, os.WNOHANG)[0] == 0:
                return
        except ChildProcessError:
            return


def _become(connection: socket.socket) -> list[str]:
    """Read a request and fork once more. The parent waits for the program; the child becomes it."""
    length, streams, _, _ = socket.recv_fds(connection, 4, 3)
    with connection.makefile("rb") as incoming:
        arguments, environment, directory = marshal.loads(incoming.read(int.from_bytes(length, "little")))
    process = os.fork()
    if process:
        for stream in streams:
            os.close(stream)
        _watch(connection, process)
    connection.close()
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    os.chdir(directory)
    os.environb.clear()
    os.environb.update(environment)
    return arguments


def _watch(connection: socket.socket, process: int) -> NoReturn:
    """Pass signals on to the program, kill it if the caller is gone, and say how it ended."""
    descriptor = os.pidfd_open(process)
    watched = [connection, descriptor]
    while descriptor not in select.select(watched, [], [])[0]:
        if numbers := connection.recv(16):
            for number in numbers:
                os.kill(process, number)
        else:
            os.kill(process, signal.SIGKILL)
            watched = [descriptor]
    code = os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])
    with contextlib.suppress(OSError):  # the caller is gone
        connection.sendall(code.to_bytes(4, "little", signed=True))
    os._exit(0)


def _run(arguments: list[str]) -> None:
    """Run as `python ARGUMENTS` would. Whatever it raises ends this interpreter."""
    import runpy

    while arguments[0] == "-W":
        sys.warnoptions.append(arguments[1])
        warnings._setoption(arguments[1])  # type: ignore[attr-defined]
        arguments = arguments[2:]
    sys.executable = str(Path(sys.argv[1]).parent / "python")
    more = [entry for entry in os.environ.get("PYTHONPATH", "").split(os.pathsep) if entry and entry not in sys.path]
    sys.path[1:1] = more
    kind, *rest = arguments
    if kind == "-c":
        sys.path[0], sys.argv = "", ["-c", *rest[1:]]
        exec(compile(rest[0], "<string>", "exec"), {"__name__": "__main__"})
    elif kind == "-m":
        sys.path[0], sys.argv = str(Path.cwd()), rest
        runpy.run_module(rest[0], run_name="__main__", alter_sys=True)
    else:
        sys.path[0], sys.argv = str(Path(kind).resolve().parent), arguments
        runpy.run_path(kind, run_name="__main__")


if __name__ == "__main__":
    _preload()
    _serve(sys.argv[1], int(sys.argv[2]))
