"""A score on a range of whole numbers, constant on stretches: a range of 2^8192 values is a few stretches.

Everything here is a function of the score alone, in time about linear in the number of stretches.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from fractions import Fraction
from typing import NamedTuple

import numpy as np

from ldp_server.curator.draws import Draws, laplace_scale
from ldp_server.curator.releases.quantile import STEPS, drawn_index

__all__ = [
    "Stretch",
    "block_lead",
    "cropped",
    "draw_value",
    "joined",
    "selection_error",
    "size_of",
    "value_scale",
    "window_levels",
]


class Stretch(NamedTuple):
    """Values first ... first + length - 1, all with one score."""

    first: int
    length: int
    score: int


def joined(stretches: Iterable[Stretch], floor: int) -> list[Stretch]:
    """Raise every score to at least `floor`, and make one stretch of neighbours with the same score.

    A maximum with a constant moves no more than the score does.
    """
    found: list[Stretch] = []
    for first, length, score in stretches:
        level = max(score, floor)
        if found and found[-1].score == level:
            before = found.pop()
            found.append(Stretch(before.first, before.length + length, level))
        elif length:
            found.append(Stretch(first, length, level))
    return found


def size_of(stretches: Sequence[Stretch]) -> int:
    """Return how many values the range has."""
    return stretches[-1].first + stretches[-1].length - stretches[0].first


def window_levels(stretches: Sequence[Stretch]) -> list[int]:
    """Return L(j) for each j with 2^j <= size: the largest over windows of 2^j values of the window's smallest score.

    Each stretch has a longest run around it with no smaller score; a stack finds all of them in one pass.
    """
    best = [min(stretch.score for stretch in stretches)] * size_of(stretches).bit_length()
    open_runs: list[tuple[int, int]] = []
    end = stretches[-1].first + stretches[-1].length
    for first, _, score in [*stretches, Stretch(end, 0, best[0] - 1)]:
        start = first
        while open_runs and open_runs[-1][1] >= score:
            start, level = open_runs.pop()
            place = (first - start).bit_length() - 1
            best[place] = max(best[place], level)
        open_runs.append((start, score))
    for place in range(len(best) - 2, -1, -1):
        best[place] = max(best[place], best[place + 1])
    return best


def block_lead(stretches: Sequence[Stretch], length: int, offset: int) -> tuple[int, int | None]:
    """Return the block with the largest score, and by how much it leads the second one.

    Block b has the values offset + b length up to the next block, counted from the start of the range. None: there is
    one block alone, so nothing is learned by naming it.
    """
    start = stretches[0].first + offset
    if (-offset) // length == (size_of(stretches) - 1 - offset) // length:
        return (-offset) // length, None
    leader, most = 0, None
    for first, count, score in sorted(stretches, key=lambda stretch: -stretch.score):
        low, high = (first - start) // length, (first + count - 1 - start) // length
        if most is None:
            leader, most = low, score
            if high > low:
                return leader, 0
        elif low != leader or high != leader:
            return leader, most - score
    raise AssertionError("two blocks have stretches in both")


def cropped(stretches: Sequence[Stretch], kept: Sequence[tuple[int, int]]) -> list[Stretch]:
    """Return the parts of the stretches inside these intervals [first, end), which are disjoint."""
    found = []
    for low, high in kept:
        for first, length, score in stretches:
            start, end = max(first, low), min(first + length, high)
            if start < end:
                found.append(Stretch(start, end - start, score))
    return found


def value_scale(sensitivity: int, epsilon: Fraction) -> float:
    """Return the scale of `draw_value`: 2 (S Delta + 4) / epsilon. Why the 4: quantile.py."""
    return laplace_scale(2 * (STEPS * sensitivity + 4), epsilon)


def draw_value(stretches: Sequence[Stretch], sensitivity: int, epsilon: Fraction, draws: Draws) -> int:
    """Draw a value by the exponential mechanism; epsilon-private if a record moves each score by `sensitivity`."""
    scale = value_scale(sensitivity, epsilon)
    lowest = min(stretch.score for stretch in stretches)
    units = [STEPS * (score - lowest) + round(scale * math.log(length)) for _, length, score in stretches]
    chosen = stretches[drawn_index(np.array(units, np.int64), scale, draws)]
    return chosen.first + draws.uniform(chosen.length)


def selection_error(ratio: float, sensitivity: int, epsilon: Fraction, beta: float) -> int:
    """Return a t such that `draw_value` gives a score below best - t with probability at most beta.

    `ratio`: the natural logarithm of how many values there are to one of the best.
    """
    return math.ceil((value_scale(sensitivity, epsilon) * (ratio - math.log(beta)) + 4) / STEPS)
