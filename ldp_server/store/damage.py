"""Finds damage in what was read: rows that are missing or out of order, payloads that do not fit their digests.

SQLite keeps no checksums. A bit that flips on the disk changes a payload, or a row's number, and SQLite gives it out.
The numbers of the batches in blocks have no gaps, so a number that does not follow its predecessor is damage too.
Reading stops there: a number that falls would make it read the same rows again for ever. Recent batches have no
numbers. Their rows and the index of their ids must name the same batches at the same places.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

from ldp_client.protocol import tags
from ldp_server.store.errors import Corrupt
from ldp_server.store.log import CollectionRecord

__all__ = ["Row", "check_payloads", "check_recent", "check_rows", "check_spec"]

Row = tuple[int, bytes, bytes, bytes]
"""Position, batch id, payload, digest."""


def check_spec(record: CollectionRecord) -> None:
    """Raise `Corrupt` if a collection's spec is not the one that its id names."""
    if hashlib.sha256(tags.COLLECTION + record.spec).digest() != record.id:
        raise Corrupt("a collection's spec does not hash to its id: restore a backup (docs/operating.md)")


def check_rows(rows: Sequence[Row], after: int) -> None:
    """Raise `Corrupt` unless the rows follow `after` without a gap and every payload fits its digest."""
    for expected, row in enumerate(rows, after + 1):
        if row[0] != expected:
            raise Corrupt("the numbers of a collection's batches have a gap: restore a backup (docs/operating.md)")
        _check_payload(row)


def check_recent(rows: Sequence[Row], index: Sequence[tuple[int, bytes]]) -> None:
    """Raise `Corrupt` unless rows and index name the same batches and every payload fits its digest."""
    if len(rows) != len(index) or {row[0]: row[1] for row in rows} != dict(index):
        raise Corrupt("the recent batches of a collection do not fit their index: restore a backup (docs/operating.md)")
    check_payloads(rows)


def check_payloads(rows: Sequence[Row]) -> None:
    """Raise `Corrupt` unless every payload fits its digest."""
    for row in rows:
        _check_payload(row)


def _check_payload(row: Row) -> None:
    _, batch_id, payload, digest = row
    if not type(batch_id) is type(payload) is type(digest) is bytes:  # a bit of the row's types flipped
        raise Corrupt("a batch is not of the right type: restore a backup (docs/operating.md)")
    if hashlib.sha256(payload).digest()[:16] != digest:
        raise Corrupt("a batch does not fit its digest: restore a backup (docs/operating.md)")
