"""Checking unlinkable tokens, as collection servers do: ordinary PSS signatures by the issuer's public keys.

A token must be for this collection, by a key of the configuration, of exactly the right length, with a salt of 48
bytes. One that is good for another collection is refused for a reason of its own (`TOKEN_FOR_ANOTHER`): it shows an app
that mixes up its tokens, or somebody who spends those of one question on another. Nothing in a token is free to change:
the signature covers every byte before it, and each number below n is the signature of at most one of them. The server
keeps the ids of used tokens as it does those of linkable ones.

Whoever issued the token saw neither its nonce nor its signature (blind.py), so its id says nothing
about the account that asked for it.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Self

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.padding import MGF1, PSS
from cryptography.hazmat.primitives.hashes import SHA384

from ldp_client.errors import InvalidSpec
from ldp_client.tokens.blind import SALT_BYTES, IssuerKey
from ldp_client.tokens.token import SIGNED_BYTES, TOKEN_BYTES, TOKEN_TYPE, challenge_digest, token_id

__all__ = ["UnlinkableVerifier"]

_PADDING = PSS(MGF1(SHA384()), SALT_BYTES)
_HASH = SHA384()
MOST_KEYS = 100
_DIGEST = slice(34, 66)
"""Where a token has the hash of its challenge, by which it belongs to one collection."""


class UnlinkableVerifier:
    """Checks tokens against one or (while a key is being replaced) several keys of an issuer."""

    def __init__(self, keys: Sequence[IssuerKey]) -> None:
        self.keys = tuple(keys)
        self._keys = {key.id: key.public_key() for key in keys}
        if len(self._keys) != len(self.keys):
            raise InvalidSpec("admission.unlinkable_token_keys has a key twice")
        if len(self.keys) > MOST_KEYS:
            raise InvalidSpec(f"admission.unlinkable_token_keys: at most {MOST_KEYS} keys")

    @classmethod
    def load(cls, paths: Sequence[Path]) -> Self:
        """A verifier with the keys in PEM files."""
        return cls([IssuerKey.load(path) for path in paths])

    def __bool__(self) -> bool:
        return bool(self._keys)

    def token_id(self, token: bytes, collection_id: bytes) -> bytes | None:
        """The token's id if it is good for this collection, else None."""
        if token[_DIGEST] != challenge_digest(collection_id) or not self._signed(token):
            return None
        return token_id(token)

    def reason(self, token: bytes, collection_id: bytes) -> str:
        """Why a token is not good for this collection: the wire's Reason."""
        elsewhere = token[_DIGEST] != challenge_digest(collection_id) and self._signed(token)
        return "TOKEN_FOR_ANOTHER" if elsewhere else "NOT_ADMITTED"

    def _signed(self, token: bytes) -> bool:
        """Whether this is a token, for whatever collection, that one of the keys has signed."""
        key = self._keys.get(token[66:SIGNED_BYTES])
        if len(token) != TOKEN_BYTES or token[:2] != TOKEN_TYPE or key is None:
            return False
        try:
            key.verify(token[SIGNED_BYTES:], token[:SIGNED_BYTES], _PADDING, _HASH)
        except InvalidSignature:
            return False
        return True
