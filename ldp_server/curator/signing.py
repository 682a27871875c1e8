"""A release as signed bytes. Whoever has the curator's public key can check one without the curator.

The signature (Ed25519) is over a tag and the bytes of the body, which is JSON. The body is never made again from its
parts: what was signed is stored and shown as it is.
"""

from __future__ import annotations

import json
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from ldp_client.errors import InvalidSpec
from ldp_client.protocol.tags import CURATOR_RELEASE
from ldp_server.service.admission.key_files import load_private_key

__all__ = ["SignedRelease", "load_signing_key", "read_release", "sign"]

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


def sign(content: dict[str, Any], key: Ed25519PrivateKey) -> SignedRelease:
    """Return a signed release."""
    body = json.dumps(content, sort_keys=True, ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode()
    return SignedRelease(body, key.sign(CURATOR_RELEASE + body))


def load_signing_key(path: Path) -> Ed25519PrivateKey:
    """Read the curator's private key. A file that others can read is refused."""
    try:
        mode = stat.S_IMODE(path.stat().st_mode)
    except OSError as error:
        raise InvalidSpec(f"cannot read the curator's key {path}: {error.strerror}") from None
    if mode & 0o077:
        raise InvalidSpec(f"{path} can be read by others (mode {mode:04o}): chmod 600 {path}")
    return load_private_key(path)


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
