"""The command `ldp-simulate queries`: its options, table and page."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from simulator.experiments.options import SimulationOptions, output_options, simulation_options
from simulator.experiments.queries.plots import draw_methods
from simulator.experiments.queries.run import QueriesGoal, run
from simulator.population.habits import habits, held_fields
from simulator.population.records import RecordPopulation, read_records
from simulator.report.output import OutputOptions, asked_command
from simulator.report.page import Report, Section, Table
from simulator.report.terminal import print_table, progress_bar
from simulator.shapes import QueriesRun, QueryLimits

__all__ = ["command", "limits_in_words", "page", "show"]

_SHARE = click.FloatRange(0, 1, min_open=True, max_open=True)


@click.command("queries")
@simulation_options(
    "users",
    "epsilon",
    "seed",
    users={"default": None, "help": "Number of users. [default: 100,000, or one for each line of --data]"},
)
@click.option(
    "--data",
    type=click.Path(path_type=Path, dir_okay=False),
    help="A CSV file of your own: a column of yes and no is a field, a line a user. With --users, users are drawn.",
)
@click.option("--columns", metavar="A,B,...", help="Only these columns of --data.")
@click.option("--fields", type=int, default=10, show_default=True, help="Without --data: how many yes/no fields.")
@click.option("--width", type=int, default=2, show_default=True, help="How many fields a set has.")
@click.option("--all", "every", is_flag=True, help="All fields of a set hold (conjunctions). [default: any of them]")
@click.option("--asked", type=click.IntRange(1), default=100, show_default=True, help="Sets asked for thresholds.")
@click.option("--queries", type=click.IntRange(1), default=600, show_default=True, help="Queries of a decomposition.")
@click.option(
    "--cut",
    type=_SHARE,
    default=0.1,
    show_default=True,
    help="Of the decomposition: how much a field must add to split a set; less takes more queries.",
)
@click.option(
    "--levels", type=click.IntRange(1, 99), default=9, show_default=True, help="Of the thresholds: how many there are."
)
@output_options
def command(
    options: SimulationOptions,
    output: OutputOptions,
    data: Path | None,
    columns: str | None,
    fields: int,
    **asked: Any,
) -> None:
    """Simulate statistical queries: how many hold any, or all, of some fields, for all sets of fields.

    Rounds of asking fresh users, release by thresholds and by submodular decomposition stand beside the tables of one
    question about records and the best constant, which knows the truth.
    """
    if data is None and columns:
        raise click.UsageError("--columns goes with --data")
    _, people = held_fields(_population(options, data, columns, fields))
    goal = QueriesGoal(epsilon=options.epsilon, seed=options.seed, **asked)
    with progress_bar("methods", 4) as advance:
        found = run(people, goal, lambda _: advance(1))
    output.deliver([found], lambda: show(found), lambda: page(found))


def _population(options: SimulationOptions, data: Path | None, columns: str | None, fields: int) -> RecordPopulation:
    if data is None:
        return habits(fields, options.users or 100_000, options.seed)
    found = read_records(data, [name.strip() for name in columns.split(",")] if columns else ())
    return found if options.users is None else found.resampled(options.users, options.seed)


def show(found: QueriesRun) -> None:
    """Print the methods, and what is proved about them."""
    title = (
        f"{found['users']:,} users, {found['kind']} of {found['width']} of {found['fields']} fields "
        f"({found['sets']:,} sets), epsilon = {found['epsilon']}"
    )
    columns = ("method", "error", "largest_error", "queries", "users_each", "rounds")
    print_table(title, found["methods"], columns, "\n".join(limits_in_words(found)))


def limits_in_words(found: QueriesRun) -> list[str]:
    """Return what holds whoever the users are, a sentence for each method."""
    limits: QueryLimits = found["limits"]
    used_up = [row for row in found["methods"] if row["error"] is None]
    return [
        *(f"The {row['method']} asked {row['queries']:,} queries, and its users were used up." for row in used_up),
        f"Each set asked: all answers are right up to {limits['tolerance']:.3g} at once with probability 95%; up to "
        f"{limits['wanted_tolerance']:g} takes {limits['users_for_wanted']:,} users.",
        f"Thresholds answer in steps of {limits['threshold_step']:.3g}. Nothing more is proved about this classifier.",
        f"Decomposition: an error of {limits['decomposition_error']:g} on all but {limits['decomposition_missed']:g} "
        f"of the sets is proved at a cut of {limits['decomposition_cut']:.2g}, not at {found['cut']:g}; there its "
        f"bound on the number of parts has {int(limits['decomposition_log10_parts']) + 1:,} digits.",
        "The best constant knows the truth. The tables take one round, and state an error with each answer.",
    ]


def page(found: QueriesRun) -> Report:
    """Return the HTML page of `--report`."""
    return Report(
        "What would be learned: statistical queries",
        f"{found['users']:,} users, {found['kind']} of {found['width']} of {found['fields']} fields, epsilon = "
        f"{found['epsilon']}. {' '.join(limits_in_words(found))}",
        asked_command(),
        [
            Section(
                "Errors of the methods",
                "Over all sets, against the truth.",
                lambda: draw_methods(found["methods"]),
                Table("methods", list(found["methods"])),
            )
        ],
    )
