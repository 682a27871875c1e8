"""The most frequent of listed items, named without a count: the generalized histogram and the obvious answer.

**Generalized histogram** (Bun, Dwork, Rothblum, Steinke 2018, Algorithm 21). f_j = max(count_j - second, 0), where
second is the second largest count; so only the winner's f is above 0. Every f_j gets noise, and the index of the
largest is released. (Equal values: the lowest index. This is post-processing.) The paper charges two values that move
by 2 each, an L1 sensitivity of 4. It is 2: if the winner stays, its f moves by at most 2 and no other moves. If it
changes from a to b, f_a <= count_a - count_b before and f_b <= count'_b - count'_a afterwards; the sum is at most
(count_a - count'_a) + (count'_b - count_b) <= 2. So

    laplace     scale 2 / epsilon      epsilon-private
    gaussian    sigma^2 = 2 / rho      rho-zCDP             (squared L2 sensitivity 4)

**Obvious answer** (Algorithm 22). One draw of noise for k items: with gap g = first - second and g' = max(g/2 - 1, 0),
the first item if g' + Z > t, else one of the k - 1 others, each as likely. P(Z > t) = 1/k, so that data sets without a
clear winner (g <= 2) give every item with probability 1/k, whoever is called first.

A law on the integers has no such t. Here g' = max(ceil(g/2) - 1, 0) is an integer, which moves by at most 1 as g moves
by at most 2, and for g' = 0 the answer is uniform without noise. If the winner changes, both gaps are at most 2, and
both answers uniform. Between g' >= 1 and g' + 1 the probability of the first item moves as if the noise were shifted by
1, and so does that of all others: a factor of at most e^epsilon for Laplace noise of scale 1 / epsilon. Between 0 and 1
the first item has 1/k and P(Z + 1 > t), each other one 1/k and P(Z + 1 <= t) / (k - 1): t is the smallest integer for
which both ratios lie within e^epsilon. The tests list the whole law.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from ldp_client.errors import InvalidSpec
from ldp_server.curator.draws import Draws, gaussian_scale, laplace_scale
from ldp_server.curator.laws import laplace_tail
from ldp_server.curator.people import Record
from ldp_server.curator.prices import CentralPrice
from ldp_server.curator.releases.base import CentralMechanism, Outcome, ReleasedRow, counted, distinct

__all__ = ["GapMax", "GaussianGapMax", "ObviousAnswer"]

_NOTE = "one item, for being the most frequent: with a gap that is small beside the noise it may be another one"


def _gaps(items: Sequence[Record], records: Sequence[Record]) -> list[int]:
    counts = counted(records)
    values = [counts[item] for item in items]
    second = sorted(values)[-2]
    return [max(value - second, 0) for value in values]


def _named(item: Record) -> Outcome:
    return Outcome((ReleasedRow(item),), _NOTE)


@dataclass(frozen=True)
class GapMax(CentralMechanism):
    """The generalized histogram with Laplace noise."""

    kind: ClassVar[str] = "gap-max"
    items: tuple[Record, ...]
    epsilon: Fraction

    def __post_init__(self) -> None:
        distinct(self.items, "items to select from", 2)

    @property
    def price(self) -> CentralPrice:
        return CentralPrice.pure(self.epsilon)

    def run(self, records: Sequence[Record], draws: Draws) -> Outcome:
        noisy = draws.laplace(_gaps(self.items, records), laplace_scale(2, self.epsilon))
        return _named(self.items[noisy.index(max(noisy))])


@dataclass(frozen=True)
class GaussianGapMax(CentralMechanism):
    """The generalized histogram with Gaussian noise."""

    kind: ClassVar[str] = "gap-max"
    items: tuple[Record, ...]
    rho: Fraction

    def __post_init__(self) -> None:
        distinct(self.items, "items to select from", 2)

    @property
    def price(self) -> CentralPrice:
        return CentralPrice(rho=self.rho)

    def run(self, records: Sequence[Record], draws: Draws) -> Outcome:
        noisy = draws.gaussian(_gaps(self.items, records), gaussian_scale(4, self.rho))
        return _named(self.items[noisy.index(max(noisy))])


@dataclass(frozen=True)
class ObviousAnswer(CentralMechanism):
    """The most frequent item by one draw of noise, if it leads clearly."""

    kind: ClassVar[str] = "obvious-answer"
    items: tuple[Record, ...]
    epsilon: Fraction

    def __post_init__(self) -> None:
        distinct(self.items, "items to select from", 2)

    @property
    def price(self) -> CentralPrice:
        return CentralPrice.pure(self.epsilon)

    @property
    def scale(self) -> float:
        return laplace_scale(1, self.epsilon)

    @property
    def threshold(self) -> int:
        """t: the first item is returned if g' + Z > t."""
        k, most = len(self.items), math.exp(float(self.epsilon)) * (1 - 1e-12)
        for t in range(_MOST_STEPS):
            first = laplace_tail(self.scale, t)  # P(Z + 1 > t)
            other = (1 - first) / (k - 1)
            if max(first * k, other * k) <= most and min(first * k, other * k) * most >= 1:
                return t
        raise InvalidSpec("no threshold is known for so many items at this epsilon: give a larger --epsilon")

    def run(self, records: Sequence[Record], draws: Draws) -> Outcome:
        gaps, k = _gaps(self.items, records), len(self.items)
        first = gaps.index(max(gaps))
        ahead = max(-(-gaps[first] // 2) - 1, 0)
        if ahead == 0:
            return _named(self.items[draws.uniform(k)])
        (lead,) = draws.laplace([ahead], self.scale)
        if lead > self.threshold:
            return _named(self.items[first])
        other = draws.uniform(k - 1)
        return _named(self.items[other + (other >= first)])


_MOST_STEPS = 1_000_000
