"""gaps, rules, line. Values of fields come from a file or standard input, as those of a slice do."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import click

from ldp_client.errors import InvalidSpec
from ldp_client.protocol.domain import FieldItem
from ldp_server.analyst import Analyst, CollectionGaps, CollectionRegression, CollectionRules, Which
from ldp_server.answers.estimates import Coverage
from ldp_server.cli.connection import connected, which_argument
from ldp_server.cli.main import cli
from ldp_server.cli.outputs import Output, output_options
from ldp_server.cli.over_time.options import period_options
from ldp_server.cli.queries import COVERAGE, read_where, show_independence
from ldp_server.cli.questions import confidence_option
from ldp_server.cli.show import busy, lines, number_of, signed, table, whole
from ldp_server.fairness.gaps import TOLERANCE

__all__ = ["gaps", "line", "rules"]

_UNSEEN = "not seen"


@cli.command()
@which_argument
@click.option("--group", required=True, metavar="FIELD", help="The field that names the groups.")
@click.option("--outcome", required=True, metavar="FIELD", help="The field that has the outcome.")
@click.option(
    "--counted", metavar="FILE", help="Values of the outcome that count, as lines FIELD = VALUE; - is standard input."
    " [default: yes]",
)  # fmt: skip
@click.option("--where", metavar="FILE", help="Compare only users with these values, as lines FIELD = VALUE.")
@click.option(
    "--tolerance",
    type=click.FloatRange(0, 1, min_open=True, max_open=True),
    default=TOLERANCE,
    show_default=True,
    help="The largest gap between two groups' shares that is accepted.",
)
@confidence_option
@period_options
@output_options
@connected
def gaps(
    analyst: Analyst, which: Which, counted: str | None, where: str | None, output: Output, **options: Any
) -> None:
    """Audit an outcome: compare the shares of groups, with a verdict.

    COLLECTION is an id, its first digits (at least four), or the collection's file. Its records have both fields.
    """
    values = _values(counted, options["outcome"])
    slices = None if where is None else read_where(where)
    with busy("estimating", quiet=output.quiet):
        found = analyst.gaps(which, counted=values, where=slices, **options)
    output.show(found, _show_gaps)


def _values(source: str | None, field: str) -> Sequence[FieldItem]:
    if source is None:
        return ()
    given = read_where(source)
    if set(given) != {field}:
        raise InvalidSpec(f"{source}: each line is {field} = VALUE")
    return given[field]


def _show_gaps(found: CollectionGaps) -> None:
    interval = f"{found.confidence * 100:.6g}% interval"
    for line in found.where:
        lines(f"Counted only: {line}")
    columns = [
        (found.group, ""),
        ("share", "right"),
        ("standard error", "right"),
        (interval, "right"),
        ("users", "right"),
    ]
    rows = [
        [
            row.group,
            _UNSEEN if math.isinf(row.standard_error) else _percent(row.estimate),
            "unknown" if math.isinf(row.standard_error) else _percent(row.standard_error),
            _ends(row.low, row.high),
            f"{whole(row.users)} ± {whole(row.users_error)}",
        ]
        for row in found.rows
    ]
    table(f"{found.question}\nShare with: {found.outcome}", columns, rows, f"{number_of(found.reports, 'report')}")
    columns = [("gap", ""), ("difference", "right"), (interval, "right"), (f"within {found.tolerance:g}?", "")]
    gap_rows = [
        [
            f"{one.first} minus {one.second}",
            signed(one.estimate),
            f"{signed(one.low)} to {signed(one.high)}",
            one.verdict.value,
        ]
        for one in found.gaps
    ]
    table("Gaps between groups", columns, gap_rows, f"each table: {COVERAGE[Coverage.TOGETHER]}")
    lines(f"Do all gaps lie within {found.tolerance:g}? {found.verdict.value.capitalize()}.")
    lines(f"One report separates two groups by {found.separation:.3f} at most (0: not at all, 1: wholly).")
    show_independence(found.independence)


@cli.command()
@which_argument
@click.option("--fields", required=True, metavar="NAMES", help="One field, or two of integers with a comma between.")
@click.option("--label", required=True, metavar="FIELD", help="The field that the rules are to tell.")
@click.option(
    "--positive", metavar="FILE", help="Values of the label to be told from its others, as lines FIELD = VALUE; - is"
    " standard input. [default: yes]",
)  # fmt: skip
@confidence_option
@period_options
@output_options
@connected
def rules(
    analyst: Analyst, which: Which, fields: str, label: str, positive: str | None, output: Output, **options: Any
) -> None:
    """Find rules that tell a field of records from one or two others.

    COLLECTION is an id, its first digits (at least four), or the collection's file. Its records have these fields.
    """
    names = [name.strip() for name in fields.split(",")]
    values = _values(positive, label)
    with busy("estimating", quiet=output.quiet):
        found = analyst.rules(which, names, label, values, **options)
    output.show(found, _show_rules)


def _show_rules(found: CollectionRules) -> None:
    interval = f"{found.confidence * 100:.6g}% interval"
    columns = [("kind", ""), ("rule", ""), ("error", "right"), (interval, "right")]
    columns += [("gain over a constant", "right"), (interval, "right"), ("better?", "")]
    rows = [
        [
            row.form.value,
            row.rule,
            _UNSEEN if math.isinf(row.standard_error) else _percent(row.estimate),
            _ends(row.low, row.high),
            signed(row.gain),
            f"{signed(row.gain_low)} to {signed(row.gain_high)}",
            row.verdict.value,
        ]
        for row in found.rows
    ]
    reports, counted = number_of(found.reports, "report"), number_of(found.counted, "user")
    caption = f"{reports}, {counted} counted; the intervals allow for the choice"
    table(f"{found.question}\nRules for: {found.label}", columns, rows, caption)
    show_independence(found.independence)


@cli.command()
@which_argument
@click.option("--fields", required=True, metavar="NAMES", help="Fields of integers, or of yes and no, with commas.")
@click.option("--label", required=True, metavar="FIELD", help="The field that depends on them.")
@confidence_option
@period_options
@output_options
@connected
def line(analyst: Analyst, which: Which, fields: str, label: str, output: Output, **options: Any) -> None:
    """Estimate how a field of records depends on others: linear regression.

    COLLECTION is an id, its first digits (at least four), or the collection's file. Its devices are asked about every
    two of the fields.
    """
    with busy("estimating", quiet=output.quiet):
        found = analyst.line(which, [name.strip() for name in fields.split(",")], label, **options)
    output.show(found, _show_line)


def _show_line(found: CollectionRegression) -> None:
    interval = f"{found.confidence * 100:.6g}% interval"
    columns = [("field", ""), (f"adds to {found.label}", "right"), ("standard error", "right"), (interval, "right")]
    rows = [
        [row.name, f"{row.estimate:.4g}", f"{row.standard_error:.2g}", f"{row.low:.4g} to {row.high:.4g}"]
        for row in found.rows
    ]
    table(found.question, columns, rows, f"{number_of(found.reports, 'report')}; {COVERAGE[found.coverage]}")
    show_independence(found.independence)


def _percent(share: float) -> str:
    return f"{share:.1%}"


def _ends(low: float, high: float) -> str:
    return f"{low:.1%} to {high:.1%}"
