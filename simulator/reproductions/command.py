"""`ldp-simulate reproduce`: measures what the papers claim, and makes the plots and tables of docs/.

error       the error of the expander sketch and of an exhaustive scan, against n, epsilon, |X| and beta
costs       server time and memory, user time and report bits, with fitted exponents
responses   one-bit reports against the best ones, over epsilon
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import click

from ldp_client.errors import InvalidSpec
from simulator.report.canvas import have_plots
from simulator.report.page import Table, check_folder, write_whole
from simulator.report.plots import draw
from simulator.report.terminal import print_table, progress_bar
from simulator.reproductions.costs import costs
from simulator.reproductions.error import error
from simulator.reproductions.reproduction import Reproduction
from simulator.reproductions.responses import responses

__all__ = ["PAGES", "command"]

PAGES: dict[str, tuple[Callable[..., Reproduction], int]] = {
    "error": (error, 14),
    "costs": (costs, 8),
    "responses": (responses, 11),
}
"""Each page's function, and its number of steps."""


@click.command("reproduce")
@click.argument("page", type=click.Choice(list(PAGES)))
@click.option("--runs", type=click.IntRange(1, 1000), help="Number of runs of each point. [default: that of docs/]")
@click.option("--seed", type=click.IntRange(0, (1 << 32) - 1), default=1, show_default=True, help="Seed of all coins.")
@click.option(
    "--out",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path("docs/plots"),
    show_default=True,
    help="Folder for PAGE.svg and PAGE.csv.",
)
def command(page: str, runs: int | None, seed: int, out: Path) -> None:
    """Measure what the papers claim, and make the plots and tables of docs/."""
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
