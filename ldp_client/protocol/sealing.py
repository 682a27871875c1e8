"""Sealed reports: one report, encrypted on the device to the collection server, of a fixed length.

    key_id = the first 8 bytes of SHA-256(public key)
    info   = "hearsay/sealed/v1" || collection id (32 bytes) || key_id
    sealed = 0x01 || key_id || HPKE(X25519, HKDF-SHA256, AES-128-GCM).encrypt(report || token, public key, info)

HPKE is that of RFC 9180 in its base mode, single shot, without associated data: 32 bytes of an ephemeral key, then the
text with a tag of 16 bytes. So a sealed report has 57 bytes more than what is sealed, whatever the report says.

`token` is an admission token for the one who opens the report, or nothing. Its length follows from the collection's
admission, so all sealed reports of a collection have one length. The relay, which cannot look inside, sees no token.

`info` binds a sealed report to its collection and key: it cannot be moved to another collection. It is not bound to a
batch or a period, because the relay makes new batches. The server knows a unit that comes twice by its digest.

The ephemeral key comes from the operating system's generator, inside the library. It never depends on the item.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from hashlib import sha256
from typing import TYPE_CHECKING

from ldp_client.protocol import tags

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.hpke import Suite

__all__ = [
    "DIGEST_BYTES",
    "KEY_BYTES",
    "KEY_ID_BYTES",
    "SEALED_EXTRA",
    "CollectorKey",
    "is_usable",
    "key_id",
    "key_id_of",
    "seal",
    "seal_info",
    "seal_reports",
    "seal_suite",
    "sealed_bytes",
    "split_units",
    "unit_digest",
]

FORMAT = 1
"""The first byte of a sealed report."""
KEY_BYTES = 32
KEY_ID_BYTES = 8
SEALED_EXTRA = 1 + KEY_ID_BYTES + 32 + 16
"""How many bytes a sealed report has more than what is sealed: 57."""
DIGEST_BYTES = 16


@dataclass(frozen=True)
class CollectorKey:
    """A public key of the collection server."""

    public_key: bytes
    not_after: int
    """Seconds since 1970: from then on no device seals with it."""

    @cached_property
    def id(self) -> bytes:
        return key_id(self.public_key)


def key_id(public_key: bytes) -> bytes:
    """Return the id of a public key."""
    return sha256(public_key).digest()[:KEY_ID_BYTES]


def is_usable(public_key: bytes) -> bool:
    """Whether reports can be sealed to these bytes. With a point of low order everybody would know the secret."""
    from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey  # noqa: PLC0415

    try:
        X25519PrivateKey.generate().exchange(X25519PublicKey.from_public_bytes(public_key))
    except ValueError:
        return False
    return True


def sealed_bytes(report_bytes: int, token_bytes: int = 0) -> int:
    """Return the length of a sealed report."""
    return report_bytes + token_bytes + SEALED_EXTRA


def seal_info(collection_id: bytes, key: bytes) -> bytes:
    """Return what a sealed report is bound to; `key` is a key's id."""
    return tags.SEALED_REPORT + collection_id + key


@cache
def seal_suite() -> Suite:
    """Return the algorithms of a sealed report."""
    from cryptography.hazmat.primitives import hpke  # noqa: PLC0415 - slow to import, and only sealing needs it

    return hpke.Suite(hpke.KEM.X25519, hpke.KDF.HKDF_SHA256, hpke.AEAD.AES_128_GCM)


def seal(report: bytes, collection_id: bytes, public_key: bytes, token: bytes = b"") -> bytes:
    """Seal one packed report, and the token if there is one. Each call gives other bytes."""
    from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PublicKey  # noqa: PLC0415 - the same

    key = key_id(public_key)
    found = X25519PublicKey.from_public_bytes(public_key)
    return bytes([FORMAT]) + key + seal_suite().encrypt(report + token, found, info=seal_info(collection_id, key))


def seal_reports(
    payload: bytes, report_bytes: int, collection_id: bytes, public_key: bytes, tokens: Sequence[bytes] = ()
) -> bytes:
    """Seal each report of a payload by itself, with a token of its own if there are tokens."""
    from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PublicKey  # noqa: PLC0415 - the same

    key, found = key_id(public_key), X25519PublicKey.from_public_bytes(public_key)
    head, info, encrypt = bytes([FORMAT]) + key, seal_info(collection_id, key), seal_suite().encrypt
    reports = list(split_units(payload, report_bytes))
    pairs = zip(reports, tokens or [b""] * len(reports), strict=True)
    return b"".join([head + encrypt(report + token, found, info=info) for report, token in pairs])


def key_id_of(sealed: bytes) -> bytes | None:
    """Return the id of the key that a report was sealed to; None if it begins with no byte of this form."""
    return sealed[1 : 1 + KEY_ID_BYTES] if sealed[:1] == bytes([FORMAT]) else None


def split_units(payload: bytes, length: int) -> Iterator[bytes]:
    """Return the sealed units of a payload, each of `length` bytes."""
    return (payload[start : start + length] for start in range(0, len(payload), length))


def unit_digest(sealed: bytes) -> bytes:
    """Return the digest by which a server knows a sealed unit again."""
    return sha256(sealed).digest()[:DIGEST_BYTES]
