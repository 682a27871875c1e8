"""Counts in memory: every query is answered from a checkpoint plus the tail of the log, never by reading everything.

counts in memory   are brought up to date from the log after their sequence: each query reads only what is new
none in memory     begin with the checkpoint file, if it belongs to this log
or with the folded counts, if the collection was compacted
or with nothing, and read the whole log
"""

from __future__ import annotations

import time
from collections import OrderedDict
from dataclasses import dataclass
from pathlib import Path

from ldp_client.collection import Collection
from ldp_client.errors import InvalidSpec, ServerRefused, Unavailable
from ldp_server.oracles import oracle_for, restore
from ldp_server.oracles.base import Oracle
from ldp_server.store import CollectionRecord, LogReader
from ldp_server.store.checkpoints import Checkpoint, read_checkpoint, write_checkpoint
from ldp_server.store.damage import check_spec
from ldp_server.store.errors import Corrupt

__all__ = ["CollectionCounts", "CountsCache", "memory_bytes", "state_bytes"]

CHUNK = 4_000_000
"""Bytes of payloads read from the log at a time."""
TIMES = 3
"""Memory for counting and estimating, in times the counts: the counts themselves, and the estimates beside them."""


@dataclass
class CollectionCounts:
    """The counts of one collection, up to and including `sequence`."""

    record: CollectionRecord
    collection: Collection
    oracle: Oracle
    sequence: int
    batches: int
    last_id: bytes
    saved: int
    """The sequence of the newest checkpoint file."""


class CountsCache:
    """The counts of the collections that were asked about last, as many as fit into `keep_bytes`."""

    def __init__(self, log: LogReader, states: Path, *, keep_bytes: int) -> None:
        self._log = log
        self._states = states
        self._keep = keep_bytes
        self._held: OrderedDict[int, CollectionCounts] = OrderedDict()

    def get(self, number: int, *, seconds: float | None = None) -> CollectionCounts:
        """The counts of a collection, with everything that was durable when this was called.

        With `seconds` it may stop early (see `behind`), for work in the background.
        """
        self._log.renew()
        record = self._log.record(number)
        if record is None or record.deleted is not None:
            self._held.pop(number, None)
            raise InvalidSpec("no such collection")
        counts = self._held.pop(number, None)
        if counts is None or counts.record.generation != record.generation:
            counts = self._load(record)
        self._held[number] = counts
        counts.record = record
        self._advance(counts, None if seconds is None else time.monotonic() + seconds)
        self._evict()
        return counts

    def behind(self, counts: CollectionCounts) -> int:
        """How many batches the log holds that the counts do not."""
        return max(0, self._log.last(counts.record.number) - counts.sequence)

    def save(self, counts: CollectionCounts) -> Path:
        """Write a checkpoint of the counts."""
        state = counts.oracle.to_bytes()
        record, reports = counts.record, counts.oracle.reports
        checkpoint = Checkpoint(record.id, counts.sequence, reports, counts.batches, counts.last_id, state)
        path = write_checkpoint(self._states, checkpoint)
        counts.saved = counts.sequence
        return path

    def _advance(self, counts: CollectionCounts, deadline: float | None) -> None:
        width = counts.collection.randomizer.report_bytes
        newest = self._log.last(counts.record.number)
        for batches in self._log.read(counts.record.number, counts.sequence, max_bytes=CHUNK):
            try:
                counts.oracle.accumulate(b"".join([batch.payload for batch in batches]))
            except ServerRefused:
                # The log was checked before it was acknowledged: it is damaged, or of another version.
                self._held.pop(counts.record.number, None)
                raise Corrupt(
                    f"the log holds a report that is out of range ({width} bytes each): restore a backup"
                ) from None
            counts.sequence = batches[-1].sequence
            counts.last_id = batches[-1].batch_id
            counts.batches += len(batches)
            if deadline is not None and time.monotonic() >= deadline:
                return
        if counts.sequence < newest:
            if self._log.record(counts.record.number) != counts.record:
                raise Unavailable("the collection was deleted or compacted meanwhile: ask again", 1.0)
            raise Corrupt("the newest batches of a collection cannot be read: restore a backup (docs/operating.md)")

    def _load(self, record: CollectionRecord) -> CollectionCounts:
        check_spec(record)
        collection = Collection.from_bytes(record.spec)
        return self._from_checkpoint(record, collection) or self._from_log(record, collection)

    def _from_checkpoint(self, record: CollectionRecord, collection: Collection) -> CollectionCounts | None:
        found = read_checkpoint(self._states, record.id)
        if found is None or not self._belongs(found, record):
            return None
        try:
            oracle = restore(collection, found.state)
        except ServerRefused:
            return None
        return CollectionCounts(
            record, collection, oracle, found.sequence, found.batches, found.batch_id, found.sequence
        )

    def _from_log(self, record: CollectionRecord, collection: Collection) -> CollectionCounts:
        state = self._log.folded_state(record)
        if state is None:
            return CollectionCounts(record, collection, oracle_for(collection), 0, 0, bytes(16), -1)
        try:
            oracle = restore(collection, state)
        except ServerRefused:
            raise Corrupt("the folded counts of a collection are damaged: restore a backup") from None
        return CollectionCounts(record, collection, oracle, record.folded, record.folded_batches, _fold_id(record), -1)

    def _belongs(self, checkpoint: Checkpoint, record: CollectionRecord) -> bool:
        """Whether a checkpoint continues this very log, and not one that was since replaced by a backup."""
        if checkpoint.sequence == record.folded and record.generation is not None:
            return checkpoint.batch_id == _fold_id(record)
        if checkpoint.sequence <= record.folded:
            return False
        return self._log.holds(record.number, checkpoint.sequence, checkpoint.batch_id)

    def _evict(self) -> None:
        while len(self._held) > 1 and sum(memory_bytes(counts.oracle) for counts in self._held.values()) > self._keep:
            self._held.popitem(last=False)


def _fold_id(record: CollectionRecord) -> bytes:
    """What stands for a batch id in a checkpoint that ends with the folded counts."""
    return b"folded!!" + (record.generation or 0).to_bytes(8, "little")


def state_bytes(oracle: Oracle) -> int:
    """The size of an oracle's counts. Some oracles keep theirs in a form of their own."""
    counts = getattr(oracle, "counts", None)
    return len(oracle.to_bytes()) if counts is None else int(counts.values.nbytes)


def memory_bytes(oracle: Oracle) -> int:
    """About the memory that an oracle's counts, and the estimates made of them, take."""
    return TIMES * state_bytes(oracle)
