"""Ends of intervals that hold at every look (laws/every_look.py), for each kind of oracle that has them.

    frequencies   randomized response, linear hash, subset selection: the law of supports
    attributes    sampled attribute; composed response, pairs too; randomized response over sets
    averages      bounded numbers, below
    ranges        a tree over the integers, below
    tables, averages of cells, areas of maps    ldp_server/oracles/looks

Hashed domains have none: how far an item's cell is shared is no coin, and is read off the reports only in the end.

**Averages.** The score of a report is its answer. Its mean factor for a number at place x, phi(x), is linear between
two places and A + B e^(t j) at place j, so ln phi is convex in j. Two bounds of the average of ln phi(x_i) over the
users follow from the mean of the places alone; the smaller counts:

    ln of the chord of phi from the first to the last place     (phi is convex, ln is concave)
    the chord of ln phi, plus the most that ln of a line between neighbours exceeds a line between their logarithms.

Where presence is asked, the sum over all users of place - middle is bounded so, and the number of those who have a
number by the law of drawn answers. The average lies between the extremes of their quotient.

**Ranges.** The score of a report is its weight in a sum with fixed coefficients: those of levels with equally many
users, none of whom has a number. It has mean 1 for a user whose number lies in the range and 0 for any other. The
factors are bounded by Bennett's inequality, with the largest variance of a user inside and outside.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from ldp_client.mechanisms.base import Randomizer
from ldp_client.mechanisms.bounded_number import BoundedNumber
from ldp_client.mechanisms.composed_response import ComposedResponse
from ldp_client.mechanisms.hierarchy import Hierarchy
from ldp_client.mechanisms.linear_hash import LinearHash
from ldp_client.mechanisms.records.sampled_attribute import SampledAttribute
from ldp_server.arrays.hashing import Indexes
from ldp_server.arrays.transform import weights_of_reports
from ldp_server.oracles.base import Floats, FrequencyOracle, Oracle, Unsupported
from ldp_server.oracles.bounded_number import BoundedNumberOracle
from ldp_server.oracles.composed_response import ComposedResponseOracle
from ldp_server.oracles.hashtogram import HashtogramOracle
from ldp_server.oracles.hierarchy import HierarchyOracle
from ldp_server.oracles.laws.agreement import Agreement
from ldp_server.oracles.laws.every_look import Tilted, bennett, drawn_ends, support_ends, tilts
from ldp_server.oracles.laws.support import SupportLaw
from ldp_server.oracles.looks.tables import hash_means
from ldp_server.oracles.randomized_response import RandomizedResponseOracle
from ldp_server.oracles.records.sampled_attribute import SampledAttributeOracle
from ldp_server.oracles.records.view import FieldsView

__all__ = ["attribute_ends", "average_ends", "frequency_ends", "range_ends"]

Ends = tuple[float, float]
R = TypeVar("R", bound=Randomizer)


def frequency_ends(oracle: FrequencyOracle, indexes: Indexes, estimates: Floats, tail: float) -> tuple[Floats, Floats]:
    """Return the ends for the holders of items with these estimates."""
    if isinstance(oracle, FieldsView):
        return oracle.look_ends(indexes.tolist(), tail)
    law = None if isinstance(oracle, HashtogramOracle) else oracle.law
    if law is None:
        raise Unsupported(
            f"{oracle.randomizer.name} has no intervals of frequencies for every look: ask for intervals for one look"
        )
    return support_ends(law.supports(estimates), law.reports, law.p, law.s, tail)


def attribute_ends(oracle: Oracle, sets: Sequence[tuple[int, ...]], tail: float) -> list[Ends]:
    """Return the ends for the holders of each of these attributes or pairs."""
    if isinstance(oracle, SampledAttributeOracle):
        return [_sampled(oracle, place, tail) for (place,) in sets]
    if isinstance(oracle, ComposedResponseOracle):
        return [
            _composed(oracle, places[0], tail) if len(places) == 1 else _pair(oracle, places, tail) for places in sets
        ]
    if isinstance(oracle, RandomizedResponseOracle):
        return [_sets(oracle, places, tail) for places in sets]
    raise Unsupported(f"{oracle.randomizer.name} has no intervals of attributes for every look")


def _made(oracle: Oracle, kind: type[R]) -> R:
    """The oracle's randomizer, whose kind the oracle has checked."""
    if not isinstance(oracle.randomizer, kind):
        raise AssertionError("an oracle reads reports of its own mechanism")
    return oracle.randomizer


def _both(ends: tuple[Floats, Floats]) -> Ends:
    return float(ends[0][0]), float(ends[1][0])


def _sampled(oracle: SampledAttributeOracle, place: int, tail: float) -> Ends:
    no, yes = (float(count) for count in oracle.counts.values[2 * place : 2 * place + 2])
    made = _made(oracle, SampledAttribute)
    k, response = made.k, made.response
    told = (float(response.probability(1, 1)), float(response.probability(0, 1)))
    return _whole(drawn_ends(yes, no, oracle.reports, 1 / k, told, tail))


def _whole(ends: Ends) -> Ends:
    low = math.ceil(ends[0] - 1e-6)
    return float(low), float(max(low, math.floor(ends[1] + 1e-6)))


def _composed(oracle: ComposedResponseOracle, place: int, tail: float) -> Ends:
    kept = float(_made(oracle, ComposedResponse).eigenvalue(1))
    law = SupportLaw(oracle.reports, (1 + kept) / 2, (1 - kept) / 2)
    supports = law.supports(oracle.attribute_counts()[0][place : place + 1])
    return _both(support_ends(supports, law.reports, law.p, law.s, tail))


def _pair(oracle: ComposedResponseOracle, places: tuple[int, ...], tail: float) -> Ends:
    """From the four kinds of answers about two attributes, and the four kinds of users."""
    first, second = (float(_made(oracle, ComposedResponse).eigenvalue(w)) for w in (1, 2))
    answers = np.arange(oracle.randomizer.size)
    kinds = (answers >> places[0] & 1) + 2 * (answers >> places[1] & 1)
    counts = np.bincount(kinds, oracle.counts.values.astype(np.float64), 4)
    signs = np.array([(1 - 2 * (kind & 1), 1 - 2 * (kind >> 1)) for kind in range(4)], np.float64)
    scores = (1 - signs.sum(axis=1) / first + signs.prod(axis=1) / second) / 4
    flips = np.array([1 + 2 * first + second, 1 - second, 1 - second, 1 - 2 * first + second]) / 4
    users = np.array([[flips[user ^ answer] for answer in range(4)] for user in range(4)])
    spread = math.sqrt(float(users[0] @ scores**2))
    ends = []
    for sign in (1.0, -1.0):
        found, weights = tilts(spread, float(np.abs(scores).max()), sign=sign)
        factors = np.log(np.exp(np.outer(found, scores)) @ users.T)
        law = _ordered(found, weights, factors[:, 3], factors[:, :3].max(axis=1))
        ends.append(float(law.least(np.array([counts @ scores]), oracle.reports, tail)[0]))
    return _whole((ends[0], max(ends)))


def _ordered(found: Floats, weights: Floats, holder: Floats, other: Floats) -> Tilted:
    """The law with the larger bound where a holder's and another's would be in the wrong order."""
    if found[0] > 0:
        return Tilted(found, weights, np.maximum(holder, other), other)
    return Tilted(found, weights, holder, np.maximum(holder, other))


def _sets(oracle: RandomizedResponseOracle, places: tuple[int, ...], tail: float) -> Ends:
    """All sets that have these attributes are one answer."""
    mask = sum(1 << place for place in places)
    chosen = np.flatnonzero((np.arange(oracle.randomizer.size) & mask) == mask)
    law = oracle.law
    more = (len(chosen) - 1) * law.s
    total = np.array([float(oracle.counts.values[chosen].sum())])
    return _both(support_ends(total, law.reports, law.p + more, law.s + more, tail))


def average_ends(oracle: BoundedNumberOracle, tail: float) -> Ends:
    """Return the ends for the average, as distances from the lowest number."""
    made = _made(oracle, BoundedNumber)
    law, asked = made.law, made.presence / 256
    weights = [[law.weight(j, y) for y in range(law.answers)] for j in range(law.answers - law.window + 1)]
    places = np.array(weights, np.float64) / (1 << law.word_bits)
    scores: Floats = np.arange(law.answers, dtype=np.float64) - float(places[len(places) // 2] @ np.arange(law.answers))
    counts: Floats = oracle.counts.values[: law.answers].astype(np.float64)
    tail = tail / 2 if asked else tail
    means = [
        _mean_end(places, scores, asked, (float(counts @ scores), oracle.reports), tail, sign) for sign in (1.0, -1.0)
    ]
    most = made.size - 2
    if not asked:
        return most * means[0], most * means[1]
    low, high = (end - 0.5 for end in means)
    no, yes = (float(count) for count in oracle.counts.values[law.answers :])
    response = made.response
    told = (float(response.probability(1, 1)), float(response.probability(0, 1)))
    held = [end / oracle.reports for end in drawn_ends(yes, no, oracle.reports, asked, told, tail)]
    if held[0] <= 0:
        return 0.0, float(most)
    corners = [part / share for part in (low, high) for share in held]
    return most * max(0.0, 0.5 + min(corners)), most * min(1.0, 0.5 + max(corners))


def _mean_end(places: Floats, scores: Floats, asked: float, seen: tuple[float, int], tail: float, sign: float) -> float:
    """One end of the mean over all users of place/J; `seen` is the sum of scores and the number of reports."""
    total, reports = seen
    spread = math.sqrt((1 - asked) * float((places @ scores**2).max()))
    found, weights = tilts(spread, float(np.abs(scores).max()), sign=sign)
    factors = asked + (1 - asked) * np.exp(np.outer(found, scores)) @ places.T
    logs, part = np.log(factors), np.linspace(0, 1, len(places))
    chords = logs[:, :1] + (logs[:, -1:] - logs[:, :1]) * part
    bump = np.maximum(0.0, (logs - chords).max(axis=1)) + _line_over_logs(np.diff(logs, axis=1)).max(axis=1)
    bar = -math.log(max(tail, 1e-300))

    def beyond(mean: float) -> bool:
        first = np.log(factors[:, 0] + mean * (factors[:, -1] - factors[:, 0]))
        second = logs[:, 0] + mean * (logs[:, -1] - logs[:, 0]) + bump
        exponents = weights + found * total - reports * np.minimum(first, second)
        top = float(exponents.max())
        return top + math.log(float(np.exp(exponents - top).sum())) > bar

    near, far = (0.0, 1.0) if sign > 0 else (1.0, 0.0)
    if not beyond(near):
        return near
    for _ in range(50):
        middle = (near + far) / 2
        near, far = (middle, far) if beyond(middle) else (near, middle)
    return near


def _line_over_logs(steps: Floats) -> Floats:
    """The most by which ln((1-u) + u e^d) exceeds u d, over u in [0, 1], for each d."""
    d = np.where(np.abs(steps) < 1e-5, 1e-5, steps)
    mean = np.expm1(d) / d
    return np.asarray(np.maximum(0.0, np.log(mean) - (mean - 1) / np.expm1(d) * d) + 1e-15)


def range_ends(oracle: HierarchyOracle, first: int, last: int, tail: float) -> Ends:
    """Return the ends for how many users' numbers lie from `first` to `last`, as distances from the lowest."""
    tree = _made(oracle, Hierarchy)
    levels, starts = tree.levels, tree.starts
    inside = np.zeros(tree.size - 1)
    inside[first : last + 1] = 1
    noise = [len(levels) * s * (1 - s) / (p - s) ** 2 for p, s in (map(float, one.support) for one in levels)]
    root = 1 / sum(1 / one for one in noise)
    flat = [np.full(one.size - 1, v) for one, v in zip(levels, noise, strict=True)]
    cells, known = Agreement(tree.branching, flat, root).coefficients(inside)
    total, squares, most, least = 0.0, np.zeros(tree.size), -math.inf, math.inf
    for level, linear in enumerate(levels):
        weights = np.append(-known * root / noise[level], cells[level])
        scores = _scores(linear, weights, len(levels)) + known
        total += float(oracle.counts.values[starts[level] : starts[level + 1]] @ scores)
        most, least = max(most, float(scores.max())), min(least, float(scores.min()))
        squares += hash_means(linear, scores**2)[_cells_of(tree, level)] / len(levels)
    there = np.append(False, inside > 0)
    variances = float(squares[there].max()) - 1, float(squares[~there].max())
    ends = []
    for sign in (1.0, -1.0):
        found, log_weights = tilts(math.sqrt(variances[1]), max(most, -least), sign=sign)
        bounds = [
            bennett(found, mean, variance, most - mean, mean - least)
            for mean, variance in zip((1.0, 0.0), variances, strict=True)
        ]
        ends.append(float(_ordered(found, log_weights, *bounds).least(np.array([total]), oracle.reports, tail)[0]))
    return _whole((ends[0], max(ends)))


def _scores(linear: LinearHash, weights: Floats, levels: int) -> Floats:
    p, s = (float(x) for x in linear.support)
    padded = np.append(weights, np.zeros(linear.q**linear.t - linear.size))
    supported = weights_of_reports(padded, linear.q, linear.t).astype(np.float64, copy=False)
    return np.asarray((supported - weights.sum() * s) * (levels / (p - s)))


def _cells_of(tree: Hierarchy, level: int) -> npt.NDArray[np.intp]:
    """The cell of every index at a level."""
    return np.append(0, 1 + np.arange(tree.size - 1) // tree.widths[level])
