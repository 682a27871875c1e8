r"""What an answer would print if every count were what it is on average.

The counts of n reports from a crowd with known shares have known means. An oracle that is given these means answers
what real reports answer, up to their noise: its estimates are the truth, and its standard errors and intervals are the
typical ones. So a plan asks the same code that will answer, and no formula stands twice in the project.

    frequencies    the law of the count of one item (laws/support.py) needs no counts. Hashtogram's error has two parts:
                   its noise, and collisions, R (F2/R^2 + n (1 - 1/R)/R) / (T - 1) for R teams of T cells, with F2 the
                   sum of the squared frequencies. Its intervals are planned by the normal law.
    average        the window's weights, mixed as the numbers are rounded
    tree           each level has 1/L of the users
    attributes     the law of the answers over all sets

`shares` has the part of the users for each index of the domain.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ldp_client.collection import Collection
from ldp_client.mechanisms.base import Randomizer
from ldp_client.mechanisms.bounded_number import BoundedNumber
from ldp_client.mechanisms.composed_response import ComposedResponse
from ldp_client.mechanisms.hashtogram import Hashtogram
from ldp_client.mechanisms.hierarchy import Hierarchy
from ldp_client.mechanisms.linear_hash import LinearHash
from ldp_client.mechanisms.randomized_response import RandomizedResponse
from ldp_client.mechanisms.records.sampled_attribute import SampledAttribute
from ldp_client.mechanisms.subset_selection import SubsetSelection
from ldp_server.arrays.transform import weights_of_reports
from ldp_server.oracles import oracle_for
from ldp_server.oracles.base import Oracle, binomial_variance, two_sided
from ldp_server.oracles.hierarchy import HierarchyOracle
from ldp_server.oracles.independence.result import INDEPENDENT
from ldp_server.oracles.laws.support import SupportLaw

__all__ = ["Expected", "expected_oracle", "frequency_error", "widening"]

Floats = npt.NDArray[np.float64]

_TREES = 32


@dataclass(frozen=True)
class Expected:
    """An answer at its expected counts: the truth, the standard error and the interval."""

    truth: float
    standard_error: float
    low: float
    high: float

    @property
    def reach(self) -> float:
        """The way to the farther end of the interval."""
        return max(self.truth - self.low, self.high - self.truth)

    def scaled(self, factor: float) -> Expected:
        """Return the same in another unit."""
        return Expected(*(factor * x for x in (self.truth, self.standard_error, self.low, self.high)))

    def changed(self, confidence: float) -> Expected:
        """Return the difference of two such answers of different reports, by the normal law."""
        error = math.sqrt(2) * self.standard_error
        return Expected(0.0, error, -two_sided(confidence) * error, two_sided(confidence) * error)


def _support(randomizer: Randomizer) -> tuple[float, float]:
    """(p, s) of a mechanism that has an exact law of supports."""
    if isinstance(randomizer, RandomizedResponse):
        return float(randomizer.response.p), float(randomizer.response.q)
    if isinstance(randomizer, LinearHash | SubsetSelection):
        p, s = randomizer.support
        return float(p), float(s)
    raise TypeError(f"{randomizer.name} has no law of supports")


def frequency_error(randomizer: Randomizer, users: int, share: float, skew: float, confidence: float) -> Expected:
    """Return the answer about an item with this share; `skew` is F2/n^2, for hash collisions."""
    held = share * users
    if isinstance(randomizer, Hashtogram):
        error = math.sqrt(_hashed_variance(randomizer, users, held, skew))
        reach = two_sided(confidence) * error
        return Expected(held, error, max(0.0, held - reach), min(float(users), held + reach))
    law = SupportLaw(users, *_support(randomizer))
    low, high = law.intervals(np.array([held]), (1 - confidence) / 2)
    return Expected(held, float(law.spread(held)), float(low[0]), float(high[0]))


def _hashed_variance(randomizer: Hashtogram, users: int, held: float, skew: float) -> float:
    p, s = (float(x) for x in randomizer.inner.support)
    cells, teams = randomizer.cells, randomizer.teams
    noise = float(binomial_variance(held, users, p, s)) * (cells / (cells - 1)) ** 2
    others = skew * users**2 / teams + users * (1 - 1 / teams) - held**2 / teams
    return noise + max(0.0, others) / (cells - 1)


def expected_oracle(collection: Collection, shares: Floats, users: int) -> Oracle:
    """Return the collection's oracle with the mean counts of so many users."""
    randomizer = collection.randomizer
    oracle: Oracle
    if isinstance(randomizer, Hierarchy):
        oracle = _ExpectedTree(randomizer, shares, users)
    else:
        oracle = oracle_for(collection)
        means = users * _LAWS[type(randomizer)](randomizer, shares)
        oracle.counts.values = means  # type: ignore[assignment]  # means are not whole, and nothing is added to them
        oracle.counts.total = users
    oracle.judgement = oracle, INDEPENDENT  # counts that do not vary at all would be judged
    return oracle


def _responses(randomizer: RandomizedResponse, shares: Floats) -> Floats:
    response = randomizer.response
    total = 1 << response.word_bits
    extra = np.arange(response.k) < response.spare % response.k
    lies = (response.lie + response.spare // response.k) / total + extra / total
    return np.asarray(lies + shares * ((response.truth - response.lie) / total))


def _composed(randomizer: ComposedResponse, shares: Floats) -> Floats:
    weights = np.array([float(weight) for weight in randomizer.weights]) / (1 << randomizer.word_bits)
    law = weights[np.bitwise_count(np.arange(randomizer.size, dtype=np.uint64)).astype(np.intp)]
    mixed = _signs(_signs(shares) * _signs(law)) / randomizer.size
    return np.asarray(mixed / mixed.sum())


def _signs(values: Floats) -> Floats:
    """Sums with the signs (-1)^(x . S), for every S."""
    out, step = values.astype(np.float64), 1
    while step < len(out):
        pairs = out.reshape(-1, 2, step)
        out = np.concatenate((pairs[:, :1] + pairs[:, 1:], pairs[:, :1] - pairs[:, 1:]), axis=1).reshape(-1)
        step *= 2
    return out


def _sampled(randomizer: SampledAttribute, shares: Floats) -> Floats:
    sets = np.arange(randomizer.size)
    held = np.array([shares[(sets >> i & 1) == 1].sum() for i in range(randomizer.k)])
    p, q = (float(randomizer.response.probability(told, 1)) for told in (1, 0))
    yes = q + (p - q) * held
    return np.asarray(np.stack([1 - yes, yes], axis=1).ravel() / randomizer.k)


def _numbers(randomizer: BoundedNumber, shares: Floats) -> Floats:
    """Index 0 stands for `none`: the middle of the range."""
    law, asked = randomizer.law, randomizer.presence / 256
    places = law.answers - law.window
    at = np.concatenate(([places / 2], np.arange(randomizer.size - 1) * places / (randomizer.size - 2)))
    lower = np.minimum(at.astype(np.intp), places - 1)
    stands = np.bincount(lower, shares * (1 - (at - lower)), places + 1)
    stands += np.bincount(lower + 1, shares * (at - lower), places + 1)
    weights = [[law.weight(j, y) for y in range(law.answers)] for j in range(places + 1)]
    answers = stands @ (np.array(weights, np.float64) / (1 << law.word_bits))
    if not randomizer.presence:
        return np.asarray(answers)
    p, q = (float(randomizer.response.probability(told, 1)) for told in (1, 0))
    yes = q + (p - q) * (1 - float(shares[0]))
    return np.concatenate([(1 - asked) * answers, [asked * (1 - yes), asked * yes]])


_LAWS: Mapping[type[Randomizer], Callable[..., Floats]] = {
    RandomizedResponse: _responses,
    ComposedResponse: _composed,
    SampledAttribute: _sampled,
    BoundedNumber: _numbers,
}


def widening(
    collection: Collection, shares: Floats, users: int, share: float, confidence: float
) -> tuple[float, float]:
    """Return how much larger a quantile's error is than the noise at one integer, and how much wider its interval.

    Both are averages over trees with normal noise. The estimate is the first integer whose count is large enough, and
    an integer belongs to the interval unless a test at that integer excludes it. The noise of neighbours differs, so
    the first of them lies too low, and the outermost ones further out than the noise at one integer.
    """
    randomizer = collection.randomizer
    if not isinstance(randomizer, Hierarchy):
        raise TypeError("only a tree has quantiles")
    exact = _ExpectedTree(randomizer, shares, users)
    cumulated = np.concatenate(([0.0], np.cumsum(shares[1:]))) / float(shares[1:].sum())
    noise = exact.quantile_error(share) / users
    reach = two_sided(confidence) * noise
    errors, found, least = [], [], min(1.0, share + reach) - max(0.0, share - reach)
    for number in range(_TREES):
        tree = _ExpectedTree(randomizer, shares, users, np.random.Generator(np.random.PCG64(number)))
        one = tree.quantile(share, confidence)
        # Each end is uncertain by one integer: half of what lies at it counts.
        ends = [(cumulated[end] + cumulated[end + 1]) / 2 for end in (one.low, one.high)]
        found.append(ends[1] - ends[0])
        middle = (cumulated[one.estimate] + cumulated[one.estimate + 1]) / 2
        errors.append((middle - share) ** 2)
    larger = math.sqrt(float(np.mean(errors))) / noise
    return max(1.0, larger), max(1.0, float(np.mean(found)) / least)


class _ExpectedTree(HierarchyOracle):
    """A tree whose levels have equally many users, without noise or with normal noise."""

    def __init__(
        self, randomizer: Hierarchy, shares: Floats, users: int, noise: np.random.Generator | None = None
    ) -> None:
        super().__init__(randomizer)
        self._none, self._held = float(shares[0]) * users, shares[1:] * users
        self._random = noise
        self.counts.total = users
        means = np.concatenate([self._means(level) for level in range(len(self._levels))])
        self.counts.values = means

    def _line(self, level: int) -> Floats:
        """How many of all users are in each cell of a level, `none` first."""
        cells = self._cells(self._held, len(self._levels) - 1 - level)
        return np.concatenate(([self._none], cells[: self._levels[level].size - 1]))

    def _means(self, level: int) -> Floats:
        """The mean counts of a level: lies of everybody, and more of what supports a user's cell."""
        linear = self._levels[level]
        truth = float(linear.response.p)
        lie = (1 - truth) / (linear.q - 1)
        line = self._line(level) / len(self._levels)
        held = np.append(line, np.zeros(linear.q**linear.t - linear.size))
        supported = weights_of_reports(held, linear.q, linear.t).astype(np.float64, copy=False)
        return np.asarray((line.sum() * lie + (truth - lie) * supported) / linear.points)

    def level_totals(self) -> Floats:
        return np.full(len(self._levels), self.reports / len(self._levels))

    def _raw(self, level: int, users: float) -> Floats:
        line = self._line(level)
        if self._random is None:
            return line
        spread = np.sqrt(self._cell_variance(level, users, line))
        return np.asarray(line + spread * self._random.standard_normal(len(line)))
