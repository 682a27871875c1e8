"""`ldp-simulate sweep`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from ldp_server.answers.to_json import dump
from simulator.experiments import sweep
from simulator.experiments.options import (
    asked_command,
    print_table,
    processes_option,
    progress_bar,
    write_report,
)
from simulator.experiments.sweep import AXES
from simulator.report.page import Report, Section, Table, check_folder
from simulator.report.plots import Panel, Series, draw, have_plots

__all__ = ["command", "page"]

_MANY = 7


@click.command("sweep")
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False))
@processes_option
@click.option("--json", "as_json", is_flag=True, help="JSON on standard output, one object a line.")
@click.option("--report", type=click.Path(path_type=Path, file_okay=False), help="Write an HTML page to this folder.")
def command(file: Path, processes: int, as_json: bool, report: Path | None) -> None:
    """Simulate a grid of FILE.toml; stopped half-way, it goes on where it was."""
    if report is not None:
        check_folder(report)
    wanted = sweep.load(file)
    with progress_bar("points", len(wanted.points)) as advance:
        rows = sweep.run(wanted, processes=processes, progress=advance)
    typed = [{name: sweep.typed(name, text) for name, text in row.items()} for row in rows]
    if as_json:
        sys.stdout.writelines(dump(row) + "\n" for row in typed)
    else:
        columns = (*AXES, "chosen", "mse_over_optimum", "norm_sub_mse_over_optimum", "max_error", "coverage")
        print_table(str(wanted.output), typed, columns)
    write_report(page(typed), report)


def page(rows: list[dict[str, Any]]) -> Report:
    """Small multiples: a panel for each domain and population, a line for each mechanism and epsilon."""
    panels = [panel for name, label in _MEASURES for panel in _panels(rows, name, label)]
    plot = draw(panels, columns=2) if have_plots() and panels else None
    return Report(
        "A sweep",
        f"{len(rows)} points. The optimum is n 4e/(e-1)^2, the best variance known.",
        asked_command(),
        [Section("Results", "", plot, Table("sweep", rows))],
    )


_MEASURES = (("mse_over_optimum", "mean square error / optimum"), ("max_error", "largest error, users"))


def _panels(rows: list[dict[str, Any]], measure: str, label: str) -> list[Panel]:
    """One measure against the axis with the most values: users, else epsilon."""
    axis, other = ("users", "epsilon") if len({r["users"] for r in rows}) > 1 else ("epsilon", "users")
    panels = []
    for domain, population in dict.fromkeys((r["domain"], r["population"]) for r in rows):
        mine = [r for r in rows if (r["domain"], r["population"]) == (domain, population)]
        lines = dict.fromkeys((r["mechanism"], r[other]) for r in mine)
        series = []
        for mechanism, fixed in list(lines)[:_MANY]:
            points = [r for r in mine if (r["mechanism"], r[other]) == (mechanism, fixed)]
            points.sort(key=lambda r: float(r[axis]))
            x = [float(r[axis]) for r in points]
            name = f"{mechanism}, {other} {fixed:,}" if isinstance(fixed, int) else f"{mechanism}, {other} {fixed}"
            series.append(Series(name, x, [r[measure] for r in points]))
        more = f" (the first {_MANY} of {len(lines)} lines)" if len(lines) > _MANY else ""
        title = f"{domain or 'all'} elements, {population}{more}"
        panels.append(Panel(title, axis, label, series, log_x=True, log_y=measure == "max_error"))
    return panels
