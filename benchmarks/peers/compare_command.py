"""`python -m benchmarks compare`: options, table and page of the comparison with other libraries."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path

import click

from benchmarks.peers import compare
from benchmarks.peers.compare import CompareRow
from ldp_client.errors import LdpError
from simulator.experiments.options import SimulationOptions, output_options, simulation_options
from simulator.report.item_plots import Bar, draw_bars
from simulator.report.output import OutputOptions
from simulator.report.page import Report, Section, Table
from simulator.report.terminal import print_table, progress_bar

__all__ = ["command", "main", "page"]

_ROWS = 8
"""Mechanisms of all libraries."""
_OURS = 3
_COLUMNS = (
    "library",
    "mechanism",
    "users",
    "mse_over_optimum",
    "consistent_mse_over_optimum",
    "max_error",
    "report_bytes",
    "client_per_second",
    "aggregate_per_second",
    "estimate_ms",
    "remark",
)
_CAPTION = (
    "Rates are users per CPU second of one thread. Slow mechanisms had fewer users. The bytes of other libraries are "
    "those of a pickle.\nmulti-freq-ldpy only gives clipped and rescaled estimates: compare its error with ours of "
    "consistent estimates."
)


@click.command("compare")
@simulation_options(
    "users",
    "domain",
    "epsilon",
    "population",
    "seed",
    users={"type": click.IntRange(1, compare.MAX_USERS)},
    domain={"help": "Number of elements of the domain; `none` is one."},
)
@click.option(
    "--environment",
    type=click.Path(path_type=Path, file_okay=False),
    help="Keep the other libraries' Python environment in this folder. [default: a temporary one]",
)
@click.option("--no-peers", is_flag=True, help="Measure our mechanisms only; nothing is installed.")
@output_options
def command(options: SimulationOptions, output: OutputOptions, environment: Path | None, no_peers: bool) -> None:
    """Our mechanisms beside pure-ldp and multi-freq-ldpy, on the same users.

    The other libraries are installed from the network, in a Python environment of their own.
    """
    with progress_bar("mechanisms", _OURS if no_peers else _ROWS) as advance:
        rows = compare.run(options, environment, peers=not no_peers, progress=advance)
    title = f"{options.users:,} users, {options.domain} elements, epsilon = {options.epsilon}"
    output.deliver(rows, lambda: print_table(title, rows, _COLUMNS, _CAPTION, keys=2), lambda: page(rows, options))


def main(arguments: list[str]) -> int:
    """Run the command; an error is one line on standard error."""
    try:
        command.main(arguments, prog_name="python -m benchmarks compare", standalone_mode=False)
    except click.ClickException as error:
        sys.stderr.write(f"compare: {error.format_message()}\n")
        return 2
    except LdpError as error:
        sys.stderr.write(f"compare: {error}\n")
        return 2
    return 0


def page(rows: list[CompareRow], options: SimulationOptions) -> Report:
    """Return the HTML page of `--report`, with its plots and tables."""
    plots = []
    for key, label in (
        ("mse_over_optimum", "mean square error / optimum (log)"),
        ("client_per_second", "client: reports per CPU second (log)"),
        ("report_bytes", "bytes of a report (log)"),
    ):
        named = [(f"{row['library']} {row['mechanism']}", row.get(key)) for row in rows]
        plots.append((label, [Bar(name, float(str(value))) for name, value in named if value is not None]))
    return Report(
        "Beside other libraries",
        f"{options.users:,} users, {options.domain} elements, epsilon = {options.epsilon}, population "
        f"{options.population}. {_CAPTION}",
        shlex.join(["python", "-m", "benchmarks", *sys.argv[1:]]),
        [Section("Error, speed, size", "", lambda: draw_bars(plots), Table("compare", rows))],
    )
