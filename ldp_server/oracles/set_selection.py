r"""The oracle of set selection: how many reports hold each element, f(y) = (S(y) - n q)/(p - q).

`items()` makes an oracle of frequencies out of it, for the items that the sets are made of: index i is the i-th item,
and index 0 is `none`, those who hold no item at all. A user is counted for every item of theirs, so the estimates of
all items add up to the items that are held, and not to the users.

The law. S(y) is Bin(f, p) + Bin(n - f, q) for an element with f holders, whatever else is held: every user has m
elements. So the intervals are exact (laws/support.py). A user whose set was cut holds m - 1 items of it: f is about the
sets after that. How many sets were cut is the estimate of the element `more`; filler j counts the users with at most
m - j items.

Sums. A user who holds j of c elements has the report hold Z of them, with E[Z] = j p + (c - j) q and

    E[Z(Z - 1)] = (c (c-1) - (c-j)(c-j-1)) r + (c-j)(c-j-1) r0,

r how likely a report holds two elements of which one is its user's at least, r0 two that are not. So Var[Z] = v(j) is
quadratic in j. How j varies between users is not known, only its mean is. If v is concave, the sum of v(j) over users
is at most n v(mean); if it is convex, at most that of a crowd in which j is 0 or min(m, c). `sum_variance` is this.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from ldp_client.mechanisms.set_selection import SetSelection
from ldp_server.arrays.hashing import Indexes
from ldp_server.oracles.base import Floats, FrequencyOracle, Oracle, binomial_variance
from ldp_server.oracles.independence.chances import Chance
from ldp_server.oracles.laws.support import SupportLaw, normal_quantile
from ldp_server.oracles.shared.counts import Counts
from ldp_server.oracles.shared.supports import Supports

__all__ = ["SetItems", "SetSelectionOracle"]


class _Elements(Supports):
    """How many reports hold each element."""

    def __init__(self, randomizer: SetSelection) -> None:
        super().__init__(randomizer, randomizer.elements, randomizer.d)


class SetSelectionOracle(Oracle):
    """Counts of elements in reports."""

    kind: ClassVar[type[SetSelection]] = SetSelection
    state: ClassVar[type[Counts]] = _Elements
    instead: ClassVar[str] = "ask for its items (`ldp-server estimate`)"

    def __init__(self, randomizer: SetSelection) -> None:
        super().__init__(randomizer)
        self.made = randomizer
        self._p, self._q = (float(x) for x in randomizer.support)
        self._gap = float(randomizer.support[0] - randomizer.support[1])

    @property
    def law(self) -> SupportLaw:
        """The exact law of every element's count."""
        return SupportLaw(self.reports, self._p, self._q)

    def elements(self, places: npt.NDArray[np.intp]) -> Floats:
        """Return raw, unbiased estimates of how many users hold these elements."""
        held = self.counts.values[places].astype(np.float64)
        return np.asarray((held - self.reports * self._q) / self._gap)

    def variance(self, holders: npt.ArrayLike) -> Floats:
        """Return the variances of the estimates of elements with so many holders."""
        return binomial_variance(holders, self.reports, self._p, self._q)

    def chances(self) -> Sequence[Chance]:
        """An element is in the reports of its holders with p, in those of all others with q."""
        return (Chance(self.counts.values, self.reports, self._p, self._q),)

    def items(self) -> SetItems:
        """Return the oracle of the single items."""
        return SetItems(self)

    def sum_variance(self, count: int, holders: float) -> float:
        """Return the largest variance of the sum of `count` elements' estimates that add up to `holders`."""
        most = min(self.made.most, count)
        mean = min(max(holders / self.reports, 0.0), most) if self.reports else 0.0
        ends = [self._variance_of(count, j) for j in (0.0, float(most))]
        chord = ends[0] + (ends[1] - ends[0]) * mean / most
        return self.reports * max(0.0, chord, self._variance_of(count, mean)) / self._gap**2

    def _variance_of(self, count: int, j: float) -> float:
        """v(j): the variance of how many of `count` elements the report of a user holds who has j of them."""
        own, none = (float(x) for x in self.made.both)
        expected, strangers = j * self._p + (count - j) * self._q, (count - j) * (count - j - 1)
        return (count * (count - 1) - strangers) * own + strangers * none + expected - expected**2


class SetItems(FrequencyOracle):
    """Estimates of how many users hold each item of the sets."""

    kind: ClassVar[type[SetSelection]] = SetSelection
    exclusive: ClassVar[bool] = False

    def __init__(self, base: SetSelectionOracle) -> None:
        self.base = base
        super().__init__(base.randomizer)

    def set_counts(self, counts: object) -> None:
        """It has no counts of its own."""
        del counts
        self.judgement = None

    @property
    def randomizer(self) -> SetSelection:
        return self.base.made

    @property
    def reports(self) -> int:
        return self.base.reports

    @property
    def law(self) -> SupportLaw:
        return self.base.law

    @property
    def listed(self) -> int:
        return self.base.made.items + 1

    @property
    def can_list(self) -> bool:
        return True

    def estimate(self, indexes: Indexes) -> Floats:
        made, places = self.base.made, indexes.astype(np.intp) - 1
        return self.base.elements(np.where(places < 0, made.elements - 2, places))

    def estimate_all(self) -> Floats:
        return self.estimate(np.arange(self.listed, dtype=np.uint64))

    def possible(self, raw: Floats) -> Floats:
        """Return the nearest estimates that lie between 0 and the number of reports."""
        return np.clip(raw, 0.0, float(self.reports))

    def variance(self, frequencies: npt.ArrayLike) -> Floats:
        return self.base.variance(frequencies)

    def sum_variance(self, indexes: Indexes, frequencies: npt.ArrayLike) -> float:
        """Return a bound of the variance of the sum of the estimates of these different indexes."""
        return self.base.sum_variance(len(indexes), float(np.sum(frequencies)))

    def sum_interval(self, indexes: Indexes, estimates: Floats, tail: float) -> tuple[float, float]:
        """Return the interval for how many of these items all users hold together."""
        total = float(np.sum(estimates))
        reach = normal_quantile(tail) * float(np.sqrt(self.sum_variance(indexes, estimates)))
        most = float(self.reports) * min(len(indexes), self.base.made.most)
        return min(most, max(0.0, total - reach)), max(0.0, min(most, total + reach))
