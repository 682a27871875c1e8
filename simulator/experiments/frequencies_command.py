"""`ldp-simulate frequencies`."""

from __future__ import annotations

from pathlib import Path

import click

from simulator.experiments import frequencies
from simulator.experiments.options import (
    asked_command,
    common,
    emit,
    parameters_of,
    print_table,
    processes_option,
    progress_bar,
    write_report,
)
from simulator.report.page import Report, Section, Table
from simulator.report.plots import Interval, draw_intervals, have_plots

__all__ = ["command", "page", "show"]


@click.command("frequencies")
@click.option("--mechanism", type=click.Choice(frequencies.MECHANISMS), default="auto", show_default=True)
@click.option("--parameter", multiple=True, metavar="NAME=NUMBER", help="Of the mechanism, instead of the chooser's.")
@click.option("--domain", metavar="D", help="Elements (`none` is one), or strings:L. [default: the population's items]")
@click.option("--users", type=click.IntRange(1, frequencies.MAX_USERS), default=100_000, show_default=True)
@click.option("--epsilon", default="1", show_default=True)
@click.option("--population", default="zipf:1.1", show_default=True, help="Who holds what; see docs/simulator.md.")
@click.option("--runs", type=click.IntRange(1, frequencies.MAX_RUNS), default=1, show_default=True)
@processes_option
@common
def command(
    mechanism: str,
    parameter: tuple[str, ...],
    domain: str | None,
    users: int,
    epsilon: str,
    population: str,
    runs: int,
    processes: int,
    seed: int,
    as_json: bool,
    report: Path | None,
) -> None:
    """How many users hold each item: estimates, their errors and their cost, beside the truth."""
    if domain is None and population.partition(":")[0] in ("zipf", "uniform", "geometric"):
        domain = "1024"
    wanted = frequencies.SimulationOptions(
        users, epsilon, domain, population, mechanism, parameters_of(parameter), runs, seed, processes
    )
    with progress_bar("users", users * runs) as advance:
        found = frequencies.run(wanted, advance)
    emit(found.shape, as_json, lambda: show(found))
    write_report(page(found, population), report)


def show(found: frequencies.Frequencies) -> None:
    """The most popular items, and what the whole domain says."""
    shape = found.shape
    rows = [{**row, "item": next(iter(row["item"].values()))} for row in found.top[:12]]
    seconds = shape["seconds"]
    better = shape["norm_sub_mse_over_optimum"]
    consistent = "" if better is None else f"; made consistent: {better:.3f}"
    caption = (
        f"{shape['mechanism']} {shape['parameters']}: a report has {shape['report_bits']} bits. Mean square error "
        f"{shape['mse_over_optimum']:.3f} times the optimum{consistent}.\n{shape['coverage']:.1%} of the intervals "
        f"hold the truth; the largest error is {shape['max_error']:,.0f} users (shape of the lower bound: "
        f"{shape['lower_bound']:,.0f}).\nCPU: {seconds['randomize']:.3f} s to randomize, {seconds['aggregate']:.3f} s "
        f"to count, {seconds['estimate']:.3f} s to estimate; {shape['peak_rss_mb']:.0f} MB"
    )
    title = f"{shape['users']:,} users, {shape['domain']:,} elements, epsilon = {shape['epsilon']}"
    print_table(title, rows, ("item", "truth", "estimate", "low", "high"), caption)


def page(found: frequencies.Frequencies, population: str) -> Report:
    """The report."""
    shape = found.shape
    rows = [{**row, "item": next(iter(row["item"].values()))} for row in found.top]
    intervals = [Interval(str(r["item"])[:24], r["truth"], r["estimate"], r["low"], r["high"]) for r in rows]
    title = f"{shape['users']:,} users, {shape['domain']:,} elements, epsilon = {shape['epsilon']}"
    plot = draw_intervals(title, "users who hold the item", intervals) if have_plots() else None
    runs = [
        {
            "run": number,
            "mse_over_optimum": e.mse_over_optimum,
            "norm_sub_mse_over_optimum": e.norm_sub_mse_over_optimum,
            "max_error": e.max_error,
            "coverage": e.coverage,
        }
        for number, e in enumerate(found.errors, 1)
    ]
    summary = [{"what": key, "value": str(value)} for key, value in shape.items()]
    return Report(
        "What would be learned: frequencies",
        f"Population {population}; {shape['mechanism']} with {shape['parameters']}. Nobody's item left a device: each "
        f"estimate below comes from randomized reports of {shape['report_bits']} bits.",
        asked_command(),
        [
            Section(
                "The most popular items",
                f"The first run. The standard error of an item that nobody holds is {found.standard_error:,.0f} users.",
                plot,
                Table("top", rows),
            ),
            Section(
                "All elements, run by run", "Errors in units of the optimum n 4e/(e-1)^2.", None, Table("runs", runs)
            ),
            Section("Summary", "", None, Table("summary", summary)),
        ],
    )
