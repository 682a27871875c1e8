"""The exact law of RecConcave with one step of recursion, computed apart from its code: by brute force over a range.

The exponential mechanism's two roundings, which its scale pays for, are left out.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from ldp_server.curator.laws import laplace_tail
from ldp_server.curator.releases.mode import GRAIN
from ldp_server.curator.releases.quantile import STEPS
from ldp_server.curator.releases.ranges.concave import ConcaveSearch
from ldp_server.curator.releases.ranges.steps import value_scale

__all__ = ["concave_law", "moved_scores", "needed_delta"]

Chances = npt.NDArray[np.float64]


def concave_law(search: ConcaveSearch, scores: Sequence[int], promise: int) -> Chances:
    """Return the probability of each value, and in the last place that of nothing."""
    slack = search.slacks[0]
    raised = np.maximum(np.array(scores), promise - 2 * slack)
    levels = _levels(raised)
    inner = [level - promise + slack for level in levels]
    inner = [min(one, promise - above) for one, above in zip(inner[:-1], levels[1:], strict=True)] + inner[-1:]
    floor = -(-slack // 2) - 2 * search.slacks[1]
    chances = _exponential(np.maximum(np.array(inner), floor), value_scale(search.sensitivity, search.last))
    found = np.zeros(len(scores) + 1)
    for k, chance in enumerate(chances):
        found += chance * _after(search, raised, k)
    return found


def _levels(raised: npt.NDArray[np.int64]) -> list[int]:
    count = len(raised)
    return [
        max(int(raised[start : start + (1 << j)].min()) for start in range(count - (1 << j) + 1))
        for j in range(count.bit_length())
    ]


def _exponential(scores: npt.NDArray[np.int64], scale: float) -> Chances:
    weights = np.exp((scores - scores.max()) * STEPS / scale)
    return np.asarray(weights / weights.sum())


def _after(search: ConcaveSearch, raised: npt.NDArray[np.int64], k: int) -> Chances:
    named = [_named(search, raised, 8 << k, offset) for offset in (0, 4 << k)]
    found = np.zeros(len(raised) + 1)
    for a, b in ((True, True), (True, False), (False, True), (False, False)):
        chance = math.prod(p if taken else 1 - p for (p, _), taken in zip(named, (a, b), strict=True))
        inside = np.zeros(len(raised), bool)
        for (_, block), taken in zip(named, (a, b), strict=True):
            inside |= block & taken
        if inside.any():
            found[np.flatnonzero(inside)] += chance * _exponential(
                raised[inside], value_scale(search.sensitivity, search.inside)
            )
        else:
            found[-1] += chance
    return found


def _named(
    search: ConcaveSearch, raised: npt.NDArray[np.int64], length: int, offset: int
) -> tuple[float, npt.NDArray[np.bool_]]:
    blocks = (np.arange(len(raised)) - offset) // length
    tops = sorted(((int(raised[blocks == b].max()), int(b)) for b in np.unique(blocks)), key=lambda top: (-top[0], top))
    block = blocks == tops[0][1]
    if len(tops) == 1:
        return 1.0, block
    return laplace_tail(search.scale, search.threshold - GRAIN * (tops[0][0] - tops[1][0])), block


def moved_scores(rng: np.random.Generator, size: int, peak: int) -> tuple[list[int], list[int]]:
    """Return two scores that differ by at most 1 everywhere: a peak with walls, raised while the rest is lowered."""
    place, width = int(rng.integers(size)), int(rng.integers(1, 1 + size // 2))
    high = np.abs(np.arange(size) - place) < width
    one = np.where(high, peak, 0) - rng.integers(0, 2, size)
    moves = np.where(high, 1, -1) if rng.integers(2) else rng.integers(-1, 2, size)
    return one.tolist(), (one + moves).tolist()


def needed_delta(one: Chances, other: Chances, epsilon: float) -> float:
    """Return the smallest delta with P(S) <= e^epsilon Q(S) + delta for all S, in both directions."""
    factor = math.exp(epsilon)
    return float(max(np.maximum(0, one - factor * other).sum(), np.maximum(0, other - factor * one).sum()))
