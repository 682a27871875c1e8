"""What a central mechanism may draw. Production draws with noise.py; an auditor lists every outcome instead.

All values are integers and every law is discrete. A scale is a float, and stands for exactly the binary fraction that
the float is. So the law is known exactly, and a price that follows from it needs no margin for rounding.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from fractions import Fraction

from ldp_client.errors import InvalidSpec
from ldp_client.privacy.rounding import fraction_up

__all__ = ["Draws", "gaussian_scale", "laplace_scale", "selection_scale"]


class Draws(ABC):
    """The draws of one release."""

    @abstractmethod
    def laplace(self, values: Sequence[int], scale: float) -> list[int]:
        """Add discrete Laplace noise to each value: P(Z = z) is proportional to exp(-|z| / scale)."""

    @abstractmethod
    def gaussian(self, values: Sequence[int], sigma: float) -> list[int]:
        """Add discrete Gaussian noise to each value: P(Z = z) is proportional to exp(-z^2 / (2 sigma^2))."""

    @abstractmethod
    def select(self, scores: Sequence[int], scale: float) -> int:
        """Return the index of a large score, by permute-and-flip.

        It is epsilon-private with epsilon = 2 Delta / scale, where Delta is the most by which one person moves any
        score (McKenna and Sheldon 2020).
        """

    @abstractmethod
    def exponential(self, scores: Sequence[int], scale: float) -> int:
        """Return index i with probability proportional to exp(scores[i] / scale): the exponential mechanism."""

    @abstractmethod
    def uniform(self, count: int) -> int:
        """Return one of 0 ... count - 1, each as likely as the others."""


_LARGEST_SCALE = 1 << 56
"""Noise beyond it says nothing about any number of people, and its quantiles are not found in 64 bits."""


def _sane(scale: float) -> float:
    if scale > _LARGEST_SCALE:
        raise InvalidSpec(
            "at this price the noise is larger than any number of people: give a larger --epsilon or --rho"
        )
    return scale


def laplace_scale(sensitivity: int, epsilon: Fraction) -> float:
    """Return the smallest scale at which Laplace noise on values that move by this much in L1 is epsilon-private."""
    return _sane(fraction_up(sensitivity / epsilon))


def selection_scale(epsilon: Fraction, sensitivity: int = 1) -> float:
    """Return the smallest scale at which a selection over scores that move by this much is epsilon-private."""
    return _sane(fraction_up(2 * sensitivity / epsilon))


def gaussian_scale(squared: int, rho: Fraction) -> float:
    """Return a sigma at which Gaussian noise on values that move by this much, squared, in L2 is rho-zCDP.

    The discrete Gaussian has rho = squared / (2 sigma^2), like the continuous one (Canonne, Kamath, Steinke 2020).
    """
    sigma = _sane(math.sqrt(squared / (2 * rho)))
    while 2 * rho * Fraction(sigma) ** 2 < squared:
        sigma = math.nextafter(sigma, math.inf)
    return sigma
