"""How many people have a number below a threshold, for all thresholds of a huge range, without a list of cuts.

With the share alpha, q = ceil(1 / alpha) numbers are released: v_j is a quantile at p = (2 j - 1) / (2 q), by the
search of concave.py (the exponential mechanism, or RecConcave with a delta where it errs less). The release reads as a
data set of its own: m / q people at each v_j. Its counts below any threshold are those of the m people up to alpha m.

Theorem: (epsilon, delta)-private for replacement. Each of the q searches is (epsilon', delta')-private, and
`share_out` gives epsilon' for q draws.

Use. Let w be a search's error in people; with probability 95% all q of them keep it. Then at most (j - 1/2) m / q + w
people are below v_j, and at least (j - 1/2) m / q - w at or below it. A threshold t between v_j and v_(j+1) has j m / q
of the released people below it. Of the m people, those at or below v_j are below t, and those below t are below
v_(j+1); so the error is at most m / (2 q) + w, which is at most alpha m if w <= alpha m / 2. Smaller data sets are
refused. The same holds before v_1 and behind v_q.

The paper (Figure 11) recurses on both sides of an interval that the choosing mechanism finds, 77 / alpha times. Its
precondition for privacy alone is 7.6 * 10^7 people at alpha = .1 and epsilon = 1; q quantiles need 20,200 at 64 bits.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import ClassVar

from ldp_client.errors import InvalidSpec
from ldp_server.curator.draws import Draws
from ldp_server.curator.people import Record, whole_numbers
from ldp_server.curator.prices import CentralPrice
from ldp_server.curator.releases.base import BETA, CentralMechanism, Outcome, ReleasedRow
from ldp_server.curator.releases.ranges.concave import ConcaveSearch, best_search
from ldp_server.curator.releases.ranges.quantiles import check_range, held_inside, rank_stretches
from ldp_server.curator.releases.sanitizing.shares import DrawShare, share_out

__all__ = ["NumberSanitizer"]


@dataclass(frozen=True)
class NumberSanitizer(CentralMechanism):
    """Counts below all thresholds, up to a share."""

    kind: ClassVar[str] = "all-thresholds"
    share: Fraction
    """alpha."""
    bits: int
    epsilon: Fraction
    delta: Fraction | None = None

    def __post_init__(self) -> None:
        check_range(self.bits, self.delta)
        if not Fraction(1, 200) <= self.share < 1:
            raise InvalidSpec("--share lies between 0.005 and 1")

    @property
    def numbers(self) -> int:
        """How many quantiles there are: the q of the text above."""
        return math.ceil(1 / self.share)

    def _each(self) -> DrawShare:
        return share_out(self.numbers, self.epsilon, self.delta) if self.delta else self._basic()

    def _basic(self) -> DrawShare:
        return DrawShare(self.numbers, self.epsilon / self.numbers, Fraction(0))

    @property
    def price(self) -> CentralPrice:
        return self._each().price(self.epsilon, self.delta or Fraction(0))

    def search(self) -> ConcaveSearch:
        """Return the search for one quantile."""
        each = self._each()
        delta = each.delta / self.numbers if self.delta else None
        beta = BETA / self.numbers
        return best_search((2 << self.bits) - 1, each.epsilon, delta, 2 * self.numbers, beta)

    @property
    def smallest(self) -> int:
        return max(2 * self.numbers, math.ceil(self.search().error / (self.numbers * self.share)))

    def run(self, records: Sequence[Record], draws: Draws) -> Outcome:
        reach, people, count = (1 << self.bits) - 1, len(records), self.numbers
        numbers, search = held_inside(whole_numbers(records, "the column"), reach), self.search()
        found = []
        for place in range(1, count + 1):
            target = (2 * place - 1) * people
            score = rank_stretches(numbers, 2 * count, target, (-reach, reach), 2 * search.error)
            found.append(search.solve(score, 0, draws))
        values = [value for value in found if value is not None]
        if len(values) < count:
            return Outcome((), "nothing: this happens with probability 5% at most")
        ends = [place * people // count for place in range(count + 1)]
        copies = [high - low for low, high in pairwise(ends)]
        rows = tuple(ReleasedRow(value, many) for value, many in zip(sorted(values), copies, strict=True))
        most = math.ceil(self.share * people)
        note = (
            "read it as so many people with these numbers: with probability 95% the count below any threshold is right "
            f"up to {most:,} people"
        )
        return Outcome(rows, note)
