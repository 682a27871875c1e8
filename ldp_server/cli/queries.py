"""estimate. The items asked for come from a file or standard input, never from arguments."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import click

from ldp_client.errors import InvalidSpec, unread
from ldp_client.protocol.domain import FieldItem
from ldp_server.analyst import (
    Analyst,
    CollectionEstimates,
    Condition,
    Which,
    release_conditions,
    with_volunteers,
)
from ldp_server.answers.estimates import Coverage, Estimate, Rest
from ldp_server.answers.over_time.periods import Periods
from ldp_server.answers.records import where_of_lines
from ldp_server.cli.connection import connected, which_argument
from ldp_server.cli.curator.both_sources import VolunteersRelease, show_both, volunteers_options
from ldp_server.cli.main import cli
from ldp_server.cli.outputs import Output, every_look_option, output_options
from ldp_server.cli.over_time.options import period_options
from ldp_server.cli.show import busy, item_text, lines, number_of, show_warnings, table, whole
from ldp_server.heavy_hitters.results import HeavyHitter
from ldp_server.oracles.independence.result import Independence
from ldp_server.tables.words import COVERAGE_WORDS

__all__ = [
    "COVERAGE",
    "EstimateOptions",
    "estimate",
    "numbers_of",
    "read_items",
    "read_where",
    "show_estimates",
    "show_independence",
]

_SHOWN = 1000


def read_items(source: str) -> list[str]:
    """Return the items in a file, or on standard input (-), one a line."""
    try:
        text = sys.stdin.read() if source == "-" else Path(source).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        why = unread(error, "one a line, UTF-8 text")
        raise InvalidSpec(f"cannot read items from {source}: {why}") from None
    if not text:
        raise InvalidSpec(f"{source} names no items: write one a line")
    return text.removesuffix("\n").split("\n")  # other line breaks may stand in an item


@dataclass(frozen=True)
class EstimateOptions:
    """The options of `ldp-server estimate`."""

    top: int | None
    every_item: bool
    items: str | None
    """A file, or - for standard input."""
    confidence: float
    threshold: float
    together: bool
    fields: str | None
    """Of a table of records, separated by commas."""
    where: str | None
    """A file, or - for standard input."""
    conditions: str | None
    """A file, or - for standard input."""
    periods: Periods | None


_ESTIMATE_OPTIONS = (
    click.option("--top", type=click.IntRange(1), help="The N most frequent items (of a domain that can be listed)."),
    click.option("--all", "every_item", is_flag=True, help="Every item of the domain."),
    click.option("--items", metavar="FILE", help="The items in a file, one a line; - is standard input."),
    click.option(
        "--confidence",
        type=click.FloatRange(0, 1, min_open=True, max_open=True),
        default=0.95,
        show_default=True,
        help="The probability that an interval holds the truth.",
    ),
    click.option("--threshold", type=click.FloatRange(0), default=0.0, help="Also say if at least N users hold it."),
    click.option("--together", is_flag=True, help="With --items or --all: intervals that are right for all at once."),
    click.option(
        "--fields", metavar="A,B", help="Of records: the table of these fields, every cell of it or the --top N."
    ),
    click.option(
        "--where",
        metavar="FILE",
        help="Of records: count only users of a slice. One line a value that counts: FIELD = VALUE, or FIELD = 18..25 "
        "for integers; - is standard input. Without --fields: how many they are.",
    ),
    click.option(
        "--conditions",
        metavar="FILE",
        help='Of records: how many users fulfil each condition, one a line, such as "age: 2..5; dark: yes"; - is '
        "standard input.",
    ),
)


def _estimate_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options of EstimateOptions to a command, which gets them in its parameter `options`."""

    @functools.wraps(command)
    def gathering(**given: Any) -> Any:
        options = EstimateOptions(**{field.name: given.pop(field.name) for field in fields(EstimateOptions)})
        return command(options=options, **given)

    gathering = period_options(gathering)
    for option in reversed(_ESTIMATE_OPTIONS):
        gathering = option(gathering)
    return gathering


@cli.command()
@which_argument
@every_look_option
@_estimate_options
@volunteers_options(tables=True)
@output_options
@connected
def estimate(
    analyst: Analyst, which: Which, options: EstimateOptions, output: Output, volunteers: VolunteersRelease | None
) -> None:
    """Estimate how many users hold an item. Without other options: the ten most frequent.

    Of records, --fields, --where and --conditions ask for tables of their fields, slices and counts.

    With --volunteers the answer has two sources: everybody's reports, and a curator's release about the same items,
    with a table of the same fields, or about conditions. It says how both differ.

    COLLECTION is an id, its first digits (at least four), or the collection's file.
    """
    released = volunteers is not None and volunteers.about_conditions and options.fields is None
    if options.conditions is not None or released:
        _estimate_conditions(analyst, which, options, output, volunteers)
        return
    if options.fields is not None or options.where is not None:
        _estimate_table(analyst, which, options, output, volunteers)
        return
    items = None if options.items is None else read_items(options.items)
    if volunteers is not None and volunteers.about_tables:
        raise InvalidSpec("a release of tables is merged with a table of fields: ask with --fields")
    if volunteers is not None and items is None and not options.every_item:
        items = volunteers.items
    with busy("estimating", quiet=output.quiet):
        found = analyst.estimate(
            which,
            items=items,
            top=options.top,
            every_item=options.every_item,
            confidence=options.confidence,
            threshold=options.threshold,
            together=options.together,
            periods=options.periods,
        )
    _show(analyst, found, output, volunteers, options)


def _show(
    analyst: Analyst,
    found: CollectionEstimates,
    output: Output,
    volunteers: VolunteersRelease | None,
    options: EstimateOptions,
) -> None:
    """Print an answer, merged with what volunteers gave where that is asked for."""
    if volunteers is None:
        output.show(found, show_estimates)
        return
    by = None
    if volunteers.reweigh_by:
        by = analyst.table(found.about.id, volunteers.reweigh_by, periods=options.periods)
    output.show(with_volunteers(found, volunteers.signed, volunteers.key, reweigh_by=by), show_both)


def _estimate_table(
    analyst: Analyst, which: Which, options: EstimateOptions, output: Output, volunteers: VolunteersRelease | None
) -> None:
    """Print a table of the fields of records."""
    if options.items is not None or (options.every_item and options.top is not None):
        raise click.UsageError("with --fields or --where, ask for every cell or for the --top N")
    fields = [] if options.fields is None else [name.strip() for name in options.fields.split(",")]
    where = None if options.where is None else read_where(options.where)
    with busy("estimating", quiet=output.quiet):
        found = analyst.table(
            which,
            fields,
            where=where,
            top=options.top,
            confidence=options.confidence,
            threshold=options.threshold,
            together=options.together,
            periods=options.periods,
        )
    _show(analyst, found, output, volunteers, options)


def _estimate_conditions(
    analyst: Analyst, which: Which, options: EstimateOptions, output: Output, volunteers: VolunteersRelease | None
) -> None:
    """Print how many users fulfil each condition: those of a file, or those of the release about volunteers."""
    chosen = (options.top, options.items, options.fields, options.where)
    if any(one is not None for one in chosen) or options.every_item:
        raise click.UsageError("conditions are asked without --items, --all, --top, --fields and --where")
    lines = None if options.conditions is None else read_items(options.conditions)
    with busy("estimating", quiet=output.quiet):
        conditions: Sequence[Condition | str] = lines or ()
        if volunteers is not None:
            asked = analyst.show(which).info
            which, conditions = asked.id, release_conditions(volunteers.signed, volunteers.key, asked, lines)
        found = analyst.conditions(
            which,
            conditions,
            confidence=options.confidence,
            threshold=options.threshold,
            together=options.together,
            periods=options.periods,
        )
    _show(analyst, found, output, volunteers, options)


def read_where(source: str) -> dict[str, list[FieldItem]]:
    """Return the values of fields that count, from a file or from standard input."""
    return where_of_lines(read_items(source), source)


COVERAGE = {kind: COVERAGE_WORDS[kind.value] for kind in Coverage}


def show_independence(found: Independence) -> None:
    """Print whether the reports look independent, below an answer."""
    if found.visible_from is None:
        lines("copies of reports would not be noticed here: the reports show too little for a test")
    else:
        lines(found.line)
    show_warnings(found)


def _show_outside(rows: Iterable[Estimate | Rest]) -> None:
    """Say what an estimate outside its interval means, if there is one: an interval has only what is possible."""
    if any(whole(row.estimate) != whole(min(max(row.estimate, row.low), row.high)) for row in rows):
        lines("an estimate outside its interval comes from noise; 0 to 0 does not prove that nobody holds the item")


def show_estimates(found: CollectionEstimates) -> None:
    """Print the estimates as a table."""
    percent = f"{found.confidence * 100:.6g}%"
    columns = [("item", ""), ("users", "right"), ("standard error", "right"), (f"{percent} interval", "right")]
    for line in found.where:
        lines(f"Counted only: {line}")
    shown = found.rows[:_SHOWN]
    judged = any(row.verdict is not None for row in shown)
    cells = [[item_text(row.item), *numbers_of(row), row.verdict.value if row.verdict else ""] for row in shown]
    if found.everything_else is not None:
        cells.append(["everything else", *numbers_of(found.everything_else), ""])
    if judged:
        columns.append(("frequent?", ""))
    caption = f"{number_of(found.reports, 'report')}; {COVERAGE[found.coverage]}"
    table(found.question, columns, [row[: len(columns)] for row in cells], caption)
    _show_outside([*shown, *([] if found.everything_else is None else [found.everything_else])])
    if found.sets is not None:
        lines(*found.sets.in_words(found.reports))
    show_independence(found.independence)
    if len(found.rows) > _SHOWN:
        lines(f"{len(found.rows) - _SHOWN:,} more are not shown: --json prints all")


def numbers_of(row: Estimate | Rest | HeavyHitter) -> list[str]:
    """Return a row's estimate, error and interval as cells of a table."""
    return [whole(row.estimate), whole(row.standard_error), f"{whole(row.low)} to {whole(row.high)}"]
