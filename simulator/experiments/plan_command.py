"""The command `ldp-simulate plan`: its options, table and page."""

from __future__ import annotations

from collections.abc import Callable

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
    population={"help": "Who holds which item, for --verify; see docs/simulator.md."},
    runs={"default": 5, "help": "Number of runs of --verify."},
)
@click.option("--item-bytes", type=click.IntRange(1, 1024), help="Plan for heavy hitters among strings of that length.")
@click.option(
    "--beta",
    type=float,
    help="With --item-bytes: the failure probability with which all frequent items are listed at once. [default: 0.05]",
)
@click.option("--frequency", type=float, help="A share of the users, such as 0.01: how many users does it take?")
@click.option("--verify", is_flag=True, help="Simulate every line, and show the measured error beside the promise.")
@goal_options
@output_options
def command(
    options: SimulationOptions,
    output: OutputOptions,
    item_bytes: int | None,
    beta: float | None,
    frequency: float | None,
    verify: bool,
    goal: GoalOptions | None,
) -> int:
    """Show every mechanism that fits: its error, the smallest share that it can show, users needed, bytes, time.

    With --kind: plan one question of that kind, and work out the error, or with --within what is not given of --users
    and --epsilon. --verify then runs the plan, with users as assumed or as in --data. --volunteers also says what is
    known if a share of the users gives raw answers to a curator; --verify runs the reports of everybody all the same.
    """
    if goal is not None:
        if item_bytes is not None or beta is not None or frequency is not None:
            raise InvalidSpec("--kind goes with none of --item-bytes, --beta and --frequency")
        return _goal(options, output, goal, verify=verify)
    domain = None if item_bytes is None else Strings(item_bytes)
    if domain is None:
        if beta is not None:
            raise InvalidSpec("--beta is for heavy hitters: give --item-bytes too")
        table = plan.rows(options, frequency)
    else:
        table = plan.sketch_rows(options, domain, frequency, BETA if beta is None else beta)
    kept = True
    if verify:
        with progress_bar("users", len(table) * options.users * options.runs) as advance:
            kept = _verify(table, options, domain, advance)
    output.deliver(table, lambda: show(table, verify), lambda: page(table, options))
    return 0 if kept else BROKEN


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
    columns = [*keys, "standard_error", *shares, "users_needed", "report_bytes", "memory_bytes", "seconds"]
    if verified:
        columns += [*(["measured_recall"] if sketches else []), "measured_error", "measured_seconds", "kept"]
    told = "listed" if sketches else "told apart from an item that nobody holds"
    together = (
        f"smallest share all: all such items at once, except with beta = {first['beta']:g}.\n" if sketches else ""
    )
    caption = (
        f"Best first. smallest share: the least share of users from which an item is {told} with probability 95%.\n"
        f"{together}"
        "users needed: for a share of --frequency (-: not given).\n"
        "seconds: time to count all reports and to estimate everything, at a reference speed."
    )
    title = f"{first['users']:,} users, {elements(first['domain'])} elements, epsilon = {first['epsilon']}"
    # A share above 1 says that no item can be told apart.
    rows = [{**row, "smallest_share": row["smallest_share"] if row["smallest_share"] <= 1 else None} for row in table]
    print_table(title, rows, columns, caption, keys=len(keys))
    for row in table:
        if row["remark"]:
            click.echo(f"{_name(row)}: {row['remark']}")


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
        "from collisions in hashed domains is that of this number of users.",
        asked_command(),
        sections,
    )


def _shares(table: list[PlanRow], options: SimulationOptions) -> Panel:
    grid = [options.users * factor / 100 for factor in (1, 3, 10, 30, 100, 300, 1000, 3000, 10_000)]
    lines = [
        Series(_name(row), grid, [100 * row["smallest_share"] * (row["users"] / n) ** 0.5 for n in grid])
        for row in table
    ]
    return Panel("The smallest share told apart", "users", "share of users, %", lines, True, True)
