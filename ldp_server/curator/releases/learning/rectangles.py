"""Which box of numbers has the label 1: each side of it is a quantile of those people.

With n columns there are 2 n sides, and one record moves what each of them reads by 1:

    1. noisy = people with the label 1 + Z, discrete Laplace noise of scale 1 / epsilon_0. Below t + h: no box
    2. the lower side of a column: a value k with about t of these people below it. Its score
       q(k) = - max(0, below(k) - t, t - up_to(k)) moves by at most 1; concave.py finds k (the exponential mechanism, or
       RecConcave with a delta where its error w is smaller). The upper side is the same for the negated numbers

epsilon_0 and each side get epsilon / (2 n + 1), and each side delta / (2 n): (epsilon, delta)-private by composition.

Use. Let a box be right for all. h is such that Z is above h, or below -h, with probability at most beta, and t = w + 1.
So with probability 95%, all draws together: if there is no box, fewer than t + 2 h people have the label 1. Otherwise
at least t have it, and each side has somebody with the label 1 on its outer side or on it, so the box lies within the
right one and nobody with the label 0 is in it; and each side cuts off at most t + w people.

The paper (Theorem 3.22) sanitizes each coordinate by its sanitizer for thresholds, and counts labels in each interval.
Its error has a factor of 8^log* d, and its precondition alone asks for more than 10^7 people. Taking each side as a
quantile needs 2 n draws and no grid.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from ldp_client.errors import InvalidSpec
from ldp_server.curator.draws import Draws, laplace_scale
from ldp_server.curator.laws import laplace_half_width
from ldp_server.curator.people import Record, whole_numbers
from ldp_server.curator.prices import CentralPrice
from ldp_server.curator.releases.base import BETA, Outcome, ReleasedRow
from ldp_server.curator.releases.learning.labelled import LabelledMechanism
from ldp_server.curator.releases.ranges.concave import ConcaveSearch, best_search
from ldp_server.curator.releases.ranges.quantiles import check_range, held_inside, rank_stretches

__all__ = ["RectangleLearner"]

_MOST_COLUMNS = 64


@dataclass(frozen=True)
class RectangleLearner(LabelledMechanism):
    """A box in n columns of numbers between -2^bits and 2^bits."""

    kind: ClassVar[str] = "learn-box"
    columns: int
    """n."""
    bits: int
    epsilon: Fraction
    delta: Fraction | None = None

    def __post_init__(self) -> None:
        check_range(self.bits, self.delta)
        if not 1 <= self.columns <= _MOST_COLUMNS:
            raise InvalidSpec(f"a box has 1 to {_MOST_COLUMNS} columns")

    @property
    def price(self) -> CentralPrice:
        used = self.side().depth > 1 and self.delta is not None
        return CentralPrice.pure(self.epsilon, self.delta if used and self.delta else Fraction(0))

    @property
    def _each(self) -> Fraction:
        return self.epsilon / (2 * self.columns + 1)

    @property
    def _beta(self) -> float:
        return BETA / (2 * self.columns + 1)

    def side(self) -> ConcaveSearch:
        """Return the search for one side."""
        delta = None if self.delta is None else self.delta / (2 * self.columns)
        return best_search((2 << self.bits) - 1, self._each, delta, 1, self._beta)

    @property
    def margin(self) -> int:
        """The h of the text above."""
        return laplace_half_width(laplace_scale(1, self._each), 2 * self._beta)

    @property
    def error(self) -> int:
        """For how many people the rule may be wrong, with probability 95%."""
        width = self.side().error
        return max(2 * self.columns * (2 * width + 1), width + 2 * self.margin + 1)

    @property
    def smallest(self) -> int:
        return 2 * self.error + 1

    def learn(self, attributes: Sequence[Sequence[Record]], labels: Sequence[bool], draws: Draws) -> Outcome:
        if len(attributes) != self.columns:
            raise InvalidSpec(f"{self.kind} was made for {self.columns} columns, and {len(attributes)} were given")
        found = [whole_numbers(column, "a column") for column in attributes]
        (held,) = draws.laplace([sum(labels)], laplace_scale(1, self._each))
        side, reach = self.side(), (1 << self.bits) - 1
        target = side.error + 1
        if held < target + self.margin:
            return Outcome((), f"no box: the label is always 0. With probability 95% wrong for at most {self.error:,}")
        ends = []
        for column in found:
            inside = [number for number, label in zip(column, labels, strict=True) if label]
            for numbers in (inside, [-number for number in inside]):
                score = rank_stretches(held_inside(numbers, reach), 1, target, (-reach, reach), 2 * side.error)
                ends.append(side.solve(score, 0, draws))
        if None in ends:
            return Outcome((), "nothing: if a box is right for all, this happens with probability 5% at most")
        rows = [ReleasedRow(end if place % 2 == 0 else -end) for place, end in enumerate(ends) if end is not None]
        note = (
            "smallest and largest number of each column, in turn; inside this box the label is 1. With probability 95% "
            f"it is wrong for at most {self.error:,} people, if some box is right for all"
        )
        return Outcome(tuple(rows), note)
