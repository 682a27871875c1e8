"""The command `ldp-simulate wire`: its options, table and page."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from ldp_client.errors import InvalidSpec
from ldp_server.answers.to_json import item_json
from simulator.experiments import wire
from simulator.experiments.options import SimulationOptions, output_options, simulation_options
from simulator.report.item_plots import Interval, draw_intervals
from simulator.report.output import OutputOptions, asked_command
from simulator.report.page import Report, Section, Table
from simulator.report.terminal import print_table, progress_bar
from simulator.report.values import item_text, summary
from simulator.shapes import WireRun
from simulator.wire.deployment import MAX_COLLECTORS, MAX_SHARDS, PRIVATE
from simulator.wire.ending import ended_by_sigterm
from simulator.wire.faults import Faults

__all__ = ["command", "page", "show"]

BROKEN = 5


@click.command("wire")
@simulation_options(
    "users",
    "domain",
    "epsilon",
    "population",
    "mechanism",
    "processes",
    "seed",
    users={"type": click.IntRange(1, 100_000_000)},
    domain={"help": "Number of elements of the domain; `none` is one."},
)
@click.option(
    "--batch", type=click.IntRange(1, 250_000), default=1000, show_default=True, help="Reports in each batch."
)
@click.option(
    "--periods",
    type=click.IntRange(0, wire.MAX_PERIODS),
    default=0,
    show_default=True,
    help="Ask every day; each batch was made on one of the last N days, and arrives late. 0: ask once.",
)
@click.option(
    "--relay",
    type=click.IntRange(0, 1 << 20),
    default=0,
    show_default=True,
    help="Seal reports, and let them pass through a relay that releases at least N together. 0: no relay.",
)
@click.option(
    "--tokens",
    type=click.Choice(["none", "unlinkable"]),
    default="none",
    show_default=True,
    help="Let a real issuer sign an unlinkable token for each batch, or with --relay for each report.",
)
@click.option("--server", metavar="HOST:PORT", help="A server that runs already. [default: one of our own]")
@click.option("--token-file", type=click.Path(path_type=Path, dir_okay=False), help="Operator's token for --server.")
@click.option(
    "--collectors",
    type=click.IntRange(1, MAX_COLLECTORS),
    metavar="N",
    help="So many collectors on one PostgreSQL, with a process that answers and one for upkeep, in the place of one "
    "server.",
)
@click.option(
    "--store",
    envvar="LDP_SERVER_STORE",
    metavar="ADDRESS",
    help="Their PostgreSQL, such as postgresql://hearsay@db/test; the collection stays in it. `private` starts one. "
    "[default with --collectors: private]",
)
@click.option(
    "--shards",
    type=click.IntRange(1, MAX_SHARDS),
    metavar="N",
    help="With --collectors and a private store: so many PostgreSQLs that are one store. [default: 1]",
)
@click.option("--one-port", is_flag=True, help="All collectors on one port. [default: a port for each]")
@click.option(
    "--faults",
    default="",
    metavar="LIST",
    help="Faults, such as drop=0.01,duplicate=0.02,late=0.01,kill-server=30s,kill-relay=20s; with --tokens also "
    "reuse=0.01,forge=0.01,kill-issuer=5s; with --collectors, again and again: kill-collector=5s,kill-upkeep=9s,"
    "crash-store=20s,cut=4s, and skew=1h.",
)
@output_options
def command(
    options: SimulationOptions, output: OutputOptions, server: str | None, token_file: Path | None, faults: str,
    collectors: int | None, store: str | None, shards: int | None, **asked: Any,
) -> int:  # fmt: skip
    """Send to a real server process, with faults, and check that every report was counted exactly once."""
    wrong = Faults.parse(faults)
    asked["tokens"] = asked["tokens"] == "unlinkable"
    if (server is None) != (token_file is None):
        raise InvalidSpec("--server and --token-file (an operator's token) belong together")
    remote = wire.Remote(server, token_file) if server is not None and token_file is not None else None
    shared = _shared(collectors, store, shards, one_port=asked.pop("one_port"))
    if remote is not None and shared is not None:
        raise InvalidSpec("--server names a server that runs; --collectors starts several: give one of them")
    with ended_by_sigterm(), progress_bar("reports", options.users) as advance:
        found = wire.run(options, wrong, where=remote or shared, progress=advance, **asked)
    output.deliver([found.shape], lambda: show(found), lambda: page(found, faults))
    for name, after, restarts in (
        ("server", wrong.kill_after, found.shape["restarts"]),
        ("relay", wrong.kill_relay_after, found.shape["relay_restarts"]),
        ("issuer", wrong.kill_issuer_after, found.shape["issuer_restarts"]),
    ):
        if after is not None and not restarts:
            sys.stderr.write(f"the run ended before the {name} could be killed: give kill-{name} a shorter time\n")
    for name in sorted(wrong.repeated.keys() - found.shape["faults"].keys()):
        sys.stderr.write(f"the run ended before {name} happened: give {name} a shorter time, or more users\n")
    return 0 if found.shape["exactly_once"] and found.same_estimates else BROKEN


def _shared(
    collectors: int | None, store: str | None, shards: int | None, *, one_port: bool
) -> wire.SharedStore | None:
    """The collectors that were asked for. A store in the environment alone asks for none."""
    if collectors is None:
        context = click.get_current_context()
        if one_port or shards or context.get_parameter_source("store") is click.core.ParameterSource.COMMANDLINE:
            raise InvalidSpec("--store, --shards and --one-port are for several collectors: give --collectors N")
        return None
    return wire.SharedStore(store or PRIVATE, collectors, one_port, shards or 1)


def show(found: wire.WireResult) -> None:
    """Print the server's estimates beside the truth, and what was counted."""
    shape = found.shape
    refused = ", ".join(f"{number:,} {reason}" for reason, number in shape["refused"].items()) or "none"
    verdict = "each counted exactly once" if shape["exactly_once"] else "NOT counted exactly once"
    same = "equal" if found.same_estimates else "DO NOT equal"
    apart = f", in each of {shape['periods']} periods too" if shape["periods"] else ""
    caption = (
        f"{shape['reports_sent']:,} reports sent inside the window, {shape['reports_counted']:,} counted: {verdict}.\n"
        f"The server's estimates {same} those that an oracle here computes from what was sent{apart}. "
        f"{found.errors.coverage:.1%} of its intervals contain the truth.\n{shape['duplicates']:,} repeated "
        f"batches were not counted again. Batches refused: {refused}. Restarts of the server: {shape['restarts']}.\n"
        f"{_relay(shape)}{_shared_by(shape)}{shape['seconds']:.1f} s, {shape['reports_per_second']:,.0f} reports a "
        "second, all acknowledged as durable."
    )
    print_table("The server's estimates", _rows(found), None, caption)


def _relay(shape: WireRun) -> str:
    if not shape["relay_batches"]:
        return ""
    return f"A relay passed them on in {shape['relay_batches']:,} batches; its restarts: {shape['relay_restarts']}.\n"


def _shared_by(shape: WireRun) -> str:
    if not shape["collectors"]:
        return ""
    happened = ", ".join(f"{name} {times}" for name, times in sorted(shape["faults"].items())) or "none"
    return f"{shape['collectors']} collectors on one PostgreSQL. What happened to them: {happened}.\n"


def _rows(found: wire.WireResult) -> list[dict[str, object]]:
    return [{**row, "item": item_text(item_json(row["item"]))} for row in found.top]


def page(found: wire.WireResult, faults: str) -> Report:
    """Return the HTML page of `--report`, with its plots and tables."""
    rows = _rows(found)
    intervals = [
        Interval(item_text(item_json(r["item"])), r["truth"], r["estimate"], r["low"], r["high"]) for r in found.top
    ]
    shape = found.shape
    counted = summary({name: value for name, value in shape.items() if name != "fault_log"})
    on = f"{shape['collectors']} collectors on PostgreSQL" if shape["collectors"] else "a server on the embedded store"
    counted.append({"what": "estimates equal to those of an oracle over what was sent", "value": found.same_estimates})
    return Report(
        "A crowd over the wire",
        f"{found.shape['users']:,} users, real gRPC, real processes: {on}. Faults: {faults or 'none'}.",
        asked_command(),
        [
            Section("Counted exactly once?", "", None, Table("wire", counted)),
            *_faults(shape),
            Section(
                "Estimates and truth",
                "",
                lambda: draw_intervals("The server's estimates", "users who hold the item", intervals),
                Table("answers", rows),
            ),
        ],
    )


def _faults(shape: WireRun) -> list[Section]:
    """What was done to several collectors, in the order in which it happened."""
    rows = [dict(one) for one in shape["fault_log"]]
    return [Section("What went wrong", "", None, Table("faults", rows))] if rows else []
