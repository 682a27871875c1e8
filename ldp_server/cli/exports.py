"""export, synthesize, status."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

import click

from ldp_server.analyst import Analyst, Exported, SyntheticRecords, Which
from ldp_server.answers.over_time.periods import Periods
from ldp_server.answers.synthetic.fit import MOST_RECORDS
from ldp_server.answers.to_json import to_json
from ldp_server.cli.connection import connected, json_option, which_argument
from ldp_server.cli.files import replaced_private_file
from ldp_server.cli.main import cli
from ldp_server.cli.over_time.options import period_options, periods_text
from ldp_server.cli.show import busy, lines, moment, print_json, progress_bar, properties, show_warnings, whole
from ldp_server.tables.csv_text import METADATA_SUFFIX
from ldp_server.tables.extras import library

__all__ = ["export", "status", "synthesize"]

_SHOWN = 10


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
@which_argument
@click.option("--records", type=click.IntRange(1, MOST_RECORDS), default=10_000, show_default=True, help="How many.")
@click.option(
    "-o",
    "--out",
    type=click.Path(path_type=Path, dir_okay=False),
    required=True,
    help="The file to write, mode 0600: FILE.csv (with its metadata beside it) or FILE.parquet (extra `parquet`).",
)
@click.option("--fields", help="Only these fields, separated by commas. Without it: all that a table tells about.")
@click.option("--strict", is_flag=True, help="Only what is told from noise goes together; weak connections are lost.")
@click.option("--seed", type=click.IntRange(0), help="The same records again, while the reports are the same.")
@period_options
@json_option
@connected
def synthesize(
    analyst: Analyst, which: Which, out: Path, fields: str | None, periods: Periods | None, as_json: bool, **how: Any
) -> None:
    """Write synthetic records that have the estimated tables of a collection of records.

    No record is anybody's. They are drawn from the law that has these tables and in which nothing else goes together.
    Where the tables cannot be told from noise, nothing is invented: the command says "no signal".
    """
    if out.suffix not in (".csv", ".parquet"):
        raise click.UsageError("the file is FILE.csv or FILE.parquet")
    if out.suffix == ".parquet":
        library("pyarrow", "parquet", "a Parquet file")  # before the server is asked
    names = [one.strip() for one in fields.split(",")] if fields else []
    with busy("asking for the tables", quiet=as_json):
        found = analyst.tables(which, periods=periods)
    with progress_bar("fitting a law to the tables", quiet=as_json) as tell:
        made = found.synthetic(fields=names, progress=tell, **how)
    with replaced_private_file(out) as file:
        (made.to_csv if out.suffix == ".csv" else made.to_parquet)(file)
    if out.suffix == ".csv":
        with replaced_private_file(out.with_name(out.name + METADATA_SUFFIX)) as file:
            file.write(made.csv_metadata(out.name).encode())
    if as_json:
        signals = [to_json(one) for one in found.signals]
        print_json({"file": str(out), "reports": found.reports, **how, "signals": signals})
    else:
        lines(*_told(made, out))
    show_warnings(found.independence)


def _told(made: SyntheticRecords, out: Path) -> list[str]:
    """What was written, and what the records do not have."""
    found = [f"{out}: {whole(made.records)} synthetic records, from the tables of {whole(made.reports)} reports"]
    if made.left_out:
        shown = ", ".join(" with ".join(names) for names in made.left_out[:_SHOWN])
        more = f" and {len(made.left_out) - _SHOWN} more" if len(made.left_out) > _SHOWN else ""
        found.append(f"no more than noise, so that the records have nothing of it: {shown}{more}")
    return found


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
