"""The average of a number in each cell of a table, with the users who have one there.

A cell of which the reports cannot tell the average has an infinite standard error, the whole range for an interval and
its middle for an estimate. Of each cell there are two intervals, for the average and for the users: each alone holds
with the stated confidence (Coverage.EACH), or all intervals of the answer do at once (Coverage.TOGETHER, Bonferroni).
"""

from __future__ import annotations

from dataclasses import dataclass

from ldp_client.collection import Collection
from ldp_client.protocol.domain import Integers, Item, Record
from ldp_server.answers.estimates import Coverage
from ldp_server.answers.more import more_for_half
from ldp_server.answers.numbers import share_of
from ldp_server.oracles.base import Oracle, TooFewReports, Unsupported
from ldp_server.oracles.independence.judge import accepted
from ldp_server.oracles.independence.result import INDEPENDENT, Independence
from ldp_server.oracles.records.averaged_table import AveragedTableOracle

__all__ = ["MOST_AVERAGES", "AveragesAnswer", "CellAverage", "averages_answer"]

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


def averages_answer(
    collection: Collection, oracle: Oracle, *, confidence: float = 0.95, coverage: Coverage = Coverage.EACH
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
    found = honest.sums().means(seen.tail((1 - each) / 2))
    field = collection.domain.fields[honest.place]
    lowest, reach = (field.domain.lowest, honest.reach) if isinstance(field.domain, Integers) else (0, 0)
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
    rows = tuple(CellAverage(cells.item(i), *line) for i, line in enumerate(lines))
    return AveragesAnswer(
        honest.reports, confidence, coverage, honest.holders(), field.name, rows, more_for_half(honest), seen
    )
