"""What every oracle of yes/no attributes answers: how many users hold each attribute, with its standard
error.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np

from ldp_client.errors import InvalidSpec
from ldp_server.oracles.base import Floats, Oracle

__all__ = ["AttributesOracle", "Share"]


@dataclass(frozen=True)
class Share:
    """How many users hold an attribute, or a pair of them."""

    attributes: tuple[int, ...]
    estimate: float
    standard_error: float

    def interval(self, confidence: float = 0.95) -> tuple[float, float]:
        """The interval that covers the truth with this confidence, taken alone."""
        if not 0 < confidence < 1:
            raise InvalidSpec("confidence lies strictly between 0 and 1, such as 0.95")
        reach = NormalDist().inv_cdf((1 + confidence) / 2) * self.standard_error
        return self.estimate - reach, self.estimate + reach


class AttributesOracle(Oracle):
    """An oracle whose items are sets of attributes."""

    @abstractmethod
    def attribute_counts(self) -> tuple[Floats, Floats]:
        """Unbiased estimates for every attribute, in the domain's order, and their variances."""

    def attributes(self) -> list[Share]:
        """Every attribute with its standard error."""
        estimates, variances = self.attribute_counts()
        errors = np.sqrt(np.maximum(variances, 0.0))
        return [Share((i,), float(e), float(s)) for i, (e, s) in enumerate(zip(estimates, errors, strict=True))]
