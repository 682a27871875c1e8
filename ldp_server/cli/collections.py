"""collection create | list | show | close | delete, and compact."""

from __future__ import annotations

from pathlib import Path

import click

from ldp_client.collection import Collection
from ldp_client.errors import InvalidSpec
from ldp_server.analyst import Analyst, CollectionInfo, CollectionSummary, Which
from ldp_server.cli.connection import connected, json_option, which_argument
from ldp_server.cli.main import cli
from ldp_server.cli.shapes import CollectionShape, SummaryShape
from ldp_server.cli.show import busy, lines, moment, print_json, properties, table, whole

__all__ = ["close", "collection", "compact", "create", "delete", "list_all", "show"]


def _shape(info: CollectionInfo) -> CollectionShape:
    collection = info.collection
    return {
        "id": info.id.hex(),
        "question": collection.question,
        "state": info.state,
        "mechanism": collection.randomizer.name,
        "epsilon": collection.epsilon.text,
        "admission": info.admission,
        "reports_per_token": info.reports_per_token,
        "unlisted": info.unlisted,
        "opens": collection.opens,
        "closes": collection.closes,
        "smallest_batch": collection.smallest_batch,
        "created": info.created,
        "closed": info.closed,
        "deleted": info.deleted,
    }


def _print(info: CollectionInfo, *, as_json: bool) -> None:
    data = _shape(info)
    if as_json:
        print_json(data)
    else:
        lines(data["id"], f"{data['state']}: {data['question']}")


@cli.group()
def collection() -> None:
    """Create, list, show, close and delete collections."""


@collection.command()
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False))
@click.option(
    "--admission",
    type=click.Choice(["open", "certificate", "linkable-token", "unlinkable-token"]),
    default="open",
    show_default=True,
    help="Who may submit: anybody, who shows a client certificate, or who holds a one-time token.",
)
@click.option(
    "--reports-per-token",
    type=click.IntRange(1, 1_000_000),
    default=1,
    show_default=True,
    help="The most reports that one token admits.",
)
@click.option("--unlisted", is_flag=True, help="Leave it out of the public list.")
@json_option
@connected
def create(analyst: Analyst, file: Path, admission: str, reports_per_token: int, unlisted: bool, as_json: bool) -> None:
    """Create the collection that FILE describes (TOML, or JSON)."""
    info = analyst.create(
        Collection.load(file),
        admission=admission,  # type: ignore[arg-type]  # click has checked it
        reports_per_token=reports_per_token,
        unlisted=unlisted,
    )
    _print(info, as_json=as_json)


@collection.command("list")
@json_option
@connected
def list_all(analyst: Analyst, as_json: bool) -> None:
    """List every collection, deleted ones included."""
    found = [_shape(info) for info in analyst.collections()]
    if as_json:
        for row in found:
            print_json(row)
        return
    columns = [("id", ""), ("state", ""), ("question", ""), ("mechanism", ""), ("epsilon", "right"), ("closes", "")]
    rows = [
        (row["id"][:12], row["state"], row["question"], row["mechanism"], row["epsilon"], moment(row["closes"]))
        for row in found
    ]
    table("Collections", columns, rows, caption=f"{len(found)} in all")


@collection.command()
@which_argument
@json_option
@connected
def show(analyst: Analyst, which: Which, as_json: bool) -> None:
    """Show one collection: its state, its number of reports, and the privacy statement for its users.

    COLLECTION is an id, its first digits (at least four), or the collection's file.
    """
    with busy("counting", quiet=as_json):
        summary = analyst.show(which)
    if as_json:
        print_json(_summary(summary))
    else:
        _show(summary)


def _summary(summary: CollectionSummary) -> SummaryShape:
    return {
        **_shape(summary.info),
        "reports": summary.reports,
        "batches": summary.batches,
        "stored_bytes": summary.stored_bytes,
        "standard_error": summary.standard_error,
        "lists_domain": summary.lists_domain,
        "decodes_heavy_hitters": summary.decodes_heavy_hitters,
        "statement": list(summary.statement),
    }


def _show(summary: CollectionSummary) -> None:
    info = summary.info
    asked = info.collection
    rows = [
        ("id", info.id.hex()),
        ("state", info.state),
        ("window", f"{moment(asked.opens)} to {moment(asked.closes)}"),
        ("mechanism", f"{asked.randomizer.name}, epsilon {asked.epsilon.text}"),
        ("admission", info.admission),
        ("relay", "none" if asked.smallest_batch is None else f"batches of at least {whole(asked.smallest_batch)}"),
        ("reports", f"{whole(summary.reports)} in {whole(summary.batches)} batches"),
        ("held", f"{whole(summary.stored_bytes)} bytes of reports"),
        ("standard error", f"{whole(summary.standard_error)} users, for an item nobody holds"),
    ]
    properties(asked.question, rows)
    lines(*summary.statement)


@collection.command()
@which_argument
@json_option
@connected
def close(analyst: Analyst, which: Which, as_json: bool) -> None:
    """Take no more batches, whatever the window says."""
    _print(analyst.close_collection(which), as_json=as_json)


@collection.command()
@which_argument
@click.option("--yes", is_flag=True, help="Do not ask.")
@json_option
@connected
def delete(analyst: Analyst, which: Which, yes: bool, as_json: bool) -> None:
    """Drop the collection's reports and counts, for good. Its id cannot be used again."""
    if not yes:
        if as_json:
            raise InvalidSpec("--json cannot ask: add --yes")
        info = analyst.show(which).info
        which = info.id
        click.confirm(f"Drop everything of {info.id.hex()[:12]} ({info.collection.question})?", abort=True)
    _print(analyst.delete_collection(which), as_json=as_json)


@cli.command()
@which_argument
@json_option
@connected
def compact(analyst: Analyst, which: Which, as_json: bool) -> None:
    """Fold a collection's reports into counts and drop the reports. It must take no more batches."""
    with busy("compacting", quiet=as_json):
        info = analyst.compact_collection(which)
    _print(info, as_json=as_json)
