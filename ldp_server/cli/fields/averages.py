"""averages: the question about the average of a number in each cell of a table."""

from __future__ import annotations

import math
from typing import Any

import click

from ldp_server.analyst import Analyst, CollectionAverages, Which
from ldp_server.answers.fields.averages import CellAverage
from ldp_server.cli.connection import connected, which_argument
from ldp_server.cli.main import cli
from ldp_server.cli.outputs import Output, every_look_option, output_options
from ldp_server.cli.over_time.options import period_options
from ldp_server.cli.queries import COVERAGE, show_independence
from ldp_server.cli.questions import confidence_option, together_option
from ldp_server.cli.show import busy, item_text, number_of, table, whole

__all__ = ["averages"]


@cli.command()
@which_argument
@every_look_option
@click.option("--top", type=click.IntRange(1), help="Show only the N cells with the most users, in the table's order.")
@confidence_option
@together_option
@period_options
@output_options
@connected
def averages(analyst: Analyst, which: Which, top: int | None, output: Output, **options: Any) -> None:
    """Estimate the average of a number in each cell of a table.

    COLLECTION is an id, its first digits (at least four), or the collection's file. The files and --json have every
    cell.
    """
    with busy("estimating", quiet=output.quiet):
        found = analyst.averages(which, **options)
    output.show(found, lambda answer: _show_averages(answer, top))


def _show_averages(found: CollectionAverages, top: int | None) -> None:
    interval = f"{found.confidence * 100:.6g}% interval"
    columns = [
        ("cell", ""),
        (f"average of {found.number}", "right"),
        ("standard error", "right"),
        (interval, "right"),
        ("who have one", "right"),
        (interval, "right"),
    ]
    shown, left = list(found.averages), 0
    if top is not None and top < len(shown):
        kept = sorted(range(len(shown)), key=lambda place: -shown[place].users)[:top]
        shown, left = [shown[place] for place in sorted(kept)], len(shown) - top
    caption = f"{number_of(found.reports, 'report')}, {whole(found.holders)} with a number; {COVERAGE[found.coverage]}"
    if any(math.isinf(row.standard_error) for row in shown):
        caption += "\ntoo few to tell: the reports do not rule out any average of the range"
    if left:
        caption += f"\n{left:,} more cells are not shown"
    table(found.question, columns, [_cells(row) for row in shown], caption)
    show_independence(found.independence)


def _cells(row: CellAverage) -> list[str]:
    tells = not math.isinf(row.standard_error)
    return [
        item_text(row.item),
        f"{row.estimate:,.6g}" if tells else "too few to tell",
        f"{row.standard_error:,.4g}" if tells else "unknown",
        f"{row.low:,.6g} to {row.high:,.6g}",
        whole(row.users),
        f"{whole(row.users_low)} to {whole(row.users_high)}",
    ]
