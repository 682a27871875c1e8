"""Child processes: forked, limited, waited for, and ended with everything that they started."""

from __future__ import annotations

import contextlib
import ctypes
import itertools
import os
import resource
import shutil
import signal
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

__all__ = ["COLLECTION", "KILLED", "MISSING", "SURVIVED", "TIMEOUT", "UNREACHED", "Judge", "child", "limits", "quiet"]

SURVIVED, KILLED, TIMEOUT, UNREACHED = "survived", "killed", "timeout", "unreached"
MISSING = "missing"
"""The mutant could not be put into the live process."""
CODES = {0: SURVIVED, 70: KILLED, 71: TIMEOUT, 72: MISSING}
MEMORY = 8 << 30
COLLECTION = 8.0
"""Seconds of processor time to import the tests: some mutants never end while a module is imported."""
_ADOPT = 36
"""PR_SET_CHILD_SUBREAPER of Linux: what loses its parent becomes a child of this process."""


class Judge:
    """A pytest plugin: limits the time of each test, and ends the process at the first failure."""

    def __init__(self, limits: dict[str, float], note: int) -> None:
        self.limits, self.note = limits, note
        self.place = {test: index for index, test in enumerate(limits)}
        self.current = "collection"
        signal.signal(signal.SIGPROF, lambda *_: self.end(71))
        signal.setitimer(signal.ITIMER_PROF, COLLECTION)

    def end(self, code: int) -> None:
        os.write(self.note, self.current.encode())
        os._exit(code)

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items):
        items[:] = sorted((i for i in items if i.nodeid in self.place), key=lambda item: self.place[item.nodeid])

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item, nextitem):
        self.current = item.nodeid
        signal.setitimer(signal.ITIMER_PROF, self.limits[item.nodeid])
        try:
            return (yield)
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0.0)

    def pytest_collectreport(self, report):
        if report.failed:
            self.end(70)

    def pytest_runtest_logreport(self, report):
        if report.failed:
            self.end(70)


def quiet() -> None:
    """No input, no output."""
    nothing = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(nothing, stream)


def child(body: Callable[[int], int], wall: float) -> tuple[str, str]:
    """Run `body` in a fork, with a pipe for its note; the verdict and the note.

    The child is ended after `wall` seconds of the clock, whatever it waits for. A PostgreSQL that a test has started is
    in a session of its own. It is ended here, and its folder is deleted: the test that failed did not come to that.
    """
    ctypes.CDLL(None).prctl(_ADOPT, 1, 0, 0, 0)
    others = _children()
    inside, outside = os.pipe()
    pid = os.fork()
    if pid == 0:
        code = 70
        try:
            os.setsid()
            resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
            os.close(inside)
            code = body(outside)
        finally:
            os._exit(code)
    os.close(outside)
    code = _wait(pid, wall)
    while left := _children() - others:
        for orphan in left:
            _end(orphan)
    with os.fdopen(inside, "rb") as pipe:
        note = pipe.read().decode()
    if code is None:
        return TIMEOUT, note or "the whole run"
    return CODES.get(code, KILLED), note or ("" if code == 0 else "collection")


def _children() -> set[int]:
    """The processes that are children of this one now."""
    found = set()
    for file in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):  # it ended meanwhile
            if file.read_text().rpartition(")")[2].split()[1] == str(os.getpid()):
                found.add(int(file.parent.name))
    return found


def _end(pid: int) -> None:
    words = Path("/proc", str(pid), "cmdline").read_bytes().decode().split("\0")
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    for option, value in itertools.pairwise(words):
        folder = Path(value).parent
        if option == "-D" and folder.name.startswith("hearsay-pg-"):
            shutil.rmtree(folder, ignore_errors=True)


def _wait(pid: int, wall: float) -> int | None:
    """The child's exit code; None if it had to be ended. What it started ends with it."""
    ends = time.monotonic() + wall
    status = None
    pause = 0.005
    while time.monotonic() < ends:
        done, status = os.waitpid(pid, os.WNOHANG)
        if done:
            break
        time.sleep(pause)
        pause = min(0.05, 1.2 * pause)
    else:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        status = None
    with contextlib.suppress(ProcessLookupError):
        os.killpg(pid, signal.SIGKILL)
    return None if status is None else os.waitstatus_to_exitcode(status)


def limits(tests: Sequence[str], seconds: dict[str, float], patience: float) -> dict[str, float]:
    """Seconds of processor time for each test: four times what it took, and some patience."""
    return {test: patience + 4.0 * seconds.get(test, 1.0) for test in tests}
