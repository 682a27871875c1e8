"""`ldp-simulate longitudinal`."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from ldp_client.privacy import Device, Question, privacy_statement
from ldp_server.answers.to_json import dump
from simulator.experiments import longitudinal
from simulator.experiments.frequencies import MECHANISMS, SimulationOptions
from simulator.experiments.options import asked_command, common, print_table, progress_bar, write_report
from simulator.report.page import Report, Section, Table
from simulator.report.plots import Panel, Series, draw, have_plots
from simulator.shapes import LongitudinalRow

__all__ = ["command", "page", "show"]

_DAY = 86_400


@click.command("longitudinal")
@click.option("--mechanism", type=click.Choice(MECHANISMS), default="auto", show_default=True)
@click.option("--domain", default="32", show_default=True, help="Elements, `none` among them.")
@click.option("--users", type=click.IntRange(1, 10_000_000), default=20_000, show_default=True)
@click.option("--epsilon", default="1", show_default=True, help="Of one report.")
@click.option("--population", default="zipf:1.1", show_default=True)
@click.option("--days", type=click.IntRange(1, longitudinal.MAX_DAYS), default=365, show_default=True)
@click.option("--drift", type=float, default=0.01, show_default=True, help="How likely a user changes, a day.")
@click.option("--every", type=click.IntRange(1), default=7, show_default=True, help="Days from one row to the next.")
@common
def command(
    mechanism: str,
    domain: str,
    users: int,
    epsilon: str,
    population: str,
    days: int,
    drift: float,
    every: int,
    seed: int,
    as_json: bool,
    report: Path | None,
) -> None:
    """Users report daily for a year: what is spent, what an observer infers, how stale the first answer grows."""
    wanted = SimulationOptions(users, epsilon, domain, population, mechanism, seed=seed)
    with progress_bar("days", days) as advance:
        rows = longitudinal.run(longitudinal.Year(wanted, days, drift, every), advance)
    if as_json:
        sys.stdout.writelines(dump(row) + "\n" for row in rows)
    else:
        show(rows)
        sys.stdout.write(f"\n{_statement(epsilon, days)}\n")
    write_report(page(rows, wanted, drift), report)


def show(rows: list[LongitudinalRow]) -> None:
    """A dozen days."""
    step = max(1, len(rows) // 12)
    shown = [*rows[:-1:step], rows[-1]]
    caption = (
        "spent best: the smallest total that holds with probability 1 - delta, by any rule, if every day brings a "
        "fresh report;\nguessed: how often an observer who links a user's reports names the item"
    )
    columns = (
        "day",
        "spent_first_answer",
        "spent_basic",
        "spent_best",
        "guessed_first_answer",
        "guessed_fresh",
        "rmse_first_answer",
        "rmse_fresh",
    )
    print_table("A year of daily reports", shown, columns, caption)


def _statement(epsilon: str, days: int) -> str:
    """The statement about a device that has sent a fresh report every day."""
    return str(privacy_statement(Question(epsilon, days, _DAY), device=Device([epsilon] * days)))


def page(rows: list[LongitudinalRow], wanted: SimulationOptions, drift: float) -> Report:
    """The report."""
    days = [row["day"] for row in rows]
    panels = [
        Panel(
            "Privacy spent",
            "days",
            "total epsilon",
            [
                Series("fresh reports, plain sum", days, [r["spent_basic"] for r in rows], theory=True),
                Series(f"fresh reports, delta = {longitudinal.DELTA:g}", days, [r["spent_best"] for r in rows]),
                Series("first answer stands", days, [r["spent_first_answer"] for r in rows]),
            ],
            log_y=True,
        ),
        Panel(
            "What an observer infers",
            "days",
            "items guessed right, %",
            [
                Series("fresh reports", days, [100 * r["guessed_fresh"] for r in rows]),
                Series("first answer stands", days, [100 * r["guessed_first_answer"] for r in rows]),
            ],
            y_from=0,
            y_to=105,
        ),
        Panel(
            f"Error of the estimates, {100 * drift:g}% of users change a day",
            "days",
            "root mean square error, users",
            [
                Series("fresh reports", days, [r["rmse_fresh"] for r in rows]),
                Series("first answer stands", days, [r["rmse_first_answer"] for r in rows]),
            ],
            y_from=0,
        ),
    ]
    return Report(
        "A year of daily reports",
        f"{wanted.users:,} users, {wanted.domain} elements, epsilon = {wanted.epsilon} a report, population "
        f"{wanted.population}. A first answer that stands spends its epsilon once; fresh reports spend it daily.",
        asked_command(),
        [Section("Day by day", "", draw(panels) if have_plots() else None, Table("longitudinal", rows))],
    )
