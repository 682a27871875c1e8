"""`ldp-simulate poison`."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from ldp_server.answers.to_json import dump
from simulator.crowd.loaded import ATTACKS
from simulator.experiments import poison
from simulator.experiments.frequencies import MAX_RUNS, MAX_USERS, MECHANISMS, SimulationOptions
from simulator.experiments.options import (
    asked_command,
    common,
    print_table,
    processes_option,
    progress_bar,
    write_report,
)
from simulator.report.page import Report, Section, Table
from simulator.report.plots import Panel, Series, draw, have_plots
from simulator.shapes import PoisonRow

__all__ = ["command", "page"]


_CHOICES = (*MECHANISMS[1:], *poison.SKETCHES)


@click.command("poison")
@click.option("--mechanism", "mechanisms", multiple=True, type=click.Choice(_CHOICES), help="[default: all]")
@click.option("--attack", "attacks", multiple=True, type=click.Choice(ATTACKS), default=ATTACKS)
@click.option("--fraction", "fractions", multiple=True, type=float, default=poison.DEFAULT_FRACTIONS)
@click.option("--target", type=click.IntRange(0), default=0, help="The item's rank; 0 is the least popular one.")
@click.option("--domain", default="1024", show_default=True)
@click.option("--users", type=click.IntRange(1, MAX_USERS), default=100_000, show_default=True)
@click.option("--epsilon", default="1", show_default=True)
@click.option("--population", default="zipf:1.1", show_default=True)
@click.option("--runs", type=click.IntRange(1, MAX_RUNS), default=1, show_default=True)
@processes_option
@common
def command(
    mechanisms: tuple[str, ...],
    attacks: tuple[str, ...],
    fractions: tuple[float, ...],
    target: int,
    domain: str,
    users: int,
    epsilon: str,
    population: str,
    runs: int,
    processes: int,
    seed: int,
    as_json: bool,
    report: Path | None,
) -> None:
    """By how much malicious users can move an item's estimate, and what it would take to stop them."""
    wanted = SimulationOptions(users, epsilon, domain, population, runs=runs, seed=seed, processes=processes)
    points = (len(mechanisms) or 2) * len(attacks) * len(fractions)
    with progress_bar("points", points) as advance:
        rows = poison.run(
            wanted, mechanisms=mechanisms, attacks=attacks, fractions=fractions, target=target, progress=advance
        )
    if as_json:
        sys.stdout.writelines(dump(row) + "\n" for row in rows)
    else:
        columns = ("mechanism", "attack", "malicious", "damage", "expected", "damage_per_malicious_user")
        caption = (
            f"{users:,} users, epsilon = {epsilon}. Damage: by how many users the estimate moves. The strongest "
            "reports are those\nof a client whose coin is loaded; `claim` is an honest client told a wrong item. "
            "Admission (one report a person) is the defence."
        )
        print_table("What malicious users can do", rows, columns, caption)
    write_report(page(rows, wanted), report)


def page(rows: list[PoisonRow], wanted: SimulationOptions) -> Report:
    """The report: a panel for each attack."""
    panels = []
    for attack in dict.fromkeys(row["attack"] for row in rows):
        series = []
        for mechanism in dict.fromkeys(row["mechanism"] for row in rows):
            mine = [r for r in rows if r["attack"] == attack and r["mechanism"] == mechanism]
            x = [100 * r["fraction"] for r in mine]
            series.append(Series(mechanism, x, [100 * abs(r["damage_share"]) for r in mine]))
            theory = [100 * abs(r["expected"]) / r["users"] for r in mine]
            series.append(Series(f"{mechanism}, theory", x, theory, theory=True))
        panels.append(
            Panel(f"attack: {attack}", "malicious users, %", "estimate moved by, % of users", series, True, True)
        )
    plot = draw(panels, height=3.8) if have_plots() and panels else None
    return Report(
        "What malicious users can do",
        f"{wanted.users:,} users, {wanted.domain} elements, epsilon = {wanted.epsilon}, population "
        f"{wanted.population}. One item's estimate, moved by reports that the server cannot tell from honest ones.",
        asked_command(),
        [Section("Damage against the fraction of malicious users", "", plot, Table("poison", rows))],
    )
