"""Signs releases, with a key that only its owner can read. Their form and their check: ldp_server/answers/merging."""

from __future__ import annotations

import json
import stat
from pathlib import Path
from typing import Any

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from ldp_client.errors import InvalidSpec
from ldp_client.protocol.tags import CURATOR_RELEASE
from ldp_server.answers.merging.signed import SignedRelease
from ldp_server.service.admission.key_files import load_private_key

__all__ = ["load_signing_key", "sign"]


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
