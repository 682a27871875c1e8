"""The memory and the processors of this machine, and how much of them a simulation used."""

from __future__ import annotations

import os
import resource
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ldp_client.errors import InvalidSpec

__all__ = ["Stopwatch", "available_memory", "check_memory", "peak_rss_mb", "usable_processes"]

_BLOCK_MEMORY = 64 << 20
"""Bytes of a process besides its counts: the program, and the arrays of one block."""


def available_memory() -> int:
    """Return the bytes that can be used without swapping; if that is unknown, a number beyond all memory."""
    try:
        lines = Path("/proc/meminfo").read_text().splitlines()
        found = 1024 * int(next(line.split()[1] for line in lines if line.startswith("MemAvailable:")))
    except (OSError, StopIteration, ValueError):
        return 1 << 62
    return min(found, _cgroup_room())


def _cgroup_room() -> int:
    """The bytes that a container's limit leaves."""
    try:
        limit = Path("/sys/fs/cgroup/memory.max").read_text().strip()
        used = int(Path("/sys/fs/cgroup/memory.current").read_text())
        return 1 << 62 if limit == "max" else max(0, int(limit) - used)
    except (OSError, ValueError):
        return 1 << 62


def check_memory(counts: int, processes: int = 1) -> None:
    """Refuse a simulation for which the memory is too small; each process has counts of that many bytes."""
    wanted, room = (counts + _BLOCK_MEMORY) * processes, available_memory()
    if wanted > room:
        raise InvalidSpec(
            f"this takes about {wanted / 1e9:.1f} GB of memory and {room / 1e9:.1f} GB are free: "
            "use fewer processes, a smaller domain or a mechanism with fewer cells"
        )


def peak_rss_mb() -> float:
    """Return the largest resident size so far of this process, or of a child that has ended, in MB."""
    try:
        status = Path("/proc/self/status").read_text()
        own = 1024 * int(next(line for line in status.splitlines() if line.startswith("VmHWM")).split()[1])
    except (OSError, StopIteration):
        own = 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    children = 1024 * resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    return max(own, children) / 1e6


class Stopwatch:
    """CPU seconds of this process, by stage."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Add the time of the block to a stage."""
        start = time.process_time()
        try:
            yield
        finally:
            self.add(name, time.process_time() - start)

    def add(self, name: str, seconds: float) -> None:
        self.seconds[name] = self.seconds.get(name, 0.0) + seconds

    def merge(self, other: dict[str, float]) -> None:
        """Add the stages of another watch."""
        for name, seconds in other.items():
            self.add(name, seconds)


def usable_processes(asked: int) -> int:
    """Return how many processes were asked for; 0 asks for one for each core that this process may use."""
    return asked or len(os.sched_getaffinity(0))
