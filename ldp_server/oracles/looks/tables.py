r"""The scores of the rows of a table of fields: what a report counts for, whatever other reports say.

records/pooled.py pools the drawn tables with weights that follow from how many devices drew each. Here they follow from
how likely each is drawn, so that a report's score is known before the next report comes. With pi_T the probability of
table T, w_(S,T) in proportion to pi_T/nu_T over the tables that know the effect S, and g_T the sum over S of w_(S,T)
times the effect S of the row, a report about T adds

    x = (cells of the row)/k_A + 1/(pi_T (p - s)) sum of g_T(c) over the cells c that it supports.

The sum of g_T over all cells is 0. So the mean of x is 1 for a user of the row and 0 for any other, whichever cell it
is in. The second moment depends on the user's cell of the asked fields:

    randomized response   s sum of g^2 + (p - s) g(v)^2 for the user's cell v
    parity                g^2
    subset selection      of a set that holds v with p, the others drawn without replacement (records/parts.py)
    linear hash           of all its reports, one by one; the largest over the cells of T that share v

The largest over the row's cells, and over all others, bounds the variance.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from ldp_client.errors import InvalidSpec
from ldp_client.mechanisms.linear_hash import LinearHash
from ldp_client.mechanisms.subset_selection import SubsetSelection
from ldp_server.arrays.transform import support, weights_of_reports
from ldp_server.oracles.base import Floats
from ldp_server.oracles.looks.sums import ScoreSum
from ldp_server.oracles.records.parts import DrawnPart, Places, centred, marginal
from ldp_server.oracles.records.pooled import subsets
from ldp_server.oracles.records.sources import AskedTable

__all__ = ["MOST_LOOKED", "LikelyPart", "check_looked", "hash_means", "row_sums"]

MOST_LOOKED = 512
"""The most rows of one answer: each is worked out by itself."""
_SMALL = 1e-12


@dataclass(frozen=True)
class LikelyPart:
    """A drawn table with its counts, and how likely a device draws it."""

    part: DrawnPart
    chance: float

    @property
    def told(self) -> float:
        """What a report says about an effect, in proportion."""
        return self.chance / self.part.noise


@dataclass(frozen=True)
class _Scores:
    """What the reports about one part add to one row: the parts that are the same for all reports are left out."""

    axes: Places
    """The fields that it shares with the asked table."""
    means: Floats
    """For users of each cell of these fields."""
    squares: Floats
    """The mean squares."""
    most: float
    least: float
    total: float
    """Of the reports that came."""


def check_looked(rows: Sequence[int]) -> None:
    """Refuse more rows than one answer has."""
    if len(rows) > MOST_LOOKED:
        raise InvalidSpec(
            f"at most {MOST_LOOKED} cells have intervals for every look in one answer: ask for the top ones, for a "
            "slice, or for one look"
        )


def row_sums(parts: Sequence[LikelyPart], reports: int, asked: AskedTable, rows: Sequence[int]) -> Iterator[ScoreSum]:
    """Yield the sum of scores for each of these rows."""
    needed = tuple(sorted(asked.needed))
    sizes = [asked.record.sizes[place] for place in needed]
    weights = {subset: _weights(parts, subset) for subset in subsets(needed)}
    held = asked.rows_of(needed)
    for row in rows:
        mask = (held == row).astype(np.float64).reshape(sizes, order="F")
        yield _row_sum(parts, reports, needed, mask, weights)


def _weights(parts: Sequence[LikelyPart], subset: Places) -> Floats:
    told = np.array([one.told if one.part.knows(frozenset(subset)) else 0.0 for one in parts])
    return told / told.sum() if told.any() else told


def _row_sum(
    parts: Sequence[LikelyPart], reports: int, needed: Places, mask: Floats, weights: dict[Places, Floats]
) -> ScoreSum:
    base = float(mask.mean())
    total, squares, most, least = base * reports, np.zeros(mask.shape), -math.inf, math.inf
    for number, likely in enumerate(parts):
        known = {subset: float(one[number]) for subset, one in weights.items() if one[number]}
        axes = tuple(place for place in needed if place in likely.part.places)
        values = _values(needed, mask, axes, known)
        if not known or float(np.abs(values).max()) <= _SMALL:
            squares += likely.chance * base**2
            most, least = max(most, base), min(least, base)
            continue
        found = _scores(likely, axes, values)
        wide = [size if place in axes else 1 for place, size in zip(needed, mask.shape, strict=True)]
        squares += likely.chance * (base**2 + (2 * base * found.means + found.squares).reshape(wide))
        most, least = max(most, base + found.most), min(least, base + found.least)
        total += found.total
    counted = mask > 0
    inside = float(squares[counted].max(initial=1.0)) - 1
    outside = float(squares[~counted].max(initial=0.0))
    return ScoreSum(total, reports, most, least, inside, outside)


def _values(needed: Places, mask: Floats, axes: Places, known: dict[Places, float]) -> Floats:
    """G of each cell of the fields that are shared."""
    shape = [size for place, size in zip(needed, mask.shape, strict=True) if place in axes]
    found = np.zeros(shape)
    for subset, weight in known.items():
        own = [size if place in subset else 1 for place, size in zip(axes, shape, strict=True)]
        effect = centred(marginal(mask, needed, subset)) * math.prod(own) / mask.size
        found = found + weight * effect.reshape(own)
    return found


def _scores(likely: LikelyPart, axes: Places, values: Floats) -> _Scores:
    part = likely.part
    p, s = part.told
    scale = 1 / likely.chance / (p - s)
    total = part.added(axes, values) / likely.chance if part.reports else 0.0
    means, inner = values / likely.chance, part.oracle.randomizer
    if part.parity:
        largest = float(np.abs(values).max()) * scale
        return _Scores(axes, means, np.full(values.shape, largest**2), largest, -largest, total)
    alike = inner.size // values.size
    if isinstance(inner, SubsetSelection):
        flat = values.ravel()
        law = part.atoms(flat, np.full(flat.size, float(alike)), 1.0)
        squares = (law.chances @ np.square(law.values)).reshape(values.shape) * scale**2
        ordered = np.repeat(np.sort(flat), alike)
        most, least = float(ordered[-inner.d :].sum()), float(ordered[: inner.d].sum())
        return _Scores(axes, means, squares, most * scale, least * scale, total)
    if isinstance(inner, LinearHash):
        wide = _over(part, axes, values)
        scores = _hash_scores(inner, wide * scale)
        each = hash_means(inner, np.square(scores)).reshape(part.sizes, order="F")
        others = tuple(i for i, place in enumerate(part.places) if place not in axes)
        return _Scores(axes, means, each.max(axis=others), float(scores.max()), float(scores.min()), total)
    squares = (s * alike * float(np.square(values).sum()) + (p - s) * np.square(values)) * scale**2
    return _Scores(axes, means, squares, float(values.max()) * scale, float(values.min()) * scale, total)


def _over(part: DrawnPart, axes: Places, values: Floats) -> Floats:
    """The same for all cells of the part, in their order."""
    shape = [size if place in axes else 1 for place, size in zip(part.places, part.sizes, strict=True)]
    return np.asarray(np.broadcast_to(values.reshape(shape), part.sizes).ravel(order="F"))


def _hash_scores(inner: LinearHash, weights: Floats) -> Floats:
    """The sum of the weights of the elements that each report supports."""
    padded = np.append(weights, np.zeros(inner.q**inner.t - len(weights)))
    return np.asarray(weights_of_reports(padded, inner.q, inner.t), np.float64)


def hash_means(inner: LinearHash, values: Floats) -> Floats:
    """Return the mean of a value of reports over the reports of a user of each element."""
    truth = float(inner.response.p)
    lie = (1 - truth) / (inner.q - 1)
    told = support(values, inner.q, inner.t)[: inner.size].astype(np.float64, copy=False)  # type: ignore[arg-type]
    return np.asarray((lie * float(values.sum()) + (truth - lie) * told) / inner.points)
