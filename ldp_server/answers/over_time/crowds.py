"""The reports of one period, or of several, as the question "did it change?" reads them.

Each kind has estimates and always-valid intervals of what is true of those who could report:

    supported  supports of items or attributes, which are binomial counts (change.py)
    scored     sums of scores: cells of tables of fields, areas of maps (ldp_server/oracles/looks)
    averaged   averages of a number in cells (ldp_server/oracles/looks/averages.py)

Copies: each report counts as 1/w of a report (change.py).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Generic, Protocol, Self, TypeVar

from ldp_server.oracles.laws.support import SupportLaw
from ldp_server.oracles.looks.areas import AreaScores
from ldp_server.oracles.looks.averages import CellLook
from ldp_server.oracles.looks.sums import Ends, ScoreSum

__all__ = ["Averaged", "Crowd", "Interval", "Scored", "Supported"]

S = TypeVar("S", ScoreSum, AreaScores)
Interval = Callable[[float, float, float], Ends]


class Crowd(Protocol):
    """The reports of some periods, with one value for each line that is asked for."""

    @property
    def reports(self) -> int: ...

    def with_more(self, other: Self) -> Self: ...

    def share(self, place: int) -> float: ...

    def interval(self, place: int, alpha: float) -> Ends: ...


@dataclass(frozen=True)
class Supported:
    """How many of the reports support each item or attribute."""

    law: SupportLaw
    reports: int
    counted: float
    """The same, where copies count as less."""
    supports: tuple[float, ...]
    """Supported in the same way."""
    ends: Interval
    """For reports, supports and alpha: the ends for the chance of a support at every number of reports."""

    def with_more(self, other: Self) -> Self:
        supports = tuple(map(sum, zip(self.supports, other.supports, strict=True)))
        return replace(
            self, reports=self.reports + other.reports, counted=self.counted + other.counted, supports=supports
        )

    def share(self, place: int) -> float:
        return (self.supports[place] / self.counted - self.law.s) / (self.law.p - self.law.s)

    def interval(self, place: int, alpha: float) -> Ends:
        """The ends of a share that hold at every number of reports."""
        low, high = self.ends(self.counted, self.supports[place], alpha)
        gap = self.law.p - self.law.s
        return max(0.0, (low - self.law.s) / gap), min(1.0, (high - self.law.s) / gap)


@dataclass(frozen=True)
class Scored(Generic[S]):
    """The sums of scores of each cell or area, and the estimates of how many users are counted."""

    reports: int
    estimates: tuple[float, ...]
    sums: tuple[S, ...]

    def with_more(self, other: Self) -> Self:
        return replace(
            self,
            reports=self.reports + other.reports,
            estimates=tuple(map(sum, zip(self.estimates, other.estimates, strict=True))),
            sums=tuple(one.with_more(two) for one, two in zip(self.sums, other.sums, strict=True)),
        )

    def share(self, place: int) -> float:
        return self.estimates[place] / self.reports

    def interval(self, place: int, alpha: float) -> Ends:
        """The ends of a share that hold at every number of reports."""
        return self.sums[place].share_ends(alpha / 2)


@dataclass(frozen=True)
class Averaged:
    """What the reports say of the average in each cell."""

    reports: int
    cells: tuple[CellLook, ...]
    lowest: int
    reach: int

    def with_more(self, other: Self) -> Self:
        cells = tuple(one.with_more(two) for one, two in zip(self.cells, other.cells, strict=True))
        return replace(self, reports=self.reports + other.reports, cells=cells)

    def share(self, place: int) -> float:
        return self.lowest + self.reach * self.cells[place].mean

    def interval(self, place: int, alpha: float) -> Ends:
        """The ends of an average that hold at every number of reports."""
        low, high = self.cells[place].averages(alpha / 2, drawn=True)
        return self.lowest + self.reach * low, self.lowest + self.reach * high
