"""What intervals of one kind did over the runs of a cell, and the rows that say so."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from benchmarks.row import Row, row

__all__ = ["CLAIM", "Tally", "wilson"]

CLAIM = 0.94
"""A row misses if its own 95% interval lies below this."""
WIDEST = 1.3
BIAS = 0.2
_Z = 1.96
_ENOUGH = 20
"""Runs from which a standard deviation is measured."""

Floats = npt.NDArray[np.float64]


def wilson(held: float, claims: int) -> tuple[float, float]:
    """Return Wilson's 95% interval for a share."""
    share, square = held / claims, _Z * _Z / claims
    centre = (share + square / 2) / (1 + square)
    reach = _Z * math.sqrt(share * (1 - share) / claims + square / claims / 4) / (1 + square)
    return centre - reach, centre + reach


def _least_share(claims: int) -> float:
    """The least share whose Wilson interval reaches `CLAIM`: the same test, solved for the share."""
    return CLAIM - _Z * math.sqrt(CLAIM * (1 - CLAIM) / claims)


@dataclass
class Tally:
    """One kind of interval."""

    held: int = 0
    claims: int = 0
    runs: int = 0
    width: float = 0.0
    narrowest: float = 0.0
    """The sum of the widths of the narrowest valid intervals, where they follow from the truth."""
    fixed: float = 0.0
    """The same for as many items fixed beforehand."""
    errors: list[float] = field(default_factory=list)
    """Where they do not: the errors of the point value, whose middle 95% is the narrowest interval around it."""

    def add(self, low: Floats, high: Floats, truth: Floats, *, together: bool = False) -> None:
        """Add the intervals of one run, each a claim; together they are one."""
        if not len(low):
            return
        inside = (low <= truth + 1e-9) & (truth - 1e-9 <= high)
        self.held += int(inside.all()) if together else int(inside.sum())
        self.claims += 1 if together else len(inside)
        self.runs += 1
        self.width += float((high - low).mean())

    def add_one(self, ends: tuple[float, float], point: float, truth: float) -> None:
        """Add one interval with its point value."""
        self.add(*(np.array([value], np.float64) for value in (*ends, truth)))
        self.errors.append(point - truth)

    def add_flag(self, held: bool) -> None:
        """Add a claim without an interval."""
        self.held, self.claims, self.runs = self.held + held, self.claims + 1, self.runs + 1

    def rows(self, name: str) -> Iterator[Row]:
        """Return the coverage, and the width and the bias where there are some."""
        if not self.claims:
            return
        low, high = wilson(self.held, self.claims)
        unit = f"of {self.claims} claims in {self.runs} runs, {low:.4f} to {high:.4f}"
        yield row(f"{name}: held", self.held / self.claims, unit, f">= {_least_share(self.claims):.4f}")
        mean, narrowest = self.width / self.runs, self.narrowest / self.runs
        measured = len(self.errors) >= _ENOUGH
        if measured:
            narrowest = self.spread() * 2 * _Z
        if mean and narrowest:
            slack = 2.6 / math.sqrt(2 * self.runs) if measured else 0.0  # of a measured standard deviation
            yield row(f"{name}: width", mean / narrowest, "x the narrowest valid", f"<= {WIDEST * (1 + slack):.2f}")
        if self.fixed and mean:
            yield row(f"{name}: width beside a fixed set's", mean * self.runs / self.fixed, "x the narrowest for fixed")
        if measured and self.spread():
            bias, slack = abs(float(np.mean(self.errors))) / self.spread(), 2.6 / math.sqrt(self.runs)
            yield row(f"{name}: bias", bias, "standard deviations", f"<= {BIAS + slack:.2f}")

    def spread(self) -> float:
        """Return the standard deviation of the point value's errors."""
        return float(np.std(self.errors))
