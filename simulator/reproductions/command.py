"""`ldp-simulate reproduce`."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from ldp_client.errors import InvalidSpec
from simulator.report.canvas import have_plots
from simulator.report.page import Table, check_folder, write_whole
from simulator.report.plots import draw
from simulator.report.terminal import print_table, progress_bar
from simulator.reproductions.curves import PAGES

__all__ = ["command"]


@click.command("reproduce")
@click.argument("page", type=click.Choice(list(PAGES)))
@click.option("--runs", type=click.IntRange(1, 1000), help="Of every point. [default: as in docs/]")
@click.option("--seed", type=click.IntRange(0, (1 << 32) - 1), default=1, show_default=True)
@click.option(
    "--out",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path("docs/plots"),
    show_default=True,
    help="Where PAGE.svg and PAGE.csv go.",
)
def command(page: str, runs: int | None, seed: int, out: Path) -> None:
    """Measure what the papers say: the plots and tables of the pages in docs/."""
    if not have_plots():
        raise InvalidSpec("the plots need matplotlib: pip install 'hearsay[plots]'")
    check_folder(out)
    make, steps = PAGES[page]
    with progress_bar(page, steps) as advance:
        found = make(seed=seed, progress=advance) if runs is None else make(runs=runs, seed=seed, progress=advance)
    table = Table(page, found.rows)
    write_whole(out / f"{page}.csv", table.csv())
    write_whole(out / f"{page}.svg", draw(found.panels, height=4.3) + "\n")
    print_table(page, found.rows)
    sys.stderr.write(f"wrote {out / page}.svg and .csv\n")
