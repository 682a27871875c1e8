"""The command `ldp-simulate sweep`: its options, table and page."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from simulator.experiments import sweep
from simulator.experiments.options import SimulationOptions, output_options, simulation_options
from simulator.experiments.sweep import AXES
from simulator.report.output import OutputOptions, asked_command
from simulator.report.page import Report, Section, Table
from simulator.report.plots import Panel, Series, draw
from simulator.report.terminal import print_table, progress_bar

__all__ = ["command", "page", "show"]

_LINES = 7
"""How many lines a panel shows."""
_RESULTS = ("chosen", "mse_over_optimum", "norm_sub_mse_over_optimum", "max_error", "coverage")
_MEASURES = (("mse_over_optimum", "mean square error / optimum"), ("max_error", "largest error, users"))

Row = dict[str, Any]


@click.command("sweep")
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False))
@simulation_options("processes")
@output_options
def command(options: SimulationOptions, output: OutputOptions, file: Path) -> None:
    """Simulate every point of the grid in FILE.toml. A sweep that was stopped goes on where it was."""
    grid = sweep.load(file)
    with progress_bar("points", len(grid.points)) as advance:
        found = sweep.run(grid, processes=options.processes, progress=advance)
    rows = [{name: sweep.typed(name, text) for name, text in row.items()} for row in found]
    output.deliver(rows, lambda: show(rows, grid.output), lambda: page(rows))


def show(rows: list[Row], file: Path) -> None:
    """Print all points; the axes that vary come first, and name the rows."""
    varied = [axis for axis in AXES if len({row[axis] for row in rows}) > 1]
    columns = [*varied, *(axis for axis in AXES if axis not in varied), *_RESULTS]
    print_table(str(file), rows, columns, keys=max(1, len(varied)))


def page(rows: list[Row]) -> Report:
    """Return the report: a panel for each domain and population, a line for each mechanism and epsilon."""
    panels = [panel for name, label in _MEASURES for panel in _panels(rows, name, label)]
    table = [{**row, "parameters": json.loads(row["parameters"])} for row in rows]
    return Report(
        "A sweep",
        f"{len(rows)} points. The optimum is n 4e/(e-1)^2, the best variance known.",
        asked_command(),
        [Section("Results", "", (lambda: draw(panels)) if panels else None, Table("sweep", table))],
    )


def _panels(rows: list[Row], measure: str, label: str) -> list[Panel]:
    """Plot one measure against users or, where all points have the same number of users, against epsilon."""
    axis, other = ("users", "epsilon") if len({r["users"] for r in rows}) > 1 else ("epsilon", "users")
    panels = []
    for domain, population in dict.fromkeys((r["domain"], r["population"]) for r in rows):
        mine = [r for r in rows if (r["domain"], r["population"]) == (domain, population)]
        lines = list(dict.fromkeys((r["mechanism"], r[other]) for r in mine))
        series = []
        for mechanism, fixed in lines[:_LINES]:
            points = [r for r in mine if (r["mechanism"], r[other]) == (mechanism, fixed)]
            points.sort(key=lambda r: float(r[axis]))
            name = f"{mechanism}, {other} {fixed:,}" if isinstance(fixed, int) else f"{mechanism}, {other} {fixed}"
            series.append(Series(name, [float(r[axis]) for r in points], [r[measure] for r in points]))
        more = f" (the first {_LINES} of {len(lines)} lines)" if len(lines) > _LINES else ""
        title = f"{domain or 'all'} elements, {population}{more}"
        panels.append(Panel(title, axis, label, series, log_x=True, log_y=measure == "max_error"))
    return panels
