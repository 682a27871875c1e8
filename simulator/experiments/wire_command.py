"""`ldp-simulate wire`."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from ldp_client.errors import InvalidSpec
from simulator.experiments import wire
from simulator.experiments.frequencies import MECHANISMS, SimulationOptions
from simulator.experiments.options import (
    asked_command,
    common,
    emit,
    print_table,
    processes_option,
    progress_bar,
    write_report,
)
from simulator.report.page import Report, Section, Table
from simulator.report.plots import Interval, draw_intervals, have_plots
from simulator.wire.faults import Faults

__all__ = ["command", "page", "show"]

BROKEN = 5


@click.command("wire")
@click.option("--users", type=click.IntRange(1, 100_000_000), default=100_000, show_default=True)
@click.option("--batch", type=click.IntRange(1, 250_000), default=1000, show_default=True, help="Reports a batch.")
@click.option("--server", metavar="HOST:PORT", help="A server that runs already. [default: one of our own]")
@click.option("--token-file", type=click.Path(path_type=Path, dir_okay=False), help="Operator's token for --server.")
@click.option("--faults", default="", metavar="LIST", help="drop=0.01,duplicate=0.02,late=0.01,kill-server=30s")
@click.option("--mechanism", type=click.Choice(MECHANISMS), default="auto", show_default=True)
@click.option("--domain", default="1024", show_default=True)
@click.option("--epsilon", default="1", show_default=True)
@click.option("--population", default="zipf:1.1", show_default=True)
@processes_option
@common
def command(
    users: int,
    batch: int,
    server: str | None,
    token_file: Path | None,
    faults: str,
    mechanism: str,
    domain: str,
    epsilon: str,
    population: str,
    processes: int,
    seed: int,
    as_json: bool,
    report: Path | None,
) -> int:
    """Clients over real gRPC to a real server process, with faults; ends by checking that all counted exactly once."""
    wanted = SimulationOptions(users, epsilon, domain, population, mechanism, seed=seed, processes=processes)
    wrong = Faults.parse(faults)
    if (server is None) != (token_file is None):
        raise InvalidSpec("--server and --token-file (an operator's token) belong together")
    remote = wire.Remote(server, token_file) if server is not None and token_file is not None else None
    with progress_bar("reports", users) as advance:
        found = wire.run(wanted, wrong, batch=batch, remote=remote, progress=advance)
    if wrong.kill_after is not None and not found.shape["restarts"]:
        sys.stderr.write("the run ended before the server could be killed: give kill-server a shorter time\n")
    emit(found.shape, as_json, lambda: show(found))
    write_report(page(found, faults), report)
    return 0 if found.shape["exactly_once"] and found.same_estimates else BROKEN


def show(found: wire.WireResult) -> None:
    """The server's answers beside the truth, and the count."""
    shape = found.shape
    rejected = ", ".join(f"{number:,} {reason}" for reason, number in shape["refused"].items()) or "none"
    verdict = "every one counted exactly once" if shape["exactly_once"] else "NOT exactly once"
    same = "the very numbers" if found.same_estimates else "NOT the numbers"
    caption = (
        f"{shape['reports_sent']:,} reports sent inside the window, {shape['reports_counted']:,} counted: {verdict}.\n"
        f"The server's estimates are {same} that an oracle here gives for what was sent; "
        f"{found.errors.coverage:.1%} of its intervals hold the truth.\n{shape['duplicates']:,} repeated "
        f"batches not counted again; batches refused: {rejected}; the server was killed and restarted "
        f"{shape['restarts']} times.\n{shape['seconds']:.1f} s, {shape['reports_per_second']:,.0f} reports a second, "
        "all acknowledged as durable"
    )
    print_table("The server's answers", found.top, None, caption)


def page(found: wire.WireResult, faults: str) -> Report:
    """The report."""
    rows = found.top
    intervals = [Interval(str(r["item"])[:24], r["truth"], r["estimate"], r["low"], r["high"]) for r in rows]
    plot = draw_intervals("The server's answers", "users who hold the item", intervals) if have_plots() else None
    summary = [{"what": key, "value": str(value)} for key, value in found.shape.items()]
    summary.append({"what": "estimates equal to an oracle's over what was sent", "value": str(found.same_estimates)})
    return Report(
        "A crowd over the wire",
        f"{found.shape['users']:,} users, real gRPC, a real server process on the embedded store. "
        f"Faults: {faults or 'none'}.",
        asked_command(),
        [
            Section("Counted exactly once?", "", None, Table("wire", summary)),
            Section("Answers and truth", "", plot, Table("answers", rows)),
        ],
    )
