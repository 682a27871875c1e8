"""The command `ldp-simulate frequencies`: its options, table and page."""

from __future__ import annotations

import click

from simulator.experiments import frequencies
from simulator.experiments.options import SimulationOptions, output_options, simulation_options
from simulator.report.item_plots import Interval, draw_intervals
from simulator.report.output import OutputOptions, asked_command
from simulator.report.page import Report, Section, Table
from simulator.report.terminal import print_table, progress_bar
from simulator.report.values import independence_text, pairs, summary, with_item_text

__all__ = ["command", "page", "show"]

_PRINTED = 12


@click.command("frequencies")
@simulation_options(
    "users",
    "domain",
    "epsilon",
    "population",
    "mechanism",
    "parameters",
    "runs",
    "processes",
    "seed",
    "copies",
    domain={
        "default": None,
        "help": "Domain: a number of elements (`none` is one), or strings:L for strings of up to L bytes. "
        "[default: the population's items]",
    },
)
@output_options
def command(options: SimulationOptions, output: OutputOptions) -> None:
    """Simulate estimates of how many users hold each item, and show their errors and their cost."""
    with progress_bar("users", options.users * options.runs) as advance:
        found = frequencies.run(options, advance)
    output.deliver([found.shape], lambda: show(found), lambda: page(found, options))


def _title(found: frequencies.Frequencies) -> str:
    shape = found.shape
    return f"{shape['users']:,} users, {shape['domain']:,} elements, epsilon = {shape['epsilon']}"


def show(found: frequencies.Frequencies) -> None:
    """Print the most popular items, and the errors over the whole domain."""
    shape = found.shape
    seconds = shape["seconds"]
    better = shape["norm_sub_mse_over_optimum"]
    consistent = "" if better is None else f" (after making the estimates consistent: {better:.3f})"
    caption = (
        f"Mechanism: {shape['mechanism']} {pairs(shape['parameters'])}. A report has {shape['report_bits']} bits.\n"
        f"The mean square error is {shape['mse_over_optimum']:.3f} times the optimum{consistent}.\n"
        f"{shape['coverage']:.1%} of the 95% intervals contain the truth. "
        f"The largest error is {shape['max_error']:,.0f} users.\n"
        f"No one-round protocol has a largest error below {shape['lower_bound']:,.0f} users times some constant.\n"
        f"{independence_text(found.independence)}"
        f"CPU seconds: {seconds['randomize']:.3f} to randomize, {seconds['aggregate']:.3f} to count, "
        f"{seconds['estimate']:.3f} to estimate. Memory: {shape['peak_rss_mb']:.0f} MB."
    )
    rows = [with_item_text(row) for row in found.top[:_PRINTED]]
    print_table(_title(found), rows, ("item", "truth", "estimate", "low", "high"), caption)


def page(found: frequencies.Frequencies, options: SimulationOptions) -> Report:
    """Return the HTML page of `--report`, with its plots and tables."""
    shape = found.shape
    rows = [with_item_text(row) for row in found.top]
    intervals = [Interval(r["item"], r["truth"], r["estimate"], r["low"], r["high"]) for r in rows]
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
    return Report(
        "What would be learned: frequencies",
        f"Population: {options.population}. Mechanism: {shape['mechanism']} {pairs(shape['parameters'])}. All "
        f"estimates come from randomized reports of {shape['report_bits']} bits.",
        asked_command(),
        [
            Section(
                "The most popular items",
                f"The first run. The standard error of an item that nobody holds is {found.standard_error:,.0f} users.",
                lambda: draw_intervals(_title(found), "users who hold the item", intervals),
                Table("top", rows),
            ),
            Section(
                "All elements, run by run",
                "Mean square errors are divided by the optimum, n 4e/(e-1)^2.",
                None,
                Table("runs", runs),
            ),
            Section("Summary", "", None, Table("summary", summary(shape))),
        ],
    )
