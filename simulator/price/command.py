"""The command `ldp-simulate price`: its options, table and page."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import click

from simulator.experiments.options import SimulationOptions, output_options, simulation_options
from simulator.price.every_release import QUESTIONS
from simulator.price.measure import PriceOptions, measured
from simulator.report.output import OutputOptions, asked_command
from simulator.report.page import Report, Section, Table
from simulator.report.plots import Panel, Series, draw
from simulator.report.terminal import print_table, progress_bar
from simulator.shapes import WorthPoint, WorthRow

__all__ = ["command", "page", "show"]

_KINDS = tuple(kind for question in QUESTIONS for kind in question.releases)
_SHORT = ("kind", "users", "reports", "release", "price", "volunteers", "worth", "paid")


@click.command("price")
@simulation_options("users", "epsilon", "runs", "seed", runs={"default": 3})
@click.option(
    "--kind",
    "kinds",
    multiple=True,
    type=click.Choice(_KINDS),
    metavar="KIND",
    help="A kind of `ldp-server curator release`; may be repeated. [default: all]",
)
@output_options
def command(options: SimulationOptions, output: OutputOptions, kinds: tuple[str, ...]) -> None:
    """What is the price of the local model? Every kind of release, beside the reports that give the same answer.

    The release and the reports have the same epsilon, for a whole record. `reports` is the error of everybody's
    reports, `release` that of a release about the same people, and `price` the one over the other. `volunteers` is the
    fewest volunteers whose release errs as little as everybody's reports, and `worth` how many reports one of them
    replaces. All are measured. With all kinds it takes some minutes.
    """
    asked = PriceOptions(options.users, options.epsilon, kinds or _KINDS, options.runs, options.seed)
    with progress_bar("kinds of release", len(asked.kinds)) as advance:
        rows, points = measured(asked, advance)
    shapes: list[Any] = [*rows, *points]
    output.deliver(shapes, lambda: show(rows), lambda: page(rows, points))


def show(rows: Sequence[WorthRow]) -> None:
    """Print the table, and below it what is asked of each kind."""
    print_table("The price of the local model", rows, _SHORT)
    print_table("What is asked, and how reports answer it", rows, ("kind", "asked", "reported", "remark"), keys=4)


def page(rows: Sequence[WorthRow], points: Sequence[WorthPoint]) -> Report:
    """Return the report: what a volunteer is worth, and for each kind the errors over the number of people."""
    return Report(
        "The price of the local model",
        "Every kind of release beside the reports that give the same answer, at the same epsilon for a whole record. "
        "Errors are root mean squares over the runs.",
        asked_command(),
        [
            Section("What a volunteer is worth", "", lambda: draw([_worth(rows)]), Table("worth", rows)),
            Section(
                "Errors over the number of people",
                "Volunteers to a curator, or users who report. An error of 0 is not drawn.",
                lambda: draw([_errors(row, points) for row in rows]),
                Table("errors", points),
            ),
        ],
    )


def _worth(rows: Sequence[WorthRow]) -> Panel:
    """A mark for each kind, in the order of what a volunteer is worth."""
    known = sorted((row["worth"], row["kind"]) for row in rows if row["worth"] is not None)
    lines = [Series(kind, [place], [worth]) for place, (worth, kind) in enumerate(known, 1)]
    return Panel("reports that a volunteer replaces", "kinds, in order", "reports", lines, log_y=bool(known))


def _errors(row: WorthRow, points: Sequence[WorthPoint]) -> Panel:
    series = []
    for source, theory in (("release", False), ("reports", True)):
        mine = [one for one in points if (one["kind"], one["source"]) == (row["kind"], source)]
        name = "volunteers" if source == "release" else "users who report"
        series.append(Series(name, [one["people"] for one in mine], [one["error"] for one in mine], theory))
    log = any(error > 0 for one in series for error in one.y)
    return Panel(f"{row['kind']}: {row['asked']}", "people", "error", series, log_x=True, log_y=log)
