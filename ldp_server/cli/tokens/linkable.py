"""token key, token issue-linkable: linkable tokens, which admit reports."""

from __future__ import annotations

import base64
from pathlib import Path

import click

from ldp_client.collection import Collection
from ldp_server.cli.connection import json_option
from ldp_server.cli.files import new_private_file
from ldp_server.cli.show import lines, print_json, progress_bar
from ldp_server.cli.tokens.analysts import out_option, token
from ldp_server.service.admission import LinkableSigner
from ldp_server.service.admission.key_files import make_key

__all__ = ["issue", "key"]

_AT_ONCE = 1000


@token.command()
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False))
@json_option
def key(file: Path, as_json: bool) -> None:
    """Make an Ed25519 key in FILE (keep it) and FILE.pub, for linkable tokens or for the signed list.

    FILE.pub belongs into admission.linkable_token_keys or publish.next_key.
    """
    make_key(file)
    if as_json:
        print_json({"private": str(file), "public": f"{file}.pub"})
    else:
        lines(f"{file} (keep it secret), {file}.pub")


@token.command("issue-linkable")
@click.argument("collection", type=click.Path(path_type=Path, dir_okay=False))
@click.option(
    "--key",
    "key_file",
    type=click.Path(path_type=Path, dir_okay=False),
    required=True,
    help="The private key that `token key` made.",
)
@click.option("--count", type=click.IntRange(1, 10_000_000), default=1, show_default=True, help="How many tokens.")
@out_option
@json_option
def issue(collection: Path, key_file: Path, count: int, out: Path, as_json: bool) -> None:
    """Sign one-time linkable tokens for the collection in a file; one a line, base64url.

    Whoever gives them out could note who got which, and learn who sent which report.
    """
    found = Collection.load(collection)
    signer = LinkableSigner.load(key_file)
    with new_private_file(out) as file, progress_bar("signing", quiet=as_json) as progress:
        for done in range(count):
            file.write(base64.urlsafe_b64encode(signer.token(found.id)) + b"\n")
            if done % _AT_ONCE == 0:
                progress(f"signing: {done:,} of {count:,}", done / count)
    if as_json:
        print_json({"file": str(out), "count": count, "collection": found.id.hex()})
    else:
        lines(f"{out}: {count:,} tokens for {found.id.hex()[:12]}")
