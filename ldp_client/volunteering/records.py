"""A volunteer's record: one raw answer, sealed on the device to the curator, of a fixed length.

    consent = SHA-256("hearsay/consent/v1" || the words that the user agreed to)
    record  = budget (8 bytes, trillionths of epsilon) || consent (32 bytes) || index (fixed width, little-endian)
    sealed  = 0x01 || key_id || HPKE(X25519, HKDF-SHA256, AES-128-GCM).encrypt(record, curator's public key, info)
    info    = "hearsay/volunteer/v1" || collection id (32 bytes) || key_id
    name    = SHA-256("hearsay/volunteer-name/v1" || secret), secret of 32 random bytes

The index is that of the item in the collection's domain, 0 for `none`. Its width follows from the domain alone, so all
records of a collection have one length. Whoever knows the secret can withdraw the record; the name says nothing else.
"""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import sha256
from typing import TYPE_CHECKING

from ldp_client.protocol import tags
from ldp_client.protocol.sealing import FORMAT, KEY_ID_BYTES, key_id, seal_suite, sealed_bytes

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

    from ldp_client.protocol.domain import Domain

__all__ = [
    "NAME_BYTES",
    "SECRET_BYTES",
    "VolunteerRecord",
    "consent_digest",
    "read_record",
    "record_name",
    "seal_record",
    "unsealed",
    "volunteer_bytes",
]

SECRET_BYTES = 32
NAME_BYTES = 32
_BUDGET_BYTES = 8
_DIGEST_BYTES = 32


@dataclass(frozen=True)
class VolunteerRecord:
    """What is sealed: the item's index, the words agreed to, and the budget agreed to."""

    index: int
    consent: bytes
    budget: int
    """The most that all releases may cost, in trillionths of epsilon."""

    def __repr__(self) -> str:
        return "VolunteerRecord()"


def consent_digest(words: str) -> bytes:
    """Return the digest of the words that a user agreed to."""
    return sha256(tags.CONSENT + words.encode()).digest()


def record_name(secret: bytes) -> bytes:
    """Return the name under which a record is kept."""
    return sha256(tags.VOLUNTEER_NAME + secret).digest()


def _width(domain: Domain) -> int:
    return -(-domain.bits // 8)


def volunteer_bytes(domain: Domain) -> int:
    """Return the length of a sealed record."""
    return sealed_bytes(_BUDGET_BYTES + _DIGEST_BYTES + _width(domain))


def _info(collection_id: bytes, key: bytes) -> bytes:
    return tags.VOLUNTEER_RECORD + collection_id + key


def seal_record(record: VolunteerRecord, collection_id: bytes, domain: Domain, public_key: bytes) -> bytes:
    """Seal a record to the curator. Each call gives other bytes."""
    from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PublicKey

    budget, index = record.budget.to_bytes(_BUDGET_BYTES, "little"), record.index.to_bytes(_width(domain), "little")
    key = key_id(public_key)
    found = X25519PublicKey.from_public_bytes(public_key)
    text = budget + record.consent + index
    return bytes([FORMAT]) + key + seal_suite().encrypt(text, found, info=_info(collection_id, key))


def unsealed(sealed: bytes, collection_id: bytes, secret: X25519PrivateKey) -> bytes | None:
    """Return what a record holds, still as bytes; None if it was not sealed to this key for this collection.

    Nothing else that is sealed to the same key opens here: the `info` is that of volunteers' records.
    """
    from cryptography.exceptions import InvalidTag

    key = key_id(secret.public_key().public_bytes_raw())
    if sealed[: 1 + KEY_ID_BYTES] != bytes([FORMAT]) + key:
        return None
    try:
        return seal_suite().decrypt(sealed[1 + KEY_ID_BYTES :], secret, info=_info(collection_id, key))
    except (InvalidTag, ValueError):
        return None


def read_record(text: bytes, domain: Domain) -> VolunteerRecord | None:
    """Read what a record holds; None if it has another form than the records of this domain."""
    if len(text) != _BUDGET_BYTES + _DIGEST_BYTES + _width(domain):
        return None
    index = int.from_bytes(text[_BUDGET_BYTES + _DIGEST_BYTES :], "little")
    if index >= domain.size:
        return None
    consent = text[_BUDGET_BYTES : _BUDGET_BYTES + _DIGEST_BYTES]
    return VolunteerRecord(index, consent, int.from_bytes(text[:_BUDGET_BYTES], "little"))
