"""The bytes of an unlinkable token and of the challenge that binds it to one collection (RFC 9577, section 2).

    challenge = 0x0002 || length (2) || issuer name || 0x20 || collection id (32) || length (2) || origin
    token     = 0x0002 || nonce (32) || SHA-256(challenge) || key id (32) || signature (256)

Numbers are big-endian. The names in a challenge are fixed texts, because a name that an operator chooses would be one
more thing that could differ between users; the key id names the issuer. The collection's id is the challenge's
redemption context. The signature is over everything before it.
"""

from __future__ import annotations

import hashlib
from functools import lru_cache

from ldp_client.protocol import tags

__all__ = ["SIGNED_BYTES", "TOKEN_BYTES", "TOKEN_TYPE", "challenge", "challenge_digest", "token_id", "token_input"]

TOKEN_TYPE = b"\x00\x02"
SIGNED_BYTES = 2 + 32 + 32 + 32
"""How many bytes of a token the signature is over."""
TOKEN_BYTES = SIGNED_BYTES + 256


def challenge(collection_id: bytes) -> bytes:
    """Return the TokenChallenge of a collection."""
    parts = [TOKEN_TYPE]
    parts += [len(tags.TOKEN_ISSUER).to_bytes(2, "big"), tags.TOKEN_ISSUER]
    parts += [len(collection_id).to_bytes(1, "big"), collection_id]
    parts += [len(tags.TOKEN_ORIGIN).to_bytes(2, "big"), tags.TOKEN_ORIGIN]
    return b"".join(parts)


@lru_cache(maxsize=4096)
def challenge_digest(collection_id: bytes) -> bytes:
    """Return the hash of a collection's challenge, as it stands in every token for it."""
    return hashlib.sha256(challenge(collection_id)).digest()


def token_input(nonce: bytes, digest: bytes, key_id: bytes) -> bytes:
    """Return what the signature of a token is over."""
    return TOKEN_TYPE + nonce + digest + key_id


def token_id(token: bytes) -> bytes:
    """Return the 16 bytes by which a server remembers a used token.

    They depend on what is signed, and not on the signature. So one signed token has one id, however often it is signed.
    """
    return hashlib.sha256(token[:SIGNED_BYTES]).digest()[:16]
