"""What every oracle is: additive counts of reports, and unbiased estimates with their standard errors.

An oracle is the server half of a mechanism. Its state is additive, so that `merge` is associative and commutative
and any partition of the reports gives the same counts; its size depends on the mechanism's cells, never on the
number of reports. It speaks of indexes; `ldp_server/estimates.py` turns them into items, intervals and verdicts.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Self

import numpy as np
import numpy.typing as npt

from ldp_client.mechanisms.base import Randomizer

__all__ = ["Oracle"]


class Oracle(ABC):
    """Counts of one mechanism's reports."""

    randomizer: Randomizer
    reports: int
    """How many reports have been accumulated."""

    @abstractmethod
    def accumulate(self, payload: bytes) -> int:
        """Count the reports packed in `payload` and return how many there were.

        Raises `Rejected` and changes nothing if the payload is not a whole number of valid reports.
        """

    @abstractmethod
    def merge(self, other: Self) -> None:
        """Add the counts of another oracle of the same mechanism."""

    @abstractmethod
    def to_bytes(self) -> bytes:
        """The state, versioned, for a checkpoint."""

    @classmethod
    @abstractmethod
    def from_bytes(cls, randomizer: Randomizer, data: bytes) -> Self:
        """The oracle that `to_bytes` wrote; `Rejected(BAD_STATE)` if it was of another mechanism or damaged."""

    @abstractmethod
    def estimate(self, indexes: npt.ArrayLike) -> npt.NDArray[np.float64]:
        """Raw, unbiased estimates of how many users hold each index."""

    @abstractmethod
    def variance(self, frequencies: npt.ArrayLike) -> npt.NDArray[np.float64]:
        """The variance of the estimate of an index that `frequencies` users hold, collisions included."""

    @property
    def can_list(self) -> bool:
        """Whether `estimate_all` is within reach for this domain."""
        return self.randomizer.size <= 1 << 24

    def estimate_all(self) -> npt.NDArray[np.float64]:
        """Raw estimates of every index of the domain, in order."""
        return self.estimate(np.arange(self.randomizer.size))
