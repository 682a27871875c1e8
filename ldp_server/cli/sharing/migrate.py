"""migrate: move everything from one store to another."""

from __future__ import annotations

import click

from ldp_client.errors import Cancelled
from ldp_server.cli.connection import json_option
from ldp_server.cli.main import cli
from ldp_server.cli.shapes import MoveShape
from ldp_server.cli.show import lines, print_json, progress_bar, table, whole
from ldp_server.moving import Moved, move, open_end

__all__ = ["migrate"]


@cli.command()
@click.option("--from", "old", required=True, metavar="STORE", help="The old store: a data directory, or an address.")
@click.option("--to", "new", required=True, metavar="STORE", help="The new one, which must be empty.")
@click.option(
    "--again", is_flag=True, help="Begin anew: first remove what an unfinished run has left in the new store."
)
@json_option
def migrate(old: str, new: str, again: bool, as_json: bool) -> None:
    """Move everything from one store to another, and compare it to the bit. Stop all servers of the old one before.

    A store is a data directory (SQLite), or an address such as postgresql://owner@db/hearsay, or several of them with
    a space between. It can be stopped at any time: the same command goes on. When it is done no server opens the old
    store any more.
    """
    source, target = open_end(old), open_end(new)
    try:
        with progress_bar("looking at the old store", quiet=as_json) as tell:
            moved = move(source, target, tell, again=again)
    except KeyboardInterrupt:
        raise Cancelled("stopped: what was moved is kept, and the same command goes on with the rest") from None
    if as_json:
        print_json(_shape(moved, source.name, target.name))
    else:
        _show(moved, target.name)


def _shape(moved: Moved, old: str, new: str) -> MoveShape:
    return {
        "from": old,
        "to": new,
        "held": dict(moved.tally),
        "pieces": moved.pieces,
        "pieces_before": moved.went_on_after,
        "digest": moved.digest,
    }


def _show(moved: Moved, name: str) -> None:
    rows = [[what, whole(count)] for what, count in moved.tally.items()]
    table("Moved and compared", [("what", ""), ("how much", "right")], rows, f"SHA-256 {moved.digest}")
    if moved.went_on_after:
        lines(f"{whole(moved.went_on_after)} of {whole(moved.pieces)} pieces were there already, from an earlier run")
    lines(f"Serve {name} from now on. Files beside the log stay where they were: docs/scale-out.md says which")
