"""One-time admission tokens: 81 bytes that admit one batch to one collection and hold nothing about the user.

    token     = 0x01 || token_id (16 random bytes) || signature (64)
    signature = Ed25519 over "hearsay/admission-token/v1" || collection_id (32) || token_id

The operator's own back end gives them to users whom it knows by its own log-in. A token limits how often somebody
answers. It does not hide who answered from an operator who runs both back end and server, because the back end could
remember who got which token id. What a report says about its sender is bounded by epsilon in any case.

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
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
    load_pem_private_key,
    load_pem_public_key,
)

from ldp_client.errors import InvalidSpec
from ldp_client.protocol import tags

__all__ = ["TOKEN_BYTES", "TokenSigner", "TokenVerifier", "load_private_key", "load_public_key", "make_key"]

_CONTEXT = tags.ADMISSION_TOKEN
_VERSION = b"\x01"
TOKEN_BYTES = 1 + 16 + 64


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise InvalidSpec(f"cannot read the key file {path}: {error.strerror}") from None


def load_private_key(path: Path) -> Ed25519PrivateKey:
    """An Ed25519 private key from a PEM file."""
    try:
        key = load_pem_private_key(_read(path), password=None)
    except (ValueError, TypeError):
        raise InvalidSpec(f"{path} is not an Ed25519 private key in PEM form") from None
    if not isinstance(key, Ed25519PrivateKey):
        raise InvalidSpec(f"{path} is not an Ed25519 key")
    return key


def load_public_key(path: Path) -> Ed25519PublicKey:
    """An Ed25519 public key from a PEM file."""
    try:
        key = load_pem_public_key(_read(path))
    except ValueError:
        raise InvalidSpec(f"{path} is not an Ed25519 public key in PEM form") from None
    if not isinstance(key, Ed25519PublicKey):
        raise InvalidSpec(f"{path} is not an Ed25519 key")
    return key


def make_key(path: Path) -> None:
    """Write a new private key to `path` (mode 0600), and its public half beside it as `path`.pub."""
    key = Ed25519PrivateKey.generate()
    public = path.with_name(path.name + ".pub")
    secret = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    try:
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(handle, "wb") as file:
            file.write(secret)
        public.write_bytes(key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo))
    except FileExistsError:
        raise InvalidSpec(f"{path} exists: a key is never overwritten") from None
    except OSError as error:
        raise InvalidSpec(f"cannot write {path}: {error.strerror}") from None


class TokenSigner:
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


class TokenVerifier:
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
