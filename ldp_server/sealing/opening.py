"""From sealed units to reports. A unit that is of no use is dropped and counted; the others are taken.

One bad unit must not spoil its batch: a relay cannot look into units, so one device could spoil the reports of all
others. So nothing about a single unit refuses a batch.

Where the collection admits by unlinkable token, each unit holds one behind its report. Then the token's id stands for
the unit in place of its digest. A unit that comes twice and two units with one token both show the same id, and the
store counts the first one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

from ldp_client.protocol.sealing import (
    KEY_ID_BYTES,
    key_id,
    key_id_of,
    seal_info,
    seal_suite,
    sealed_bytes,
    split_units,
    unit_digest,
)
from ldp_client.tokens import IssuerKey
from ldp_client.tokens.token import TOKEN_BYTES
from ldp_client.tokens.verifier import UnlinkableVerifier

__all__ = ["DROPPED", "REPLAYED", "Opened", "OpeningJob", "open_units"]

REPLAYED = "REPLAYED"
"""For a unit that is counted already, or whose token is used."""
DROPPED = (
    "NOT_SEALED",
    "UNKNOWN_SEALING_KEY",
    "SEAL_EXPIRED",
    "BAD_SEAL",
    "REPORT_OUT_OF_RANGE",
    "NOT_ADMITTED",
    "TOKEN_USED",
    "TOKEN_FOR_ANOTHER",
    REPLAYED,
)
"""Why a unit is dropped: a Reason of the wire, or REPLAYED."""


@dataclass(frozen=True)
class OpeningJob:
    """Sealed units of one collection, and what is needed to open them."""

    collection_id: bytes
    report_bytes: int
    bound: int
    """Reports are below it."""
    keys: tuple[tuple[bytes, int], ...]
    """Private keys, and the second from which each opens nothing any more."""
    now: int
    payload: bytes
    issuers: tuple[int, ...] | None = None
    """The issuers' keys, if each unit holds an unlinkable token; None if it holds none."""

    def __repr__(self) -> str:
        return f"OpeningJob({len(self.payload)} bytes)"


@dataclass(frozen=True)
class Opened:
    """What was in the units: a report and a digest (or a token's id) of each, in the same order, each unit once."""

    reports: bytes
    digests: bytes
    dropped: Mapping[str, int]
    """How many units were dropped, for each reason."""

    def __repr__(self) -> str:
        return f"Opened({len(self.reports)} bytes)"


@lru_cache(maxsize=128)
def _key(private: bytes) -> tuple[bytes, X25519PrivateKey]:
    secret = X25519PrivateKey.from_private_bytes(private)
    return key_id(secret.public_key().public_bytes_raw()), secret


@lru_cache(maxsize=8)
def _verifier(issuers: tuple[int, ...]) -> UnlinkableVerifier:
    return UnlinkableVerifier([IssuerKey(n) for n in issuers])


def _refusal(verifier: UnlinkableVerifier | None, token: bytes, collection_id: bytes) -> str:
    return "NOT_ADMITTED" if verifier is None else verifier.reason(token, collection_id)


def open_units(job: OpeningJob) -> Opened:
    """Open every unit. The payload is a whole number of units."""
    width = job.report_bytes
    verifier = None if job.issuers is None else _verifier(job.issuers)
    rings = {found[0]: (found[1], until > job.now) for private, until in job.keys for found in (_key(private),)}
    bindings = {key: seal_info(job.collection_id, key) for key in rings}
    decrypt = seal_suite().decrypt
    reports: dict[bytes, bytes] = {}
    seen: set[bytes] = set()
    dropped: Counter[str] = Counter()
    for unit in split_units(job.payload, sealed_bytes(width, 0 if verifier is None else TOKEN_BYTES)):
        key = key_id_of(unit)
        if key not in rings:
            dropped["NOT_SEALED" if key is None else "UNKNOWN_SEALING_KEY"] += 1
            continue
        secret, opens = rings[key]
        if not opens:
            dropped["SEAL_EXPIRED"] += 1
            continue
        digest = unit_digest(unit)
        if digest in seen:
            dropped[REPLAYED] += 1
            continue
        try:
            inside = decrypt(unit[1 + KEY_ID_BYTES :], secret, info=bindings[key])
        except (InvalidTag, ValueError):  # ValueError: an ephemeral key that is no point to compute with
            dropped["BAD_SEAL"] += 1
            continue
        report = inside[:width]
        if int.from_bytes(report, "little") >= job.bound:
            dropped["REPORT_OUT_OF_RANGE"] += 1
            continue
        seen.add(digest)
        name = digest if verifier is None else verifier.token_id(inside[width:], job.collection_id)
        if name is None or name in reports:
            dropped["TOKEN_USED" if name else _refusal(verifier, inside[width:], job.collection_id)] += 1
            continue
        reports[name] = report
    return Opened(b"".join(reports.values()), b"".join(reports), dropped)
