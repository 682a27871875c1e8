"""witness: follow the signed list of somebody's collection server, and sign its heads."""

from __future__ import annotations

import signal
import sys
import time
from pathlib import Path
from typing import NoReturn

import click

from ldp_client.durations import parse_duration
from ldp_client.errors import InvalidSpec, LdpError, ListForked, StorageError
from ldp_client.sending.grpc_transport import GrpcTransport
from ldp_client.sending.target import Tls
from ldp_server.cli.connection import json_option
from ldp_server.cli.main import cli
from ldp_server.cli.show import lines, print_json
from ldp_server.service.admission.key_files import load_private_key
from ldp_server.witness import ListWitness

__all__ = ["witness"]

_file = click.Path(path_type=Path, dir_okay=False)
_CALL_SECONDS = 30.0


@cli.command()
@click.option("--follow", required=True, metavar="HOST:PORT", help="The collection server, as apps reach it.")
@click.option("--list-key", required=True, multiple=True, help="Ed25519 public key (hexadecimal) that signs its list.")
@click.option("--key", required=True, type=_file, help="This witness's private key, made by `token key`.")
@click.option("--state", required=True, type=_file, help="The file that keeps the last head. Never delete it.")
@click.option("--every", default="1 minute", show_default=True, help='How often to look; "once": look once and end.')
@click.option("--ca", type=_file, help="PEM: root certificates for the server's certificate.")
@click.option("--plaintext", is_flag=True, help="No TLS; only for a server on this machine.")
@json_option
def witness(
    follow: str, list_key: tuple[str, ...], key: Path, state: Path, every: str, ca: Path | None, plaintext: bool,
    as_json: bool,
) -> None:  # fmt: skip
    """Follow a server's signed list, check that it only grows, and hand in a signature of each head.

    Run it on another operator's machine. A list that does not go on from the last one is never signed; with
    `--every once` the exit code is then 1.
    """
    pause = None if every == "once" else parse_duration(every, "--every")
    transport = GrpcTransport(follow, tls=Tls(str(ca)) if ca else not plaintext)
    follower = ListWitness(transport, [_key(text) for text in list_key], load_private_key(key), state)
    try:
        if pause is None:
            _say(str(follower.look(_CALL_SECONDS)), as_json=as_json)
        else:
            _follow(follower, pause, as_json=as_json)
    finally:
        transport.close()


def _key(text: str) -> bytes:
    try:
        found = bytes.fromhex(text)
    except ValueError:
        found = b""
    if len(found) != 32:
        raise InvalidSpec("--list-key: write a key as 64 hexadecimal digits")
    return found


def _follow(follower: ListWitness, pause: int, *, as_json: bool) -> None:
    """Look until Ctrl-C or SIGTERM. What changes is printed; trouble goes to standard error."""
    signal.signal(signal.SIGTERM, _end)
    shown = trouble = ""
    while True:
        try:
            found = str(follower.look(_CALL_SECONDS))
        except StorageError:
            raise
        except LdpError as error:
            found, said = shown, f"{'NOT SIGNED' if isinstance(error, ListForked) else 'not now'}: {error}"
        else:
            said = ""
        if found != shown:
            _say(found, as_json=as_json)
        if said and said != trouble:
            sys.stderr.write(f"ldp-server witness: {said}\n")
        shown, trouble = found, said
        time.sleep(pause)


def _end(*_: object) -> NoReturn:
    """End at once, also while the server does not answer. The head is on the disk before its signature leaves."""
    raise SystemExit(0)


def _say(head: str, *, as_json: bool) -> None:
    size, root = head.split(" ")
    if as_json:
        print_json({"size": int(size), "root": root})
    else:
        lines(f"signed: {size} {root}")
    sys.stdout.flush()
