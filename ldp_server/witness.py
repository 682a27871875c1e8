"""A witness of a collection server's signed list: it follows the list, checks that it only grows, and signs its heads.

Devices whose policy names this witness take a list only with its signature. So a list that is shown to one device alone
does not pass, unless its witnesses are deceived or take part, too. A witness holds no list and sees no device. It keeps
one head, and asks the server for a proof that its list goes on from there. It never signs two lists of one size, nor a
list that is not proved to go on from the last one that it signed: the head is on the disk before its signature leaves.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from ldp_client.errors import InvalidSpec, PolicyRefused, StorageError
from ldp_client.sending.transport import ListSource
from ldp_client.trust.list_heads import ListHead, check_growth, cosign, head_from
from ldp_client.trust.merkle import EMPTY_ROOT
from ldp_client.trust.signed_list import SignedHead, SignedList, verify_head

__all__ = ["ListWitness", "WitnessState", "read_state", "write_state"]

_FORM = "hearsay-witness-1"


class WitnessState(NamedTuple):
    """The head that was signed last, and the signed list that it is of."""

    head: ListHead
    signed: SignedHead | None


class ListWitness:
    """The witness whose state lies in `file`."""

    def __init__(self, source: ListSource, keys: Iterable[bytes], key: Ed25519PrivateKey, file: Path) -> None:
        self._source, self._keys, self._key, self._file = source, frozenset(keys), key, file

    def look(self, timeout: float) -> ListHead:
        """Check the present list and sign its head. Raise ListForked if it does not go on from the last one."""
        state = read_state(self._file)
        given = self._source.prove_list(state.head.size, b"", timeout)
        held = None if state.signed is None else SignedList(state.signed, b"")
        signed = verify_head(given.list_bytes, given.signature, given.public_key, keys=self._keys, previous=held)
        head = check_growth(state.head, signed, given.consistency)
        if signed != state.signed:
            write_state(self._file, WitnessState(head, signed))
        signature = cosign(self._key, signed.signer, signed.list_bytes)
        self._source.cosign(sha256(signed.list_bytes).digest(), signature, timeout)
        return head


def read_state(file: Path) -> WitnessState:
    """Return the state in a file; without a file, that of a witness that has seen nothing."""
    try:
        data = json.loads(file.read_text("ascii"))
        if data["form"] != _FORM:
            raise ValueError
        head = head_from(data["size"], data["root"])
        retired = frozenset(bytes.fromhex(one) for one in data["retired"])
        signed = SignedHead(bytes.fromhex(data["list_bytes"]), bytes.fromhex(data["signer"]), retired)
        if ListHead(signed.serial, signed.root) != head:
            raise ValueError
    except FileNotFoundError:
        return WitnessState(ListHead(0, EMPTY_ROOT), None)
    except OSError as error:
        raise StorageError(f"{file}: {error.strerror}; nothing was signed") from None
    except (ValueError, KeyError, TypeError, RecursionError, PolicyRefused):
        raise StorageError(f"{file}: not the state of a witness, or damaged; nothing was signed") from None
    return WitnessState(head, signed)


def write_state(file: Path, state: WitnessState) -> None:
    """Replace the state, durably."""
    if state.signed is None:
        raise InvalidSpec("a witness that has seen nothing has no state")
    data = {
        "form": _FORM,
        "size": state.head.size,
        "root": state.head.root.hex(),
        "list_bytes": state.signed.list_bytes.hex(),
        "signer": state.signed.signer.hex(),
        "retired": sorted(one.hex() for one in state.signed.retired),
    }
    fresh = file.with_name(file.name + ".new")
    try:
        with fresh.open("w", encoding="ascii") as out:
            json.dump(data, out)
            out.flush()
            os.fsync(out.fileno())
        fresh.replace(file)
        handle = os.open(file.parent, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
    except OSError as error:
        raise StorageError(f"{file}: {error.strerror}; nothing was signed") from None
