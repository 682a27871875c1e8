r"""The tables of one axis of a shifted channel, and the best ones where only the truth counts.

The best tables. Let K[x][y] = e^(-epsilon d(x, y)/D) for the elements of all axes. A table A with A[x][y] <=
e^(epsilon d(x, z)/D) A[z][y] has A[x][y] >= K[x][y] A[y][y], and its lines add up to 1. So for any numbers b[x] >= 0
with sum over x of b[x] K[x][y] >= 1 for every y,

    sum over y of A[y][y] <= sum over x, y of b[x] K[x][y] A[y][y] <= sum over x, y of b[x] A[x][y] = sum of b.

If K b = 1 has a solution b >= 0, then A[x][y] = K[x][y] b[y] is a table, reaches this bound, and no table tells the
truth more often (with equally frequent elements). K is the product of those of the axes, and so is b. For one axis:

- The places of a line, alpha = e^(-epsilon s/D): b is 1/(1 + alpha) at the two ends and (1 - alpha)/(1 + alpha) between
  them. It is the truncated geometric law (Ghosh, Roughgarden and Sundararajan, "Universally utility-maximizing privacy
  mechanisms", 2009). The places of a ring: b = 1/(sum over d of alpha^|d|), for all of them.
- With `none`, beta = e^(-epsilon R/D), and S the sum of the b of the places: none has b_0 = (1 - beta S)/
  (1 - beta^2 S), and the others are multiplied by 1 - beta b_0. So a_0 = b_0, a_1 = beta b_0, and u = b/S. No entry
  of K is below beta, and those of the diagonal are 1, so that 1 = K b > beta S.

Numbers are whole, over 2^192; the weights are rounded down, and what is left goes to the move by 0.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import accumulate

from ldp_client.errors import InvalidSpec
from ldp_client.protocol.epsilon import floor_exp

__all__ = ["Axis", "geometric"]

_WORDS = 1 << 64
_ONE = 1 << 192


@dataclass(frozen=True)
class Axis:
    """The tables of one axis, in whole numbers over 2^word_bits."""

    ring: bool
    step: int
    """s: how far apart two places are that lie side by side."""
    absent: tuple[int, int]
    """a_0 and a_1: how many words say `none`, of who has none and of who has a value."""
    moves: tuple[int, ...]
    """w: how many words make each move."""
    empties: tuple[int, ...]
    """u: how many words say each place, of who has none."""

    @property
    def places(self) -> int:
        """c: how many places the axis has."""
        return len(self.empties)

    @property
    def reach(self) -> int:
        """R: how far apart the two furthest values are, at least s."""
        return self.step * max(1, self.places // 2 if self.ring else self.places - 1)

    def over(self, unit: int) -> Axis:
        """Return the axis with weights that are so much smaller; one that is no multiple of `unit` becomes 0."""
        absent, moves, empties = (
            tuple(0 if weight % unit else weight // unit for weight in one)
            for one in (self.absent, self.moves, self.empties)
        )
        return Axis(self.ring, self.step, (absent[0], absent[1]), moves, empties)

    def upward(self) -> list[int]:
        """Of a line: the weight of all moves by d or more, for d = -(c-1) ... c-1."""
        return list(accumulate(reversed(self.moves)))[::-1]

    def weight(self, held: int, place: int) -> int:
        """Return B(place | held)."""
        last = self.places - 1
        if self.ring:
            return self.moves[(place - held) % self.places]
        if last == 0:
            return sum(self.moves)
        at = place - held + last
        if place == last:
            return sum(self.moves[at:])
        return sum(self.moves[: at + 1]) if place == 0 else self.moves[at]

    def extremes(self) -> tuple[list[int], list[int]]:
        """Return the least and the largest B(y | v) over all v, for each place y."""
        c, moves = self.places, self.moves
        if self.ring:
            return [min(moves)] * c, [max(moves)] * c
        if c == 1:
            return [sum(moves)], [sum(moves)]
        up, down = self.upward(), list(accumulate(moves))
        found: list[list[int]] = []
        for extreme in (min, max):
            right = list(accumulate(moves[c - 1 :], extreme))
            left = list(accumulate(reversed(moves[:c]), extreme))[::-1]
            inner = [extreme(left[y], right[y]) for y in range(1, c - 1)]
            found.append([extreme(down[0], down[c - 1]), *inner, extreme(up[c - 1], up[-1])])
        return found[0], found[1]

    def chains(self) -> Iterable[Sequence[int]]:
        """Return lists in which each weight and the next are those of two neighbouring values for one report."""
        c = self.places
        if self.ring:
            yield (*self.moves, self.moves[0])
        elif c > 1:
            yield self.moves[1:-1]
            yield self.upward()[c - 1 :]
            yield list(accumulate(self.moves))[:c]

    def ratio(self, total: int) -> Fraction:
        """Return the exact largest ratio of a report's probabilities under two elements of the axis."""
        none, value = self.absent
        found = Fraction(max(none, value), min(none, value))
        for empty, least, most in zip(self.empties, *self.extremes(), strict=True):
            column = ((total - none) * empty, (total - value) * least, (total - value) * most)
            found = max(found, Fraction(max(column), min(column)))
        return found


def geometric(epsilon: Fraction, shapes: Sequence[tuple[int, int, int]]) -> list[Axis]:
    """Return the best axes for places (at least 1), line (0) or ring (1), and step of each, in weights over 2^64.

    Rounding may break the bound for this epsilon by some parts in 2^64: whoever needs it gives a little less.
    """
    if any(count < 1 or step < 1 for count, _, step in shapes):
        raise InvalidSpec("shifted-channel: a step is a whole number of at least 1, and an axis has an item at least")
    blank = [Axis(bool(ring), step, (1, 1), (), (1,) * count) for count, ring, step in shapes]
    furthest = sum(axis.reach for axis in blank)
    return [_best(axis, epsilon / furthest) for axis in blank]


def _best(blank: Axis, unit: Fraction) -> Axis:
    c, far = blank.places, blank.reach
    alpha, beta = (_inverse(unit * distance) for distance in (blank.step, far))
    powers = list(accumulate([_ONE] + [alpha] * c, lambda one, other: one * other >> 192))
    if blank.ring:
        kernel = [powers[min(d, c - d)] for d in range(c)]
        each = _ONE * _ONE // sum(kernel)
        moves, own = [one * each >> 192 for one in kernel], [each] * c
    else:
        inner, end = _ONE * (_ONE - alpha) // (_ONE + alpha), _ONE * _ONE // (_ONE + alpha)
        own = [_ONE] if c == 1 else [end, *[inner] * (c - 2), end]
        half = [powers[d] * inner >> 192 for d in range(c - 1)] + [powers[c - 1] * end >> 192]
        moves = [_ONE] if c == 1 else [*half[:0:-1], *half]
    total = sum(own)
    none = _ONE * (_ONE - (beta * total >> 192)) // (_ONE - (beta * (beta * total >> 192) >> 192))
    absent = (max(1, none * _WORDS >> 192), max(1, (beta * none >> 192) * _WORDS >> 192))
    start = 0 if blank.ring else c - 1
    return Axis(
        blank.ring, blank.step, absent, _whole(moves, start), _whole([_ONE * one // total for one in own], c // 2)
    )


def _inverse(value: Fraction) -> int:
    """Return about 2^192 e^-value."""
    return (1 << 192 + 128) // floor_exp(value, 128)


def _whole(values: Sequence[int], most: int) -> tuple[int, ...]:
    """Return weights over 2^64; the one at `most` gets what is left."""
    found = [max(1, one * _WORDS >> 192) for one in values]
    found[most] += _WORDS - sum(found)
    return tuple(found)
