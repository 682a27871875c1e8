"""What an answer says about the independence of its reports, as data and in sentences."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ldp_client.errors import InvalidSpec
from ldp_server.oracles.laws.normal import normal_tail
from ldp_server.oracles.laws.support import normal_quantile

__all__ = ["INDEPENDENT", "MOST", "Independence", "NotIndependent"]

Floats = npt.NDArray[np.float64]

MOST = 2.0
"""The variance factor above which nothing is estimated."""


class NotIndependent(InvalidSpec):
    """So many reports are copies of others that nothing is estimated from them."""


@dataclass(frozen=True)
class Independence:
    """What the reports show of copies and of devices with poor coins (ldp_server/oracles/independence/judge.py)."""

    z: float = 0.0
    """Equal pairs beyond what independent reports have, in their standard deviations; 0 where copies cannot be seen."""
    variance_factor: float = 1.0
    """lambda, estimated without bias: the factor by which copies raise variances; 1 for independent reports."""
    widened: float = 1.0
    """The factor by which the answer's variances were multiplied: after a warning, an upper bound of lambda."""
    visible_from: float | None = None
    """The part of copies, of all reports, that is warned about with probability 95%; None: copies cannot be seen."""
    cut: int = 0
    """Reports that were left out because one report came more often than honest devices send any."""
    warnings: tuple[str, ...] = ()
    """In sentences; none if the reports look independent."""

    def error(self, standard_error: float) -> float:
        """Return what a standard error of independent reports is with these."""
        return standard_error * math.sqrt(self.widened)

    def errors(self, standard_errors: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """Return the same for many."""
        return standard_errors if self.widened == 1 else standard_errors * math.sqrt(self.widened)

    def tail(self, tail: float) -> float:
        """Return the tail with which an interval for independent reports errs with probability `tail` with these.

        By the normal law: the interval has to reach sqrt(lambda) times as many standard errors.
        """
        if self.widened == 1:
            return tail
        return max(1e-300, float(normal_tail(np.array(normal_quantile(tail) * math.sqrt(self.widened)))))

    def stretched(self, estimates: Floats, low: Floats, high: Floats, most: float) -> tuple[Floats, Floats]:
        """Return the ends of intervals for independent reports as they are with these, within 0 and `most`."""
        if self.widened == 1:
            return low, high
        root = math.sqrt(self.widened)
        low, high = estimates - (estimates - low) * root, estimates + (high - estimates) * root
        return np.clip(low, 0, most), np.clip(high, 0, most)

    def confidence(self, confidence: float) -> float:
        """Return the same for a two-sided confidence."""
        return confidence if self.widened == 1 else min(1 - 1e-12, 1 - 2 * self.tail((1 - confidence) / 2))

    @property
    def line(self) -> str:
        """What a table says below its numbers."""
        if self.visible_from is None:
            return "copies of reports cannot be seen here: too few different draws, or none that is free of the item"
        return (
            f"copies of reports are noticed from {self.visible_from:.2%} of all reports on; z = {self.z:.1f}, "
            f"variance factor {self.variance_factor:.3f}"
        )


INDEPENDENT = Independence()
"""What is said of independent reports in which nothing can be seen."""
