"""How reports count in a decoding, where some of them may be copies of others.

Weighed   The variance factor f of the reports (ldp_server/oracles/independence) is known. Every sum over the reports
          has the variance of n/f independent ones, f times as large: scores are divided by sqrt(f), and the threshold,
          a dictionary's bars, the tests and the promise are those of n/f reports. f is 1 unless there is a warning.
Once      Items are *found* with each different report counted once. Copies then change nothing at all. Honest reports
          seldom meet, but a popular item's do: so what is found is *estimated* with all reports, weighed.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

import numpy as np
import numpy.typing as npt

__all__ = ["Copies", "Counting"]


class Copies(Enum):
    """How reports count while items are found."""

    WEIGHED = "weighed"
    ONCE = "once"


@dataclass(frozen=True)
class Counting:
    """One way of counting: `factor` reports count as one."""

    once: bool
    factor: float

    @property
    def spread(self) -> float:
        """The variance of a sum over the counted reports, over that of independent ones."""
        return 1.0 if self.once else self.factor

    def counted(self, counts: npt.NDArray[np.unsignedinteger]) -> npt.NDArray[np.unsignedinteger]:
        """Return the counts as they are used."""
        return np.minimum(counts, counts.dtype.type(1)) if self.once else counts
