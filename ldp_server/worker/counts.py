"""Counts in memory: a query reads only what was added to the log since the last one, or since a checkpoint.

counts in memory   are brought up to date from the log: each query reads the blocks after their sequence, and the recent
                   batches (fewer than a block), and counts what is new
none in memory     begin with the checkpoint file, if it belongs to this log; else with the folded counts, if the
                   collection was compacted; else with nothing, and read the whole log
"""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from ldp_client.collection import Collection
from ldp_client.errors import InvalidSpec, ServerRefused, Unavailable
from ldp_server.oracles import oracle_for, restore
from ldp_server.oracles.base import Oracle
from ldp_server.store import CollectionRecord, LogReader, StoredBatch
from ldp_server.store.checkpoints import Checkpoint, read_checkpoint, write_checkpoint
from ldp_server.store.damage import check_spec
from ldp_server.store.errors import Corrupt

__all__ = ["CollectionCounts", "CountsCache", "memory_bytes", "state_bytes"]

CHUNK = 4_000_000
"""Bytes of payloads read from the log at a time."""
TIMES = 3
"""Memory for counting and estimating, as a multiple of the counts: the counts, and the estimates beside them."""


@dataclass
class CollectionCounts:
    """The counts of one collection: of its blocks up to and including `sequence`, and of recent batches."""

    record: CollectionRecord
    collection: Collection
    oracle: Oracle
    sequence: int
    recent: set[bytes] = field(default_factory=set)
    """Ids of the counted batches that are not in those blocks."""
    saved: int = 0
    """How many batches the newest checkpoint file counts."""

    @property
    def batches(self) -> int:
        """How many batches are counted. Sequences have no gaps, and go on after the folded ones."""
        return self.sequence + len(self.recent)


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
        counts.record = record
        self._advance(counts, None if seconds is None else time.monotonic() + seconds)
        self._held[number] = counts  # not before: counts that met damage are dropped
        self._evict()
        return counts

    def behind(self, counts: CollectionCounts) -> int:
        """How many batches the log holds that the counts do not."""
        return max(0, self._log.count(counts.record.number) - counts.batches)

    def save(self, counts: CollectionCounts) -> Path:
        """Write a checkpoint of the counts."""
        record, oracle, recent = counts.record, counts.oracle, sorted(counts.recent)
        tie = self._log.tie(record.number, counts.sequence) or _fold_tie(record)
        checkpoint = Checkpoint(
            record.id, counts.sequence, oracle.reports, counts.batches, tie, recent, oracle.to_bytes()
        )
        path = write_checkpoint(self._states, checkpoint)
        counts.saved = counts.batches
        return path

    def _advance(self, counts: CollectionCounts, deadline: float | None) -> None:
        """Count blocks, then recent batches. If a block was finished in between, go on with it."""
        number = counts.record.number
        recent = None
        while recent is None:
            newest = self._log.last(number)
            for batches in self._log.read(number, counts.sequence, max_bytes=CHUNK):
                self._count(counts, [batch for batch in batches if batch.batch_id not in counts.recent])
                counts.recent.difference_update(batch.batch_id for batch in batches)
                counts.sequence = batches[-1].sequence
                if deadline is not None and time.monotonic() >= deadline:
                    return
            if counts.sequence < newest:
                self._unless_gone(counts)
                raise Corrupt("the newest batches of a collection cannot be read: restore a backup (docs/operating.md)")
            recent = self._log.recent(number, counts.sequence)
        self._count(counts, [batch for batch in recent if batch.batch_id not in counts.recent])
        ids = {batch.batch_id for batch in recent}
        if not counts.recent <= ids:
            self._unless_gone(counts)
            raise Corrupt("recent batches that were counted are gone: restore a backup (docs/operating.md)")
        counts.recent = ids
        self._unless_gone(counts)

    def _count(self, counts: CollectionCounts, batches: Sequence[StoredBatch]) -> None:
        try:
            counts.oracle.accumulate(b"".join([batch.payload for batch in batches]))
        except ServerRefused:
            # The log was checked before it was acknowledged: it is damaged, or of another version.
            width = counts.collection.randomizer.report_bytes
            raise Corrupt(
                f"the log holds a report that is out of range ({width} bytes each): restore a backup"
            ) from None

    def _unless_gone(self, counts: CollectionCounts) -> None:
        """Say so if batches may be missing because their collection was deleted or compacted meanwhile."""
        record = self._log.record(counts.record.number)
        if record is None or (record.deleted, record.generation) != (None, counts.record.generation):
            raise Unavailable("the collection was deleted or compacted meanwhile: ask again", 1.0)

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
        return CollectionCounts(record, collection, oracle, found.sequence, set(found.recent), found.batches)

    def _from_log(self, record: CollectionRecord, collection: Collection) -> CollectionCounts:
        state = self._log.folded_state(record)
        if state is None:
            return CollectionCounts(record, collection, oracle_for(collection), 0)
        try:
            oracle = restore(collection, state)
        except ServerRefused:
            raise Corrupt("the folded counts of a collection are damaged: restore a backup") from None
        return CollectionCounts(record, collection, oracle, record.folded)

    def _belongs(self, checkpoint: Checkpoint, record: CollectionRecord) -> bool:
        """Whether a checkpoint continues this very log, and not one that was since replaced by a backup."""
        if checkpoint.sequence < record.folded or not self._log.known(record.number, checkpoint.recent):
            return False
        if checkpoint.sequence == record.folded:
            return checkpoint.tie == _fold_tie(record)
        return checkpoint.tie == self._log.tie(record.number, checkpoint.sequence)

    def _evict(self) -> None:
        while len(self._held) > 1 and sum(memory_bytes(counts.oracle) for counts in self._held.values()) > self._keep:
            self._held.popitem(last=False)


def _fold_tie(record: CollectionRecord) -> bytes:
    """What stands for a block's tie in a checkpoint that has no block after the folded counts."""
    return b"folded!!" + (record.generation or 0).to_bytes(8, "little")


def state_bytes(oracle: Oracle) -> int:
    """The size that an oracle's counts may grow to. Some oracles keep theirs in a form of their own."""
    counts = getattr(oracle, "counts", None)
    return len(oracle.to_bytes()) if counts is None else max(counts.nbytes, counts.most_bytes)


def memory_bytes(oracle: Oracle) -> int:
    """About the memory that an oracle's counts, and the estimates made of them, take."""
    return TIMES * state_bytes(oracle)
