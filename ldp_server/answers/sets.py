"""Collections of sets: their single items as frequencies, how large the sets are, and how many were cut.

A collection of sets is asked about items, each of them for itself: users are counted for every item that they hold, and
`none` is who holds no item at all. Estimates of items do not add up to the users.

A set of more than `most` items is cut by the device, which then tells of `most` - 1 of them. So an item's estimate is
about the sets after that. It is short of all its holders by `cut` users at the most, those whose sets were cut. How
many these are, and how many users hold few items, is estimated from the same reports with exact intervals, each for
itself (ldp_server/oracles/set_selection.py).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ldp_server.answers.words import whole
from ldp_server.oracles.base import Oracle
from ldp_server.oracles.independence.judge import accepted, widening
from ldp_server.oracles.laws.every_look import support_ends
from ldp_server.oracles.set_selection import SetItems, SetSelectionOracle

__all__ = ["SetSizes", "SizeCount", "set_sizes", "single_items"]


@dataclass(frozen=True)
class SizeCount:
    """How many users hold so few items, or more than so many."""

    items: int
    estimate: float
    standard_error: float
    low: float
    high: float


@dataclass(frozen=True)
class SetSizes:
    """The sizes of the users' sets, and what the cut of large ones did."""

    most: int
    """Sets of up to so many items are reported whole; of a larger one the device keeps one fewer."""
    at_most: tuple[SizeCount, ...]
    """How many users hold at most 0, 1, ... most - 1 items."""
    cut: SizeCount
    """How many users hold more than `most`. No estimate of an item is short of its holders by more users than these."""
    average: float
    """How many items a user holds on average, after the cut."""
    average_low: float
    average_high: float

    def in_words(self, reports: int) -> list[str]:
        """Say how large the sets are, and what the cut of large ones did to the estimates of items."""
        average = f"{self.average:.2f} items a user ({self.average_low:.2f} to {self.average_high:.2f})"
        few = [f"at most {one.items}: {_users(one)}" for one in self.at_most[1:]]
        lines = [f"Sizes of sets: {average}; no item: {_users(self.at_most[0])}; {'; '.join(few)}."]
        if not self.cut.high:
            return [*lines, "No set was cut."]
        share = f"{self.cut.estimate / max(1, reports):.1%}"
        return [
            *lines,
            f"Sets of more than {self.most} items were cut: those of {_users(self.cut)} users, {share} of all. An "
            f"item's estimate is short of its holders by at most {self.cut.high:,.0f} users.",
        ]


def single_items(oracle: Oracle) -> Oracle:
    """Return what is asked about items: the oracle itself, or that of the single items of sets."""
    if not isinstance(oracle, SetSelectionOracle):
        return oracle
    honest, seen = accepted(oracle)
    found = honest.items()
    found.judgement = found, seen
    return found


def set_sizes(oracle: Oracle, tail: float, *, every_look: bool) -> SetSizes | None:
    """Return the sizes of sets, where there are sets; each end of an interval errs with probability `tail` at most."""
    if not isinstance(oracle, SetItems):
        return None
    made, base = oracle.base.made, oracle.base
    fillers = made.items + made.most - 1 - np.arange(made.most)  # filler m first: it counts those with no item
    counts = _counts(oracle, np.append(fillers, made.elements - 1), tail, every_look=every_look)
    at_most = tuple(SizeCount(items, *four) for items, four in enumerate(counts[:-1]))
    cut = SizeCount(made.most, *(counts[-1] if made.items > made.most else (0.0,) * 4))
    every = np.arange(1, made.items + 1, dtype=np.uint64)
    total = float(base.elements(np.arange(made.items)).sum())
    low, high = oracle.sum_interval(every, oracle.estimate(every), widening(oracle).tail(tail))
    users = max(1, oracle.reports)
    return SetSizes(made.most, at_most, cut, total / users, low / users, high / users)


def _counts(
    oracle: SetItems, places: npt.NDArray[np.intp], tail: float, *, every_look: bool
) -> list[tuple[float, float, float, float]]:
    """The estimates of some elements, with their errors and intervals."""
    widened, raw = widening(oracle), oracle.base.elements(places)
    errors = widened.errors(np.sqrt(oracle.variance(raw)))
    if every_look:
        law = oracle.law
        ends = support_ends(law.supports(raw), law.reports, law.p, law.s, tail)
        low, high = widened.stretched(raw, *ends, oracle.reports)
    else:
        low, high = oracle.law.intervals(raw, widened.tail(tail))
    return [(float(a), float(b), float(c), float(d)) for a, b, c, d in zip(raw, errors, low, high, strict=True)]


def _users(one: SizeCount) -> str:
    return f"{whole(one.estimate)} ({whole(one.low)} to {whole(one.high)})"
