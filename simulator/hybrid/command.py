"""The command `ldp-simulate hybrid`: its options, table and page."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import click

from simulator.experiments.options import SimulationOptions, output_options, simulation_options
from simulator.hybrid.every_kind import HYBRID_KINDS
from simulator.hybrid.sweep import HybridOptions, local_price, shares_of, sweep
from simulator.report.output import OutputOptions, asked_command
from simulator.report.page import Report, Section, Table
from simulator.report.plots import Panel, Series, draw
from simulator.report.terminal import print_table, progress_bar
from simulator.shapes import HybridRow, LocalPriceRow

__all__ = ["command", "page", "show"]

_KINDS = ", ".join(f"{name} ({kind.text})" for name, kind in HYBRID_KINDS.items())


@click.command("hybrid")
@simulation_options("users", "epsilon", "runs", "seed", runs={"default": 3})
@click.option("--central", metavar="EPSILON", help="The price of a release for a volunteer. [default: as --epsilon]")
@click.option("--shares", default="0.005,0.01,0.02,0.05,0.1,0.2", show_default=True, help="Shares of volunteers.")
@click.option(
    "--kind",
    "kinds",
    multiple=True,
    type=click.Choice(list(HYBRID_KINDS)),
    help=f"What is asked; may be repeated: {_KINDS}. [default: all]",
)
@output_options
def command(
    options: SimulationOptions, output: OutputOptions, central: str | None, shares: str, kinds: tuple[str, ...]
) -> None:
    """What is a share of volunteers worth? They give raw answers to a curator, and everybody else reports.

    Errors are root mean squares over what is asked, beside the truth about all users. `worth` is how many reports a
    volunteer replaces. Below stands the price of the local model: the error of reports over that of a release about the
    same people.
    """
    asked = HybridOptions(
        options.users,
        options.epsilon,
        central or options.epsilon,
        shares_of(shares),
        kinds or tuple(HYBRID_KINDS),
        options.runs,
        options.seed,
    )
    with progress_bar("simulations", asked.steps) as advance:
        rows = sweep(asked, advance)
        prices = local_price(asked, advance)
    shapes: list[Any] = [*rows, *prices]
    output.deliver(shapes, lambda: show(rows, prices), lambda: page(rows, prices))


def show(rows: Sequence[HybridRow], prices: Sequence[LocalPriceRow]) -> None:
    """Print both tables."""
    print_table("What volunteers are worth", rows, keys=2)
    print_table("The price of the local model", prices)


def page(rows: Sequence[HybridRow], prices: Sequence[LocalPriceRow]) -> Report:
    """Return the report: for each kind the merged error over the shares, and the price of the local model."""
    return Report(
        "What volunteers are worth",
        "Volunteers give a curator raw answers; everybody else reports. Errors are root mean squares.",
        asked_command(),
        [
            Section("Merged errors", "", lambda: draw(_panels(rows)), Table("hybrid", rows)),
            Section(
                "The price of the local model",
                "The error of everybody's reports over that of a release about everybody, at the same epsilon.",
                lambda: draw([_price(prices)]),
                Table("price", prices),
            ),
        ],
    )


def _panels(rows: Sequence[HybridRow]) -> list[Panel]:
    found = []
    for name in dict.fromkeys(row["kind"] for row in rows):
        mine = [row for row in rows if row["kind"] == name]
        x = [row["share"] for row in mine]
        series = [
            Series("volunteers alone", x, [row["volunteers_alone"] for row in mine]),
            Series("everybody reports", x, [row["alone"] for row in mine], theory=True),
        ]
        merged = [row["merged"] for row in mine]
        if None not in merged:
            series.insert(0, Series("both, merged", x, [one or 0.0 for one in merged]))
        title = f"{name}: {HYBRID_KINDS[name].text}"
        found.append(_panel(title, "share of volunteers", "error", series))
    return found


def _panel(title: str, x: str, y: str, series: Sequence[Series]) -> Panel:
    """A panel with logarithms, if something on it is above 0: a choice that is always right has the error 0."""
    log = any(value > 0 for one in series for value in one.y)
    return Panel(title, x, y, series, log_x=True, log_y=log)


def _price(prices: Sequence[LocalPriceRow]) -> Panel:
    known = [(row, row["price"]) for row in prices if row["price"] is not None]
    lines = [Series(row["kind"], [row["users"]], [price]) for row, price in known]
    return _panel("error of reports / error of a release", "users", "ratio", lines)
