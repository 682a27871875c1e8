"""One item that a large share of the people hold, from any domain, without a list: the choosing mechanism.

With the share alpha and m people (Beimel, Nissim, Stemmer, Figure 8; a record raises one count by 1, so k = 1):

    1. best = largest count + Z, discrete Laplace noise of scale 4 / epsilon. If best < alpha m / 2: nothing
    2. of the items that somebody holds, one with probability proportional to e^(epsilon count / 4)

**It is private only from a number of people on.** Theorem (Lemma 4.4, the privacy part of its proof): (epsilon,
delta)-private for replacement if

    m >= 16 / (alpha epsilon) * max( ln(1 / (2 delta)), epsilon/4 + ln(1/delta), ln(4 / epsilon) ).

Why it needs people: an item that one person alone holds can be chosen from that data set and never from its neighbour.
This is unlikely only where a frequent item outweighs it, and step 1 must make sure that there is one. At alpha = .1,
epsilon = 1, delta = 1e-6 the condition says 2,251 people. At 900 the mechanism is not private at this delta (the tests
show it), so a smaller data set is refused with the number that it takes.

Items with equal counts are drawn as one: a count c that n_c items have gets the score S c + round(s ln n_c) under the
exponential mechanism of scale s = 4 (S + 2) / epsilon, and then one of these items is taken, each as likely. An item's
log-probability is (S c + e) / s up to the normaliser, with |e| <= 1 by the rounding, float logarithms included. One
record moves the first part by at most (S + 2) / s = epsilon / 4, and the normaliser as well, which is all that the
proof uses. An item that one person alone holds gains a factor of at most e^(2 / s); the 1e-4 in the code covers it.

Use. If m is at least 16 / (alpha epsilon) ln(16 / (alpha beta epsilon delta)), then with probability 1 - beta the item
is held by at least the share of the most frequent one minus alpha, if that one has a share of alpha at all.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np

from ldp_client.errors import InvalidSpec
from ldp_server.curator.draws import Draws, laplace_scale
from ldp_server.curator.people import Record
from ldp_server.curator.prices import CentralPrice
from ldp_server.curator.releases.base import CentralMechanism, Outcome, ReleasedRow, counted, in_order
from ldp_server.curator.releases.quantile import STEPS

__all__ = ["Choosing"]


@dataclass(frozen=True)
class Choosing(CentralMechanism):
    """An item that a large share of the people hold."""

    kind: ClassVar[str] = "frequent-item"
    share: Fraction
    """alpha."""
    epsilon: Fraction
    delta: Fraction

    def __post_init__(self) -> None:
        if not 0 < self.delta < 1:
            raise InvalidSpec("a release of an unknown item needs a delta above 0 and small, such as 1e-6 (--delta)")
        if not 0 < self.share < 1:
            raise InvalidSpec("--share lies between 0 and 1, such as 0.1")

    @property
    def price(self) -> CentralPrice:
        return CentralPrice.pure(self.epsilon, self.delta)

    @property
    def scale(self) -> float:
        """Of the noise on the largest count."""
        return laplace_scale(4, self.epsilon)

    @property
    def smallest(self) -> int:
        epsilon, delta = float(self.epsilon), float(self.delta)
        terms = (-math.log(2 * delta), epsilon / 4 - math.log(delta), math.log(4 / epsilon))
        return max(1, math.ceil(16 / (float(self.share) * epsilon) * (max(terms) + 1e-4 * epsilon)))

    def choose(self, counts: Sequence[int], people: int, draws: Draws) -> int | None:
        """Return the place of one of these counts, all of them 1 or more; or None: too few hold one item."""
        (best,) = draws.laplace([max(counts, default=0)], self.scale)
        if not counts or 2 * best < self.share * people:
            return None
        values, many = np.unique(np.array(counts, np.int64), return_counts=True)
        scale = laplace_scale(4 * (STEPS + 2), self.epsilon)
        units = STEPS * values + np.rint(scale * np.log(many)).astype(np.int64)
        chosen = int(values[draws.exponential(units.tolist(), scale)])
        alike = np.flatnonzero(np.array(counts) == chosen)
        return int(alike[draws.uniform(len(alike))])

    def run(self, records: Sequence[Record], draws: Draws) -> Outcome:
        counts = counted(records)
        items = in_order(counts)
        index = self.choose([counts[item] for item in items], len(records), draws)
        if index is None:
            return Outcome((), "nothing: too few people hold one and the same item")
        return Outcome((ReleasedRow(items[index]),), "an item that many people hold, not always the most frequent one")
