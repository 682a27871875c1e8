"""What every oracle is: additive counts of reports. What each kind of oracle estimates from them.

An oracle is the server half of a mechanism. Its state is additive: `merge` is associative and commutative, and any
partition of the reports gives the same counts. The size of the state depends on the mechanism's cells, never on the
number of reports. An oracle speaks of indexes; ldp_server/answers turns them into items, intervals and verdicts.

    Oracle                counts reports, saves and restores its state
    |-- FrequencyOracle   how many users hold each item
    |-- AttributesOracle  how many users hold each attribute of a set
    `-- NumbersOracle     what the users' numbers are like: an average, quantiles

An oracle may be of two kinds: a tree over the integers gives quantiles and the frequency of one integer.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass
from statistics import NormalDist
from typing import ClassVar, Self

import numpy as np
import numpy.typing as npt

from ldp_client.errors import InvalidSpec
from ldp_client.mechanisms.base import Randomizer
from ldp_server.arrays.hashing import Indexes
from ldp_server.oracles.independence.chances import Chance
from ldp_server.oracles.independence.result import Independence
from ldp_server.oracles.laws.picked_sums import ErrorLaw
from ldp_server.oracles.laws.projection import norm_sub
from ldp_server.oracles.laws.support import SupportLaw, normal_quantile
from ldp_server.oracles.shared.counts import Counts

__all__ = [
    "LISTABLE",
    "AttributesOracle",
    "Floats",
    "FrequencyOracle",
    "NumbersOracle",
    "Oracle",
    "Share",
    "TooFewReports",
    "Unsupported",
    "binomial_skewness",
    "binomial_variance",
    "two_sided",
]

Floats = npt.NDArray[np.float64]


class Unsupported(InvalidSpec):
    """This collection's mechanism cannot answer that question."""


class TooFewReports(InvalidSpec):
    """The question needs more reports than there are."""


LISTABLE = 1 << 24
"""The largest domain of which all estimates are worked out at once."""


def binomial_variance(holders: npt.ArrayLike, reports: float, p: float, s: float) -> Floats:
    """The variance of (S - n s)/(p - s), where S counts supports: a holder gives one with p, all others with s."""
    f = np.clip(np.asarray(holders, np.float64), 0, reports)
    return (f * p * (1 - p) + (reports - f) * s * (1 - s)) / (p - s) ** 2


def binomial_skewness(reports: float, s: float) -> float:
    """The skewness of a count of `reports` events of probability s."""
    spread = reports * s * (1 - s)
    return float((1 - 2 * s) / np.sqrt(spread)) if spread > 0 else 0.0


def two_sided(confidence: float) -> float:
    """Return how many standard errors an interval of this confidence reaches to each side.

    Closer to 1 than 1e-12, (1 + confidence) / 2 rounds towards 1, which has no quantile.
    """
    if not 0 < confidence <= 1 - 1e-12:
        raise InvalidSpec("confidence lies strictly between 0 and 1, such as 0.95, and at least 1e-12 below 1")
    return -NormalDist().inv_cdf((1 - confidence) / 2)


class Oracle(ABC):
    """Counts of one mechanism's reports."""

    kind: ClassVar[type[Randomizer]]
    """The mechanism whose reports this oracle reads."""
    state: ClassVar[type[Counts]] = Counts
    """What is counted: reports of each number, unless a mechanism has too many of them."""
    instead: ClassVar[str] = "ask for what it estimates"
    """What to ask an oracle that does not estimate frequencies of items."""

    judgement: tuple[Oracle, Independence] | None = None
    """What independence/judge.py found, until the counts change."""

    def __init__(self, randomizer: Randomizer) -> None:
        if not isinstance(randomizer, self.kind):
            raise InvalidSpec(f"this oracle reads reports of {self.kind.name}, not of {randomizer.name}")
        self.set_counts(self.state(randomizer))

    def set_counts(self, counts: Counts) -> None:
        """Take these counts for the state; a subclass makes its views of them here."""
        self.counts = counts
        self.judgement = None

    @property
    def randomizer(self) -> Randomizer:
        return self.counts.randomizer

    @property
    def reports(self) -> int:
        """How many reports have been counted."""
        return self.counts.total

    def accumulate(self, payload: bytes) -> int:
        """Count the reports packed in a payload (or in several, joined) and return how many there were.

        Raises `ServerRefused` and changes nothing if it is not a whole number of valid reports.
        """
        self._changing()
        return self.counts.add(payload)

    def merge(self, other: Self) -> None:
        """Add the counts of another oracle of the same mechanism."""
        self._changing()
        self.counts.merge(other.counts)

    def to_bytes(self) -> bytes:
        """Return the state, versioned, for a checkpoint."""
        return self.counts.to_bytes()

    @classmethod
    def from_bytes(cls, randomizer: Randomizer, data: bytes) -> Self:
        """Return the oracle whose `to_bytes` this is; `ServerRefused` (BAD_STATE) for any other bytes."""
        oracle = cls(randomizer)
        oracle.set_counts(cls.state.from_bytes(randomizer, data))
        return oracle

    def points(self) -> Iterable[Iterable[npt.NDArray[np.integer]]]:
        """Yield, for each draw that a device makes before it looks at the item, how often each value was drawn.

        All values of a draw are equally likely. Their counts come in parts, so that a large table is looked at piece by
        piece. Nothing where a mechanism has no such draw; those of few values are `teams`.
        """
        return ()

    def teams(self) -> Iterable[Chance]:
        """Return the sizes of teams, or whatever else a device draws of a few, and how likely they are."""
        return ()

    def chances(self) -> Iterable[Chance]:
        """Return the counts, with the largest and the least probability that a report has over all items."""
        return ()

    def _changing(self) -> None:
        self.judgement = None
        self._forget()

    def _forget(self) -> None:  # noqa: B027 - most oracles keep nothing
        """Drop what was worked out from the counts: they are about to change."""


class FrequencyOracle(Oracle):
    """Unbiased estimates of how many users hold each item."""

    exclusive: ClassVar[bool] = True
    """Whether a user is counted for one item at the most, so that all items add up to the users."""
    knows_copies: ClassVar[bool] = False
    """Whether errors are measured on the cells' own spread, which has the copies of reports in it."""

    @abstractmethod
    def estimate(self, indexes: Indexes) -> Floats:
        """Return raw, unbiased estimates of how many users hold each index."""

    @abstractmethod
    def variance(self, frequencies: npt.ArrayLike) -> Floats:
        """Return the variance of the estimate of an index that so many users hold, collisions included."""

    @property
    def law(self) -> SupportLaw | None:
        """The exact law of the counts behind the estimates. A mechanism that has one gets its intervals from it."""
        return None

    @property
    def error_law(self) -> ErrorLaw | None:
        """The law of the estimate of any item, whoever else holds what; None where it is not known well."""
        return self.law

    @property
    def skewness(self) -> float:
        """The skewness of the estimate of an index that nobody holds, where there is no exact law."""
        return 0.0

    def intervals(self, indexes: Indexes, estimates: Floats, tail: float) -> tuple[Floats, Floats]:
        """Return intervals for the numbers of holders of these indexes; each end errs with probability `tail` at most.

        From the exact law where there is one (laws/support.py). Otherwise from the normal law. The variance V(f) grows
        with the number f of holders, so the upper end is the f with f - estimate = z sqrt(V(f)): where few reports
        support an item, its estimate does not show the variance that more holders would have. The lower end is moved
        down by (z^2 - 1) skewness/6 standard errors, the second-order term of a law with a long upper tail.
        """
        if self.law is not None:
            return self.law.intervals(estimates, tail)
        z, errors = normal_quantile(tail), self.standard_errors(indexes, estimates)
        half = z * z / 2 * np.maximum(0.0, self.variance(estimates + 1) - self.variance(estimates))
        low = estimates - errors * (z + max(0.0, (z * z - 1) * self.skewness / 6))
        high = estimates + half + np.hypot(half, z * errors)
        return np.clip(low, 0, self.reports), np.clip(high, 0, self.reports)

    def standard_errors(self, indexes: Indexes, estimates: Floats) -> Floats:
        """Return the standard errors of these estimates."""
        del indexes  # some mechanisms know the errors of single indexes
        return np.asarray(np.sqrt(self.variance(estimates)))

    @property
    def can_list(self) -> bool:
        """Whether all estimates of the domain can be worked out at once."""
        return self.randomizer.size <= LISTABLE

    def estimate_all(self) -> Floats:
        """Return the raw estimates of every index of the domain, in order."""
        if not self.can_list:
            raise InvalidSpec(f"a domain of {self.randomizer.size} elements cannot be listed; ask for given items")
        return self.estimate(np.arange(self.randomizer.size, dtype=np.uint64))

    @property
    def listed(self) -> int:
        """How many indexes the largest estimates are picked from."""
        return self.randomizer.size

    def possible(self, raw: Floats) -> Floats:
        """Return the nearest estimates of the whole domain that are not negative and add up to the reports."""
        return norm_sub(raw, float(self.reports))

    def sum_variance(self, indexes: Indexes, frequencies: npt.ArrayLike) -> float:
        """Return the variance of the sum of the estimates of different indexes, covariances included."""
        del indexes
        return float(np.sum(self.variance(frequencies)))

    def picked_variance(self, indexes: Indexes, frequencies: npt.ArrayLike) -> float:
        """Return the variance of the sum for different indexes that were picked by their estimates."""
        return self.sum_variance(indexes, frequencies)

    def sum_interval(self, indexes: Indexes, estimates: Floats, tail: float) -> tuple[float, float]:
        """Return the interval for how many users hold one of these different indexes, which were fixed beforehand."""
        total = float(np.sum(estimates))
        reach = normal_quantile(tail) * float(np.sqrt(self.sum_variance(indexes, estimates)))
        return max(0.0, total - reach), min(float(self.reports), total + reach)


@dataclass(frozen=True)
class Share:
    """How many users hold an attribute, or all of several."""

    attributes: tuple[int, ...]
    estimate: float
    standard_error: float

    def interval(self, confidence: float = 0.95) -> tuple[float, float]:
        """Return the interval that covers the truth with this confidence, taken alone."""
        reach = two_sided(confidence) * self.standard_error
        return self.estimate - reach, self.estimate + reach


class AttributesOracle(Oracle):
    """Unbiased estimates of how many users hold each attribute."""

    instead: ClassVar[str] = "ask for its attributes (`ldp-server attributes`)"

    @abstractmethod
    def attribute_counts(self) -> tuple[Floats, Floats]:
        """Return unbiased estimates for every attribute, in the domain's order, and their variances."""

    def attributes(self) -> list[Share]:
        """Return every attribute with its standard error."""
        estimates, variances = self.attribute_counts()
        errors = np.sqrt(np.maximum(variances, 0.0))
        return [Share((i,), float(e), float(s)) for i, (e, s) in enumerate(zip(estimates, errors, strict=True))]

    @abstractmethod
    def attribute_intervals(self, tail: float) -> tuple[Floats, Floats]:
        """Return intervals for every attribute; each end errs with probability `tail` at most."""


class NumbersOracle(Oracle):
    """Estimates about the numbers of those who have one."""

    instead: ClassVar[str] = "ask for its average (`ldp-server average`)"

    @abstractmethod
    def holders(self) -> float:
        """Return an estimate of how many users have a number at all."""
