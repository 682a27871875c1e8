"""What every oracle is: additive counts of reports, and unbiased estimates with their variance.

An oracle is the server half of a mechanism. Its state is additive, so that `merge` is associative and commutative and
any partition of the reports gives the same counts; its size depends on the mechanism's cells, never on the number of
reports. It speaks of indexes; ldp_server/answers/estimates.py turns them into items, intervals and verdicts.

A subclass says how counts become estimates; the counting is the same for all.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar, Self

import numpy as np
import numpy.typing as npt

from ldp_client.errors import InvalidSpec
from ldp_client.mechanisms.base import Randomizer
from ldp_server.arrays.hashing import Indexes
from ldp_server.oracles.counts import Counts

__all__ = ["LISTABLE", "Floats", "Oracle", "binomial_variance"]

Floats = npt.NDArray[np.float64]

LISTABLE = 1 << 24
"""The largest domain whose every estimate is worked out."""


def binomial_variance(holders: npt.ArrayLike, reports: float, p: float, s: float) -> Floats:
    """The variance of (S - n s)/(p - s), S counting supports that holders give with p, all others with s."""
    f = np.clip(np.asarray(holders, np.float64), 0, reports)
    return (f * p * (1 - p) + (reports - f) * s * (1 - s)) / (p - s) ** 2


class Oracle(ABC):
    """Counts of one mechanism's reports, and what they say."""

    kind: ClassVar[type[Randomizer]]
    """The mechanism whose reports this oracle reads."""

    def __init__(self, randomizer: Randomizer) -> None:
        if not isinstance(randomizer, self.kind):
            raise InvalidSpec(f"this oracle reads reports of {self.kind.name}, not of {randomizer.name}")
        self.set_counts(Counts(randomizer))

    def set_counts(self, counts: Counts) -> None:
        """Take these counts for the state; a subclass makes its views of them here."""
        self.counts = counts

    @property
    def randomizer(self) -> Randomizer:
        """The mechanism with its parameters."""
        return self.counts.randomizer

    @property
    def reports(self) -> int:
        """How many reports have been counted."""
        return self.counts.total

    def accumulate(self, payload: bytes) -> int:
        """Count the reports packed in a payload (or in several, joined) and return how many there were.

        Raises `ServerRefused` and changes nothing if it is not a whole number of valid reports.
        """
        self._forget()
        return self.counts.add(payload)

    def merge(self, other: Self) -> None:
        """Add the counts of another oracle of the same mechanism."""
        self._forget()
        self.counts.merge(other.counts)

    def to_bytes(self) -> bytes:
        """The state, versioned, for a checkpoint."""
        return self.counts.to_bytes()

    @classmethod
    def from_bytes(cls, randomizer: Randomizer, data: bytes) -> Self:
        """The oracle whose `to_bytes` this is; `ServerRefused(BAD_STATE)` if it was of another mechanism or damaged."""
        oracle = cls(randomizer)
        oracle.set_counts(Counts.from_bytes(randomizer, data))
        return oracle

    def _forget(self) -> None:  # noqa: B027 - most oracles keep nothing
        """Drop what was worked out from the counts: they are about to change."""

    @abstractmethod
    def estimate(self, indexes: Indexes) -> Floats:
        """Raw, unbiased estimates of how many users hold each index."""

    @abstractmethod
    def variance(self, frequencies: npt.ArrayLike) -> Floats:
        """The variance of the estimate of an index that so many users hold, collisions included."""

    @property
    @abstractmethod
    def skewness(self) -> float:
        """The skewness of the estimate of an index that nobody holds."""

    @property
    def can_list(self) -> bool:
        """Whether every estimate of the domain can be worked out."""
        return self.randomizer.size <= LISTABLE

    def estimate_all(self) -> Floats:
        """Raw estimates of every index of the domain, in order."""
        if not self.can_list:
            raise InvalidSpec(f"a domain of {self.randomizer.size} elements cannot be listed; ask for given items")
        return self.estimate(np.arange(self.randomizer.size, dtype=np.uint64))

    def sum_variance(self, frequencies: npt.ArrayLike) -> float:
        """The variance of a sum of estimates of different indexes: their covariances are negligible unless said."""
        return float(np.sum(self.variance(frequencies)))
