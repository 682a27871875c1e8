"""Finds damage in what was read: rows that are missing or out of order, payloads that do not fit their digests.

SQLite keeps no checksums. A bit that flips on the disk changes a payload, or a row's number, and SQLite gives it out.
The numbers of a collection's batches have no gaps, so a number that does not follow its predecessor is damage too.
Reading stops there: a number that falls would make it read the same rows again for ever.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

from ldp_client.protocol import tags
from ldp_server.store.errors import Corrupt
from ldp_server.store.log import CollectionRecord

__all__ = ["Row", "check_rows", "check_spec"]

Row = tuple[int, bytes, bytes, bytes]
"""Position, batch id, payload, digest."""


def check_spec(record: CollectionRecord) -> None:
    """Raise `Corrupt` if a collection's spec is not the one that its id names."""
    if hashlib.sha256(tags.COLLECTION + record.spec).digest() != record.id:
        raise Corrupt("a collection's spec does not hash to its id: restore a backup (docs/operating.md)")


def check_rows(rows: Sequence[Row], after: int) -> None:
    """Raise `Corrupt` unless the rows follow `after` without a gap and every payload fits its digest."""
    for expected, (position, _, payload, digest) in enumerate(rows, after + 1):
        if position != expected:
            raise Corrupt("the numbers of a collection's batches have a gap: restore a backup (docs/operating.md)")
        if type(payload) is not bytes or type(digest) is not bytes:  # a bit of the row's types flipped
            raise Corrupt("a batch is not of the right type: restore a backup (docs/operating.md)")
        if hashlib.sha256(payload).digest()[:16] != digest:
            raise Corrupt("a batch does not fit its digest: restore a backup (docs/operating.md)")
