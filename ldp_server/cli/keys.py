"""key new | lock | list | retire: the keys that reports are sealed to. Works on their directory, without a server."""

from __future__ import annotations

import time
from pathlib import Path

import click

from ldp_client.durations import format_duration, parse_duration
from ldp_client.errors import InvalidSpec
from ldp_client.protocol.sealing import CollectorKey
from ldp_server.cli.connection import json_option
from ldp_server.cli.main import cli
from ldp_server.cli.passphrases import new_passphrase, passphrase_option
from ldp_server.cli.shapes import KeyShape
from ldp_server.cli.show import lines, moment, print_json, table
from ldp_server.sealing.keys import load_keys, new_key, retire_key
from ldp_server.sealing.locked import load_locked, lock_keys

__all__ = ["key", "list_keys", "lock", "new", "retire"]

_OVERLAP = 86_400
_directory = click.argument("directory", type=click.Path(path_type=Path, file_okay=False))


@cli.group()
def key() -> None:
    """Keys to which devices seal: reports for a relay to the collection server, volunteers' records to a curator.

    DIRECTORY is what sealing.keys names in the configuration. A running server looks at it again when it changes.
    """


def _shape(one: CollectorKey, now: float, *, locked: bool = False) -> KeyShape:
    return {
        "id": one.id.hex(),
        "public_key": one.public_key.hex(),
        "state": "live" if one.not_after > now else "ended",
        "not_after": one.not_after,
        "locked": locked,
    }


@key.command()
@_directory
@click.option("--lasts", default="90 days", show_default=True, help="How long devices seal with it.")
@json_option
def new(directory: Path, lasts: str, as_json: bool) -> None:
    """Make a key and write its file, mode 0600. Make the next one a day or more before the last one ends."""
    now = int(time.time())
    seconds = parse_duration(lasts, "--lasts")
    if seconds <= _OVERLAP:
        raise InvalidSpec("--lasts is more than a day: devices need a day to learn of the next key")
    made = new_key(directory, seconds, now)
    if as_json:
        print_json(_shape(made.public, now))
    else:
        lines(
            f"{directory / (made.id.hex() + '.key')}: key {made.id.hex()}, for {format_duration(seconds)}",
            f"public key: {made.public.public_key.hex()}",
            "Keep a copy where only you can read it: without it, reports that a relay holds are lost.",
        )


@key.command()
@_directory
@passphrase_option
@json_option
def lock(directory: Path, passphrase_file: Path | None, as_json: bool) -> None:
    """Lock the keys of a curator with a passphrase: `curator agent` alone can use them then.

    Each file of a key is replaced by one that is of no use without the passphrase. Copies that were made before, also
    backups, stay as they are: delete them. A key that a collection server uses cannot be locked: it starts by itself.
    """
    load_keys(directory)  # before anybody is asked
    words = new_passphrase(passphrase_file, "New passphrase")
    made = lock_keys(directory, words)
    if as_json:
        for one in made:
            print_json(_shape(one.public, time.time(), locked=True))
    else:
        lines(
            *(f"{directory / (one.public.id.hex() + '.locked')}: locked" for one in made),
            "Without the passphrase nobody opens what is sealed to these keys. Copies of the unlocked files stay "
            "dangerous.",
        )


@key.command("list")
@_directory
@json_option
def list_keys(directory: Path, as_json: bool) -> None:
    """List the keys, the first to end first. Their private halves are not shown."""
    now = time.time()
    plain = [_shape(one.public, now) for one in load_keys(directory)]
    locked = [_shape(one.public, now, locked=True) for one in load_locked(directory)]
    found = sorted([*plain, *locked], key=lambda one: one["not_after"])
    if as_json:
        for shape in found:
            print_json(shape)
        return
    columns = [("id", ""), ("state", ""), ("sealed with until", ""), ("public key", "")]
    rows = [
        (
            one["id"],
            f"{one['state']}{', locked' if one['locked'] else ''}",
            moment(one["not_after"]),
            one["public_key"],
        )
        for one in found
    ]
    table("Sealing keys", columns, rows, caption=f"{len(found)} in all")


@key.command()
@_directory
@click.argument("digits", metavar="ID")
@click.option("--yes", is_flag=True, help="Do not ask.")
@json_option
def retire(directory: Path, digits: str, yes: bool, as_json: bool) -> None:
    """Delete the key whose id begins with ID. What was sealed to it can never be opened again, by anybody."""
    if not yes:
        if as_json:
            raise InvalidSpec("--json cannot ask: add --yes")
        click.confirm(f"Delete the key {digits}? Reports sealed to it that a relay still holds are lost.", abort=True)
    gone = retire_key(directory, digits)
    if as_json:
        print_json(_shape(gone.public, time.time()))
    else:
        lines(f"{gone.id.hex()}: deleted")
