"""A release of a curator as signed bytes. Whoever has the curator's public key can check one without the curator.

The signature (Ed25519) is over a tag and the bytes of the body, which is JSON. The body is never made again from its
parts: what was signed is stored and shown as it is.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import load_pem_public_key

from ldp_client.errors import InvalidSpec
from ldp_client.protocol.tags import CURATOR_RELEASE

__all__ = ["MAX_BYTES", "SignedRelease", "public_key", "read_release"]

MAX_BYTES = 256 << 20


@dataclass(frozen=True)
class SignedRelease:
    """A release and its signature."""

    body: bytes
    signature: bytes

    @property
    def content(self) -> dict[str, Any]:
        """The body as plain data."""
        found: dict[str, Any] = json.loads(self.body)
        return found

    def as_dict(self) -> dict[str, Any]:
        """Return what a release file and `--json` hold: the body as the text that was signed, and the signature."""
        return {"release": self.body.decode(), "signature": self.signature.hex()}

    def check(self, key: Ed25519PublicKey) -> None:
        """Raise InvalidSpec if this key has not signed it."""
        try:
            key.verify(self.signature, CURATOR_RELEASE + self.body)
        except InvalidSignature:
            raise InvalidSpec("this release was not signed by this key, or was changed afterwards") from None


def read_release(path: Path) -> SignedRelease:
    """Read a release file, as `curator release --json` and `curator show --json` print it."""
    try:
        if path.stat().st_size > MAX_BYTES:
            raise InvalidSpec(f"{path} is too large for a release")
        found = json.loads(path.read_bytes())
        read = SignedRelease(found["release"].encode(), bytes.fromhex(found["signature"]))
        if not isinstance(read.content, dict):
            raise TypeError
    except OSError as error:
        raise InvalidSpec(f"cannot read {path}: {error.strerror}") from None
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise InvalidSpec(f"{path} is not a release as `ldp-server curator show --json` prints it") from None
    return read


def public_key(path: Path) -> Ed25519PublicKey:
    """Return the curator's public key from its file."""
    try:
        key = load_pem_public_key(path.read_bytes())
    except OSError as error:
        raise InvalidSpec(f"cannot read the curator's public key {path}: {error.strerror}") from None
    except ValueError:
        raise InvalidSpec(f"{path} is not an Ed25519 public key in PEM form") from None
    if not isinstance(key, Ed25519PublicKey):
        raise InvalidSpec(f"{path} is not an Ed25519 key")
    return key
