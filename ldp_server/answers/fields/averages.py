"""The average of a number in each cell of a table, with the users who have one there.

A cell of which the reports cannot tell the average has an infinite standard error, the whole range for an interval and
its middle for an estimate. Of each cell there are two intervals, for the average and for the users: each alone holds
with the stated confidence (Coverage.EACH), or all intervals of the answer do at once (Coverage.TOGETHER, Bonferroni).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from ldp_client.collection import Collection
from ldp_client.mechanisms.records.averaged_table import AveragedTable
from ldp_client.protocol.domain import Domain, Integers, Item, Record
from ldp_server.answers.estimates import Coverage
from ldp_server.answers.more import more_for_half
from ldp_server.answers.numbers import share_of
from ldp_server.oracles.base import Oracle, TooFewReports, Unsupported
from ldp_server.oracles.independence.judge import accepted
from ldp_server.oracles.independence.result import INDEPENDENT, Independence
from ldp_server.oracles.looks.averages import CellLook
from ldp_server.oracles.records.averaged_table import AveragedTableOracle
from ldp_server.oracles.records.averages import CellMeans, CellSums

__all__ = ["MOST_AVERAGES", "AveragesAnswer", "CellAverage", "averages_answer", "cells_with_averages"]

MOST_AVERAGES = 1 << 12
"""The most cells of an answer. Each takes a search for the ends of its intervals."""


@dataclass(frozen=True)
class CellAverage:
    """The average number of the users of one cell who have one."""

    item: Item
    """What the users of the cell hold in all other fields; None in each of them is `none`."""
    estimate: float
    standard_error: float
    """Infinite: too few users to tell."""
    low: float
    high: float
    users: float
    """How many users of the cell have a number."""
    users_error: float
    users_low: float
    users_high: float


@dataclass(frozen=True)
class AveragesAnswer:
    """The averages of every cell of a table, in the order of its domain."""

    reports: int
    confidence: float
    coverage: Coverage
    holders: float
    """How many users have a number at all."""
    number: str
    """The field that is averaged."""
    averages: tuple[CellAverage, ...]
    more_for_half: int | None = None
    """How many more reports half the error of each average takes."""
    independence: Independence = INDEPENDENT
    every_look: bool = False
    """Whether the intervals are right at every number of reports at once, and not only at one."""


def averages_answer(
    collection: Collection,
    oracle: Oracle,
    *,
    confidence: float = 0.95,
    coverage: Coverage = Coverage.EACH,
    every_look: bool = False,
) -> AveragesAnswer:
    """Answer the question for the average in each cell. The ends of an interval lie within the number's field."""
    if not isinstance(oracle, AveragedTableOracle) or not isinstance(collection.domain, Record):
        raise Unsupported(f"{oracle.randomizer.name} gives no averages of cells: a collection with averaged-table does")
    honest, seen = accepted(oracle)
    if not honest.reports:
        raise TooFewReports("this collection has no reports yet")
    cells = honest.cells
    if cells.size > MOST_AVERAGES:
        raise Unsupported(f"an answer has the averages of at most {MOST_AVERAGES} cells; this table has {cells.size}")
    each = share_of(confidence, coverage, 2 * cells.size)
    sums, tail = honest.sums(), (1 - each) / 2
    found = _at_every_look(sums, tail, seen) if every_look else sums.means(seen.tail(tail))
    field = collection.domain.fields[honest.place]
    lowest = field.domain.lowest if isinstance(field.domain, Integers) else 0
    rows = _rows(cells, (lowest, honest.reach), found, seen)
    about = (honest.reports, confidence, coverage, honest.holders(), field.name)
    return AveragesAnswer(*about, rows, more_for_half(honest), seen, every_look)


def _rows(cells: Domain, field: tuple[int, int], found: CellMeans, seen: Independence) -> tuple[CellAverage, ...]:
    """The answer of each cell in the field's unit; `field` is its lowest number and how far it reaches."""
    lowest, reach = field
    columns = (
        lowest + reach * found.means,
        seen.errors(reach * found.errors),
        lowest + reach * found.low,
        lowest + reach * found.high,
        found.users,
        seen.errors(found.users_errors),
        found.users_low,
        found.users_high,
    )
    lines = zip(*(column.tolist() for column in columns), strict=True)
    return tuple(CellAverage(cells.item(i), *line) for i, line in enumerate(lines))


def cells_with_averages(collection: Collection, most: int) -> list[Item]:
    """Return the cells of a table of averages; a table of more cells than `most` is refused."""
    made = collection.randomizer
    if not isinstance(made, AveragedTable):
        raise Unsupported(f"{made.name} gives no averages of cells: a collection with averaged-table does")
    if made.cells.size > most:
        raise Unsupported(f"at most {most} cells have averages over time; this table has {made.cells.size}")
    return [made.cells.item(index) for index in range(made.cells.size)]


def _at_every_look(sums: CellSums, tail: float, seen: Independence) -> CellMeans:
    """The averages with the intervals of ldp_server/oracles/looks/averages.py."""
    found = sums.means(tail)
    looks = [CellLook.of(sums, cell) for cell in range(len(found.means))]
    low, high = np.array([one.averages(tail) for one in looks]).T
    users_low, users_high = np.array([one.users(tail) for one in looks]).T
    low, high = seen.stretched(found.means, low, high, 1.0)
    users_low, users_high = seen.stretched(found.users, users_low, users_high, sums.reports)
    tells = (low > 0) | (high < 1)
    return replace(
        found,
        means=np.where(tells, np.clip(found.means, low, high), 0.5),
        errors=np.where(tells, found.errors, np.inf),
        low=low,
        high=high,
        users_low=users_low,
        users_high=users_high,
    )
