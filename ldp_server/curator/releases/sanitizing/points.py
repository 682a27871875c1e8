"""How many people hold an item, for all items of any domain, each up to a share of the people (SanPoints).

With the share alpha, k items at once and a = alpha / k:

    ceil(2 / a) times: the choosing mechanism, with the share a / 2, over the items that were not named before.
    An item that it names gets its count with discrete Laplace noise of scale 1 / epsilon'. Nothing named: the end

Theorem: (epsilon, delta)-private for replacement, from the number of people on that the choosing mechanism needs at
(a / 2, epsilon', delta'). Each round is two draws: the choosing mechanism, (epsilon', delta'), over a family of counts
that was fixed by what is released already, and one count, which moves by 1. `share_out` gives epsilon' for
2 ceil(2 / a) draws. Fewer people are refused. (Figure 9 of Beimel, Nissim, Stemmer shares out by a formula that leaves
half of epsilon unused: 760,000 people at alpha = .1, epsilon = 1, delta = 1e-6, where 195,000 are enough.)

Use. With probability 95%, an item that is not listed is held by at most a m of the m people: a round ends without an
item only if the largest count is below a m / 4 plus noise. If all rounds name one while an unlisted item has more than
a m, each of the 2 / a named ones would be held by a m / 2 or more. So how many people hold one of any k items is known
up to alpha m beside the noise of the listed counts: `held_by_any` (k-point sanitizer, Theorem 4.7).

The stability histogram (`items`) is better wherever an item is a whole answer: at the same price it lists all items
above 50 people. This one is for a promise about all items at once, also where no item is listed.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from ldp_client.errors import InvalidSpec
from ldp_server.curator.draws import Draws, laplace_scale
from ldp_server.curator.laws import laplace_half_width
from ldp_server.curator.people import Record
from ldp_server.curator.prices import CentralPrice
from ldp_server.curator.releases.base import BETA, CentralMechanism, Outcome, ReleasedRow, clipped, counted, in_order
from ldp_server.curator.releases.choosing import Choosing
from ldp_server.curator.releases.sanitizing.shares import DrawShare, share_out

__all__ = ["PointSanitizer", "held_by_any"]

_FINEST = Fraction(1, 1000)


@dataclass(frozen=True)
class PointSanitizer(CentralMechanism):
    """Counts of all items, up to a share."""

    kind: ClassVar[str] = "all-items"
    share: Fraction
    """alpha."""
    epsilon: Fraction
    delta: Fraction
    k: int = 1

    def __post_init__(self) -> None:
        if not 0 < self.delta < Fraction(1, 10):
            raise InvalidSpec("a release of unknown items needs a delta above 0 and small, such as 1e-6 (--delta)")
        if self.k < 1 or not _FINEST <= self.share / self.k < 1:
            raise InvalidSpec("--share lies below 1, and --share / --k is at least 0.001")

    @property
    def rounds(self) -> int:
        return math.ceil(2 * self.k / self.share)

    def _each(self) -> DrawShare:
        return share_out(2 * self.rounds, self.epsilon, self.delta)

    @property
    def price(self) -> CentralPrice:
        return self._each().price(self.epsilon, self.delta)

    def choosing(self) -> Choosing:
        """Return the mechanism of each round."""
        each = self._each()
        return Choosing(self.share / (2 * self.k), each.epsilon, each.delta / self.rounds)

    @property
    def smallest(self) -> int:
        made, each = self.choosing(), self._each()
        beta = BETA / (2 * self.rounds)
        part = float(self.share) / self.k
        people = max(made.smallest, math.ceil(4 / 3 * laplace_half_width(made.scale, 2 * beta) / part))
        while 8 / float(each.epsilon) * math.log(people / beta) > part * people:
            people = math.ceil(people * 1.01) + 1
        return people

    def run(self, records: Sequence[Record], draws: Draws) -> Outcome:
        counts, made, people = counted(records), self.choosing(), len(records)
        items, scale = in_order(counts), laplace_scale(1, self._each().epsilon)
        numbers = [counts[item] for item in items]
        width, rows = laplace_half_width(scale, BETA), []
        for _ in range(self.rounds):
            index = made.choose(numbers, people, draws)
            if index is None:
                break
            item, held = items.pop(index), numbers.pop(index)
            rows.append(clipped(item, draws.laplace([held], scale)[0], width, people))
        rows.sort(key=lambda row: -(row.count or 0))
        most = int(self.share / self.k * people)
        note = f"with probability 95% an item that is not listed is held by at most {most:,} people"
        if self.k > 1:
            note += f"; so any {self.k} items are known up to {int(self.share * people):,} people beside the noise"
        return Outcome(tuple(rows), note)


def held_by_any(rows: Sequence[ReleasedRow], items: Collection[Record], unlisted: int, people: int) -> ReleasedRow:
    """Return how many people hold one of these items, from a release; `unlisted` is what its note says of the others.

    The interval holds with the probability of the listed ones' intervals together: 5% each may fail.
    """
    listed = [row for row in rows if row.item in items]
    count, low, high = (sum(getattr(row, name) or 0 for row in listed) for name in ("count", "low", "high"))
    high += unlisted * (len(items) - len(listed))
    return ReleasedRow(None, min(max(count, 0), people), min(low, people), min(high, people))
