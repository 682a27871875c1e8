"""The group `token`, and token create | list | revoke: tokens of analysts."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import click

from ldp_client.durations import format_duration, parse_duration
from ldp_server.cli.connection import data_option, json_option, store_option
from ldp_server.cli.files import new_private_file
from ldp_server.cli.main import cli
from ldp_server.cli.shapes import TokenShape
from ldp_server.cli.show import lines, moment, print_json, table
from ldp_server.store import LIFETIME, ROLES, AccessTokens, DataDirectory
from ldp_server.store.engines import open_store

__all__ = ["create", "list_tokens", "out_option", "revoke", "token"]

out_option = click.option(
    "--out", type=click.Path(path_type=Path, dir_okay=False), required=True, help="A new file, mode 0600."
)


@cli.group()
def token() -> None:
    """Tokens of analysts (create, list, revoke), and those that admit reports, linkable or unlinkable ones."""


@contextmanager
def _access(data: Path, store: str | None) -> Iterator[AccessTokens]:
    if not store:
        DataDirectory(data).require()
    access = open_store(store or "", data).access(time.time)
    try:
        yield access
    finally:
        access.close()


@token.command()
@click.argument("name")
@out_option
@click.option(
    "--role",
    type=click.Choice(ROLES),
    default=ROLES[0],
    show_default=True,
    help="ask: change nothing. create: also create collections. manage: also close, compact and delete them, and "
    "export reports.",
)
@click.option(
    "--expires", default=format_duration(LIFETIME), show_default=True, help="After how long: days, weeks, hours."
)
@data_option
@store_option
@json_option
def create(name: str, out: Path, role: str, expires: str, data: Path, store: str | None, as_json: bool) -> None:
    """Make a token for an analyst and write it to a new file. It cannot be shown again later."""
    lifetime = parse_duration(expires, "--expires")
    with _access(data, store) as access, new_private_file(out) as file:
        file.write(access.create(name, role, lifetime).encode() + b"\n")
    if as_json:
        print_json({"name": name, "file": str(out), "role": role, "expires_in": lifetime})
    else:
        lines(f"{out}: a token for {name} with the role {role}, for {format_duration(lifetime)}")


@token.command("list")
@data_option
@store_option
@json_option
def list_tokens(data: Path, store: str | None, as_json: bool) -> None:
    """List analyst tokens by name. The server keeps only hashes of tokens, so the tokens are not shown."""
    with _access(data, store) as access:
        found, now = access.tokens(), access.clock()
    if as_json:
        for row in found:
            shape: TokenShape = {
                "name": row.name,
                "role": row.role,
                "state": row.state(now),
                "created": row.created,
                "expires": row.expires,
                "revoked": row.revoked,
            }
            print_json(shape)
        return
    rows = [(row.name, row.role, row.state(now), moment(row.created), moment(row.expires)) for row in found]
    columns = [("name", ""), ("role", ""), ("state", ""), ("created", ""), ("expires", "")]
    table("Analyst tokens", columns, rows, caption=f"{len(found)} in all")


@token.command()
@click.argument("name")
@data_option
@store_option
@json_option
def revoke(name: str, data: Path, store: str | None, as_json: bool) -> None:
    """Revoke an analyst token, at once."""
    with _access(data, store) as access:
        access.revoke(name)
    if as_json:
        print_json({"name": name, "revoked": True})
    else:
        lines(f"{name} is revoked")
