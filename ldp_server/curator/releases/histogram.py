"""Counts of listed items: discrete Laplace, discrete Gaussian or sinh-normal noise on each.

Privacy. Replacing one record takes one away from one count and adds one to another, so two counts move by 1: by 2 in
L1, by sqrt(2) in L2. Noise for add/remove neighbours (one count moves) would spend twice the epsilon that is stated.

    laplace     scale 2 / epsilon                       epsilon-private
    gaussian    sigma^2 = 1 / rho                       rho-zCDP
    sinh        each of the two counts (rho/2, omega)   (rho, omega)-tCDP    (sinh_normal.py)

With one listed item (a count) one number moves by 1: scale 1 / epsilon, sigma^2 = 1 / (2 rho).

Accuracy. The interval of each count holds with probability 95%: its half-width is a quantile of the exact law.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from ldp_client.errors import InvalidSpec
from ldp_server.curator.draws import Draws, gaussian_scale, laplace_scale
from ldp_server.curator.laws import gaussian_half_width, gaussian_variance, laplace_half_width, laplace_variance
from ldp_server.curator.people import Record
from ldp_server.curator.prices import CentralPrice
from ldp_server.curator.releases.base import BETA, CentralMechanism, Outcome, clipped, counted, distinct
from ldp_server.curator.releases.sinh_normal import SinhNormal

__all__ = ["GaussianHistogram", "LaplaceHistogram", "SinhHistogram"]

_NOTE = "each interval holds with probability 95%, over the noise alone; empty cells are not counted"


def _moved(items: Sequence[Record]) -> int:
    """How many counts one replacement can move."""
    return min(2, len(items))


@dataclass(frozen=True)
class LaplaceHistogram(CentralMechanism):
    """Counts of listed items with discrete Laplace noise."""

    kind: ClassVar[str] = "histogram"
    items: tuple[Record, ...]
    epsilon: Fraction

    def __post_init__(self) -> None:
        distinct(self.items, "items of a histogram")

    @property
    def price(self) -> CentralPrice:
        return CentralPrice.pure(self.epsilon)

    @property
    def scale(self) -> float:
        return laplace_scale(_moved(self.items), self.epsilon)

    def run(self, records: Sequence[Record], draws: Draws) -> Outcome:
        counts = counted(records)
        noisy = draws.laplace([counts[item] for item in self.items], self.scale)
        return _outcome(
            self.items, noisy, laplace_half_width(self.scale, BETA), len(records), laplace_variance(self.scale)
        )


@dataclass(frozen=True)
class GaussianHistogram(CentralMechanism):
    """Counts of listed items with discrete Gaussian noise."""

    kind: ClassVar[str] = "histogram"
    items: tuple[Record, ...]
    rho: Fraction

    def __post_init__(self) -> None:
        distinct(self.items, "items of a histogram")

    @property
    def price(self) -> CentralPrice:
        return CentralPrice(rho=self.rho)

    @property
    def sigma(self) -> float:
        return gaussian_scale(_moved(self.items), self.rho)

    def run(self, records: Sequence[Record], draws: Draws) -> Outcome:
        counts = counted(records)
        noisy = draws.gaussian([counts[item] for item in self.items], self.sigma)
        return _outcome(
            self.items, noisy, gaussian_half_width(self.sigma, BETA), len(records), gaussian_variance(self.sigma)
        )


@dataclass(frozen=True)
class SinhHistogram(CentralMechanism):
    """Counts of listed items with sinh-normal noise: lighter tails, for very many items."""

    kind: ClassVar[str] = "histogram"
    items: tuple[Record, ...]
    rho: Fraction
    omega: Fraction

    def __post_init__(self) -> None:
        distinct(self.items, "items of a histogram")
        if self.omega * self.omega * 2 * self.rho < 1:
            raise InvalidSpec("sinh-normal noise needs omega >= 1 / sqrt(2 rho): give a larger --omega or --rho")

    @property
    def price(self) -> CentralPrice:
        return CentralPrice(rho=self.rho, omega=self.omega)

    @property
    def noise(self) -> SinhNormal:
        return SinhNormal.calibrated(self.rho / _moved(self.items), self.omega)

    def run(self, records: Sequence[Record], draws: Draws) -> Outcome:
        counts, noise = counted(records), self.noise
        noisy = noise.add([counts[item] for item in self.items], draws)
        return _outcome(self.items, noisy, noise.half_width(BETA), len(records), noise.variance)


def _outcome(items: Sequence[Record], noisy: Sequence[int], width: int, people: int, variance: float) -> Outcome:
    rows = [clipped(item, count, width, people) for item, count in zip(items, noisy, strict=True)]
    return Outcome(tuple(rows), _NOTE, variance)
