"""How reports count in a decoding, where some of them may be copies of others.

Weighed   The variance factor f of the reports (ldp_server/oracles/independence) is known. Every sum over the reports
          has the variance of n/f independent ones, f times as large: scores are divided by sqrt(f), and the threshold,
          a dictionary's bars, the tests and the promise are those of n/f reports. f is 1 unless there is a warning.
Once      Items are *found* with each different report counted once. Copies then change nothing at all. Honest reports
          seldom meet, but a popular item's do: so what is found is *estimated* with all reports, weighed.

Reports that meet cost a rare item a part of its score, too. Let D be the number of different reports, R that of all
possible ones, and x = D/R. A report of one more holder is a new one with probability 1 - x: a report is as likely to
be this one as that one if the item's hashes are independent of what others hold. There were m honest reports with
D <= R (1 - exp(-m/R)), by concavity for any crowd, so m >= -R ln(1 - x). The score expects f D new reports of a part f
of the users, and at least f m (1 - x) come. So f must be greater by x / (-(1 - x) ln(1 - x)) at most (`meeting`). The
noise is smaller than the score's law says, which only helps.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import Enum

import numpy as np
import numpy.typing as npt

__all__ = ["Copies", "Counting", "meeting"]


class Copies(Enum):
    """How reports count while items are found."""

    WEIGHED = "weighed"
    ONCE = "once"


@dataclass(frozen=True)
class Counting:
    """One way of counting: `factor` reports count as one."""

    once: bool
    factor: float
    meeting: float = 1.0
    """By how much an item must be more frequent because its reports meet others."""

    @property
    def promised(self) -> float:
        """What a frequency of the law of fewer, independent reports is in users."""
        return self.factor * self.meeting

    @property
    def spread(self) -> float:
        """The variance of a sum over the counted reports, over that of independent ones."""
        return 1.0 if self.once else self.factor

    def counted(self, counts: npt.NDArray[np.unsignedinteger]) -> npt.NDArray[np.unsignedinteger]:
        """Return the counts as they are used."""
        return np.minimum(counts, counts.dtype.type(1)) if self.once else counts


def meeting(different: int, possible: int) -> float:
    """Return by how much an item must be more frequent if each different report counts once."""
    seen = different / possible
    if seen >= 1:
        return math.inf
    return seen / (-(1 - seen) * math.log1p(-seen)) if seen else 1.0
