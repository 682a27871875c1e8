"""Files of Ed25519 keys: those that sign linkable tokens, and the one that signs the list of collections."""

from __future__ import annotations

import os
from pathlib import Path

from cryptography.exceptions import UnsupportedAlgorithm
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

__all__ = ["load_private_key", "load_public_key", "make_key"]


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise InvalidSpec(f"cannot read the key file {path}: {error.strerror}") from None


def load_private_key(path: Path) -> Ed25519PrivateKey:
    """An Ed25519 private key from a PEM file."""
    data = _read(path)
    try:
        key = load_pem_private_key(data, password=None)
    except (ValueError, TypeError, UnsupportedAlgorithm):
        raise InvalidSpec(f"{path} is not an Ed25519 private key in PEM form") from None
    if not isinstance(key, Ed25519PrivateKey):
        raise InvalidSpec(f"{path} is not an Ed25519 key")
    return key


def load_public_key(path: Path) -> Ed25519PublicKey:
    """An Ed25519 public key from a PEM file."""
    data = _read(path)
    try:
        key = load_pem_public_key(data)
    except (ValueError, UnsupportedAlgorithm):
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
