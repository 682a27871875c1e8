"""collection create | list | show | close | delete, and compact."""

from __future__ import annotations

from pathlib import Path

import click

from ldp_client.collection import Collection
from ldp_client.errors import InvalidSpec
from ldp_client.protocol.v1 import analyst_pb2 as pb
from ldp_server.cli.connection import Connection, connected
from ldp_server.cli.main import cli
from ldp_server.cli.shapes import CollectionShape, SummaryShape
from ldp_server.cli.show import busy, lines, moment, print_json, table, whole

__all__ = ["close", "collection", "compact", "create", "delete", "list_all", "show"]

_json = click.option("--json", "as_json", is_flag=True, help="JSON instead of a table.")
_ADMISSION = {"open": pb.OPEN, "certificate": pb.CERTIFICATE, "token": pb.TOKEN}


def _info(info: pb.CollectionInfo) -> CollectionShape:
    collection = Collection.from_bytes(info.spec_bytes)
    return {
        "id": info.collection_id.hex(),
        "question": collection.question,
        "state": pb.CollectionState.Name(info.state).lower(),
        "mechanism": collection.randomizer.name,
        "epsilon": collection.epsilon.text,
        "admission": pb.AdmissionKind.Name(info.admission).lower(),
        "reports_per_token": info.reports_per_token,
        "unlisted": info.unlisted,
        "opens": collection.opens,
        "closes": collection.closes,
        "created": info.created,
        "closed": info.closed or None,
        "deleted": info.deleted or None,
    }


def _show_info(info: pb.CollectionInfo, *, as_json: bool) -> None:
    data = _info(info)
    if as_json:
        print_json(data)
    else:
        lines(f"{data['id']}", f"{data['state']}: {data['question']}")


@cli.group()
def collection() -> None:
    """Create, list, show, close and delete collections."""


@collection.command()
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False))
@click.option("--admission", type=click.Choice(list(_ADMISSION)), default="open", show_default=True)
@click.option("--reports-per-token", type=click.IntRange(1, 1_000_000), default=1, show_default=True)
@click.option("--unlisted", is_flag=True, help="Leave it out of the public list.")
@_json
@connected
def create(
    connection: Connection, file: Path, admission: str, reports_per_token: int, unlisted: bool, as_json: bool
) -> None:
    """Enter the collection that FILE describes (TOML, or JSON)."""
    request = pb.CreateCollectionRequest(
        spec_bytes=Collection.load(file).spec_bytes,
        admission=_ADMISSION[admission],
        reports_per_token=reports_per_token,
        unlisted=unlisted,
    )
    _show_info(connection.call("CreateCollection", request), as_json=as_json)


@collection.command("list")
@_json
@connected
def list_all(connection: Connection, as_json: bool) -> None:
    """List every collection, deleted ones included."""
    found = [_info(info) for info in connection.call("ListAllCollections", pb.ListAllCollectionsRequest()).collections]
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
@click.argument("which", metavar="COLLECTION")
@_json
@connected
def show(connection: Connection, which: str, as_json: bool) -> None:
    """Show one collection: its state, how much came, and what is promised to those who report."""
    summary = connection.call("ShowCollection", pb.ShowCollectionRequest(collection_id=connection.find(which)))
    data: SummaryShape = {
        **_info(summary.info),
        "reports": summary.reports,
        "batches": summary.batches,
        "stored_bytes": summary.stored_bytes,
        "standard_error": summary.standard_error,
        "lists_domain": summary.lists_domain,
        "decodes_heavy_hitters": summary.decodes_heavy_hitters,
        "statement": list(summary.statement),
    }
    if as_json:
        print_json(data)
        return
    rows = [
        ("id", data["id"]),
        ("state", data["state"]),
        ("window", f"{moment(data['opens'])} to {moment(data['closes'])}"),
        ("mechanism", f"{data['mechanism']}, epsilon {data['epsilon']}"),
        ("admission", data["admission"]),
        ("reports", f"{whole(data['reports'])} in {whole(data['batches'])} batches"),
        ("held", f"{whole(data['stored_bytes'])} bytes of reports"),
        ("standard error", f"{data['standard_error']:,.1f} users, for an item nobody holds"),
    ]
    table(data["question"], [("", ""), ("", "")], rows)
    lines(*data["statement"])


@collection.command()
@click.argument("which", metavar="COLLECTION")
@_json
@connected
def close(connection: Connection, which: str, as_json: bool) -> None:
    """Take no more batches, whatever the window says."""
    request = pb.CollectionRequest(collection_id=connection.find(which))
    _show_info(connection.call("CloseCollection", request), as_json=as_json)


@collection.command()
@click.argument("which", metavar="COLLECTION")
@click.option("--yes", is_flag=True, help="Do not ask.")
@_json
@connected
def delete(connection: Connection, which: str, yes: bool, as_json: bool) -> None:
    """Drop the collection's reports and counts, for good. Its id is never taken again."""
    found = connection.find(which)
    if not yes:
        if as_json:
            raise InvalidSpec("--json cannot ask: add --yes")
        click.confirm(f"Drop everything of {found.hex()[:12]}?", abort=True)
    request = pb.CollectionRequest(collection_id=found)
    _show_info(connection.call("DeleteCollection", request), as_json=as_json)


@cli.command()
@click.argument("which", metavar="COLLECTION")
@_json
@connected
def compact(connection: Connection, which: str, as_json: bool) -> None:
    """Fold a collection's reports into counts and drop the reports. It must take no more batches."""
    request = pb.CollectionRequest(collection_id=connection.find(which))
    with busy("compacting", quiet=as_json):
        info = connection.call("CompactCollection", request, timeout=3600.0)
    _show_info(info, as_json=as_json)
