"""The group `store`, and store prepare."""

from __future__ import annotations

from pathlib import Path

import click

from ldp_client.errors import InvalidSpec
from ldp_server.cli.connection import json_option, store_option
from ldp_server.cli.main import cli
from ldp_server.cli.show import busy, lines, print_json
from ldp_server.store.engines import open_store

__all__ = ["prepare", "store"]


@cli.group()
def store() -> None:
    """A store that several servers share: make its schema, or bring it up to date."""


@store.command()
@store_option
@click.option(
    "--roles",
    is_flag=True,
    help="Also make the roles hearsay_collector, hearsay_keeper and hearsay_curator, with their rights.",
)
@json_option
def prepare(store: str | None, roles: bool, as_json: bool) -> None:
    """Make the schema in a database, or bring an older one up to date. Whoever does this owns it.

    Collectors, answerers and upkeep need fewer rights: with --roles, grant their users the role that is made for them.
    """
    if not store:
        raise InvalidSpec("say which store: --store postgresql://hearsay@db/hearsay, or LDP_SERVER_STORE")
    found = open_store(store, Path())
    with busy("preparing", quiet=as_json):
        found.prepare(roles=roles)
    if as_json:
        print_json({"store": found.name, "roles": roles})
    else:
        lines(f"{found.name} is ready")
