"""From sealed units to reports. A unit that is of no use is dropped and counted; the others are taken.

One bad unit must not spoil its batch: a relay cannot look into units, so one device could spoil the reports of all
others. So nothing about a single unit refuses a batch.
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
    SEALED_EXTRA,
    key_id,
    key_id_of,
    seal_info,
    seal_suite,
    split_units,
    unit_digest,
)

__all__ = ["DROPPED", "REPLAYED", "Opened", "OpeningJob", "open_units"]

REPLAYED = "REPLAYED"
"""For a unit that is counted already."""
DROPPED = ("NOT_SEALED", "UNKNOWN_SEALING_KEY", "SEAL_EXPIRED", "BAD_SEAL", "REPORT_OUT_OF_RANGE", REPLAYED)
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

    def __repr__(self) -> str:
        return f"OpeningJob({len(self.payload)} bytes)"


@dataclass(frozen=True)
class Opened:
    """What was in the units: a report and a digest of each, in the same order, each unit once."""

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


def open_units(job: OpeningJob) -> Opened:
    """Open every unit. The payload is a whole number of units."""
    rings = {found[0]: (found[1], until > job.now) for private, until in job.keys for found in (_key(private),)}
    bindings = {key: seal_info(job.collection_id, key) for key in rings}
    decrypt = seal_suite().decrypt
    reports: dict[bytes, bytes] = {}
    dropped: Counter[str] = Counter()
    for unit in split_units(job.payload, job.report_bytes + SEALED_EXTRA):
        key = key_id_of(unit)
        if key not in rings:
            dropped["NOT_SEALED" if key is None else "UNKNOWN_SEALING_KEY"] += 1
            continue
        secret, opens = rings[key]
        if not opens:
            dropped["SEAL_EXPIRED"] += 1
            continue
        digest = unit_digest(unit)
        if digest in reports:
            dropped[REPLAYED] += 1
            continue
        try:
            report = decrypt(unit[1 + KEY_ID_BYTES :], secret, info=bindings[key])
        except (InvalidTag, ValueError):  # ValueError: an ephemeral key that is no point to compute with
            dropped["BAD_SEAL"] += 1
            continue
        if int.from_bytes(report, "little") >= job.bound:
            dropped["REPORT_OUT_OF_RANGE"] += 1
            continue
        reports[digest] = report
    return Opened(b"".join(reports.values()), b"".join(reports), dropped)
