"""size: how large a deployment must be."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from ldp_client.errors import InvalidSpec
from ldp_server.cli.connection import json_option
from ldp_server.cli.main import cli
from ldp_server.cli.show import lines, print_json, table, whole
from ldp_server.sizing.deployment import Load, Prices, SizedDeployment, sized
from ldp_server.sizing.figures import MEASURED, read_figures
from ldp_server.store.commit import LINGER

__all__ = ["size"]

_ABOVE_ZERO = click.FloatRange(0, min_open=True)


@cli.command()
@click.option("--users-a-day", type=_ABOVE_ZERO, required=True, help="How many report in a day, such as 1e6.")
@click.option("--reports-of-a-user", type=_ABOVE_ZERO, default=1, show_default=True, help="In a day.")
@click.option(
    "--reports-of-a-batch",
    type=click.FloatRange(1),
    default=1,
    show_default=True,
    help="1: phones, each with its own call. More: gateways and relays.",
)
@click.option("--report-bytes", type=_ABOVE_ZERO, default=4, show_default=True, help="Bytes of a report.")
@click.option("--own-connections", is_flag=True, help="Collectors end TLS themselves, anew for each report: no proxy.")
@click.option("--peak", type=click.FloatRange(1), default=3, show_default=True, help="The busiest minutes / the mean.")
@click.option(
    "--busy",
    type=click.FloatRange(0, 1, min_open=True),
    default=0.6,
    show_default=True,
    help="The share of a core that may be used at the peak.",
)
@click.option("--days-kept", type=_ABOVE_ZERO, default=1, show_default=True, help="Days until reports are folded.")
@click.option("--checkpoint-minutes", type=_ABOVE_ZERO, default=30, show_default=True, help="Of PostgreSQL.")
@click.option("--database-cores", type=_ABOVE_ZERO, default=16, show_default=True, help="Of one PostgreSQL, at most.")
@click.option("--decodes-a-day", type=click.FloatRange(0), default=24, show_default=True, help="Heavy-hitter searches.")
@click.option(
    "--linger-seconds",
    type=_ABOVE_ZERO,
    default=LINGER,
    show_default=True,
    help="limits.linger_seconds: longer makes fewer commits.",
)
@click.option("--standbys", type=click.IntRange(0), default=1, show_default=True, help="Of PostgreSQL, of its size.")
@click.option("--prices", metavar="CORE,MEMORY,DISK", help="Of a core, a GB of memory and a GB of disk in a month.")
@click.option(
    "--figures",
    "files",
    type=click.Path(path_type=Path, dir_okay=False),
    multiple=True,
    help="Unit costs of your machines: what `python -m benchmarks scale --only costs --json` printed there.",
)
@json_option
def size(prices: str | None, files: tuple[Path, ...], standbys: int, as_json: bool, **load: Any) -> None:
    """Work out a deployment: collectors, PostgreSQL's cores, disk and write-ahead log, workers, money.

    Arithmetic from measured costs of a commit, a batch, a call and a report. It says what was extrapolated.
    """
    found = sized(Load(**load), read_figures(MEASURED, *files), _prices(prices), standbys=standbys)
    if as_json:
        print_json(asdict(found))
    else:
        _show(found, standbys)


def _prices(text: str | None) -> Prices | None:
    if text is None:
        return None
    try:
        core, memory, disk = map(float, text.split(","))
    except ValueError:
        raise InvalidSpec(
            "--prices takes three numbers, such as 25,3,0.1: a core, a GB of memory, a GB of disk"
        ) from None
    if not all(0 <= one < float("inf") for one in (core, memory, disk)):
        raise InvalidSpec("--prices: none may be negative")
    return Prices(core, memory, disk)


def _show(found: SizedDeployment, standbys: int) -> None:
    beside = f"and {standbys} standby{'s' if standbys != 1 else ''} as large"
    rows = [
        ("reports", f"{whole(found.reports_a_day)} a day, {found.batches_a_second:,.0f} batches a second at the peak"),
        ("collectors", f"{found.collectors:,} processes with a core each"),
        ("PostgreSQL", f"{found.database_cores:,.1f} cores in {found.databases} server(s), {beside}"),
        ("its memory", f"{found.database_memory_gb:,.0f} GB, so that the index of ids stays in memory"),
        ("its disk", f"{found.database_disk_gb:,.0f} GB, of which {found.ids_gb:,.0f} GB for batches' ids"),
        ("its write-ahead log", f"{found.log_gb_a_day:,.0f} GB a day, {found.log_mb_a_second:,.1f} MB/s at the peak"),
        ("upkeep", f"{found.upkeep_cores:,.2f} cores at the peak"),
        ("counting", f"{found.counting_seconds_a_day:,.0f} seconds of a core a day"),
        ("decoding", f"{found.decoding_seconds_a_day:,.0f} seconds of a core a day"),
        ("answerers", f"{found.answerers}"),
        ("together", f"{found.cores:,} cores, {found.memory_gb:,.0f} GB of memory, {found.disk_gb:,.0f} GB of disk"),
    ]
    if found.cost is not None:
        rows.append(("a month", f"{found.cost:,.0f} at these prices"))
    table("A deployment", [("part", ""), ("how much", "")], rows)
    lines(*(f"Warning: {one}" for one in found.warnings))
    lines("Proxies for TLS, Prometheus, backups and the network are not in it.")
