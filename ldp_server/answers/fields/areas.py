"""How many users are in areas of a map: rectangles of two numbers, or all tiles of the map.

The interval of an area holds wherever the users of the cells are that its sides cut. Areas along the grid's lines have
the narrowest: the tiles of the map do. Each interval alone is right with the stated confidence (Coverage.EACH), or all
of the answer at once (Coverage.TOGETHER, Bonferroni).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from ldp_client.collection import Collection
from ldp_client.errors import InvalidSpec
from ldp_client.protocol.domain import Integers, Record
from ldp_server.answers.estimates import Coverage
from ldp_server.answers.more import more_for_half
from ldp_server.answers.numbers import Between, share_of
from ldp_server.oracles.base import Oracle, TooFewReports, Unsupported
from ldp_server.oracles.independence.judge import accepted
from ldp_server.oracles.independence.result import INDEPENDENT, Independence
from ldp_server.oracles.looks.areas import MapScores
from ldp_server.oracles.records.sampled_grid import SampledGridOracle

__all__ = ["MOST_AREAS", "Area", "AreaCount", "AreasAnswer", "area_places", "areas_answer", "map_sides"]

MOST_AREAS = 4096

Area = tuple[Between, Between]
"""The first and the last integer of the first field, and of the second."""


@dataclass(frozen=True)
class AreaCount:
    """How many users are in an area, its sides included."""

    first_x: int
    last_x: int
    first_y: int
    last_y: int
    estimate: float
    """Inside a cut cell, users are taken to be spread evenly."""
    standard_error: float
    """Of the count of all cells that the area touches: what noise alone makes unsure."""
    low: float
    high: float
    on_lines: bool
    """Whether the area consists of whole cells. If not, the interval holds wherever the users of cut cells are."""


@dataclass(frozen=True)
class AreasAnswer:
    """The users in each of some areas."""

    reports: int
    confidence: float
    coverage: Coverage
    holders: float
    """How many users have both numbers."""
    x: str
    """The name of the first field."""
    y: str
    areas: tuple[AreaCount, ...]
    map: bool
    """Whether the areas are the tiles of the map, row by row from the lowest numbers."""
    more_for_half: int | None = None
    """How many more reports half the error takes, as a share of the users, where areas lie on lines."""
    independence: Independence = INDEPENDENT
    every_look: bool = False
    """Whether the intervals are right at every number of reports at once, and not only at one."""


def areas_answer(
    collection: Collection,
    oracle: Oracle,
    areas: Iterable[Area] | None = None,
    *,
    confidence: float = 0.95,
    coverage: Coverage = Coverage.EACH,
    every_look: bool = False,
) -> AreasAnswer:
    """Answer the question for these areas, or for all tiles of the map."""
    if not isinstance(oracle, SampledGridOracle) or not isinstance(collection.domain, Record):
        raise Unsupported(f"{oracle.randomizer.name} gives no areas of a map: a collection with sampled-grid does")
    honest, seen = accepted(oracle)
    if not honest.reports:
        raise TooFewReports("this collection has no reports yet")
    domains = map_sides(collection)
    wanted = _tiles(honest, domains) if areas is None else list(areas)
    _check(wanted, domains)
    each = share_of(confidence, coverage, len(wanted))
    rows = (
        _at_every_look(honest, domains, wanted, each, seen)
        if every_look
        else _rows(honest, domains, wanted, seen.confidence(each), seen)
    )
    across, up = collection.domain.names
    return AreasAnswer(
        honest.reports,
        confidence,
        coverage,
        honest.holders(),
        across,
        up,
        rows,
        areas is None,
        more_for_half(honest),
        seen,
        every_look,
    )


def _rows(
    oracle: SampledGridOracle, domains: Sequence[Integers], areas: Sequence[Area], each: float, seen: Independence
) -> tuple[AreaCount, ...]:
    """The count of each area."""
    found = [(area, oracle.area(*area_places(domains, area), each)) for area in areas]
    return tuple(
        AreaCount(*x, *y, one.estimate, seen.error(one.error), one.low, one.high, one.on_lines) for (x, y), one in found
    )


def _at_every_look(
    oracle: SampledGridOracle, domains: Sequence[Integers], areas: Sequence[Area], each: float, seen: Independence
) -> tuple[AreaCount, ...]:
    """The same with the intervals of ldp_server/oracles/looks/areas.py."""
    scores, rows = MapScores(oracle), []
    for area, row in zip(areas, _rows(oracle, domains, areas, each, seen), strict=True):
        ends = scores.area(*area_places(domains, area)).ends((1 - each) / 2)
        low, high = _stretched(row.estimate, ends, oracle.reports, seen)
        rows.append(replace(row, estimate=min(max(row.estimate, low), high), low=low, high=high))
    return tuple(rows)


def map_sides(collection: Collection) -> list[Integers]:
    """Return the domains of the two fields of a map."""
    if not isinstance(collection.domain, Record):
        raise Unsupported(f"{collection.randomizer.name} gives no areas of a map: a collection with sampled-grid does")
    return [one.domain for one in collection.domain.fields if isinstance(one.domain, Integers)]


def area_places(domains: Sequence[Integers], area: Area) -> Area:
    """Return the sides of an area as distances from the lowest integers."""
    x, y = ((first - one.lowest, last - one.lowest) for one, (first, last) in zip(domains, area, strict=True))
    return x, y


def _stretched(estimate: float, ends: tuple[float, float], most: int, seen: Independence) -> tuple[float, float]:
    """The ends with copies, as numbers of users."""
    middle, *found = (np.array([one], np.float64) for one in (estimate, *ends))
    low, high = seen.stretched(middle, found[0], found[1], most)
    return float(low[0]), float(high[0])


def _check(wanted: list[Area], domains: list[Integers]) -> None:
    if not 1 <= len(wanted) <= MOST_AREAS:
        raise InvalidSpec(f"ask for 1 to {MOST_AREAS} areas")
    for area in wanted:
        if not all(
            one.lowest <= first <= last <= one.highest for one, (first, last) in zip(domains, area, strict=True)
        ):
            text = " and ".join(f"{one.lowest} to {one.highest}" for one in domains)
            raise InvalidSpec(f"an area lies within {text}, the ends of each side in order")


def _tiles(oracle: SampledGridOracle, domains: list[Integers]) -> list[Area]:
    made = oracle.grid
    if made.across * made.down > MOST_AREAS:
        raise Unsupported(f"an answer has at most {MOST_AREAS} areas; this map has {made.across * made.down} tiles")
    cuts = [
        [one.lowest - (-place * one.count // parts) for place in range(parts + 1)]
        for one, parts in zip(domains, (made.across, made.down), strict=True)
    ]
    sides = [[(a, b - 1) for a, b in pairwise(cut)] for cut in cuts]
    return [(x, y) for y in sides[1] for x in sides[0]]
