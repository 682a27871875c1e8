"""average, quantiles, ranges, attributes: the questions about numbers and about sets of attributes."""

from __future__ import annotations

import math
import re
from typing import Any

import click

from ldp_server.analyst import (
    Analyst,
    CollectionAttributes,
    CollectionAverage,
    CollectionQuantiles,
    CollectionRanges,
    Which,
    average_with_volunteers,
    release_ranges,
    with_volunteers,
)
from ldp_server.answers.estimates import Coverage
from ldp_server.answers.over_time.periods import Periods
from ldp_server.cli.connection import connected, which_argument
from ldp_server.cli.curator.both_sources import VolunteersRelease, show_both, volunteers_options
from ldp_server.cli.main import cli
from ldp_server.cli.outputs import Output, every_look_option, output_options
from ldp_server.cli.over_time.options import period_options
from ldp_server.cli.queries import COVERAGE, show_estimates, show_independence
from ldp_server.cli.show import busy, number_of, table, whole

__all__ = ["BETWEEN", "attributes", "average", "confidence_option", "quantiles", "ranges", "together_option"]

confidence_option = click.option(
    "--confidence",
    type=click.FloatRange(0, 1, min_open=True, max_open=True),
    default=0.95,
    show_default=True,
    help="The probability that an interval holds the truth.",
)
together_option = click.option(
    "--together", is_flag=True, help="Intervals that are right for the whole answer at once."
)


class _Between(click.ParamType):  # type: ignore[type-arg]  # generic in newer versions of click only
    """A range, written FIRST:LAST; each end is an integer, and may be negative."""

    name = "first:last"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[int, int]:
        if isinstance(value, tuple):
            return value
        found = re.fullmatch(r"(-?[0-9]{1,20}):(-?[0-9]{1,20})", str(value))
        if found is None:
            self.fail(f"{value!r} is no range: write its first and last integer, such as 10:20", param, ctx)
        return int(found[1]), int(found[2])


BETWEEN = _Between()


@cli.command()
@which_argument
@every_look_option
@confidence_option
@period_options
@volunteers_options(tables=False)
@output_options
@connected
def average(
    analyst: Analyst,
    which: Which,
    confidence: float,
    periods: Periods | None,
    output: Output,
    volunteers: VolunteersRelease | None,
) -> None:
    """Estimate the average of numbers.

    With --volunteers the answer has two sources: everybody's reports, and a curator's release of an average.

    COLLECTION is an id, its first digits (at least four), or the collection's file.
    """
    with busy("estimating", quiet=output.quiet):
        found = analyst.average(which, confidence=confidence, periods=periods)
    if volunteers is None:
        output.show(found, _show_average)
    else:
        output.show(average_with_volunteers(found, volunteers.signed, volunteers.key), show_both)


def _show_average(found: CollectionAverage) -> None:
    row = found.average
    error = "unknown" if math.isinf(row.standard_error) else f"{row.standard_error:,.4g}"
    cells = [f"{row.estimate:,.6g}", error, f"{row.low:,.6g} to {row.high:,.6g}", whole(row.holders)]
    columns = [
        ("average", "right"),
        ("standard error", "right"),
        (_interval(found.confidence), "right"),
        ("who have one", "right"),
    ]
    table(found.question, columns, [cells], f"{number_of(found.reports, 'report')}; {COVERAGE[Coverage.EACH]}")
    show_independence(found.independence)


@cli.command()
@which_argument
@click.option(
    "--at",
    type=click.FloatRange(0, 1, min_open=True, max_open=True),
    multiple=True,
    metavar="SHARE",
    help="A share of the numbers; may be repeated. [default: 0.5, the median]",
)
@confidence_option
@together_option
@period_options
@output_options
@connected
def quantiles(analyst: Analyst, which: Which, at: tuple[float, ...], output: Output, **options: Any) -> None:
    """Estimate the numbers at or below which shares of the numbers lie.

    COLLECTION is an id, its first digits (at least four), or the collection's file.
    """
    with busy("estimating", quiet=output.quiet):
        found = analyst.quantiles(which, at or (0.5,), **options)
    output.show(found, _show_quantiles)


def _show_quantiles(found: CollectionQuantiles) -> None:
    columns = [("share", "right"), ("number", "right"), (_interval(found.confidence), "right")]
    rows = [[f"{row.share:g}", f"{row.estimate:,}", f"{row.low:,} to {row.high:,}"] for row in found.quantiles]
    caption = f"{number_of(found.reports, 'report')}, {whole(found.holders)} with a number; {COVERAGE[found.coverage]}"
    table(found.question, columns, rows, caption)
    show_independence(found.independence)


@cli.command()
@which_argument
@every_look_option
@click.option(
    "--between",
    type=BETWEEN,
    multiple=True,
    metavar="FIRST:LAST",
    help="A range of integers, both ends included; may be repeated.",
)
@click.option("--bins", type=click.IntRange(1), help="Cut the whole domain into N ranges. [default: 10]")
@confidence_option
@together_option
@period_options
@volunteers_options(tables=False)
@output_options
@connected
def ranges(
    analyst: Analyst,
    which: Which,
    between: tuple[tuple[int, int], ...],
    bins: int | None,
    volunteers: VolunteersRelease | None,
    **options: Any,
) -> None:
    """Estimate how many users' numbers lie in ranges.

    With --volunteers the answer has two sources: everybody's reports, and a curator's linear release about ranges.

    COLLECTION is an id, its first digits (at least four), or the collection's file.
    """
    if between and bins is not None:
        raise click.UsageError("give --between or --bins, not both")
    output: Output = options.pop("output")
    with busy("estimating", quiet=output.quiet):
        if volunteers is not None and not between and bins is None:
            asked = analyst.show(which).info
            which, between = asked.id, tuple(release_ranges(volunteers.signed, volunteers.key, asked))
        if between:
            found = analyst.ranges(which, between, **options)
        else:
            found = analyst.histogram(which, bins or 10, **options)
    if volunteers is None:
        output.show(found, _show_ranges)
    else:
        output.show(with_volunteers(found, volunteers.signed, volunteers.key), show_both)


def _show_ranges(found: CollectionRanges) -> None:
    columns = [("from", "right"), ("to", "right"), ("users", "right"), ("standard error", "right")]
    columns.append((_interval(found.confidence), "right"))
    rows = [
        [f"{row.first:,}", f"{row.last:,}", whole(row.estimate), whole(row.standard_error), _ends(row.low, row.high)]
        for row in found.ranges
    ]
    caption = f"{number_of(found.reports, 'report')}, {whole(found.holders)} with a number; {COVERAGE[found.coverage]}"
    table(found.question, columns, rows, caption)
    show_independence(found.independence)


@cli.command()
@which_argument
@every_look_option
@click.option("--pairs", is_flag=True, help="Count who holds both attributes of each pair.")
@click.option("--table", "whole_table", is_flag=True, help="Count who holds exactly which set of attributes.")
@click.option("--top", type=click.IntRange(1), help="The N largest only; the intervals allow for the choice.")
@confidence_option
@together_option
@period_options
@output_options
@connected
def attributes(analyst: Analyst, which: Which, pairs: bool, whole_table: bool, top: int | None, **options: Any) -> None:
    """Estimate how many users hold each attribute.

    COLLECTION is an id, its first digits (at least four), or the collection's file.
    """
    if whole_table and (pairs or options["together"]):
        raise click.UsageError("--table goes with neither --pairs nor --together")
    output: Output = options.pop("output")
    with busy("estimating", quiet=output.quiet):
        if whole_table:
            sets = analyst.table(which, top=top, confidence=options["confidence"], periods=options["periods"])
        else:
            found = (analyst.pairs if pairs else analyst.attributes)(which, top=top, **options)
    if whole_table:
        output.show(sets, show_estimates)
    else:
        output.show(found, _show_attributes)


def _show_attributes(found: CollectionAttributes) -> None:
    columns = [
        ("who hold", ""),
        ("users", "right"),
        ("standard error", "right"),
        (_interval(found.confidence), "right"),
    ]
    rows = [
        [
            " + ".join(row.attributes),
            whole(row.estimate),
            "unknown" if math.isinf(row.standard_error) else whole(row.standard_error),
            _ends(row.low, row.high),
        ]
        for row in found.rows
    ]
    table(found.question, columns, rows, f"{number_of(found.reports, 'report')}; {COVERAGE[found.coverage]}")
    show_independence(found.independence)


def _interval(confidence: float) -> str:
    return f"{confidence * 100:.6g}% interval"


def _ends(low: float, high: float) -> str:
    return f"{whole(low)} to {whole(high)}"
