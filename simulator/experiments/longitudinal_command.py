"""The command `ldp-simulate longitudinal`: its options, table and page."""

from __future__ import annotations

import sys

import click

from ldp_client.privacy import Device, QuestionTerms, privacy_statement
from simulator.experiments import longitudinal
from simulator.experiments.options import SimulationOptions, output_options, simulation_options
from simulator.report.output import OutputOptions, asked_command
from simulator.report.page import Report, Section, Table
from simulator.report.plots import Panel, Series, draw
from simulator.report.terminal import print_table, progress_bar
from simulator.shapes import LongitudinalRow

__all__ = ["command", "page", "show"]

_PRINTED = 12
_DAY = 86_400
_COLUMNS = (
    "day",
    "spent_first_answer",
    "spent_basic",
    "spent_best",
    "guessed_first_answer",
    "guessed_fresh",
    "rmse_first_answer",
    "rmse_fresh",
)


@click.command("longitudinal")
@simulation_options(
    "users",
    "domain",
    "epsilon",
    "population",
    "mechanism",
    "seed",
    users={"type": click.IntRange(1, 10_000_000), "default": 20_000},
    domain={"default": "32", "help": "Number of elements of the domain; `none` is one."},
)
@click.option(
    "--days", type=click.IntRange(1, longitudinal.MAX_DAYS), default=365, show_default=True, help="Number of days."
)
@click.option(
    "--drift", type=float, default=0.01, show_default=True, help="Probability that a user's item changes in a day."
)
@click.option("--every", type=click.IntRange(1), default=7, show_default=True, help="Days from one row to the next.")
@output_options
def command(options: SimulationOptions, output: OutputOptions, days: int, drift: float, every: int) -> None:
    """Simulate a year of daily reports: privacy spent, an observer's guesses, errors if the first answer is kept."""
    with progress_bar("days", days) as advance:
        rows = longitudinal.run(longitudinal.Year(options, days, drift, every), advance)
    output.deliver(rows, lambda: show(rows, options, days), lambda: page(rows, options, drift))


def show(rows: list[LongitudinalRow], options: SimulationOptions, days: int) -> None:
    """Print about a dozen days, and the privacy statement of a device that reports daily."""
    step = max(1, len(rows) // _PRINTED)
    caption = (
        "spent: the total epsilon. First answer: the first report is kept and counted every day. Fresh: a new report "
        f"every day.\nbest rule: the smallest total epsilon at delta = {longitudinal.DELTA:g}.\n"
        "guessed: how often an observer who links a user's reports names the item.\n"
        "error: root mean square error of the estimates, in users."
    )
    print_table(f"Daily reports on {days} days", [*rows[:-1:step], rows[-1]], _COLUMNS, caption)
    statement = privacy_statement(QuestionTerms(options.epsilon, days, _DAY), device=Device([options.epsilon] * days))
    sys.stdout.write(f"\n{statement}\n")


def page(rows: list[LongitudinalRow], options: SimulationOptions, drift: float) -> Report:
    """Return the HTML page of `--report`, with its plots and tables."""
    return Report(
        "Daily reports",
        f"{options.users:,} users, {options.domain} elements, epsilon = {options.epsilon} a report, population "
        f"{options.population}. A first answer that is kept spends its epsilon once. Fresh reports spend it daily.",
        asked_command(),
        [Section("Day by day", "", lambda: draw(_panels(rows, drift)), Table("longitudinal", rows))],
    )


def _panels(rows: list[LongitudinalRow], drift: float) -> list[Panel]:
    days = [row["day"] for row in rows]
    spent = [
        Series("fresh reports, plain sum", days, [r["spent_basic"] for r in rows], theory=True),
        Series(f"fresh reports, delta = {longitudinal.DELTA:g}", days, [r["spent_best"] for r in rows]),
        Series("first answer kept", days, [r["spent_first_answer"] for r in rows]),
    ]
    guessed = [
        Series("fresh reports", days, [100 * r["guessed_fresh"] for r in rows]),
        Series("first answer kept", days, [100 * r["guessed_first_answer"] for r in rows]),
    ]
    errors = [
        Series("fresh reports", days, [r["rmse_fresh"] for r in rows]),
        Series("first answer kept", days, [r["rmse_first_answer"] for r in rows]),
    ]
    title = f"Error of the estimates, {100 * drift:g}% of users change a day"
    return [
        Panel("Privacy spent", "days", "total epsilon", spent, log_y=True),
        Panel("What an observer infers", "days", "items guessed right, %", guessed, y_from=0, y_to=105),
        Panel(title, "days", "root mean square error, users", errors, y_from=0),
    ]
