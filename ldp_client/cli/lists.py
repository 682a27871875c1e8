"""Comparing the signed list with what others are shown. With --storage, the list that this device holds is compared.

Without --storage, the server is asked: for the head of its list, and for a proof that a list with the given head was a
beginning of it. Then no list is fetched and nothing is stored.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from ldp_client.cli.commands import client_of, tls_of
from ldp_client.cli.output import say, say_json
from ldp_client.errors import InvalidSpec, Unavailable
from ldp_client.trust.list_heads import ListHead, check_growth, head_from

if TYPE_CHECKING:
    from ldp_client.client import Client
    from ldp_client.trust.list_heads import ListProof
    from ldp_client.trust.signed_list import SignedHead

__all__ = ["check", "head"]


def head(options: argparse.Namespace) -> int:
    """Print a list's size and root."""
    if options.storage is None:
        signed, _ = _asked(options, 0)
        found: ListHead | None = ListHead(signed.serial, signed.root)
    else:
        with _looking(options) as client:
            found = client.list_head()
    if found is None:
        raise Unavailable("this device holds no signed list yet: use --refresh")
    if options.json:
        say_json({"size": found.size, "root": found.root.hex()})
    else:
        say(str(found))
    return 0


def check(options: argparse.Namespace) -> int:
    """Compare a list with a head from elsewhere. Two lists are an error."""
    other = head_from(options.size, options.root)
    if options.storage is None:
        signed, proof = _asked(options, other.size)
        found = check_growth(other, signed, proof.consistency)
        fits, held = True, found.size
    else:
        with _looking(options) as client:
            fits, held = client.check_list(*other), len(client.listed())
    if not fits:
        raise Unavailable(
            f"this device's list has {held} collections, and the other one {other.size}: this cannot be told yet. Use "
            "--refresh; if the list stays shorter, this device is shown an old or another list"
        )
    if options.json:
        say_json({"fits": True, "held": held})
    else:
        say(f"One list: the first {other.size} of its {held} collections have this root.")
    return 0


@contextmanager
def _looking(options: argparse.Namespace) -> Iterator[Client]:
    """Yield a client that sends nothing; with --refresh it has fetched the list."""
    client = client_of(options)
    try:
        if options.refresh:
            client.refresh(options.timeout)
        yield client
    finally:
        client.close(0)


def _asked(options: argparse.Namespace, size: int) -> tuple[SignedHead, ListProof]:
    """Ask the server how far its list is, with a proof from a list of `size`."""
    from ldp_client.sending.grpc_transport import GrpcTransport
    from ldp_client.trust.policy import hexes
    from ldp_client.trust.signed_list import verify_head

    if not options.list_key:
        raise InvalidSpec("give --storage, or --list-key: the key that signs the server's list")
    keys = hexes(options.list_key, "--list-key")
    transport = GrpcTransport(options.server, tls=tls_of(options))
    try:
        proof = transport.prove_list(size, b"", options.timeout)
    finally:
        transport.close()
    signed = verify_head(proof.list_bytes, proof.signature, proof.public_key, keys=keys, previous=None)
    return signed, proof
