"""The rows that all benchmarks print: a value with its target and, for speeds, a yardstick from the same run.

    {"name": ..., "value": ..., "unit": ..., "target": ">= 800000" or null, "ok": true, false or null,
     "yardstick": {"name": ..., "value": ..., "ratio": ...} or null}

On a shared machine a speed alone says little. Its ratio to a yardstick of the same run says more.
"""

from __future__ import annotations

import operator
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from statistics import median
from typing import Any

__all__ = ["Options", "Row", "Yardstick", "cpu_seconds", "row", "tell"]

_COMPARE: dict[str, Callable[[float, float], bool]] = {"<=": operator.le, ">=": operator.ge}


@dataclass(frozen=True)
class Options:
    """The options of the command line."""

    full: bool = False
    peers: bool = False
    only: tuple[str, ...] = ()
    """The parts that are asked for; all of them if empty."""


@dataclass(frozen=True)
class Yardstick:
    """A reference that was measured in the same run; `ratio` is the row's value divided by it."""

    name: str
    value: float
    ratio: float


@dataclass(frozen=True)
class Row:
    """A measured value with its target."""

    name: str
    value: float
    unit: str
    target: str | None = None
    ok: bool | None = None
    yardstick: Yardstick | None = None

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


def row(
    name: str, value: float, unit: str, target: str | None = None, yardstick: tuple[str, float] | None = None
) -> Row:
    """Make a row; `target` is "<= 1.05" or ">= 800000", and decides `ok`."""
    value = float(value)  # numpy's numbers, and what their comparisons give, are not JSON
    ok = None
    if target is not None:
        compare, bound = target.split()
        ok = _COMPARE[compare](value, float(bound))
    stick = yardstick and Yardstick(yardstick[0], yardstick[1], value / yardstick[1])
    return Row(name, value, unit, target, ok, stick)


def cpu_seconds(work: Callable[[], object], repeats: int = 5) -> float:
    """Return the median of the CPU seconds that `work` takes in one thread; a first run is not counted."""
    work()
    taken = []
    for _ in range(repeats):
        start = time.thread_time()
        work()
        taken.append(time.thread_time() - start)
    return median(taken)


def tell(text: str) -> None:
    """Say on a terminal what is measured now: some rows take a minute."""
    if sys.stderr.isatty():
        print(text, file=sys.stderr, flush=True)
