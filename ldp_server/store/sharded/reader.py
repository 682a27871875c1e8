"""Reading several databases as one log.

The catalogue is that of the home. Each database is asked for what it holds, and one that does not answer makes the
question fail: an answer without it would be silently smaller.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from ldp_server.store.errors import Corrupt, StorageError
from ldp_server.store.interface.reading import LogReader
from ldp_server.store.log import CollectionRecord, PeriodRecord, StoredBatch
from ldp_server.store.postgres.reader import PostgresReader
from ldp_server.store.sharded.routing import inner_number, outer_number, shard_of

__all__ = ["ShardedReader"]


class ShardedReader(LogReader):
    """Reads through one connection to each database."""

    def __init__(self, shards: Sequence[PostgresReader]) -> None:
        """The first one is the home."""
        self._readers = tuple(shards)
        self.name = ", ".join(one.name for one in shards)
        self._spread: dict[int, int] = {}

    @property
    def _home_reader(self) -> PostgresReader:
        return self._readers[0]

    def _at(self, number: int) -> tuple[PostgresReader, int]:
        """The database of a period's record, and its number there."""
        shard, local = inner_number(number)
        self._refuse_more_than_there_are(shard + 1)
        return self._readers[shard], local

    def _refuse_more_than_there_are(self, shards: int) -> None:
        if shards > len(self._readers):
            raise StorageError(
                f"a collection is spread over {shards} databases, and store names {len(self._readers)}: name all of "
                "them, in their order"
            )

    def shards_of(self, collection: int) -> int:
        """Over how many databases a collection is spread; 0 if there is none of this number."""
        found = self._spread.get(collection, 0)
        if not found:
            record = self.record(collection)
            if record is None:
                return 0
            found = self._spread[collection] = record.shards
        self._refuse_more_than_there_are(found)
        return found

    def _of(self, collection: int) -> list[tuple[int, PostgresReader]]:
        """The databases over which a collection is spread."""
        return list(enumerate(self._readers[: self.shards_of(collection)]))

    def records(self) -> list[CollectionRecord]:
        return self._home_reader.records()

    def record(self, number: int) -> CollectionRecord | None:
        return self._home_reader.record(number)

    def record_of(self, collection_id: bytes) -> CollectionRecord | None:
        return self._home_reader.record_of(collection_id)

    def periods(self, collection: int) -> list[PeriodRecord]:
        found = [
            replace(one, number=outer_number(one.number, shard))
            for shard, reader in self._of(collection)
            for one in reader.periods(collection)
        ]
        return sorted(found, key=lambda one: (one.period, one.number))

    def period(self, number: int) -> PeriodRecord | None:
        reader, local = self._at(number)
        found = reader.period(local)
        return None if found is None else replace(found, number=number)

    def read(self, number: int, after: int, *, max_bytes: int = 4_000_000) -> Iterator[list[StoredBatch]]:
        reader, local = self._at(number)
        return reader.read(local, after, max_bytes=max_bytes)

    def recent(self, number: int, after: int) -> list[StoredBatch] | None:
        reader, local = self._at(number)
        return reader.recent(local, after)

    def last(self, number: int) -> int:
        reader, local = self._at(number)
        return reader.last(local)

    def count(self, number: int) -> int:
        reader, local = self._at(number)
        return reader.count(local)

    def held_bytes(self, number: int) -> int:
        reader, local = self._at(number)
        return reader.held_bytes(local)

    def check_recent(self, collection: int) -> None:
        for _, reader in self._of(collection):
            reader.check_recent(collection)

    def tie(self, number: int, sequence: int) -> bytes | None:
        reader, local = self._at(number)
        return reader.tie(local, sequence)

    def known(self, record: PeriodRecord, ids: Sequence[bytes]) -> bool:
        reader, local = self._at(record.number)
        return reader.known(replace(record, number=local), ids)

    def counted_units(self, collection: int, digests: Sequence[bytes]) -> set[bytes]:
        readers = self._of(collection)
        found: set[bytes] = set()
        for shard, reader in readers:
            theirs = [one for one in digests if shard_of(one, len(readers)) == shard]
            found |= reader.counted_units(collection, theirs) if theirs else set()
        return found

    def folded_state(self, record: PeriodRecord) -> bytes | None:
        reader, local = self._at(record.number)
        return reader.folded_state(replace(record, number=local))

    def check(self) -> None:
        records = self.records()
        for shard, reader in enumerate(self._readers):
            reader.check()
            ids = {one.number: one.id for one in reader.records()} if shard else {}
            if any(ids.get(one.number) != one.id for one in records if 0 < shard < one.shards):
                raise Corrupt(
                    f"{reader.name} lacks a collection that {self._home_reader.name} has: was it restored from an "
                    "older backup? Restore all databases as of one moment (docs/scale-out.md)"
                )

    def interrupt(self) -> None:
        for reader in self._readers:
            reader.interrupt()

    def renew(self) -> None:
        """Each connection that was lost is opened again by the next question."""

    def close(self) -> None:
        for reader in self._readers:
            reader.close()
