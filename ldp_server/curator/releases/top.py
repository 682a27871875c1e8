"""The k most frequent of listed items: selection, and fresh noise for the counts of the selected ones.

Selection in k steps: each takes one item of those left. A step costs epsilon / (2k) by permute-and-flip, whose scale is
2 Delta / epsilon_step with Delta = 1: replacing one record moves every count by at most 1. Under zCDP each step is the
exponential mechanism, of range epsilon_step and so rho_step = epsilon_step^2 / 8.

The other half pays for the counts: k counts of which replacement moves at most two, with noise as in histogram.py. This
noise is independent of the selection, so each interval holds with 95% although its item was selected.

Before 0.16, OpenDP's selection under zCDP used a scale that cost four times its claim; noise.py refuses it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from ldp_client.errors import InvalidSpec
from ldp_server.curator.draws import Draws, gaussian_scale, laplace_scale, selection_scale
from ldp_server.curator.laws import gaussian_half_width, gaussian_variance, laplace_half_width, laplace_variance
from ldp_server.curator.people import Record
from ldp_server.curator.prices import CentralPrice
from ldp_server.curator.releases.base import BETA, CentralMechanism, Outcome, clipped, counted, distinct

__all__ = ["GaussianTop", "LaplaceTop", "exponential_scale"]

_NOTE = "most frequent first, as far as the noise allows; each interval holds with probability 95%"


def exponential_scale(rho: Fraction, sensitivity: int = 1) -> float:
    """Return a scale at which the exponential mechanism, over scores that move by this much, is rho-zCDP.

    P(i) is proportional to e^(score / scale), a log-probability moves within a range of 2 Delta / scale, and a range of
    epsilon is worth epsilon^2 / 8. So rho = Delta^2 / (2 scale^2).
    """
    return gaussian_scale(sensitivity * sensitivity, rho)


def _checked(items: Sequence[Record], k: int) -> None:
    distinct(items, "items to select from")
    if not 1 <= k <= len(items):
        raise InvalidSpec(f"k lies between 1 and the number of listed items ({len(items):,})")


@dataclass(frozen=True)
class LaplaceTop(CentralMechanism):
    """The top k by permute-and-flip, with Laplace noise on their counts."""

    kind: ClassVar[str] = "top"
    items: tuple[Record, ...]
    k: int
    epsilon: Fraction

    def __post_init__(self) -> None:
        _checked(self.items, self.k)

    @property
    def price(self) -> CentralPrice:
        half = self.epsilon / 2
        return CentralPrice(self.epsilon, rho=half * half * (1 + Fraction(1, self.k)) / 2)

    def run(self, records: Sequence[Record], draws: Draws) -> Outcome:
        counts = counted(records)
        scale = selection_scale(self.epsilon / (2 * self.k))
        chosen = _select(self.items, [counts[item] for item in self.items], self.k, lambda s: draws.select(s, scale))
        fresh = laplace_scale(min(2, self.k), self.epsilon / 2)
        noisy = draws.laplace([counts[item] for item in chosen], fresh)
        return _outcome(chosen, noisy, laplace_half_width(fresh, BETA), len(records), laplace_variance(fresh))


@dataclass(frozen=True)
class GaussianTop(CentralMechanism):
    """The top k by the exponential mechanism, with Gaussian noise on their counts."""

    kind: ClassVar[str] = "top"
    items: tuple[Record, ...]
    k: int
    rho: Fraction

    def __post_init__(self) -> None:
        _checked(self.items, self.k)

    @property
    def price(self) -> CentralPrice:
        return CentralPrice(rho=self.rho)

    def run(self, records: Sequence[Record], draws: Draws) -> Outcome:
        counts = counted(records)
        scale = exponential_scale(self.rho / (2 * self.k))
        scores = [counts[item] for item in self.items]
        chosen = _select(self.items, scores, self.k, lambda s: draws.exponential(s, scale))
        fresh = gaussian_scale(min(2, self.k), self.rho / 2)
        noisy = draws.gaussian([counts[item] for item in chosen], fresh)
        return _outcome(chosen, noisy, gaussian_half_width(fresh, BETA), len(records), gaussian_variance(fresh))


def _select(
    items: Sequence[Record], scores: Sequence[int], k: int, draw: Callable[[Sequence[int]], int]
) -> list[Record]:
    left, values, chosen = list(items), list(scores), []
    for _ in range(k):
        index = draw(values)
        chosen.append(left.pop(index))
        values.pop(index)
    return chosen


def _outcome(items: Sequence[Record], noisy: Sequence[int], width: int, people: int, variance: float) -> Outcome:
    rows = [clipped(item, count, width, people) for item, count in zip(items, noisy, strict=True)]
    return Outcome(tuple(rows), _NOTE, variance)
