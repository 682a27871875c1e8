"""Holds processes to a part of a core, by stopping and continuing them: a quota of the kernel needs rights that a
benchmark does not have.

Every few milliseconds it reads how much processor time each process has used (nanoseconds, over all its threads). A
process that is ahead of its part is stopped until it is not.
"""

from __future__ import annotations

import contextlib
import os
import signal
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

__all__ = ["Governor", "used"]

LOOKS = 0.002
"""Seconds between looks."""
AHEAD = 0.010
"""Processor seconds that a process which did nothing for a while may use at once."""


def used(pid: int) -> float:
    """Return the processor seconds of a process, with all threads that it has."""
    total = 0
    for path in Path(f"/proc/{pid}/task").glob("*/schedstat"):
        with contextlib.suppress(OSError):
            total += int(path.read_text().split()[0])
    return total / 1e9


class Governor:
    """Holds each process to `share` of a core until the block ends."""

    def __init__(self, pids: Sequence[int], share: float) -> None:
        self._share = share
        self._before = {pid: used(pid) for pid in pids}
        self._allowed = dict.fromkeys(pids, AHEAD)
        self._stopped: set[int] = set()
        self._ends = threading.Event()
        self._thread = threading.Thread(target=self._main, daemon=True)

    def __enter__(self) -> Self:
        self._started = time.perf_counter()
        self._begun = {pid: used(pid) for pid in self._before}
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ends.set()
        self._thread.join()
        for pid in self._stopped:
            os.kill(pid, signal.SIGCONT)
        seconds = time.perf_counter() - self._started
        self.shares = [(used(pid) - begun) / seconds for pid, begun in self._begun.items()]
        """What each process had, in cores."""

    def _main(self) -> None:
        last = time.perf_counter()
        while not self._ends.wait(LOOKS):
            now = time.perf_counter()
            for pid, before in self._before.items():
                spent = used(pid)
                left = self._allowed[pid] + self._share * (now - last) - (spent - before)
                self._before[pid], self._allowed[pid] = spent, min(left, AHEAD)
                self._hold(pid, stop=left < 0)
            last = now

    def _hold(self, pid: int, *, stop: bool) -> None:
        if stop != (pid in self._stopped):
            os.kill(pid, signal.SIGSTOP if stop else signal.SIGCONT)
            (self._stopped.add if stop else self._stopped.discard)(pid)
