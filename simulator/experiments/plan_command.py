"""`ldp-simulate plan`."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from ldp_client.protocol.domain import Strings
from ldp_server.answers.to_json import dump
from simulator.experiments import heavy_hitters, plan
from simulator.experiments.frequencies import MAX_RUNS, MAX_USERS, SimulationOptions
from simulator.experiments.options import (
    asked_command,
    common,
    elements,
    print_table,
    processes_option,
    progress_bar,
    write_report,
)
from simulator.report.page import Report, Section, Table
from simulator.report.plots import Bar, Panel, Series, draw, draw_bars, have_plots
from simulator.shapes import PlanRow

__all__ = ["command", "page", "show"]

BROKEN = 5


@click.command("plan")
@click.option("--users", type=click.IntRange(1, MAX_USERS), default=100_000, show_default=True)
@click.option("--domain", default="1024", show_default=True, help="Elements (`none` is one), or strings:L.")
@click.option("--item-bytes", type=click.IntRange(1, 1024), help="Find heavy hitters among strings of such length.")
@click.option("--epsilon", default="1", show_default=True)
@click.option("--frequency", type=float, help="A share of the users, such as 0.01: how many users tell it apart?")
@click.option("--memory", type=click.IntRange(1, 1 << 20), default=256, show_default=True, help="Megabytes allowed.")
@click.option("--verify", is_flag=True, help="Simulate every line, and show promise against outcome.")
@click.option("--population", default="zipf:1.1", show_default=True, help="For --verify.")
@click.option("--runs", type=click.IntRange(1, MAX_RUNS), default=5, show_default=True, help="For --verify.")
@processes_option
@common
def command(
    users: int,
    domain: str,
    item_bytes: int | None,
    epsilon: str,
    frequency: float | None,
    memory: int,
    verify: bool,
    population: str,
    runs: int,
    processes: int,
    seed: int,
    as_json: bool,
    report: Path | None,
) -> int:
    """Every mechanism that fits: error, smallest frequency, users needed, bytes, time; and whether it is true."""
    wanted = SimulationOptions(
        users, epsilon, domain, population, runs=runs, seed=seed, processes=processes, memory=memory << 20
    )
    strings = None if item_bytes is None else Strings(item_bytes)
    kept = True
    table = plan.rows(wanted, frequency) if strings is None else plan.sketch_rows(wanted, strings, frequency)
    if verify and strings is not None:
        with progress_bar("users", len(table) * users * runs) as advance:
            kept = plan.verify_sketches(table, wanted, strings, advance).kept
    elif verify:
        with progress_bar("users", len(table) * users * runs) as advance:
            kept = plan.verify(table, wanted, advance).kept
    if as_json:
        sys.stdout.writelines(dump(row) + "\n" for row in table)
    else:
        show(table, verify)
    write_report(page(table, wanted), report)
    return 0 if kept else BROKEN


def show(table: list[PlanRow], verified: bool) -> None:
    """The table."""
    first = table[0]
    sketches = first["mechanism"] in heavy_hitters.MECHANISMS
    columns = [
        "mechanism",
        *([] if sketches else ["parameters"]),
        "standard_error",
        "smallest_share",
        "users_needed",
        "report_bytes",
    ]
    columns += ["memory_bytes", "seconds"]
    if verified:
        columns += [*(["measured_recall"] if sketches else []), "measured_error", "measured_seconds", "kept"]
    told = "listed" if sketches else "told apart from nothing, without knowing it beforehand,"
    caption = (
        f"best first; smallest share: the least popular item that is {told} 95% of the time;\n"
        "seconds: to count all reports and estimate everything, at a reference speed"
    )
    title = f"{first['users']:,} users, {elements(first['domain'])} elements, epsilon = {first['epsilon']}"
    print_table(title, table, columns, caption)
    for row in table:
        if row["remark"]:
            click.echo(f"{_name(row)}: {row['remark']}")


def _name(row: PlanRow) -> str:
    """A line's name in a plot; a sketch's parameters are in the table."""
    parameters = " ".join(f"{k}={v}" for k, v in row["parameters"].items() if k in ("q", "t", "rows"))
    return f"{row['mechanism']} {parameters}".strip()


def page(table: list[PlanRow], wanted: SimulationOptions) -> Report:
    """The report: standard errors, and the smallest share against the number of users."""
    grid = [wanted.users * factor / 100 for factor in (1, 3, 10, 30, 100, 300, 1000, 3000, 10_000)]
    lines = [
        Series(
            _name(row),
            grid,
            [100 * row["smallest_share"] * (row["users"] / n) ** 0.5 for n in grid],
        )
        for row in table
    ]
    panels = [Panel("The smallest share told apart", "users", "share of users, %", lines, True, True)]
    sections = [Section("Mechanisms, best first", "", draw(panels) if have_plots() else None, Table("plan", table))]
    if "measured_error" in table[0] and have_plots():
        bars = [
            Bar(line.name, row["measured_error"] / row["standard_error"])
            for line, row in zip(lines, table, strict=True)
            if "measured_error" in row
        ]
        text = "The root mean square error that was measured, over the one that was promised: 1 is as promised."
        sections.append(Section("Promise and outcome", text, draw_bars([("measured / promised", bars)], log=False)))
    return Report(
        "A plan",
        f"{wanted.users:,} users, {elements(table[0]['domain'])} elements, epsilon = {wanted.epsilon}. Collisions "
        "in hashed domains are counted in for this number of users only.",
        asked_command(),
        sections,
    )
