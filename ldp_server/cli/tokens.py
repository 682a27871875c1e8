"""token create | list | revoke (for analysts), token key | issue (for admission)."""

from __future__ import annotations

import base64
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import click

from ldp_client.collection import Collection
from ldp_client.durations import format_duration, parse_duration
from ldp_server.cli.connection import data_option, json_option
from ldp_server.cli.files import new_private_file
from ldp_server.cli.main import cli
from ldp_server.cli.shapes import TokenShape
from ldp_server.cli.show import lines, moment, print_json, progress_bar, table
from ldp_server.service.admission.tokens import TokenSigner, make_key
from ldp_server.store import LIFETIME, ROLES, AccessFile, DataDirectory

__all__ = ["create", "issue", "key", "list_tokens", "revoke", "token"]

_out_option = click.option(
    "--out", type=click.Path(path_type=Path, dir_okay=False), required=True, help="A new file, mode 0600."
)
_AT_ONCE = 1000


@cli.group()
def token() -> None:
    """Analyst tokens (create, list, revoke) and admission tokens (key, issue). Works on the data directory."""


@contextmanager
def _access(data: Path) -> Iterator[AccessFile]:
    access = AccessFile(DataDirectory(data).require().access, time.time)
    try:
        yield access
    finally:
        access.close()


@token.command()
@click.argument("name")
@_out_option
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
@json_option
def create(name: str, out: Path, role: str, expires: str, data: Path, as_json: bool) -> None:
    """Make a token for an analyst and write it to a new file. It cannot be shown again later."""
    lifetime = parse_duration(expires, "--expires")
    with _access(data) as access, new_private_file(out) as file:
        file.write(access.create(name, role, lifetime).encode() + b"\n")
    if as_json:
        print_json({"name": name, "file": str(out), "role": role, "expires_in": lifetime})
    else:
        lines(f"{out}: a token for {name} with the role {role}, for {format_duration(lifetime)}")


@token.command("list")
@data_option
@json_option
def list_tokens(data: Path, as_json: bool) -> None:
    """List analyst tokens by name. The server keeps only hashes of tokens, so the tokens are not shown."""
    with _access(data) as access:
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
@json_option
def revoke(name: str, data: Path, as_json: bool) -> None:
    """Revoke an analyst token, at once."""
    with _access(data) as access:
        access.revoke(name)
    if as_json:
        print_json({"name": name, "revoked": True})
    else:
        lines(f"{name} is revoked")


@token.command()
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False))
@json_option
def key(file: Path, as_json: bool) -> None:
    """Make an Ed25519 key in FILE (keep it) and FILE.pub (for admission.token_keys or publish.next_key)."""
    make_key(file)
    if as_json:
        print_json({"private": str(file), "public": f"{file}.pub"})
    else:
        lines(f"{file} (keep it secret), {file}.pub")


@token.command()
@click.argument("collection", type=click.Path(path_type=Path, dir_okay=False))
@click.option(
    "--key",
    "key_file",
    type=click.Path(path_type=Path, dir_okay=False),
    required=True,
    help="The private key that `token key` made.",
)
@click.option("--count", type=click.IntRange(1, 10_000_000), default=1, show_default=True, help="How many tokens.")
@_out_option
@json_option
def issue(collection: Path, key_file: Path, count: int, out: Path, as_json: bool) -> None:
    """Sign one-time admission tokens for the collection in a file; one a line, base64url."""
    found = Collection.load(collection)
    signer = TokenSigner.load(key_file)
    with new_private_file(out) as file, progress_bar("signing", quiet=as_json) as progress:
        for done in range(count):
            file.write(base64.urlsafe_b64encode(signer.token(found.id)) + b"\n")
            if done % _AT_ONCE == 0:
                progress(f"signing: {done:,} of {count:,}", done / count)
    if as_json:
        print_json({"file": str(out), "count": count, "collection": found.id.hex()})
    else:
        lines(f"{out}: {count:,} tokens for {found.id.hex()[:12]}")
