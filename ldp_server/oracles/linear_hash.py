"""The oracle of linear-hash response: f(x) = (S(x) - n s)/(p - s), S from one fast transform (transform.py).

The sum of the estimates of a set A of items is a sum over the reports: one of weight w, which supports w items of A,
adds (w - |A| s)/(p - s) to it. Adding up the single variances is wrong: two items on a line of F_q^t through the item
of many users are supported by the same reports of these users, and neighbours in the numbering lie on such lines. At
epsilon 3, q = 13, t = 2 the correlation is .58 if all users hold that item, and .19 if a third of them do. So variance
and interval of a sum come from the law of a sum of weights (laws/report_sums.py).

That law needs to know which weights the reports of a user have. With l the probability of each lie,

    P(weight w | item x) = sum over points a of ((p - l) 1[W(a, <a, x>) = w] + l sum over y of 1[W(a, y) = w]) / P,

W(a, y) being the weight of report (a, y). It is averaged over the items that users hold: those of A, and those outside,
both in the proportions of the consistent estimates. The item that shares most heavy reports with A has the largest sum
over a of W(a, <a, x>)^2.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from ldp_client.mechanisms.linear_hash import LinearHash
from ldp_server.arrays.hashing import Indexes
from ldp_server.arrays.transform import drawn, few_is_faster, support, support_of_few, weights_of_reports
from ldp_server.oracles.base import Floats, FrequencyOracle, binomial_variance
from ldp_server.oracles.independence.chances import Chance
from ldp_server.oracles.laws.projection import norm_sub
from ldp_server.oracles.laws.report_sums import SumLaw, different, with_mean
from ldp_server.oracles.laws.support import SupportLaw

__all__ = ["LinearHashOracle", "report_chances"]

_MOST = 1000
"""Where elements are looked at one by one, users are parted among so many of them at most."""


def _evenly(size: int, wanted: int) -> npt.NDArray[np.intp]:
    """So many places out of `size`, at equal distances."""
    return np.arange(wanted, dtype=np.intp) * size // wanted


def report_chances(linear: LinearHash) -> tuple[float, float]:
    """Return the largest and the least probability of a report, over all items: the point is free of the item."""
    most, least = (float(linear.response.probability(0, answer)) for answer in (0, linear.q - 1))
    return most / linear.points, least / linear.points


class LinearHashOracle(FrequencyOracle):
    """Counts of (point, answer)."""

    kind: ClassVar[type[LinearHash]] = LinearHash

    def __init__(self, randomizer: LinearHash) -> None:
        super().__init__(randomizer)
        self._q, self._t = randomizer.q, randomizer.t
        self._p, self._s = (float(x) for x in randomizer.support)
        self._chances = report_chances(randomizer)
        self._cells: Floats | None = None
        self._points = randomizer.points
        self._last: tuple[bytes, SumLaw] | None = None
        """The last set whose sum was asked for, and its law."""

    def _forget(self) -> None:
        self._cells = self._last = None

    def cells(self) -> Floats:
        """Return estimates of every element of F_q^t, kept until the counts change."""
        if self._cells is None:
            supports = support(self.counts.values, self._q, self._t).astype(np.float64, copy=False)
            self._cells = (supports - self.reports * self._s) / (self._p - self._s)
        return self._cells

    def estimate(self, indexes: Indexes) -> Floats:
        return self.cells()[indexes.astype(np.intp)]

    def estimate_all(self) -> Floats:
        return self.cells()[: self.randomizer.size].copy()

    def points(self) -> Iterable[Iterable[npt.NDArray[np.integer]]]:
        yield (drawn(self.counts.values, self._q),)

    def chances(self) -> Sequence[Chance]:
        return (Chance(self.counts.values, self.reports, *self._chances, place=0),)

    def variance(self, frequencies: npt.ArrayLike) -> Floats:
        """Return (f p(1-p) + (n-f) s(1-s))/(p-s)^2."""
        return binomial_variance(frequencies, self.reports, self._p, self._s)

    def sum_variance(self, indexes: Indexes, frequencies: npt.ArrayLike) -> float:
        """Return the variance of the sum (see above)."""
        if not self.reports or not len(indexes):
            return 0.0
        held = float(np.clip(np.sum(frequencies), 0, self.reports))
        return self._law_of_sum(indexes).variance(held) / (self._p - self._s) ** 2

    def picked_variance(self, indexes: Indexes, frequencies: npt.ArrayLike) -> float:
        """Return the variance for picked indexes: from the counts.

        Items are picked because the reports that came support many of them together. The counts have that in them, and
        the law above has not.
        """
        return self.sum_moments(indexes, frequencies)[0]

    def sum_moments(self, indexes: Indexes, frequencies: npt.ArrayLike) -> tuple[float, float]:
        """Return the variance and the third central moment of the sum as the counts show them.

        A report adds g = (w - |A| s)/(p - s). Given a user's item, g has mean 1 or 0, so the variance is E[sum of g^2]
        less the users with an item of A: at least that of users spread evenly, for few reports support all of A at
        once. For users in A, E[g^2] in the third moment is taken as that of the item alone.
        """
        held = float(np.clip(np.sum(frequencies), 0, self.reports))
        g = (self._weights(indexes.astype(np.intp)) - len(indexes) * self._s) / (self._p - self._s)
        square = np.square(g)
        counted = max(float(self.counts.values @ square), self.reports * float(square.mean()))
        alone = self._p * (1 - self._p) / (self._p - self._s) ** 2
        third = float(self.counts.values @ (square * g)) - held * (1 + 3 * alone)
        return max(0.0, counted - held), third

    def sum_interval(self, indexes: Indexes, estimates: Floats, tail: float) -> tuple[float, float]:
        """Return the interval for how many users hold one of these different indexes, which were fixed beforehand."""
        del estimates  # the law reads the counts
        everybody = float(self.reports if len(indexes) == self.randomizer.size else 0)
        if everybody or not self.reports or not len(indexes):
            return everybody, everybody
        return self._law_of_sum(indexes).interval(tail)

    def _law_of_sum(self, indexes: Indexes) -> SumLaw:
        """The law of the sum of the weights of all reports."""
        key = indexes.tobytes()
        if self._last is None or self._last[0] != key:
            self._last = key, self._make_law(indexes.astype(np.intp))
        return self._last[1]

    def _make_law(self, places: npt.NDArray[np.intp]) -> SumLaw:
        weights = self._weights(places)
        outside = np.setdiff1d(np.arange(self.randomizer.size), places, assume_unique=True)
        near = self._near(weights, places, outside)
        every, numbers = different(weights)
        del weights  # in the largest domains they have millions of elements
        lie = (1 - self._p) / (self._q - 1)
        lies = np.bincount(numbers, minlength=len(every)) / self._points
        guess = norm_sub(self.estimate_all(), self.reports)
        laws = [
            with_mean(
                (self._p - lie) * self._weights_of_users(numbers, self._spread(held, among)) + lie * lies,
                every,
                len(places) * self._s + (self._p - self._s if among is places else 0.0),
            )
            for held, among in ((guess, places), (guess, outside), (near, outside))
        ]
        seen = np.bincount(numbers, self.counts.values, len(every)).astype(np.float64, copy=False)
        return SumLaw(self.reports, every, seen, *laws)

    def _weights(self, places: npt.NDArray[np.intp]) -> npt.NDArray[np.int32]:
        """How many of these elements each report supports."""
        inside = np.zeros(self._q**self._t, np.float32)
        inside[places] = 1
        weights: npt.NDArray[np.int32] = np.rint(weights_of_reports(inside, self._q, self._t)).astype(np.int32)
        return weights

    def _spread(self, guess: npt.NDArray[np.floating], places: npt.NDArray[np.intp]) -> npt.NDArray[np.float32]:
        """Part the users among these elements in proportion to a guess; evenly where it is zero for all of them."""
        held, own = np.zeros(self._q**self._t, np.float32), guess[places]
        if few_is_faster(self._q) and len(places) > _MOST:
            kept = np.argsort(-own, kind="stable")[:_MOST] if own.any() else _evenly(len(places), _MOST)
            places, own = places[kept], own[kept]
        held[places] = own / own.sum() if own.any() else 1 / max(1, len(places))
        return held

    def _weights_of_users(self, numbers: npt.NDArray[np.intp], held: npt.NDArray[np.float32]) -> Floats:
        """The law of the weight of a true answer, if users are parted among the elements like this."""
        parts = weights_of_reports(held, self._q, self._t)
        return np.bincount(numbers, parts, int(numbers.max()) + 1) / self._points

    def _near(
        self, weights: npt.NDArray[np.int32], places: npt.NDArray[np.intp], outside: npt.NDArray[np.intp]
    ) -> npt.NDArray[np.float32]:
        """1 for elements outside that share heavy reports with the set, more than half as many as any other does."""
        shared, squares = np.zeros(self.randomizer.size, np.float32), np.square(weights.astype(np.float32))
        if few_is_faster(self._q) and len(outside) > _MOST:
            beside = np.concatenate((places[:_MOST] + 1, places[-_MOST:] - 1, outside[_evenly(len(outside), _MOST)]))
            outside = np.intersect1d(beside, outside)
            shared[outside] = support_of_few(squares, outside, self._q, self._t)
        else:
            shared[outside] = support(squares, self._q, self._t)[outside]
        if not len(outside):
            return shared
        middle = (float(shared[outside].max()) + float(shared[outside].min())) / 2
        return (shared >= middle).astype(np.float32)

    @property
    def law(self) -> SupportLaw:
        return SupportLaw(self.reports, self._p, self._s)
