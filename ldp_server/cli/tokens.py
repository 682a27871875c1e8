"""token create | list | revoke (analysts), token key | issue (admission)."""

from __future__ import annotations

import base64
import os
import time
from pathlib import Path

import click

from ldp_client.collection import Collection
from ldp_client.errors import InvalidSpec
from ldp_client.durations import parse_duration
from ldp_server.answers.shapes import TokenShape
from ldp_server.cli.connection import data_option
from ldp_server.cli.main import cli
from ldp_server.cli.show import lines, moment, print_json, table
from ldp_server.service.admission.tokens import TokenSigner, make_key
from ldp_server.store import AccessFile, DataDirectory
from ldp_server.store.errors import translated

__all__ = ["create", "issue", "key", "list_tokens", "revoke", "token"]

_json = click.option("--json", "as_json", is_flag=True, help="JSON instead of a table.")


@cli.group()
def token() -> None:
    """Analyst tokens (create, list, revoke) and admission tokens (key, issue). Works on the data directory."""


def _access(data: Path) -> AccessFile:
    return AccessFile(DataDirectory(data).require().access, time.time)


@token.command()
@click.argument("name")
@click.option("--out", type=click.Path(path_type=Path, dir_okay=False), required=True, help="A new file, mode 0600.")
@click.option("--expires", help='After how long, such as "90 days"; left out: never.')
@data_option
@_json
def create(name: str, out: Path, expires: str | None, data: Path, as_json: bool) -> None:
    """Make a token for an analyst and write it to a new file: the only time it can be seen."""
    lifetime = None if expires is None else parse_duration(expires)
    access = _access(data)
    try:
        with translated(out):
            try:
                handle = os.open(out, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            except FileExistsError:
                raise InvalidSpec(f"{out} exists: a token never overwrites a file") from None
            try:
                secret = access.create(name, lifetime)
            except BaseException:
                os.close(handle)
                out.unlink()
                raise
            with os.fdopen(handle, "w") as file:
                file.write(secret + "\n")
    finally:
        access.close()
    if as_json:
        print_json({"name": name, "file": str(out), "expires_in": lifetime})
    else:
        lines(f"{out}: a token for {name}")


@token.command("list")
@data_option
@_json
def list_tokens(data: Path, as_json: bool) -> None:
    """List analyst tokens, by name; secrets are not kept."""
    access = _access(data)
    try:
        found = access.tokens()
    finally:
        access.close()
    if as_json:
        for row in found:
            shape: TokenShape = {
                "name": row.name,
                "created": row.created,
                "expires": row.expires,
                "revoked": row.revoked,
            }
            print_json(shape)
        return
    rows = [(row.name, moment(row.created), moment(row.expires or 0), moment(row.revoked or 0)) for row in found]
    table("Analyst tokens", [("name", ""), ("created", ""), ("expires", ""), ("revoked", "")], rows)


@token.command()
@click.argument("name")
@data_option
@_json
def revoke(name: str, data: Path, as_json: bool) -> None:
    """Make an analyst token worthless, at once."""
    access = _access(data)
    try:
        access.revoke(name)
    finally:
        access.close()
    if as_json:
        print_json({"name": name, "revoked": True})
    else:
        lines(f"{name} is revoked")


@token.command()
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False))
@_json
def key(file: Path, as_json: bool) -> None:
    """Make an Ed25519 key in FILE (keep it) and FILE.pub (for admission.token_keys or publish.next_key)."""
    make_key(file)
    if as_json:
        print_json({"private": str(file), "public": f"{file}.pub"})
    else:
        lines(f"{file} (keep it secret), {file}.pub")


@token.command()
@click.argument("collection", type=click.Path(path_type=Path, dir_okay=False))
@click.option("--key", "key_file", type=click.Path(path_type=Path, dir_okay=False), required=True)
@click.option("--count", type=click.IntRange(1, 10_000_000), default=1, show_default=True)
@click.option("--out", type=click.Path(path_type=Path, dir_okay=False), required=True, help="A new file, mode 0600.")
@_json
def issue(collection: Path, key_file: Path, count: int, out: Path, as_json: bool) -> None:
    """Sign one-time admission tokens for the collection in a file; one a line, base64url."""
    found = Collection.load(collection)
    signer = TokenSigner.load(key_file)
    with translated(out):
        try:
            handle = os.open(out, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        except FileExistsError:
            raise InvalidSpec(f"{out} exists: tokens never overwrite a file") from None
        with os.fdopen(handle, "wb") as file:
            for _ in range(count):
                file.write(base64.urlsafe_b64encode(signer.token(found.id)) + b"\n")
    if as_json:
        print_json({"file": str(out), "count": count, "collection": found.id.hex()})
    else:
        lines(f"{out}: {count} tokens for {found.id.hex()[:12]}")
