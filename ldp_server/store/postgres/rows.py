"""Rows of PostgreSQL as the records of the store, and its batches as `StoredBatch`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from ldp_server.store.catalog import period_check
from ldp_server.store.damage import check_payloads
from ldp_server.store.errors import Corrupt
from ldp_server.store.log import KINDS, Admission, CollectionRecord, PeriodRecord
from ldp_server.store.postgres.arrays import uuids_of

__all__ = ["COLLECTIONS", "PERIODS", "Together", "collection_record", "period_record", "together"]

COLLECTIONS = (
    "SELECT k.number, k.id, k.spec, k.public, k.admission, k.reports_per_token, k.created, k.closed, k.deleted, "
    "k.compacted, k.oldest, (SELECT count(*) FROM hearsay.periods p WHERE p.collection = k.number), k.shards "
    "FROM hearsay.collections k"
)
PERIODS = (
    "SELECT p.number, p.collection, p.period, p.folded, p.folded_batches, p.folded_reports, p.generation, p.dropped, "
    "k.deleted IS NOT NULL, p.tag FROM hearsay.periods p JOIN hearsay.collections k ON k.number = p.collection"
)
_DAMAGED = "the row of a collection is damaged: restore a backup (docs/scale-out.md)"


def collection_record(row: Sequence[Any]) -> CollectionRecord:
    """Read a row of `COLLECTIONS`."""
    number, id_, spec, public, kind, per_token, created, closed, deleted, compacted, *rest = row
    if kind not in KINDS:
        raise Corrupt(_DAMAGED)
    admission = Admission(kind, per_token)
    times = (created, closed, deleted)
    return CollectionRecord(number, bytes(id_), bytes(spec), public, admission, *times, compacted, *rest)


def period_record(row: Sequence[Any]) -> PeriodRecord:
    """Read a row of `PERIODS`."""
    *known, tag = row
    if bytes(tag) != period_check(*known[:3]):
        raise Corrupt(_DAMAGED)
    return PeriodRecord(*known)


class Together(NamedTuple):
    """Batches that lie in one row: ids, digests and payloads, in the same order."""

    ids: list[bytes]
    digests: list[bytes]
    payloads: list[bytes]


def together(ids: bytes, digests: bytes, lengths: Sequence[int] | None, payload: bytes) -> Together:
    """Take a row's arrays apart; `Corrupt` if they do not fit each other, or a payload not its digest."""
    names, sums, count = uuids_of(ids), uuids_of(digests), len(uuids_of(ids))
    sizes = lengths or ([len(payload) // count] * count if count else [])
    if not count or len(sums) != count or len(sizes) != count or sum(sizes) != len(payload):
        raise Corrupt("a row of batches does not fit itself: restore a backup (docs/scale-out.md)")
    payloads, start = [], 0
    for size in sizes:
        payloads.append(payload[start : start + size])
        start += size
    check_payloads([(0, *row) for row in zip(names, payloads, sums, strict=True)])
    return Together(names, sums, payloads)
