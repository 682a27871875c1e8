"""The command `ldp-simulate heavy-hitters`: its options, table and page."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypedDict, Unpack

import click

from ldp_client.errors import InvalidSpec
from ldp_client.protocol.domain import Strings
from ldp_server.heavy_hitters import BETA
from simulator.experiments import heavy_hitters
from simulator.experiments.heavy_hitters import HittersRun, Search
from simulator.experiments.options import SimulationOptions, output_options, simulation_options
from simulator.population.naming import STYLES, parse_domain
from simulator.report.item_plots import Interval, draw_intervals
from simulator.report.output import OutputOptions, asked_command
from simulator.report.page import Report, Section, Table
from simulator.report.plots import Panel, Series, draw
from simulator.report.terminal import print_table, progress_bar
from simulator.report.values import independence_text, pairs, summary, with_item_text

__all__ = ["command", "multiples_of", "page", "show"]

_SHOWN = 40


def multiples_of(text: str) -> tuple[float, ...]:
    """Read 1.2,1.4,1.6; `none` gives an empty tuple."""
    if text.strip() in ("", "none"):
        return ()
    try:
        return tuple(float(part) for part in text.split(","))
    except ValueError:
        raise InvalidSpec("--plant lists multiples of D_opt, such as 1.2,1.4,1.6, or none") from None


class _Asked(TypedDict):
    """The options that are fields of `Search`."""

    each: int
    decoder: str | None
    style: str
    beta: float
    dictionary: int
    exploratory: bool


@click.command("heavy-hitters")
@simulation_options(
    "users",
    "domain",
    "epsilon",
    "population",
    "mechanism",
    "runs",
    "processes",
    "seed",
    "copies",
    users={"default": 1_000_000},
    domain={
        "default": None,
        "help": "Domain: a number of elements for integers, or strings:L. [default: strings of --item-bytes]",
    },
    population={"default": heavy_hitters.BACKGROUND, "help": "Who holds which item, besides the planted ones."},
    mechanism={"type": click.Choice(heavy_hitters.MECHANISMS)},
)
@click.option(
    "--item-bytes", type=click.IntRange(1, 1024), default=8, show_default=True, help="Bytes of the longest item."
)
@click.option("--decoder", help="Decoder, see docs/heavy-hitters.md. [default: the mechanism's own]")
@click.option(
    "--plant",
    default="1.2,1.4,1.6",
    show_default=True,
    help="Plant items at these multiples of D_opt, the error of an ideal scan of the domain, or none.",
)
@click.option(
    "--each", type=click.IntRange(1, 100), default=2, show_default=True, help="Planted items at each multiple."
)
@click.option("--beta", type=float, default=BETA, show_default=True, help="Failure probability of the list.")
@click.option(
    "--strings",
    "style",
    type=click.Choice(list(STYLES)),
    default="random",
    show_default=True,
    help="What string items look like.",
)
@click.option(
    "--dictionary",
    type=click.IntRange(0),
    default=0,
    show_default=True,
    help="Give the decoder so many candidates: the planted items, and others that nobody holds.",
)
@click.option("--exploratory", is_flag=True, help="A longer list: on average up to 5% of its items are held by nobody.")
@output_options
def command(
    options: SimulationOptions, output: OutputOptions, item_bytes: int, plant: str, **asked: Unpack[_Asked]
) -> None:
    """Simulate heavy hitters in a domain too large to list, and show the list with the truth beside it."""
    domain = Strings(item_bytes) if options.domain is None else parse_domain(options.domain)
    search = Search(options, domain, multiples_of(plant), **asked)
    with progress_bar("users", options.users * options.runs) as advance:
        found = heavy_hitters.run(search, advance)
    output.deliver([found.shape], lambda: show(found, search), lambda: page(found, search))


def show(found: HittersRun, search: Search) -> None:
    """Print the list, and which share of the planted items it contains."""
    shape = found.shape
    seconds = shape["seconds"]
    recall = ", ".join(f"{part:.0%} at {multiple}" for multiple, part in shape["recall"].items())
    planted = f"Planted items that were found, by multiple of D_opt: {recall}." if recall else "No items were planted."
    told = "\n".join(found.answer.guarantee)
    caption = (
        f"{independence_text(found.answer.independence)}{told}\nD_opt = {shape['d_opt']:,.0f} users. {planted}\n"
        f"Items listed per run: {shape['listed']:g}. Listed items that nobody holds, per run: "
        f"{shape['false_items']:g}.\nCPU seconds: {seconds['randomize']:.2f} to randomize, "
        f"{seconds['accumulate']:.2f} to count, {seconds['decode']:.2f} to decode. "
        f"Memory: {shape['peak_rss_mb']:.0f} MB."
    )
    options = search.options
    title = f"{shape['mechanism']}: {options.users:,} users, epsilon = {options.epsilon}"
    rows = [with_item_text(row) for row in shape["list"][:_SHOWN]]
    print_table(title, rows, ("item", "truth", "multiple", "estimate", "low", "high"), caption)


def page(found: HittersRun, search: Search) -> Report:
    """Return the HTML page of `--report`, with its plots and tables."""
    shape, options = found.shape, search.options
    rows = [with_item_text(row) for row in shape["list"]]
    recall = [{"multiple": multiple, "recall": part} for multiple, part in shape["recall"].items()]
    totals = {name: value for name, value in shape.items() if name not in ("list", "recall")}
    return Report(
        "What would be learned: heavy hitters",
        f"{' '.join(found.answer.guarantee)} Population: {options.population}. Mechanism: {shape['mechanism']} "
        f"{pairs(shape['parameters'])}.",
        asked_command(),
        [
            Section("The list", "The first run. Crosses are the truth.", _listed(found, search), Table("list", rows)),
            Section("Recall of planted items", f"Over {options.runs} runs.", _recall(found), Table("recall", recall)),
            Section("Summary", "", None, Table("summary", summary(totals))),
        ],
    )


def _listed(found: HittersRun, search: Search) -> Callable[[], str] | None:
    rows = [with_item_text(row) for row in found.shape["list"][:_SHOWN]]
    intervals = [Interval(r["item"], r["truth"], r["estimate"], r["low"], r["high"]) for r in rows]
    title = f"{search.options.users:,} users, epsilon = {search.options.epsilon}"
    if not intervals:
        return None
    return lambda: draw_intervals(title, "users who hold the item", intervals, found.answer.least_estimate)


def _recall(found: HittersRun) -> Callable[[], str] | None:
    recall = found.shape["recall"]
    if not recall:
        return None
    series = [Series("measured", [float(m) for m in recall], [100 * part for part in recall.values()])]
    level = ("95%", 95.0)
    panel = Panel("Found", "multiple of D_opt", "planted items listed, %", series, y_from=0, y_to=105, level=level)
    return lambda: draw([panel])
