"""What the processes of all kinds of servers do before, while and after they serve, and how their checks are printed.

It imports little: the relay's process has no numpy.
"""

from __future__ import annotations

import json
import logging
import os
import sys
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import asynccontextmanager

from prometheus_client import disable_created_metrics

from ldp_server import __version__
from ldp_server.cli.shapes import DiagnosisShape
from ldp_server.diagnosis import MARKS, Diagnosis, Unsound
from ldp_server.service.logs import event, set_up_logs
from ldp_server.service.running import RunningServer, allow_files

__all__ = [
    "SWITCH_SECONDS", "check_line", "print_checks", "say_listening", "set_up_process", "started", "told_to_stop",
    "write_line",
]  # fmt: skip

SWITCH_SECONDS = 0.0005
"""After how many seconds a thread must give up the interpreter: short, because the writer thread waits while the event
loop runs."""


def set_up_process(level: str, form: str, connections: int) -> None:
    """Set up logs and metrics, the rights of new files, and how many files may be open."""
    set_up_logs(level, form)
    # Otherwise each counter has a second series, the time at which it was made.
    disable_created_metrics()  # type: ignore[no-untyped-call]
    os.umask(0o077)  # files are readable by their owner only, whatever the directory's mode is
    allow_files(connections)


@asynccontextmanager
async def started(server: RunningServer) -> AsyncIterator[None]:
    """Start a server that SIGTERM and SIGINT ask to stop, and close it after the block, or when the block fails."""
    server.stop_on_signals()
    await server.start()
    try:
        yield
    finally:
        await server.stop()
        event(logging.INFO, "stopped")
    if server.failure is not None:
        raise server.failure


async def told_to_stop(server: RunningServer) -> None:
    """Serve until the server is asked to stop; it drains then."""
    await server.wait()
    event(logging.INFO, "draining")


def say_listening(listening: Mapping[str, str], text: str, *, as_json: bool) -> None:
    """Say on standard output where a server listens: the `text`, or the addresses as JSON."""
    said = json.dumps({"listening": listening, "version": __version__, "pid": os.getpid()}) if as_json else text
    write_line(said)


def print_checks(found: Iterable[Diagnosis], say: Callable[[str], None], *, as_json: bool) -> None:
    """Print what each check has found, and raise `Unsound` if something is wrong."""
    verdicts = []
    for one in found:
        verdicts.append(one.verdict)
        shape: DiagnosisShape = {"what": one.what, "verdict": one.verdict, "detail": one.detail}
        if as_json:
            write_line(json.dumps(shape))
        else:
            say(check_line(one))
    wrong = verdicts.count("wrong")
    if wrong:
        raise Unsound(f"{wrong} of {len(verdicts)} checks found something wrong")


def check_line(one: Diagnosis) -> str:
    """What a check has found, as a line."""
    return f"{MARKS[one.verdict]}  {one.what}: {one.detail}"


def write_line(text: str) -> None:
    """Write a line that a reader at the other end of a pipe sees at once."""
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()
