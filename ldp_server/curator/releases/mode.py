"""The most frequent item of any domain, without a list of items: A_dist.

gap = first - second, the two largest counts (an item that nobody holds has the count 0). The most frequent item is
released if gap + Z >= t, with Laplace noise of scale 2 / epsilon, else nothing. All three are taken 16 times, and the
noise is discrete: so it is exact, and a sixteenth of a person is the finest step.

Theorem: (epsilon, delta)-private for replacement, where t is the smallest step with P(Z >= t - 2) <= delta.

Proof. Replacing one record moves each count by at most 1 and so the gap by at most 2. If both data sets have the same
most frequent item, the two outcomes are a threshold on a number that moves by 2 under noise of scale 2 / epsilon:
epsilon. If they have not, the gap is at most 2 in both (gap_max.py shows that they sum to at most 2), so each releases
its item with probability at most P(2 + Z >= t) <= delta. The outcome "nothing" then has probability at least 1 - delta
in both; its ratio is at most 1 / (1 - delta) <= e^epsilon, for which delta <= 1 - e^-epsilon is demanded. Two items
that lead together have gap 0; which one is called first then matters to no outcome of probability above delta.

The paper (Algorithm A_dist, Beimel, Nissim, Stemmer) prints scale 1 / epsilon and threshold ln(1/delta) / epsilon. That
is right for scores whose gap moves by 1. For counts under replacement it is not: at epsilon = 1, delta = 1e-6 the
neighbours with counts (14, 0) and (13, 1) pass with probabilities .584 and .081, which needs delta >= .363.

Use: with probability at least 95% an item that leads by t + w is released, P(Z < -w) <= 5%, whatever the domain's
size. At epsilon = 1, delta = 1e-6 a lead of 33 is enough.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from ldp_client.errors import InvalidSpec
from ldp_server.curator.draws import Draws, laplace_scale
from ldp_server.curator.laws import laplace_half_width
from ldp_server.curator.people import Record
from ldp_server.curator.prices import CentralPrice
from ldp_server.curator.releases.base import BETA, CentralMechanism, Outcome, ReleasedRow, counted
from ldp_server.curator.releases.stability import smallest_threshold

__all__ = ["GRAIN", "Mode"]

GRAIN = 16
"""How many steps of the noise there are to one person."""


@dataclass(frozen=True)
class Mode(CentralMechanism):
    """The most frequent item, if it leads by enough."""

    kind: ClassVar[str] = "mode"
    epsilon: Fraction
    delta: Fraction

    def __post_init__(self) -> None:
        if not 0 < self.delta <= -math.expm1(-float(self.epsilon)):
            raise InvalidSpec("a release of an unknown item needs a delta above 0 and small, such as 1e-6 (--delta)")

    @property
    def price(self) -> CentralPrice:
        return CentralPrice.pure(self.epsilon, self.delta)

    @property
    def scale(self) -> float:
        return laplace_scale(2 * GRAIN, self.epsilon)

    @property
    def threshold(self) -> int:
        """T in sixteenths: the item is released if 16 gap + Z >= t."""
        return 2 * GRAIN + smallest_threshold(self.scale, 2 * self.epsilon, self.delta)

    @property
    def lead(self) -> int:
        """The lead from which the item is released with probability at least 95%."""
        return -(-(self.threshold + laplace_half_width(self.scale, 2 * BETA)) // GRAIN)

    def run(self, records: Sequence[Record], draws: Draws) -> Outcome:
        leading = counted(records).most_common(2)
        if not leading:
            leading = [(None, 0)]
        item, most = leading[0]
        second = leading[1][1] if len(leading) > 1 else 0
        (noisy,) = draws.laplace([GRAIN * (most - second)], self.scale)
        if noisy >= self.threshold and item is not None:
            return Outcome((ReleasedRow(item),), "the most frequent item of these people")
        note = f"nothing: no item leads by enough. A lead of {self.lead:,} people is named with probability 95% or more"
        return Outcome((), note)
