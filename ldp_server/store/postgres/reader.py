"""Reading the log on PostgreSQL. Each method sees what was durable when it was called.

Batches get their sequence numbers when they become a block, by one process at a time, and that transaction holds a lock
on the period's row until it is over. So a reader that goes on after the last number it has seen misses nothing. The
others are known by their ids, and one snapshot has either the block or its batches among the recent ones. A reader that
goes by numbers given before the commit would miss those that commit late.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import psycopg

from ldp_server.store.errors import FINAL, Corrupt, StorageError
from ldp_server.store.interface.reading import LogReader
from ldp_server.store.log import CollectionRecord, PeriodRecord, StoredBatch
from ldp_server.store.postgres.arrays import uuids, uuids_of
from ldp_server.store.postgres.connecting import Connection, Destination
from ldp_server.store.postgres.failures import Interrupted, Lost, translated
from ldp_server.store.postgres.retention import folded_counts
from ldp_server.store.postgres.rows import COLLECTIONS, PERIODS, collection_record, period_record, together

__all__ = ["PostgresReader"]

READ_TRIES = 2
"""How often a question is asked, if its connection is lost. One that was cancelled is not asked again."""
_MOST_BLOCKS = 64
_BLOCKS = (
    "SELECT b.last, array_send(b.ids), array_send(b.digests), b.lengths, b.payload FROM hearsay.periods p "
    "JOIN hearsay.blocks b ON b.collection = p.collection AND b.number = p.number "
    "WHERE p.number = %s AND b.last > %s ORDER BY b.last LIMIT %s"
)
_RECENT = (
    "SELECT p.last, k.deleted IS NOT NULL, array_send(s.ids), array_send(s.digests), s.lengths, s.payload "
    "FROM hearsay.periods p JOIN hearsay.collections k ON k.number = p.collection "
    "LEFT JOIN hearsay.segments s ON s.number = p.number WHERE p.number = %s"
)
_COUNT = (
    "SELECT last + (SELECT coalesce(sum(batches), 0) FROM hearsay.segments s WHERE s.number = p.number) "
    "FROM hearsay.periods p WHERE p.number = %s"
)
_HELD = (
    "SELECT (SELECT coalesce(sum(length(s.payload)), 0) FROM hearsay.segments s WHERE s.number = p.number) + "
    "(SELECT coalesce(sum(length(b.payload)), 0) FROM hearsay.blocks b WHERE b.collection = p.collection "
    "AND b.number = p.number) FROM hearsay.periods p WHERE p.number = %s"
)
_KNOWN = (
    "SELECT count(*) FROM unnest(%s::uuid[]) AS g(i) WHERE EXISTS (SELECT FROM hearsay.recent_ids r "
    "WHERE r.collection = %s AND r.batch_id = g.i AND r.number = %s) OR EXISTS (SELECT FROM hearsay.batch_ids b "
    "WHERE b.collection = %s AND b.batch_id = g.i AND b.number = %s)"
)
_RECENT_ROWS = (
    "SELECT (SELECT count(*) FROM hearsay.recent_ids r WHERE r.collection = %(c)s AND NOT EXISTS "
    "(SELECT FROM hearsay.batch_ids b WHERE b.collection = %(c)s AND b.batch_id = r.batch_id)) = "
    "(SELECT coalesce(sum(s.batches), 0) FROM hearsay.segments s JOIN hearsay.periods p ON p.number = s.number "
    "WHERE p.collection = %(c)s) OR (SELECT deleted IS NOT NULL OR compacted FROM hearsay.collections "
    "WHERE number = %(c)s)"
)
_UNSOUND = (
    "SELECT count(*) FROM hearsay.periods p JOIN hearsay.collections k ON k.number = p.collection "
    "WHERE p.generation IS NULL AND k.deleted IS NULL AND p.last <> (SELECT coalesce(sum(b.batches), 0) "
    "FROM hearsay.blocks b WHERE b.collection = p.collection AND b.number = p.number)"
)


class PostgresReader(LogReader):
    """Reads through one connection, which is opened again when it was lost."""

    def __init__(self, destination: Destination, *, writes: bool = False, patient: bool = False) -> None:
        """One that is patient takes a database that is away now: whoever asks it is told so."""
        self._destination = destination
        self._writes = writes
        self.name = destination.name
        self._connection: Connection | None = None
        try:
            self._connection = destination.connect(writes=writes)
        except StorageError as error:
            if not patient or isinstance(error, FINAL):
                raise

    def _open(self) -> Connection:
        """The connection; a new one if the last one was lost."""
        if self._connection is None or self._connection.closed:
            self._connection = None
            self._connection = self._destination.connect(writes=self._writes)
        return self._connection

    def _drop(self) -> None:
        """Give the connection up: what it was about to do is open."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _ask(self, query: str, values: Sequence[object] | dict[str, object] = ()) -> list[tuple[Any, ...]]:
        """Ask a question that changes nothing."""
        for left in reversed(range(READ_TRIES)):
            try:
                with translated(self.name):
                    found: list[tuple[Any, ...]] = self._open().execute(query.encode(), values, binary=True).fetchall()
                    return found
            except Lost as error:
                self._drop()
                if not left or isinstance(error, Interrupted):
                    raise
        raise AssertionError("READ_TRIES is above 0")

    def _one(self, query: str, values: Sequence[object] | dict[str, object] = ()) -> tuple[Any, ...] | None:
        found = self._ask(query, values)
        return found[0] if found else None

    def records(self) -> list[CollectionRecord]:
        return [collection_record(row) for row in self._ask(f"{COLLECTIONS} ORDER BY k.number")]

    def record(self, number: int) -> CollectionRecord | None:
        row = self._one(f"{COLLECTIONS} WHERE k.number = %s", (number,))
        return None if row is None else collection_record(row)

    def record_of(self, collection_id: bytes) -> CollectionRecord | None:
        row = self._one(f"{COLLECTIONS} WHERE k.id = %s", (collection_id,))
        return None if row is None else collection_record(row)

    def periods(self, collection: int) -> list[PeriodRecord]:
        rows = self._ask(f"{PERIODS} WHERE p.collection = %s ORDER BY p.period", (collection,))
        return [period_record(row) for row in rows]

    def period(self, number: int) -> PeriodRecord | None:
        row = self._one(f"{PERIODS} WHERE p.number = %s", (number,))
        return None if row is None else period_record(row)

    def read(self, number: int, after: int, *, max_bytes: int = 4_000_000) -> Iterator[list[StoredBatch]]:
        at_once = 1
        while rows := self._ask(_BLOCKS, (number, after, at_once)):
            for last, ids, digests, lengths, payload in rows:
                held = together(ids, digests, lengths, payload)
                first = last - len(held.ids) + 1
                if first > after + 1:
                    if self._is_gone(number, after):
                        return
                    raise Corrupt("a block of a collection is missing: restore a backup (docs/scale-out.md)")
                pairs = zip(held.ids, held.payloads, strict=True)
                batches = [StoredBatch(sequence, *pair) for sequence, pair in enumerate(pairs, first)]
                yield from _cut(batches[after + 1 - first :], max_bytes)
                after = last
            at_once = max(1, min(_MOST_BLOCKS, max_bytes // (1 + len(rows[-1][4]))))

    def _is_gone(self, number: int, after: int) -> bool:
        """Whether blocks are missing because the collection was deleted, or the period folded, meanwhile."""
        record = self.period(number)
        return record is None or record.deleted or record.folded > after

    def recent(self, number: int, after: int) -> list[StoredBatch] | None:
        rows = self._ask(_RECENT, (number,))
        if not rows or rows[0][1]:
            return []
        newest = rows[0][0]
        if newest < after:
            raise Corrupt("a collection has batches after its last block: restore a backup (docs/scale-out.md)")
        if newest > after:
            return None
        found = []
        for _, _, ids, digests, lengths, payload in rows:
            if ids is not None:
                held = together(ids, digests, lengths, payload)
                pairs = zip(held.ids, held.payloads, strict=True)
                found.extend([StoredBatch(0, batch_id, data) for batch_id, data in pairs])
        return sorted(found, key=lambda batch: batch.batch_id)

    def last(self, number: int) -> int:
        row = self._one("SELECT last FROM hearsay.periods WHERE number = %s", (number,))
        return int(row[0]) if row else 0

    def count(self, number: int) -> int:
        row = self._one(_COUNT, (number,))
        return int(row[0]) if row else 0

    def held_bytes(self, number: int) -> int:
        row = self._one(_HELD, (number,))
        return int(row[0]) if row else 0

    def check_recent(self, collection: int) -> None:
        row = self._one(_RECENT_ROWS, {"c": collection})
        if row is not None and not row[0]:
            raise Corrupt("recent batches of a collection do not fit their ids: restore a backup (docs/scale-out.md)")

    def tie(self, number: int, sequence: int) -> bytes | None:
        row = self._one(
            "SELECT uuid_send(b.tie) FROM hearsay.periods p JOIN hearsay.blocks b ON b.collection = p.collection "
            "AND b.number = p.number WHERE p.number = %s AND b.last = %s",
            (number, sequence),
        )
        return None if row is None else bytes(row[0])

    def known(self, record: PeriodRecord, ids: Sequence[bytes]) -> bool:
        where = (record.collection, record.number)
        row = self._one(_KNOWN, (uuids(ids), *where, *where)) if ids else (0,)
        return row is not None and row[0] == len(ids)

    def counted_units(self, collection: int, digests: Sequence[bytes]) -> set[bytes]:
        row = self._one(
            "SELECT array_send(array_agg(u.digest)) FROM hearsay.counted_units u "
            "WHERE u.collection = %s AND u.digest = ANY(%s::uuid[])",
            (collection, uuids(digests)),
        )
        return set(uuids_of(row[0])) if row and row[0] else set()

    def folded_state(self, record: PeriodRecord) -> bytes | None:
        return folded_counts(self._ask, record)

    def check(self) -> None:
        row = self._one(_UNSOUND)
        if row is None or row[0]:
            raise Corrupt(f"{self.name}: blocks of a collection are missing: restore a backup (docs/scale-out.md)")

    def interrupt(self) -> None:
        if self._connection is not None:
            try:
                self._connection.cancel_safe(timeout=5.0)
            except psycopg.Error:
                self._connection.cancel()

    def renew(self) -> None:
        """A connection that was lost is opened again by the next question."""

    def close(self) -> None:
        self._drop()

    def _existing(self, number: int) -> CollectionRecord:
        record = self.record(number)
        if record is None:
            raise StorageError(f"the row of collection {number} is not in {self.name}: restore a backup")
        return record

    def _existing_period(self, number: int) -> PeriodRecord:
        record = self.period(number)
        if record is None:
            raise StorageError(f"the row of period {number} is not in {self.name}: restore a backup")
        return record


def _cut(batches: list[StoredBatch], max_bytes: int) -> Iterator[list[StoredBatch]]:
    """Lists of about so many bytes."""
    found: list[StoredBatch] = []
    size = 0
    for batch in batches:
        found.append(batch)
        size += len(batch.payload)
        if size >= max_bytes:
            yield found
            found, size = [], 0
    if found:
        yield found
