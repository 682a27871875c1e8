"""`ldp-simulate reproduce`: measures what the papers claim, and makes the plots and tables of docs/.

error       the error of the expander sketch and of an exhaustive scan, against n, epsilon, |X| and beta
costs       server time and memory, user time and report bits, with fitted exponents
responses   one-bit reports against the best ones, over epsilon
theorem     Theorem 3.13 beside Theorem 3.3: the error against beta, down to 10^-4
table       Table 1: time, memory, communication, public randomness and error, ours beside the rival
groups      Theorem 4.2: the privacy loss of k people together
composed    Theorem 5.1: k randomized responses as one pure mechanism
pure        Theorem 6.1: GenProt makes an approximate protocol pure
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import click

from ldp_client.errors import InvalidSpec
from ldp_server.tables.plots.canvas import have_plots
from simulator.report.page import Table, check_folder, write_whole
from simulator.report.plots import draw
from simulator.report.terminal import print_table, progress_bar
from simulator.reproductions.composed import composed
from simulator.reproductions.costs import costs
from simulator.reproductions.error import error
from simulator.reproductions.groups import groups
from simulator.reproductions.pure import pure
from simulator.reproductions.reproduction import Reproduction
from simulator.reproductions.responses import responses
from simulator.reproductions.table import table
from simulator.reproductions.theorem.page import theorem

__all__ = ["PAGES", "command"]

PAGES: dict[str, tuple[Callable[..., Reproduction], int]] = {
    "error": (error, 9),
    "costs": (costs, 7),
    "responses": (responses, 11),
    "theorem": (theorem, 13),
    "table": (table, 9),
    "groups": (groups, 7),
    "composed": (composed, 6),
    "pure": (pure, 6),
}
"""Each page's function, and its number of steps in the short form."""


@click.command("reproduce")
@click.argument("page", type=click.Choice(list(PAGES)))
@click.option("--runs", type=click.IntRange(1, 1000), help="Number of runs of each point. [default: that of docs/]")
@click.option("--full", is_flag=True, help="More points and more runs: hours instead of minutes.")
@click.option("--seed", type=click.IntRange(0, (1 << 32) - 1), default=1, show_default=True, help="Seed of all coins.")
@click.option(
    "--out",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path("docs/plots"),
    show_default=True,
    help="Folder for PAGE.svg and PAGE.csv.",
)
def command(page: str, runs: int | None, full: bool, seed: int, out: Path) -> None:
    """Measure what the papers claim, and make the plots and tables of docs/."""
    if not have_plots():
        raise InvalidSpec("the plots need matplotlib: pip install 'hearsay[plots]'")
    check_folder(out)
    make, steps = PAGES[page]
    with progress_bar(page, steps) as advance:
        found = make(runs=runs, seed=seed, progress=advance, full=full)
    write_whole(out / f"{page}.csv", Table(page, found.rows).csv())
    write_whole(out / f"{page}.svg", draw(found.panels, height=4.3) + "\n")
    print_table(page, found.rows)
    sys.stderr.write(f"wrote {out / page}.svg and .csv\n")
