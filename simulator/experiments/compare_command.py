"""`ldp-simulate compare`."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from ldp_server.answers.to_json import dump
from simulator.experiments import compare
from simulator.experiments.frequencies import SimulationOptions
from simulator.experiments.options import asked_command, common, print_table, progress_bar, write_report
from simulator.report.page import Report, Section, Table
from simulator.report.plots import Bar, draw_bars, have_plots
from simulator.shapes import CompareRow

__all__ = ["command", "page"]

_ROWS = 8


@click.command("compare")
@click.option("--users", type=click.IntRange(1, compare.MAX_USERS), default=100_000, show_default=True)
@click.option("--domain", default="1024", show_default=True)
@click.option("--epsilon", default="1", show_default=True)
@click.option("--population", default="zipf:1.1", show_default=True)
@click.option(
    "--environment",
    type=click.Path(path_type=Path, file_okay=False),
    help="Keep the peers' environment in this folder. [default: a temporary one]",
)
@click.option("--no-peers", is_flag=True, help="Ours alone; nothing is installed.")
@common
def command(
    users: int,
    domain: str,
    epsilon: str,
    population: str,
    environment: Path | None,
    no_peers: bool,
    seed: int,
    as_json: bool,
    report: Path | None,
) -> None:
    """Our mechanisms beside pure-ldp and multi-freq-ldpy (installed apart), on the same users."""
    wanted = SimulationOptions(users, epsilon, domain, population, seed=seed)
    with progress_bar("mechanisms", 3 if no_peers else _ROWS) as advance:
        rows = compare.run(wanted, environment, peers=not no_peers, progress=advance)
    if as_json:
        sys.stdout.writelines(dump(row) + "\n" for row in rows)
    else:
        print_table(f"{users:,} users, {domain} elements, epsilon = {epsilon}", rows, tuple(_COLUMNS), _CAPTION)
    write_report(page(rows, wanted), report)


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
    "rates are users per CPU second of one thread; slow mechanisms had fewer users; the peers' bytes are a pickle's.\n"
    "multi-freq-ldpy gives clipped and rescaled estimates only: its error stands beside ours of consistent estimates"
)


def page(rows: list[CompareRow], wanted: SimulationOptions) -> Report:
    """The report."""
    names = [f"{row['library']} {row['mechanism']}" for row in rows]
    plots = []
    for key, label in (
        ("mse_over_optimum", "mean square error / optimum (log)"),
        ("client_per_second", "client: reports per CPU second (log)"),
        ("report_bytes", "bytes of a report (log)"),
    ):
        values = [row.get(key) for row in rows]
        bars = [Bar(n, float(str(v))) for n, v in zip(names, values, strict=True) if v is not None]
        plots.append((label, bars))
    return Report(
        "Beside other libraries",
        f"{wanted.users:,} users, {wanted.domain} elements, epsilon = {wanted.epsilon}, population "
        f"{wanted.population}. {_CAPTION}.",
        asked_command(),
        [Section("Error, speed, size", "", draw_bars(plots) if have_plots() else None, Table("compare", rows))],
    )
