"""Linkable tokens: 81 bytes that admit one batch to one collection and hold nothing about the user.

    token     = 0x01 || token_id (16 random bytes) || signature (64)
    signature = Ed25519 over "hearsay/admission-token/v1" || collection_id (32) || token_id

The operator's own back end gives them to users whom it knows by its own log-in. A token limits how often somebody
answers. It does not hide who answered from an operator who runs both back end and server, because the back end could
remember who got which token id: hence the name. For tokens that hide this see unlinkable.py. What a report says about
its sender is bounded by epsilon in any case.

The server keeps the ids of used tokens, with the batch that each admitted, until the collection is compacted or
deleted. The same batch may be sent again with its token, another batch may not. A token has no date of its own, because
dates would tell users apart.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Self

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from ldp_client.protocol import tags
from ldp_server.service.admission.key_files import load_private_key, load_public_key

__all__ = ["TOKEN_BYTES", "LinkableSigner", "LinkableVerifier"]

_CONTEXT = tags.LINKABLE_TOKEN
_VERSION = b"\x01"
TOKEN_BYTES = 1 + 16 + 64


class LinkableSigner:
    """Makes tokens, on the operator's side."""

    def __init__(self, key: Ed25519PrivateKey) -> None:
        self._key = key

    @classmethod
    def load(cls, path: Path) -> Self:
        """A signer with the key in a PEM file."""
        return cls(load_private_key(path))

    def token(self, collection_id: bytes) -> bytes:
        """A new token for one batch of a collection."""
        token_id = os.urandom(16)
        return _VERSION + token_id + self._key.sign(_CONTEXT + collection_id + token_id)


class LinkableVerifier:
    """Checks tokens, on the server's side, against one or (while a key is being replaced) several public keys."""

    def __init__(self, keys: Sequence[Ed25519PublicKey]) -> None:
        self._keys = tuple(keys)

    @classmethod
    def load(cls, paths: Sequence[Path]) -> Self:
        """A verifier with the keys in PEM files."""
        return cls([load_public_key(path) for path in paths])

    def __bool__(self) -> bool:
        return bool(self._keys)

    def token_id(self, token: bytes, collection_id: bytes) -> bytes | None:
        """The token's id if it is good for this collection, else None."""
        if len(token) != TOKEN_BYTES or token[:1] != _VERSION:
            return None
        token_id, signature = token[1:17], token[17:]
        for key in self._keys:
            try:
                key.verify(signature, _CONTEXT + collection_id + token_id)
            except InvalidSignature:
                continue
            return token_id
        return None
