"""trend, change, compare: the questions about several periods or two collections."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any, TypeVar

import click

from ldp_server.analyst import Analyst, CollectionChange, CollectionComparison, CollectionTrend, Which
from ldp_server.analyst.over_time import AskedValues
from ldp_server.answers.over_time.periods import Periods, period_dates
from ldp_server.answers.records import record_of_text
from ldp_server.cli.connection import COLLECTION, connected, which_argument
from ldp_server.cli.fields.map import AREA
from ldp_server.cli.main import cli
from ldp_server.cli.outputs import Output, output_options
from ldp_server.cli.over_time.options import PERIODS, period_options, periods_text
from ldp_server.cli.queries import COVERAGE, read_items, read_where, show_independence
from ldp_server.cli.questions import BETWEEN, confidence_option, together_option
from ldp_server.cli.show import busy, number_of, table, whole

__all__ = ["change", "compare", "trend"]

F = TypeVar("F", bound=Callable[..., Any])

_ASKED = (
    click.option("--items", metavar="FILE", help="The shares of the items in a file, one a line; - is standard input."),
    click.option("--attributes", metavar="FILE", help="The shares of the attributes in a file, one a line; or -."),
    click.option("--between", type=BETWEEN, multiple=True, metavar="FIRST:LAST", help="A range; repeatable."),
    click.option("--at", type=click.FloatRange(0, 1, min_open=True, max_open=True), multiple=True, metavar="SHARE",
                 help="A quantile of numbers; may be repeated."),
    click.option("--average", is_flag=True, help="The average of numbers."),
    click.option("--fields", metavar="A,B", help="Of records: the cells of the table of these fields, or of --items."),
    click.option("--where", metavar="FILE", help="Of records: only users of a slice, as of `ldp-server estimate`. "
                 "Without --fields: how many they are."),
    click.option("--averages", is_flag=True, help="The average of a number in each cell of a table."),
    click.option("--area", "areas", type=AREA, multiple=True, metavar="X:X,Y:Y", help="An area of a map; repeatable."),
)  # fmt: skip


def _asked_options(command: F) -> F:
    """Add the options that say what is asked of each period; the command gets them in its parameter `asked`."""

    @functools.wraps(command)
    def wrapper(*args: Any, **given: Any) -> Any:
        kinds = ("items", "attributes", "between", "at", "average", "fields", "where", "averages", "areas")
        chosen = {name: value for name in kinds if (value := given.pop(name))}
        return command(*args, asked=_asked(chosen), **given)

    for option in reversed(_ASKED):
        wrapper = option(wrapper)
    return wrapper  # type: ignore[return-value]  # the options change what click sees


def _asked(chosen: dict[str, Any]) -> AskedValues:
    """What the options ask of each period."""
    if chosen.keys() & {"fields", "where"} and not chosen.keys() - {"fields", "where", "items"}:
        return _table(chosen)
    if len(chosen) != 1:
        raise click.UsageError(
            "give one of --items, --attributes, --between, --at, --average, --fields (with or without --where and "
            "--items), --where, --averages and --area"
        )
    ((name, value),) = chosen.items()
    found: AskedValues = {}
    if name == "items":
        found["items"] = read_items(value)
    elif name == "attributes":
        found["attributes"] = read_items(value)
    elif name == "between":
        found["ranges"] = value
    elif name == "at":
        found["quantiles"] = value
    elif name == "areas":
        found["areas"] = value
    elif name == "averages":
        found["averages"] = True
    else:
        found["average"] = True
    return found


def _table(chosen: dict[str, Any]) -> AskedValues:
    if "items" in chosen and "fields" not in chosen:
        raise click.UsageError("with --where, --items are cells of the table of some --fields")
    found: AskedValues = {}
    if "fields" in chosen:
        found["fields"] = [name.strip() for name in chosen["fields"].split(",")]
    if "where" in chosen:
        found["where"] = read_where(chosen["where"])
    if "items" in chosen:
        found["cells"] = [record_of_text(line) for line in read_items(chosen["items"])]
    return found


@cli.command()
@which_argument
@_asked_options
@confidence_option
@together_option
@period_options
@output_options
@connected
def trend(analyst: Analyst, which: Which, asked: AskedValues, output: Output, **options: Any) -> None:
    """Estimate values for each period of a question with a schedule.

    COLLECTION is an id, its first digits (at least four), or the collection's file.
    """
    with busy("estimating", quiet=output.quiet):
        found = analyst.trend(which, **options, **asked)
    output.show(found, _show_trend)


def _show_trend(found: CollectionTrend) -> None:
    users = found.unit == "users"
    columns = [("what", ""), ("period", "right"), ("dates", ""), ("reports", "right")]
    columns += [("share" if users else "value", "right"), (f"{found.confidence * 100:.6g}% interval", "right")]
    rows = []
    for line in found.lines:
        for point in line.points:
            scale = 1 / point.reports if users else 1.0
            value, low, high = (_value(one * scale, share=users) for one in (point.estimate, point.low, point.high))
            dates = period_dates(point.begins, point.ends)
            rows.append([line.label, str(point.period), dates, whole(point.reports), value, f"{low} to {high}"])
    table(found.question, columns, rows, f"{number_of(found.reports, 'report')}; {COVERAGE[found.coverage]}")
    show_independence(found.independence)


def _value(value: float, *, share: bool) -> str:
    if math.isinf(value):
        return "unknown"
    return f"{value:.2%}" if share else f"{value:,.6g}"


@cli.command()
@which_argument
@_asked_options
@confidence_option
@period_options
@output_options
@connected
def change(analyst: Analyst, which: Which, asked: AskedValues, output: Output, **options: Any) -> None:
    """Say whether shares of items, attributes, cells or areas, or averages of cells, changed, period by period.

    If nothing changes, the probability of ever saying so is at most 1 - confidence, however often you look. Begin with
    the same first period each time.

    COLLECTION is an id, its first digits (at least four), or the collection's file.
    """
    with busy("estimating", quiet=output.quiet):
        found = analyst.change(which, **options, **asked)
    output.show(found, _show_change)


def _show_change(found: CollectionChange) -> None:
    share = found.unit == "share"
    columns = [("what", ""), ("period", "right"), ("share" if share else "value", "right"), ("before", "right")]
    columns += [("difference between", "right"), ("changed?", "")]
    rows = []
    for line in found.lines:
        for look in line.looks:
            low, high = (f"{end:+.2%}" if share else f"{end:+,.6g}" for end in (look.low, look.high))
            values = [_value(one, share=share) for one in (look.share, look.before)]
            rows.append([line.label, str(look.period), *values, f"{low} and {high}", look.direction.value])
    alpha = f"{(1 - found.confidence) * 100:.3g}%"
    caption = f"where nothing changes, all looks together say that it did with a probability of at most {alpha}"
    table(found.question, columns, rows, f"{number_of(found.reports, 'report')}; {caption}")
    show_independence(found.independence)


@cli.command()
@which_argument
@click.argument("other", metavar="[OTHER]", required=False, type=COLLECTION)
@click.option("--from", "first", type=PERIODS, metavar="PERIODS", help="The first side's periods: one, or FIRST..LAST.")
@click.option("--to", "second", type=PERIODS, metavar="PERIODS", help="The second side's periods.")
@_asked_options
@confidence_option
@together_option
@output_options
@connected
def compare(
    analyst: Analyst, which: Which, other: Which | None, first: Periods | None, second: Periods | None, **options: Any
) -> None:
    """Estimate by how much a share (or an average) differs between two periods, or between two collections.

    COLLECTION and OTHER are ids, their first digits (at least four), or files. Without OTHER, two periods of COLLECTION
    are compared.
    """
    if other is None and first is None and second is None:
        raise click.UsageError("name another collection, or two periods with --from and --to")
    asked, output = options.pop("asked"), options.pop("output")
    sides = [
        (one, periods) if periods is not None else one for one, periods in ((which, first), (other or which, second))
    ]
    with busy("estimating", quiet=output.quiet):
        found = analyst.compare(sides[0], sides[1], **options, **asked)
    output.show(found, _show_comparison)


def _show_comparison(found: CollectionComparison) -> None:
    share = found.unit == "share"
    columns = [("what", ""), ("first", "right"), ("second", "right"), ("difference", "right")]
    columns += [(f"{found.confidence * 100:.6g}% interval", "right"), ("", "")]
    rows = []
    for row in found.rows:
        first, second, difference, low, high = (
            _value(one, share=share) for one in (row.first, row.second, row.difference, row.low, row.high)
        )
        rows.append([row.label, first, second, difference, f"{low} to {high}", row.direction.value])
    reports = f"{whole(found.first_reports)} and {whole(found.second_reports)} reports"
    about = f"{periods_text(found.first_periods)}{periods_text(found.second_periods)}"
    table(found.question, columns, rows, f"{reports}; {COVERAGE[found.coverage]}{about}")
    show_independence(found.independence)
