"""export, status."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import click

from ldp_server.analyst import Analyst, Exported, Which
from ldp_server.answers.over_time.periods import Periods
from ldp_server.answers.to_json import to_json
from ldp_server.cli.connection import connected, json_option, which_argument
from ldp_server.cli.files import replaced_private_file
from ldp_server.cli.main import cli
from ldp_server.cli.over_time.options import period_options, periods_text
from ldp_server.cli.show import busy, lines, moment, print_json, properties, whole

__all__ = ["export", "status"]


@cli.command()
@which_argument
@click.option("--reports", "raw", is_flag=True, help="Every report, packed, instead of the counts.")
@click.option(
    "--out",
    type=click.Path(path_type=Path, dir_okay=False),
    required=True,
    help="The file to write, mode 0600; the collection's spec goes beside it, with .ldp added to the name.",
)
@period_options
@json_option
@connected
def export(analyst: Analyst, which: Which, raw: bool, out: Path, periods: Periods | None, as_json: bool) -> None:
    """Write a collection's counts (or its reports) to a file, and its spec beside it."""
    spec = out.with_name(out.name + ".ldp")
    with busy("exporting", quiet=as_json) as tell, replaced_private_file(out) as file:

        def progress(done: Exported) -> None:
            tell(f"exporting: {whole(done.reports)} reports, {whole(done.bytes)} bytes")

        kind: Literal["counts", "reports"] = "reports" if raw else "counts"
        done = analyst.export(which, file, kind=kind, progress=progress, periods=periods)
    with replaced_private_file(spec) as file:
        file.write(done.info.collection.to_toml().encode())
    if as_json:
        about = {} if done.periods is None else {"periods": to_json(done.periods)}
        print_json({"file": str(out), "spec": str(spec), "bytes": done.bytes, "reports": done.reports, **about})
    else:
        size = f"{whole(done.reports)} reports, {whole(done.bytes)} bytes"
        lines(f"{out}: {size}{periods_text(done.periods)}; its spec is in {spec}")


@cli.command()
@json_option
@connected
def status(analyst: Analyst, as_json: bool) -> None:
    """Show the server's version, load and size."""
    found = analyst.status()
    if as_json:
        print_json(to_json(found))
        return
    rows = [
        ("version", found.version),
        ("running since", moment(found.started)),
        ("collections", whole(found.collections)),
        ("waiting for the disk", f"{whole(found.waiting_bytes)} bytes"),
        ("log on disk", f"{whole(found.log_bytes)} bytes"),
        ("free on its disk", f"{whole(found.free_bytes)} bytes"),
        ("reports since then", f"{whole(found.reports)} in {whole(found.batches)} batches"),
        ("batches refused", whole(sum(one.count for one in found.refused))),
        ("not yet in a checkpoint", f"{whole(found.lag_batches)} batches"),
        ("your role", found.role),
        ("stopping", "yes" if found.draining else "no"),
    ]
    properties(analyst.target, rows)
