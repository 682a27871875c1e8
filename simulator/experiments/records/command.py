"""The command `ldp-simulate records`: its options, table and page."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from ldp_client.errors import InvalidSpec
from ldp_server.planning.protected import EVERY_FIELD, read_field_epsilons
from simulator.attacks.malicious import ATTACKS
from simulator.experiments.options import (
    USERS_OF_DATA,
    SimulationOptions,
    data_option,
    output_options,
    simulation_options,
)
from simulator.experiments.records.plots import draw_errors, draw_together
from simulator.experiments.records.run import Liars, RecordsFound, run
from simulator.population.records import RecordPopulation, correlated, read_records
from simulator.report.output import OutputOptions, asked_command
from simulator.report.page import Report, Section, Table
from simulator.report.terminal import print_table, progress_bar
from simulator.shapes import RecordsRun

__all__ = ["command", "page", "show"]

_PRINTED = 40


@click.command("records")
@simulation_options("users", "epsilon", "seed", users=USERS_OF_DATA)
@data_option("A CSV file of your own: a column is a field, a line a user. With --users, they are drawn from it.")
@click.option("--columns", metavar="A,B,...", help="Only these columns of --data.")
@click.option(
    "--most",
    type=click.IntRange(2, 1000),
    default=12,
    show_default=True,
    help="Values of a column; the rest is joined.",
)
@click.option(
    "--sizes",
    default="3,4,5,6",
    show_default=True,
    help="Without --data: how many values each field has, besides none.",
)
@click.option(
    "--correlation",
    type=click.FloatRange(0, 1),
    default=0.4,
    show_default=True,
    help="Without --data: how much the fields go together, from 0 to 1.",
)
@click.option(
    "--table", multiple=True, metavar="A,B", help="Fields to be known together; repeat it. [default: all pairs]"
)
@click.option(
    "--field-epsilon",
    multiple=True,
    metavar='"NAME: EPSILON"',
    help="The epsilon of this field by itself; give one for every field. --epsilon has no part then.",
)
@click.option(
    "--malicious",
    type=click.FloatRange(0, 0.5),
    default=0.0,
    help="So many users more, as a share, who lie about the record of each field's least frequent value.",
)
@click.option(
    "--attack",
    type=click.Choice(ATTACKS),
    default="promote",
    show_default=True,
    help="What --malicious do: every answer for the record, every answer against it, or claim to hold it.",
)
@output_options
def command(
    options: SimulationOptions,
    output: OutputOptions,
    table: tuple[str, ...],
    field_epsilon: tuple[str, ...],
    malicious: float,
    attack: str,
    **given: Any,
) -> None:
    """Simulate tables of several fields: errors of every table before a question is asked."""
    population = _population(options, **given)
    workload = tuple(tuple(name.strip() for name in one.split(",")) for one in table) or "pairs"
    with progress_bar("users", population.users) as advance:
        each = read_field_epsilons(field_epsilon)
        found = run(
            population,
            options.epsilon,
            workload,
            field_epsilons=each,
            liars=Liars(malicious, attack),
            seed=options.seed,
            progress=advance,
        )
    output.deliver([found.shape], lambda: show(found), lambda: page(found))


def _population(
    options: SimulationOptions, data: Path | None, columns: str | None, most: int, sizes: str, correlation: float
) -> RecordPopulation:
    if data is None:
        if columns:
            raise click.UsageError("--columns goes with --data")
        parts = [part.strip() for part in sizes.split(",")]
        if not all(part.isascii() and part.isdigit() and len(part) < 6 for part in parts):
            raise InvalidSpec("sizes are whole numbers separated by commas, such as 3,4,5")
        return correlated([int(part) for part in parts], options.users or 100_000, correlation, options.seed)
    found = read_records(data, [name.strip() for name in columns.split(",")] if columns else (), most)
    return found if options.users is None else found.resampled(options.users, options.seed)


def show(found: RecordsFound) -> None:
    """Print the tables with the largest errors, and the errors over all."""
    shape = found.shape
    others = "".join(
        f"\nAsked as {form}, it would be {error:.4f}."
        for form, error in shape["compared"].items()
        if form != shape["form"]
    )
    caption = (
        f"{_asked(shape)} A report has {shape['report_bits']} bits.\n"
        f"The error of a cell, over all tables: {shape['error']:.4f} of the users raw, {shape['possible_error']:.4f} "
        f"made possible; planned {shape['planned_error']:.4f}.{others}\n"
        f"{shape['covered']:.1%} of the 95% intervals contain the truth."
    )
    columns: tuple[str, ...] = ("table", "cells", "stated_error", "error", "possible_error", "covered")
    if shape["malicious"]:
        columns += ("moved",)
        caption += (
            f"\n{shape['malicious']:,} malicious users more, who lie about one record: `moved` is by how many users "
            "each of them moves the estimate of its cell. They are not in the errors."
        )
    rows = sorted(found.tables, key=lambda row: -row["error"])[:_PRINTED]
    title = f"{shape['users']:,} users, {shape['fields']} fields, epsilon = {shape['epsilon']}"
    print_table(title, rows, columns, caption)


def _asked(shape: RecordsRun) -> str:
    """Say what a device does."""
    if shape["form"] == EVERY_FIELD:
        return "Each device answers every field, at an epsilon of its own."
    return f"Each device draws one of {shape['tables_drawn']} tables ({shape['form']}) and answers it."


def page(found: RecordsFound) -> Report:
    """Return the HTML page of `--report`, with its plots and tables."""
    shape, names = found.shape, found.fields
    pairs = [
        {"field": names[i], "other": names[j], "truth": found.together[i, j], "estimated": found.estimated[i, j]}
        for i in range(len(names))
        for j in range(i)
    ]
    return Report(
        "What would be learned: tables of records",
        f"{shape['users']:,} users, epsilon = {shape['epsilon']}. {_asked(shape)} A report has {shape['report_bits']} "
        "bits.",
        asked_command(),
        [
            Section(
                "Errors of the tables",
                "Raw, and made possible for all tables together. The mark is the standard error that an answer states.",
                lambda: draw_errors(found.tables),
                Table("tables", list(found.tables)),
            ),
            Section(
                "Which fields go together",
                "From the estimates without what is no more than noise. An empty cell: not asked together.",
                lambda: draw_together(names, found.together, found.estimated),
                Table("together", pairs),
            ),
        ],
    )
