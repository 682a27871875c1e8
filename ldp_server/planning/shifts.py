r"""Tables for channels by differences (shifted-channel): the best ones where they are known, else beside a bound.

    truth                    the best of all tables, in closed form (ldp_client/mechanisms/shared/axis.py), for lines,
                             rings, and records of them
    absolute, squared, ring  the best moves. Turning every place of a table by one, and averaging all turned tables,
                             changes neither loss nor privacy. So a best table of the places depends on the difference
                             alone, and on its size alone: the programme has c/2 + 1 variables instead of c^2
    absolute, squared, line  the truncated geometric law, beside a bound that no table can beat

The bound for a line of c places. Take every s-th place only, about 30 in all, and round each report to one of them:
the distance to the truth grows by s/2 at most. So the loss of any table over these places is at least that of the best
table for them, less s/2 (for the square root of a squared loss, too). That best table is found by the linear programme
of channels.py. Every place belongs to one such set. A line of 30 places or less is its own bound.

With `none`. A share 1/(c + 1) of the users is taken to have none. None for an item, or an item for none, counts like
the largest distance; the bound leaves this out. Who has none says so as often as privacy allows, so that they can be
counted: on a ring, u = 1/c, a_1 = beta a_0 and a_0 = (1 - beta c w_0)/(1 - beta^2 c w_0), beta = e^(-epsilon R/D).

Fields. The losses of a record's fields add up, but for `truth`, where one wrong field makes the report wrong. Each
field has its part R/D of epsilon, as in every table that keeps the metric: with all other fields held fixed it is a
table for this one. So the sum of the fields' bounds is a bound.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

import numpy as np

from ldp_client.errors import InvalidSpec
from ldp_client.mechanisms.shared.axis import Axis, geometric
from ldp_client.mechanisms.shifted_channel import NotPrivate, ShiftedChannel, axis_counts, parameters_of
from ldp_client.protocol.domain import Domain
from ldp_client.protocol.epsilon import MIN_EPSILON, Epsilon
from ldp_server.planning.channels import ChannelGoal, best_table, linear_programme

__all__ = ["Shape", "ShiftedTable", "design_shifts"]


_WORDS = 1 << 64
_FEW = 30
"""Places of a line whose best table is found as it is."""
_LEAST_SLACK, _MOST_SLACK = Fraction(1, 1 << 50), Fraction(1, 1 << 10)
_POWER = {"absolute": 1, "squared": 2}


@dataclass(frozen=True)
class Shape:
    """What an axis is like."""

    ring: bool = False
    step: int = 1
    """How far a place is from the next, beside the places of other axes."""


@dataclass(frozen=True)
class ShiftedTable:
    """Tables for all axes, and what they cost."""

    randomizer: ShiftedChannel
    expected_loss: float
    least_loss: float
    """What no table that keeps the metric can be below."""
    best: bool
    """Whether `least_loss` is reached."""


def design_shifts(epsilon: Epsilon, domain: Domain, shapes: Sequence[Shape], loss: str = "truth") -> ShiftedTable:
    """Return tables for a loss, in whole numbers that a device proves private."""
    counts = axis_counts(domain)
    if loss not in {"truth", *_POWER}:
        raise InvalidSpec(f"the loss of a table by differences is truth, absolute or squared, not {loss!r}")
    if len(shapes) != len(counts):
        raise InvalidSpec(f"{len(counts)} axes take as many shapes, not {len(shapes)}")
    places = [(count, int(shape.ring), shape.step) for count, shape in zip(counts, shapes, strict=True)]
    slack = _LEAST_SLACK
    while slack <= _MOST_SLACK:
        axes = [
            _by_programme(axis, unit, loss) if axis.ring and loss != "truth" else axis
            for axis, unit in _geometric(epsilon.value * (1 - slack), places)
        ]
        try:
            made = ShiftedChannel.build(epsilon, domain, b"", parameters_of(axes))
        except NotPrivate:
            slack *= 2
        else:
            return _priced(made, loss)
    raise InvalidSpec(f"epsilon {epsilon} is too large for weights over 2^64: take a smaller one, or fewer places")


def _geometric(epsilon: Fraction, places: Sequence[tuple[int, int, int]]) -> list[tuple[Axis, float]]:
    """Return each axis with its epsilon for one step."""
    axes = geometric(epsilon, places)
    furthest = sum(axis.reach for axis in axes)
    return [(axis, float(epsilon * axis.step / furthest)) for axis in axes]


@lru_cache(maxsize=16)
def _ring_moves(places: int, unit: float, loss: str) -> tuple[float, ...]:
    """The best weights of moves by 0, 1, ... c/2 places, both ways round, which add up to 1 over all moves."""
    half = places // 2
    often = np.array([1.0 if d == 0 or 2 * d == places else 2.0 for d in range(half + 1)])
    cost = often * np.arange(half + 1.0) ** _POWER[loss]
    one = np.arange(half)
    grow = np.exp(unit)
    rows = np.concatenate([2 * one, 2 * one, 2 * one + 1, 2 * one + 1])
    columns = np.concatenate([one, one + 1, one + 1, one])
    values = np.concatenate([np.ones(half), np.full(half, -grow), np.ones(half), np.full(half, -grow)])
    found = linear_programme(cost / max(1.0, cost.max()), (rows, columns, values), (np.zeros(half + 1, int), often))
    found = np.maximum(found, 1e-18)
    return tuple((found / (often @ found)).tolist())


def _by_programme(axis: Axis, unit: float, loss: str) -> Axis:
    c = axis.places
    if c < 2:
        return axis
    moves = _ring_moves(c, unit, loss)
    line = [moves[min(d, c - d)] for d in range(c)]
    beta = math.exp(-unit * axis.reach / axis.step)
    wide = min(c * line[0], (1 - 1e-9) / beta)
    none = (1 - beta * wide) / (1 - beta**2 * wide)
    absent = (max(1, int(none * _WORDS)), max(1, int(beta * none * _WORDS)))
    return Axis(True, axis.step, absent, _whole(line, 0), _whole([1 / c] * c, 0))


def _whole(values: Sequence[float], most: int) -> tuple[int, ...]:
    found = [max(1, int(value * _WORDS)) for value in values]
    found[most] += _WORDS - sum(found)
    return tuple(found)


def _priced(made: ShiftedChannel, loss: str) -> ShiftedTable:
    if loss == "truth":
        right = [_truth(axis) for axis in made.axes]
        size = float(made.size)
        expected = 1 - math.prod(right) / size
        ideal = [_truth(axis) for axis, _ in _geometric(made.epsilon.value, _places(made))]
        return ShiftedTable(made, expected, min(expected, 1 - math.prod(ideal) / size), best=True)
    expected = sum(_off(axis, loss) for axis in made.axes)
    units = [float(made.bounded(axis.step)) for axis in made.axes]
    bounds = [_least(axis, unit, loss) for axis, unit in zip(made.axes, units, strict=True)]
    least = min(expected, sum(bounds))
    return ShiftedTable(made, expected, least, best=expected <= least * (1 + 1e-6))


def _places(made: ShiftedChannel) -> list[tuple[int, int, int]]:
    return [(axis.places, int(axis.ring), axis.step) for axis in made.axes]


def _truth(axis: Axis) -> float:
    """The sum of the probabilities of the true element."""
    none, value = (weight / _WORDS for weight in axis.absent)
    kept = math.fsum(axis.weight(y, y) for y in range(axis.places)) / _WORDS
    return none + (1 - value) * kept


def _off(axis: Axis, loss: str) -> float:
    """The expected loss on one axis."""
    c, power = axis.places, _POWER[loss]
    none, value = (weight / _WORDS for weight in axis.absent)
    far = float(max(1, axis.reach // axis.step)) ** power
    moves = np.array(axis.moves, np.float64) / _WORDS
    if axis.ring:
        d = np.arange(c)
        kept = float(moves @ np.minimum(d, c - d).astype(np.float64) ** power)
    elif c == 1:
        kept = 0.0
    else:
        d = np.abs(np.arange(-(c - 1), c)).astype(np.float64)
        # From a place v, a move by d to the right ends min(d, c - 1 - v) places away: the mean over all v.
        sums = np.concatenate([[0.0], np.cumsum(np.arange(c, dtype=np.float64) ** power)])
        steps = d.astype(np.intp)
        kept = float(moves @ ((c - steps) * d**power + sums[steps])) / c
    return ((1 - none) * far + c * (value * far + (1 - value) * kept)) / (c + 1)


def _least(axis: Axis, unit: float, loss: str) -> float:
    """A loss that no table is below on this axis."""
    c, power = axis.places, _POWER[loss]
    if c == 1:
        return 0.0
    if axis.ring:
        moves = _ring_moves(c, unit, loss)
        return c / (c + 1) * float(sum(moves[min(d, c - d)] * min(d, c - d) ** power for d in range(c)))
    step = max(1, math.ceil(c / _FEW))
    found = 0.0
    for start in range(step):
        few = len(range(start, c, step))
        best = step**power * _line_loss(few, unit * step, loss)
        rounded = max(0.0, best ** (1 / power) - (step / 2 if step > 1 else 0)) ** power
        found += few * rounded
    return found / (c + 1)


@lru_cache(maxsize=64)
def _line_loss(places: int, unit: float, loss: str) -> float:
    """The least loss of any table for a line of so many places."""
    if places == 1:
        return 0.0
    whole = math.ceil(unit * (places - 1) * 10**9)
    if whole > 20 * 10**9:
        return 0.0
    epsilon = Epsilon.parse(f"{max(whole, int(MIN_EPSILON * 10**9)) / 10**9:.9f}")
    off = np.abs(np.arange(places)[:, None] - np.arange(places)).astype(np.float64) ** _POWER[loss]
    distances = tuple(z - x for x in range(places) for z in range(x + 1, places))
    table = best_table(ChannelGoal(epsilon, off, distances))
    return float((table * off).sum()) / places
