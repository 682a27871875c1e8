r"""A channel by differences: a value moves on a line or a ring by a drawn number of places. Proved before it is used.

Distribution. A question is one axis, or a record with an axis for each field. An axis has c places 0 ... c - 1, which
are its items in order, and `none`. Its tables are weights over N = 2^64:

    a_0, a_1    how many words say `none`: of who has none, and of who has a value
    w[d]        of a move by d. On a line d = -(c-1) ... c-1, and whoever moves beyond an end stops there. On a ring
                d = 0 ... c-1, and places are counted modulo c.
    u[y]        of place y, for who has none and says a value

The weights w add up to N, and so do the weights u. With B(y | v) the weight of the moves from v that end at y:

    Pr[none | none] = a_0/N,    Pr[y | none] = (1 - a_0/N) u[y]/N,
    Pr[none | v]    = a_1/N,    Pr[y | v]    = (1 - a_1/N) B(y | v)/N.

A record's axes are drawn independently, each with words of its own. Nothing depends on a seed.

Distances. One place is s apart from the next, s a whole number of the axis. So v and z are s |v - z| apart, on a ring
the shorter way round; `none` is as far from every value as the two furthest values are. That is R, at least s. Two
records are apart by the sum over their axes. D is the sum of all R.

Privacy. With e(d) = floor(2^64 e^(epsilon d/D)) / 2^64 <= e^(epsilon d/D), the device compares whole numbers, for every
axis and in both directions:

1.  B(y | v) <= e(s) B(y | v + 1). On a line, for places y between the ends, that is w[d] <= e(s) w[d - 1] and back for
    -(c-2) <= d - 1 < d <= c-2. For an end it is the same for the sums of all w from d on, and up to d. On a ring it is
    w[d] <= e(s) w[d - 1] all the way round. Two values that are d places apart differ by e(s)^d <= e^(epsilon s d/D).
2.  a_0 <= e(R) a_1;  (N - a_0) u[y] <= e(R) (N - a_1) min over v of B(y | v), and the same the other way round with
    the largest B(y | v). The least and the largest are of the moves from y - (c-1) to y; all these windows have d = 0
    in common, so they come from two running extremes.

The factors of the axes multiply: two records at a distance of d differ by e^(epsilon d/D) at most, for every report,
and so for every set of reports. As d <= D, this is pure epsilon-LDP, which is what a ledger charges. Near values are
protected more than far ones. Who made the tables does not matter. The check takes about 12 products for each place.

Estimation. The table of a record is the Kronecker product of those of its axes, so its inverse is the product of
theirs (ldp_server/oracles/shifted_channel.py).

Limits. An axis has at most 4,096 places, and all together 2^20 elements. No weight is 0, as a report that one element
never gives would tell the others apart.

Timing. Two words for each axis. The move, and the place of who has none, are found by bisection on the word alone, in
the same number of steps for every word; both are worked out, whatever the item is. CPython is not constant time.

The best tables for the loss 0 of the truth and 1 of all else have a closed form (shared/axis.py).
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import accumulate, pairwise
from math import prod
from typing import Any, ClassVar, Self

from ldp_client.errors import InvalidSpec
from ldp_client.mechanisms.base import WORD_BITS, Example, Randomizer
from ldp_client.mechanisms.shared.axis import Axis, geometric
from ldp_client.protocol.domain import Categories, Domain, Field, Integers, Record, YesNo
from ldp_client.protocol.epsilon import EXP_BITS, Epsilon, floor_exp

__all__ = [
    "MAX_ELEMENTS",
    "MAX_PLACES",
    "MAX_STEP",
    "NotPrivate",
    "ShiftedChannel",
    "axis_counts",
    "design",
    "parameters_of",
]

MAX_PLACES = 4096
MAX_ELEMENTS = 1 << 20
MAX_STEP = 1 << 20
_MOST_SLACK = Fraction(1, 1 << 10)


class NotPrivate(InvalidSpec):
    """The tables have the right shape, and break their bound."""


@dataclass(frozen=True)
class ShiftedChannel(Randomizer):
    """Moves values by drawn numbers of places."""

    epsilon: Epsilon
    names: tuple[str, ...]
    """The fields, for messages; one empty name where the domain is no record."""
    given: tuple[Axis, ...]
    """The tables as the spec has them, over 2^64."""
    word_bits: int = WORD_BITS
    """Below 64, the weights must be whole numbers over 2^word_bits."""
    axes: tuple[Axis, ...] = field(init=False, repr=False, compare=False)
    """The tables over 2^word_bits."""
    size: int = field(init=False, repr=False, compare=False)
    steps: tuple[tuple[int, int], ...] = field(init=False, repr=False, compare=False)
    """Of each axis: what one element adds to the index, and how many elements it has."""
    limits: tuple[tuple[tuple[int, ...], tuple[int, ...]], ...] = field(init=False, repr=False, compare=False)
    """Of each axis: where the words of the moves end, and those of `empties`, as `_limits` lays them out."""
    name: ClassVar[str] = "shifted-channel"

    def __post_init__(self) -> None:
        object.__setattr__(self, "axes", tuple(axis.over(1 << WORD_BITS - self.word_bits) for axis in self.given))
        strides = list(accumulate((axis.places + 1 for axis in self.axes), int.__mul__, initial=1))
        object.__setattr__(self, "size", strides[-1])
        steps = tuple((stride, axis.places + 1) for stride, axis in zip(strides, self.axes, strict=False))
        object.__setattr__(self, "steps", steps)
        _check(self.axes, self.word_bits)
        limits = ((_limits(a.moves, self.word_bits), _limits(a.empties, self.word_bits)) for a in self.axes)
        object.__setattr__(self, "limits", tuple(limits))
        for name, axis in zip(self.names, self.axes, strict=True):
            self._prove(f"field {name!r}: " if name else "", axis)

    @classmethod
    def build(cls, epsilon: Epsilon, domain: Domain, seed: bytes, parameters: Mapping[str, Any]) -> Self:
        del seed  # it uses no public randomness
        names = domain.names if isinstance(domain, Record) else ("",)
        return cls(epsilon, names, _axes(axis_counts(domain), parameters))

    @classmethod
    def examples(cls) -> Sequence[Example]:
        few, tiny = 1 << WORD_BITS - 6, 1 << WORD_BITS - 3
        line = parameters_of([_axis(few, 0, (24, 16), (19, 12, 16, 8, 9), (22, 20, 22))])
        ring = parameters_of([_axis(few, 1, (16, 12), (20, 14, 8, 8, 14), (13, 13, 12, 13, 13))])
        yes = Record((Field("a", YesNo(none_is_no=True)), Field("b", Integers(1, 2))))
        both = [_axis(tiny, 0, (4, 3), (8,), (8,)), _axis(tiny, 0, (4, 4), (2, 3, 3), (4, 4), step=3)]
        place = Record((Field("x", Integers(0, 4)), Field("hour", Categories(("0", "8", "16")))))
        return (
            Example("1.5", Integers(0, 3), line, 6),
            Example("2", Integers(5, 5), ring, 6),
            Example("2", yes, parameters_of(both), 3),
            Example("1.5", Integers(0, 3), design("1.5", Integers(0, 3))),
            Example("6", place, design("6", place, rings=(0, 1), steps=(1, 2))),
            Example("0.3", yes, design("0.3", yes)),
        )

    @property
    def words(self) -> int:
        """Two for each axis: one for `none`, one for the place."""
        return 2 * len(self.axes)

    @property
    def bound(self) -> int:
        return self.size

    def randomize(self, index: int, words: Sequence[int]) -> int:
        if len(words) != self.words:
            raise IndexError("as many words as `words` says")
        bits, report = self.word_bits, 0
        for at, axis in enumerate(self.axes):
            stride, size = self.steps[at]
            held = index // stride % size
            has = int(held > 0)
            word = words[2 * at + 1] + (1 << bits)
            moves, empties = self.limits[at]
            place = held - has + bisect_right(moves, word)
            place = place % axis.places if axis.ring else min(max(place - axis.places + 1, 0), axis.places - 1)
            free = bisect_right(empties, word)
            says = words[2 * at] + (2 << bits) - axis.absent[has] >> bits + 1
            report += stride * says * (1 + has * place + (1 - has) * free)
        return report

    def probability(self, index: int, report: int) -> Fraction:
        total, found = 1 << self.word_bits, Fraction(1)
        for axis, (stride, size) in zip(self.axes, self.steps, strict=True):
            held, said = index // stride % size, report // stride % size
            none = Fraction(axis.absent[held > 0], total)
            if not said:
                found *= none
            else:
                weight = axis.weight(held - 1, said - 1) if held else axis.empties[said - 1]
                found *= (1 - none) * Fraction(weight, total)
        return found

    @property
    def ratio(self) -> Fraction:
        return prod((axis.ratio(1 << self.word_bits) for axis in self.axes), start=Fraction(1))

    @property
    def furthest(self) -> int:
        """D: how far apart two elements can be, over all axes."""
        return sum(axis.reach for axis in self.axes)

    def bounded(self, distance: int) -> Fraction:
        """Return epsilon d/D: how much more likely a report is, in logarithms, for elements so far apart."""
        return self.epsilon.value * distance / self.furthest

    def parameters(self) -> Mapping[str, Any]:
        return parameters_of(self.given)

    def _prove(self, where: str, axis: Axis) -> None:
        """Check the inequalities of this axis, in whole numbers."""
        near, far = (floor_exp(self.bounded(distance), EXP_BITS) for distance in (axis.step, axis.reach))
        for chain in axis.chains():
            for one, other in pairwise(chain):
                if max(one, other) << EXP_BITS > near * min(one, other):
                    raise NotPrivate(
                        f"shifted-channel is not private: {where}a report is more than e^({self.epsilon} * "
                        f"{axis.step}/{self.furthest}) times as likely for a value as for the one beside it"
                    )
        if axis.ratio(1 << self.word_bits) > Fraction(far, 1 << EXP_BITS):
            raise NotPrivate(
                f"shifted-channel is not private: {where}a report is more than e^({self.epsilon} * {axis.reach}/"
                f"{self.furthest}) times as likely for one element as for another"
            )


def axis_counts(domain: Domain) -> tuple[int, ...]:
    """Return how many items each axis of a domain has."""
    if isinstance(domain, Record):
        return tuple(size - 1 for size in domain.sizes)
    if not isinstance(domain, Integers | Categories):
        raise InvalidSpec("shifted-channel takes integers, categories, or a record")
    return (domain.size - 1,)


def design(
    epsilon: Epsilon | str, domain: Domain, rings: Sequence[int] = (), steps: Sequence[int] = ()
) -> dict[str, Any]:
    """Return the tables that are best where only the truth counts (shared/axis.py), as parameters.

    Without `rings` all axes are lines, without `steps` all places are as far apart.
    """
    budget = epsilon if isinstance(epsilon, Epsilon) else Epsilon.parse(epsilon)
    counts = axis_counts(domain)
    shapes = list(zip(counts, rings or [0] * len(counts), steps or [1] * len(counts), strict=True))
    slack = Fraction(1, 1 << 50)
    while slack <= _MOST_SLACK:
        found = parameters_of(geometric(budget.value * (1 - slack), shapes))
        try:
            ShiftedChannel.build(budget, domain, b"", found)
        except NotPrivate:
            slack *= 2
        else:
            return found
    raise InvalidSpec(f"epsilon {budget} is too large for weights over 2^64: take a smaller one, or fewer places")


def parameters_of(axes: Iterable[Axis]) -> dict[str, Any]:
    """Return the lists of the spec for these axes, whose weights are over 2^64; one place has no weights to list."""
    found: dict[str, list[int]] = {name: [] for name in ("rings", "steps", "absent", "moves", "empties")}
    for axis in axes:
        found["rings"].append(int(axis.ring))
        found["steps"].append(axis.step)
        found["absent"] += axis.absent
        if axis.places > 1:
            found["moves"] += axis.moves
            found["empties"] += axis.empties
    return {name: tuple(values) for name, values in found.items()}


def _axis(
    unit: int, ring: int, absent: Sequence[int], moves: Sequence[int], empties: Sequence[int], step: int = 1
) -> Axis:
    lists = (tuple(unit * weight for weight in one) for one in (moves, empties))
    return Axis(bool(ring), step, (unit * absent[0], unit * absent[1]), *lists)


def _axes(counts: Sequence[int], given: Mapping[str, Any]) -> tuple[Axis, ...]:
    """Cut the lists of the spec into axes."""
    rings, steps, absent = (list(given[name]) for name in ("rings", "steps", "absent"))
    if not len(rings) == len(steps) == len(counts) or len(absent) != 2 * len(counts) or not set(rings) <= {0, 1}:
        raise InvalidSpec(
            f"shifted-channel has for each of {len(counts)} axes a line (0) or ring (1), a step, and two weights of "
            "saying none"
        )
    lists = [0 if count == 1 else count for count in counts]
    lengths = [count if ring else max(0, 2 * count - 1) for count, ring in zip(lists, rings, strict=True)]
    if len(given["moves"]) != sum(lengths) or len(given["empties"]) != sum(lists):
        raise InvalidSpec(
            f"shifted-channel takes {sum(lengths)} weights of moves and {sum(lists)} of who has none for these "
            f"axes, not {len(given['moves'])} and {len(given['empties'])}"
        )
    moves, empties = ([0, *accumulate(one)] for one in (lengths, lists))
    alone = (1 << WORD_BITS,)
    return tuple(
        Axis(
            bool(rings[i]),
            steps[i],
            (absent[2 * i], absent[2 * i + 1]),
            tuple(given["moves"][moves[i] : moves[i + 1]]) or alone,
            tuple(given["empties"][empties[i] : empties[i + 1]]) or alone,
        )
        for i in range(len(counts))
    )


def _limits(weights: Sequence[int], bits: int) -> tuple[int, ...]:
    """Return the sums of the weights, raised by 2^bits so that all have as many digits, and filled to 2^j - 1."""
    ends = [(1 << bits) + end for end in accumulate(weights)][:-1]
    return (*ends, *[2 << bits] * ((1 << len(ends).bit_length()) - 1 - len(ends)))


def _check(axes: Sequence[Axis], bits: int) -> None:
    """Check the shape of the tables."""
    if max(axis.places for axis in axes) > MAX_PLACES or prod(axis.places + 1 for axis in axes) > MAX_ELEMENTS:
        raise InvalidSpec(
            f"shifted-channel takes at most {MAX_PLACES} items in a field and {MAX_ELEMENTS} elements in all: make "
            "them coarser"
        )
    total = 1 << bits
    for axis in axes:
        if not 1 <= axis.step <= MAX_STEP:
            raise InvalidSpec(f"shifted-channel: a step is a whole number of 1 to {MAX_STEP}")
        if min(*axis.absent, *axis.moves, *axis.empties) < 1 or max(axis.absent) >= total:
            raise InvalidSpec("shifted-channel: every weight is a whole number of at least 1, and those of none < 2^64")
        if sum(axis.moves) != total or sum(axis.empties) != total:
            raise InvalidSpec(f"shifted-channel: the weights of moves, and those of who has none, add up to 2^{bits}")
