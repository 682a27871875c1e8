"""The command `ldp-simulate sets`: its options, table and page."""

from __future__ import annotations

from pathlib import Path

import click

from ldp_client.errors import InvalidSpec
from simulator.experiments.options import (
    USERS_OF_DATA,
    SimulationOptions,
    data_option,
    output_options,
    simulation_options,
)
from simulator.experiments.sets.plots import draw_items
from simulator.experiments.sets.run import SetsFound, run
from simulator.population.sets import SetPopulation, made_up, read_sets
from simulator.report.output import OutputOptions, asked_command
from simulator.report.page import Report, Section, Table
from simulator.report.terminal import print_table, progress_bar

__all__ = ["command", "page", "show"]

_PRINTED = 40
_SIZES = "0:20,1:30,2:25,3:15,5:7,8:3"


@click.command("sets")
@simulation_options("users", "epsilon", "seed", users=USERS_OF_DATA)
@data_option('A file of your own: a line a user, items with " + " between them. With --users, users are drawn from it.')
@click.option("--items", type=click.IntRange(2, 240), default=50, show_default=True, help="Items that are listed.")
@click.option(
    "--sizes",
    metavar="SIZE:WEIGHT,...",
    help=f"Without --data: how many items users hold. [default: {_SIZES}]",
)
@click.option("--most", type=click.IntRange(2), help="Items that are reported whole. [default: the best number]")
@output_options
def command(
    options: SimulationOptions,
    output: OutputOptions,
    data: Path | None,
    items: int,
    sizes: str | None,
    most: int | None,
) -> None:
    """Simulate users who hold several items: errors of every item, and what the cut of large sets costs."""
    population = _population(options, data, items, sizes)
    with progress_bar("users", population.users) as advance:
        found = run(population, options.epsilon, most, seed=options.seed, progress=advance)
    output.deliver([found.shape], lambda: show(found), lambda: page(found))


def _population(options: SimulationOptions, data: Path | None, items: int, sizes: str | None) -> SetPopulation:
    if data is None:
        return made_up(items, _read_sizes(sizes or _SIZES), options.users or 100_000, options.seed)
    if sizes is not None:
        raise click.UsageError("--sizes goes without --data, whose sets have sizes of their own")
    found = read_sets(data, items)
    return found if options.users is None else found.resampled(options.users, options.seed)


def _read_sizes(text: str) -> dict[int, float]:
    try:
        pairs = [part.split(":") for part in text.split(",")]
        found = {int(size): float(weight) for size, weight in pairs}
    except ValueError:
        found = {}
    if not found or len(found) != text.count(",") + 1 or min(found) < 0:
        raise InvalidSpec('sizes are written "0:20,1:30,2:30,5:20": each number of items once, with its part of users')
    return found


def show(found: SetsFound) -> None:
    """Print the items that most users hold, and the errors over all."""
    shape = found.shape
    low, high = max(0.0, shape["cut_low"]), shape["cut_high"]
    caption = (
        f"Sets of up to {shape['most']} items are reported whole. A report has {shape['report_bits']} bits.\n"
        f"Over all items: error {shape['error']:.4f} of the users (noise {shape['noise']:.4f}, stated "
        f"{shape['stated_error']:.4f}; short by the cut {shape['short']:.4f}).\n"
        f"{shape['covered']:.1%} of the 95% intervals contain the truth after the cut. Sets cut: {shape['cut']:.2%} of "
        f"the users; estimated {shape['cut_estimate']:.2%} ({low:.2%} to {high:.2%})."
    )
    rows = sorted(shape["rows"], key=lambda row: -row["truth"])[:_PRINTED]
    columns = ("item", "truth", "after_cut", "estimate", "stated_error", "low", "high")
    title = f"{shape['users']:,} users, {shape['items']} items, epsilon = {shape['epsilon']}"
    print_table(title, rows, columns, caption)


def page(found: SetsFound) -> Report:
    """Return the HTML page of `--report`, with its plots and tables."""
    shape = found.shape
    return Report(
        "What would be learned: items of sets",
        f"{shape['users']:,} users, epsilon = {shape['epsilon']}. Sets of up to {shape['most']} of {shape['items']} "
        f"items are reported whole, in {shape['report_bits']} bits.",
        asked_command(),
        [
            Section(
                "Items",
                " ".join(found.words),
                lambda: draw_items(shape["rows"]),
                Table("items", list(shape["rows"])),
            ),
            Section(
                "How many items to report",
                "Half an interval of an item, and how much it is short because larger sets are cut.",
                None,
                Table("choices", list(shape["choices"])),
            ),
        ],
    )
