"""The command `ldp-simulate plan`: its options, table and page."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypedDict, Unpack

import click

from ldp_client.errors import InvalidSpec
from ldp_client.protocol.domain import Strings
from ldp_server.heavy_hitters.promise import BETA
from ldp_server.planning import solve
from simulator.experiments import heavy_hitters, plan
from simulator.experiments.options import SimulationOptions, output_options, simulation_options
from simulator.report.item_plots import Bar, draw_bars
from simulator.report.output import OutputOptions, asked_command
from simulator.report.page import Report, Section, Table
from simulator.report.plots import Panel, Series, draw
from simulator.report.terminal import print_table, progress_bar
from simulator.report.values import elements
from simulator.shapes import GoalRow, PlanRow
from simulator.trials import goals
from simulator.trials.goals import GoalOptions, goal_options
from simulator.trials.trial import tried

__all__ = ["command", "page", "show"]

BROKEN = 5
"""Exit code: a promise was not kept."""


class _Asked(TypedDict):
    """The options that are about the table; None: not given."""

    beta: float | None
    frequency: float | None
    dictionary: int | None


@click.command("plan")
@simulation_options(
    "users",
    "domain",
    "epsilon",
    "memory",
    "population",
    "runs",
    "processes",
    "seed",
    "copies",
    population={"help": "Who holds which item, for --verify; see docs/simulator.md."},
    runs={"default": 5, "help": "Number of runs of --verify."},
    copies={"help": "With --item-bytes: the part of all reports that are copies of others, such as 0.05."},
)
@click.option("--item-bytes", type=click.IntRange(1, 1024), help="Plan for heavy hitters among strings of that length.")
@click.option(
    "--beta",
    type=float,
    help="With --item-bytes: the failure probability with which all frequent items are listed at once. [default: 0.05]",
)
@click.option(
    "--dictionary",
    type=click.IntRange(1),
    help="With --item-bytes: plan for a dictionary of so many candidates, all of the same weight.",
)
@click.option("--frequency", type=float, help="A share of the users, such as 0.01: how many users does it take?")
@click.option("--verify", is_flag=True, help="Simulate every line, and show the measured error beside the promise.")
@goal_options
@output_options
def command(
    options: SimulationOptions,
    output: OutputOptions,
    item_bytes: int | None,
    *,
    verify: bool,
    goal: GoalOptions | None,
    **asked: Unpack[_Asked],
) -> int:
    """Show every mechanism that fits: its error, the smallest share that it can show, users needed, bytes, time.

    With --kind: plan one question of that kind, and work out the error, or with --within what is not given of --users
    and --epsilon. --verify then runs the plan, with users as assumed or as in --data. --volunteers also says what is
    known if a share of the users gives raw answers to a curator; --verify runs the reports of everybody all the same.
    """
    if goal is not None:
        if item_bytes is not None or options.copies or any(value is not None for value in asked.values()):
            raise InvalidSpec("--kind goes with none of --item-bytes, --beta, --frequency, --dictionary and --copies")
        return _goal(options, output, goal, verify=verify)
    domain = None if item_bytes is None else Strings(item_bytes)
    table = _table(options, domain, **asked)
    kept = True
    if verify:
        with progress_bar("users", len(table) * options.users * options.runs) as advance:
            kept = _verify(table, options, domain, advance)
    output.deliver(table, lambda: show(table, verify), lambda: page(table, options))
    return 0 if kept else BROKEN


def _table(options: SimulationOptions, domain: Strings | None, **asked: Unpack[_Asked]) -> list[PlanRow]:
    beta, frequency, dictionary = asked["beta"], asked["frequency"], asked["dictionary"]
    if domain is not None:
        return plan.sketch_rows(options, domain, frequency, BETA if beta is None else beta, dictionary or 0)
    for name, given in (("--beta", beta), ("--dictionary", dictionary), ("--copies", options.copies or None)):
        if given is not None:
            raise InvalidSpec(f"{name} is for heavy hitters: give --item-bytes too")
    return plan.rows(options, frequency)


def _goal(options: SimulationOptions, output: OutputOptions, goal: GoalOptions, *, verify: bool) -> int:
    wish = goal.wish
    found = solve(goal.goal(options))
    row, kept = goals.row(found, wish), True
    if verify:
        periods = 1 + found.goal.change
        with progress_bar("users", found.users * options.runs * periods) as advance:
            kept = goals.verify(row, tried(found, options.runs, options.seed, advance))
    output.deliver([row], lambda: _show_goal(row), lambda: _goal_page(row))
    return 0 if kept else BROKEN


def _show_goal(row: GoalRow) -> None:
    for sentence in row["promise"]:
        click.echo(sentence)
    if "volunteers" in row:
        print_table("With volunteers", row["volunteers"])
    if "runs" not in row:
        return
    columns = ["mechanism", "standard_error", "printed_error", "measured_error", "coverage"]
    print_table(f"{row['runs']} runs of {row['users']:,} users", [row], columns)
    click.echo(f"The error is {_held(row['error_held'])}. The intervals are {_held(row['intervals_held'])}.")


def _held(kept: bool) -> str:
    return "as planned" if kept else "not as planned: chance does this once in 1,000 times"


def _goal_page(row: GoalRow) -> Report:
    rows = [{name: value for name, value in row.items() if name not in ("promise", "volunteers")}]
    sections = [Section("Plan", "", None, Table("plan", rows))]
    if "volunteers" in row:
        sections.append(Section("With volunteers", "", None, Table("volunteers", row["volunteers"])))
    return Report("A plan", " ".join(row["promise"]), asked_command(), sections)


def _verify(
    table: list[PlanRow], options: SimulationOptions, domain: Strings | None, advance: Callable[[int], None]
) -> bool:
    if domain is None:
        return plan.verify(table, options, advance)
    return plan.verify_sketches(table, options, domain, advance)


def show(table: list[PlanRow], verified: bool) -> None:
    """Print the table and the remarks."""
    first = table[0]
    sketches = first["mechanism"] in heavy_hitters.MECHANISMS
    keys = ["mechanism"] if sketches else ["mechanism", "parameters"]
    shares = ["smallest_share", "smallest_share_all"] if sketches else ["smallest_share"]
    shares += ["smallest_share_candidates"] if "candidates" in first else []
    columns = [*keys, "standard_error", *shares, "users_needed", "report_bytes", "memory_bytes", "seconds"]
    if verified:
        recall = [
            name for name in ("measured_recall", "measured_recall_candidates") if any(name in row for row in table)
        ]
        columns += [*recall, "measured_error", "measured_seconds", "kept"]
    title = f"{first['users']:,} users, {elements(first['domain'])} elements, epsilon = {first['epsilon']}"
    # A share above 1 says that no item can be told apart.
    rows = [{**row, "smallest_share": row["smallest_share"] if row["smallest_share"] <= 1 else None} for row in table]
    print_table(title, rows, columns, _caption(first, sketches=sketches), keys=len(keys))
    for row in table:
        if row["remark"]:
            click.echo(f"{_name(row)}: {row['remark']}")


def _caption(first: PlanRow, *, sketches: bool) -> str:
    """Return what the columns are."""
    told = "listed" if sketches else "told apart from an item that nobody holds"
    lines = [f"Best first. smallest share: the least share of users from which an item is {told} with probability 95%."]
    if sketches:
        lines.append(f"smallest share all: all such items at once, except with beta = {first['beta']:g}.")
    if "candidates" in first:
        lines.append(
            f"smallest share candidates: the same for each of the dictionary's {first['candidates']:,} candidates. The "
            "other shares are about items that it does not name."
        )
    lines.append("users needed: for a share of --frequency (-: not given).")
    lines.append("seconds: time to count all reports and to estimate everything, at a reference speed.")
    return "\n".join(lines)


def _name(row: PlanRow) -> str:
    """The name of a row in a plot; a sketch has too many parameters to list them all."""
    parameters = " ".join(f"{k}={v}" for k, v in row["parameters"].items() if k in ("q", "t", "rows"))
    return f"{row['mechanism']} {parameters}".strip()


def page(table: list[PlanRow], options: SimulationOptions) -> Report:
    """Return the report: the smallest share against the number of users and, if verified, promise and outcome."""
    sections = [Section("Mechanisms, best first", "", lambda: draw([_shares(table, options)]), Table("plan", table))]
    bars = [Bar(_name(row), row["measured_error"] / row["standard_error"]) for row in table if "measured_error" in row]
    if bars:
        text = "The measured root mean square error, divided by the promised one. 1 is as promised."
        plot = lambda: draw_bars([("measured / promised", bars)], log=False)  # noqa: E731
        sections.append(Section("Promise and outcome", text, plot))
    return Report(
        "A plan",
        f"{options.users:,} users, {elements(table[0]['domain'])} elements, epsilon = {options.epsilon}. The error "
        f"from collisions in hashed domains is that of this number of users.{_planned_with(table[0])}",
        asked_command(),
        sections,
    )


def _planned_with(first: PlanRow) -> str:
    """Return what the page says of a dictionary and of copies."""
    words = f" With a dictionary of {first['candidates']:,} candidates." if "candidates" in first else ""
    return words + (f" {first['copies']:.3g} of all reports are copies of others." if "copies" in first else "")


def _shares(table: list[PlanRow], options: SimulationOptions) -> Panel:
    grid = [options.users * factor / 100 for factor in (1, 3, 10, 30, 100, 300, 1000, 3000, 10_000)]
    lines = [
        Series(_name(row), grid, [100 * row["smallest_share"] * (row["users"] / n) ** 0.5 for n in grid])
        for row in table
    ]
    return Panel("The smallest share told apart", "users", "share of users, %", lines, True, True)
