"""The witnesses' signatures of the present signed list, in a file: a server that was restarted passes them on at once.

Without them, devices that rely on witnesses would take no list until each witness has looked again. The file is worth
no more than that: what is in it is checked like what comes over the wire, and a damaged one is as good as none.
"""

from __future__ import annotations

import json
import os
from collections.abc import Collection as Group
from pathlib import Path

from ldp_client.trust.list_heads import MAX_COSIGNATURES, Cosignature, seen_by
from ldp_server.store.errors import translated

__all__ = ["read_cosignatures", "write_cosignatures"]

_FORM = "hearsay-cosignatures-1"
_MOST = 1_000_000
"""Bytes of the file: a list of 100,000 collections is signed by its hashes, so it takes some kilobytes."""


def write_cosignatures(file: Path, list_bytes: bytes, given: Group[Cosignature]) -> None:
    """Replace what is in the file by the signatures of one signed list. May raise StorageError."""
    found = {one.public_key.hex(): one.signature.hex() for one in given}
    data = {"form": _FORM, "list_bytes": list_bytes.hex(), "cosignatures": found}
    fresh = file.with_name(file.name + ".new")
    with translated(file):
        with fresh.open("w", encoding="ascii") as out:
            json.dump(data, out)
            out.flush()
            os.fsync(out.fileno())
        fresh.replace(file)


def read_cosignatures(file: Path, signer: bytes, witnesses: Group[bytes]) -> tuple[bytes, list[Cosignature]]:
    """Return the signed list in a file, and the signatures of it that are valid and of these witnesses."""
    try:
        with file.open("rb") as stream:
            data = json.loads(stream.read(_MOST))
        if data["form"] != _FORM or len(data["cosignatures"]) > MAX_COSIGNATURES:
            raise ValueError
        list_bytes = bytes.fromhex(data["list_bytes"])
        given = [Cosignature(*map(bytes.fromhex, one)) for one in data["cosignatures"].items()]
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return b"", []
    valid = seen_by(signer, list_bytes, given, witnesses)
    return list_bytes, [one for one in given if one.public_key in valid]
