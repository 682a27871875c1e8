"""`ldp-simulate heavy-hitters`."""

from __future__ import annotations

from pathlib import Path

import click

from ldp_client.errors import InvalidSpec
from ldp_client.protocol.domain import Domain, Strings
from simulator.experiments import heavy_hitters
from simulator.experiments.frequencies import MAX_RUNS, MAX_USERS
from simulator.experiments.options import (
    asked_command,
    common,
    emit,
    print_table,
    processes_option,
    progress_bar,
    write_report,
)
from simulator.population.naming import STYLES, parse_domain
from simulator.report.page import Report, Section, Table
from simulator.report.plots import Interval, Panel, Series, draw, draw_intervals, have_plots

__all__ = ["command", "multiples_of", "page", "show"]

_SHOWN = 40


def multiples_of(text: str) -> tuple[float, ...]:
    """Read 1.2,1.4,1.6; nothing for `none`."""
    if text.strip() in ("", "none"):
        return ()
    try:
        return tuple(float(part) for part in text.split(","))
    except ValueError:
        raise InvalidSpec("--plant lists multiples of D_opt, such as 1.2,1.4,1.6, or none") from None


def _domain(item_bytes: int, domain: str | None) -> Domain:
    return Strings(item_bytes) if domain is None else parse_domain(domain)


@click.command("heavy-hitters")
@click.option("--mechanism", type=click.Choice(heavy_hitters.MECHANISMS), default="auto", show_default=True)
@click.option("--decoder", help="Another than the mechanism's default.")
@click.option("--item-bytes", type=click.IntRange(1, 1024), default=8, show_default=True, help="The longest item.")
@click.option("--domain", metavar="D", help="Instead of --item-bytes: integers below this number of elements.")
@click.option("--users", type=click.IntRange(1, MAX_USERS), default=1_000_000, show_default=True)
@click.option("--epsilon", default="1", show_default=True)
@click.option("--plant", default="1.2,1.4,1.6", show_default=True, help="Items at these multiples of D_opt, or none.")
@click.option("--each", type=click.IntRange(1, 100), default=2, show_default=True, help="Items at every multiple.")
@click.option("--population", default=heavy_hitters.BACKGROUND, show_default=True, help="The background.")
@click.option("--strings", type=click.Choice(list(STYLES)), default="random", show_default=True)
@click.option("--runs", type=click.IntRange(1, MAX_RUNS), default=1, show_default=True)
@processes_option
@common
def command(
    mechanism: str,
    decoder: str | None,
    item_bytes: int,
    domain: str | None,
    users: int,
    epsilon: str,
    plant: str,
    each: int,
    population: str,
    strings: str,
    runs: int,
    processes: int,
    seed: int,
    as_json: bool,
    report: Path | None,
) -> None:
    """Which items of a domain far too large to list are popular: the list, with the truth beside it."""
    search = heavy_hitters.Search(
        users=users,
        domain=_domain(item_bytes, domain),
        epsilon=epsilon,
        plant=multiples_of(plant),
        each=each,
        population=population,
        mechanism=mechanism,
        decoder=decoder,
        style=strings,
        runs=runs,
        seed=seed,
        processes=processes,
    )
    with progress_bar("users", users * runs) as advance:
        found = heavy_hitters.run(search, advance)
    emit(found.shape, as_json, lambda: show(found, search))
    write_report(page(found, search), report)


def show(found: heavy_hitters.HittersRun, search: heavy_hitters.Search) -> None:
    """The list, and how complete it is."""
    shape = found.shape
    rows = [{**row, "item": next(iter(row["item"].values()))} for row in shape["list"][:_SHOWN]]
    seconds = shape["seconds"]
    recall = ", ".join(f"{m} x: {part:.0%}" for m, part in shape["recall"].items()) or "nothing was planted"
    caption = (
        f"{found.answer.guarantee[0]}\nPlanted at multiples of D_opt = {shape['d_opt']:,.0f} users, found: {recall}. "
        f"Listed {shape['listed']:g} a run, {shape['false_items']:g} of them held by nobody.\nCPU: "
        f"{seconds['randomize']:.2f} s to randomize, {seconds['accumulate']:.2f} s to count, "
        f"{seconds['decode']:.2f} s to decode; {shape['peak_rss_mb']:.0f} MB"
    )
    title = f"{shape['mechanism']}: {search.users:,} users, epsilon = {search.epsilon}"
    print_table(title, rows, ("item", "truth", "multiple", "estimate", "low", "high"), caption)


def page(found: heavy_hitters.HittersRun, search: heavy_hitters.Search) -> Report:
    """The report."""
    shape = found.shape
    rows = [{**row, "item": next(iter(row["item"].values()))} for row in shape["list"]]
    intervals = [Interval(str(r["item"])[:24], r["truth"], r["estimate"], r["low"], r["high"]) for r in rows[:_SHOWN]]
    plots = have_plots()
    title = f"{search.users:,} users, epsilon = {search.epsilon}"
    listed = None
    if plots and intervals:
        listed = draw_intervals(title, "users who hold the item", intervals, found.answer.least_estimate)
    multiples = [float(m) for m in shape["recall"]]
    recall = None
    if plots and multiples:
        series = [Series("measured", multiples, [100 * part for part in shape["recall"].values()])]
        panel = Panel(
            "HittersRun",
            "multiple of D_opt",
            "planted items listed, %",
            series,
            y_from=0,
            y_to=105,
            level=("95%", 95.0),
        )
        recall = draw([panel])
    summary = [{"what": key, "value": str(value)} for key, value in shape.items() if key != "list"]
    table = [{"multiple": m, "recall": part} for m, part in shape["recall"].items()]
    return Report(
        "What would be learned: heavy hitters",
        f"{found.answer.guarantee[0]} Population {search.population}; {shape['mechanism']} with {shape['parameters']}.",
        asked_command(),
        [
            Section("The list", "The first run, with the truth as crosses.", listed, Table("list", rows)),
            Section("Recall of planted items", f"Over {search.runs} runs.", recall, Table("recall", table)),
            Section("Summary", "", None, Table("summary", summary)),
        ],
    )
