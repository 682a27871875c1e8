"""Counts of all items that enough people hold, without a list of items (the stability histogram).

Each item that somebody holds gets discrete Laplace noise of scale 2 / epsilon, and is released if its noisy count is
above a threshold t. Theorem: (epsilon, delta)-private for replacement, where

    t is the smallest integer with  P(Z >= t) <= min(delta, 1 - e^(-epsilon/2)),   Z the noise.

Proof. Let x' be x with one record changed from item a to item b. Items that both data sets hold move by 2 in L1, so
their part costs epsilon, or epsilon / 2 if only one of a and b is among them. If a has the count 1 in x, it can be
released from x and not from x'; this has probability P(1 + Z > t) = P(Z >= t) <= delta. If b has the count 0 in x, it
is absent from x surely, and from x' with probability at least 1 - P(Z >= t), a factor of at most e^(epsilon/2). So for
every set S of outputs, P(S) <= P(a released) + e^epsilon P'(S).

The same with the scale 1 / epsilon is for add/remove neighbours. Under replacement its loss is 2 epsilon.

Accuracy. At most n items are held, so all listed counts are within w of the truth at once with probability 95%, where
n P(|Z| > w) <= 5%. An interval for one count alone would be false for a listed item, because it was listed for being
large: what lies above the threshold has the same law for every item far below it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from ldp_client.errors import InvalidSpec
from ldp_server.curator.draws import Draws, laplace_scale
from ldp_server.curator.laws import laplace_half_width, laplace_tail
from ldp_server.curator.people import Record
from ldp_server.curator.prices import CentralPrice
from ldp_server.curator.releases.base import BETA, CentralMechanism, Outcome, clipped, counted, in_order

__all__ = ["StabilityHistogram", "smallest_threshold"]

_MARGIN = 1 - 1e-12
"""The tail is a float: it is compared with a little less than delta."""


@dataclass(frozen=True)
class StabilityHistogram(CentralMechanism):
    """Every item that enough people hold, with its count."""

    kind: ClassVar[str] = "items"
    epsilon: Fraction
    delta: Fraction

    def __post_init__(self) -> None:
        if not 0 < self.delta < 1:
            raise InvalidSpec("a release of unknown items needs a delta between 0 and 1, such as 1e-6 (--delta)")

    @property
    def price(self) -> CentralPrice:
        return CentralPrice.pure(self.epsilon, self.delta)

    @property
    def scale(self) -> float:
        return laplace_scale(2, self.epsilon)

    @property
    def threshold(self) -> int:
        """An item is listed if its noisy count is above it."""
        return smallest_threshold(self.scale, self.epsilon, self.delta)

    def run(self, records: Sequence[Record], draws: Draws) -> Outcome:
        counts = counted(records)
        items = in_order(counts)
        noisy = draws.laplace([counts[item] for item in items], self.scale) if items else []
        people, threshold = len(records), self.threshold
        width = laplace_half_width(self.scale, BETA / people)
        listed = [(item, count) for item, count in zip(items, noisy, strict=True) if count > threshold]
        listed.sort(key=lambda one: -one[1])  # the order of the items among equal counts
        note = (
            f"items whose noisy count is above {threshold}; all intervals hold at once with probability 95%; an item "
            f"that {threshold + width + 1:,} or more people hold is listed with at least the same probability"
        )
        return Outcome(tuple(clipped(item, count, width, people) for item, count in listed), note)


def smallest_threshold(scale: float, epsilon: Fraction, delta: Fraction) -> int:
    """Return the smallest t with P(Z >= t) <= delta, also at most 1 - e^(-epsilon/2)."""
    most = min(float(delta), -math.expm1(-float(epsilon) / 2)) * _MARGIN
    threshold = max(1, math.ceil(-scale * math.log(2 * most)) - 2)
    while laplace_tail(scale, threshold) > most:
        threshold += 1
    return threshold
