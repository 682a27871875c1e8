"""The counts of one period, from a checkpoint plus the tail of the log, never by reading everything.

counts in memory   are brought up to date from the log: each query reads the blocks after their sequence, and the recent
                   batches (fewer than a block), and counts what is new
none in memory     begin with the checkpoint file, if it belongs to this log
or with the folded counts, if the period was folded
or with nothing, and read the whole period

A question without a schedule has one period.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from ldp_client.collection import Collection
from ldp_client.errors import ServerRefused, Unavailable
from ldp_server.oracles import oracle_for, restore
from ldp_server.oracles.base import Oracle
from ldp_server.store import LogReader, PeriodRecord, StoredBatch
from ldp_server.store.checkpoints import Checkpoint, read_checkpoint, write_checkpoint
from ldp_server.store.errors import Corrupt

__all__ = ["PeriodCounter", "PeriodCounts"]

CHUNK = 4_000_000
"""Bytes of payloads read from the log at a time."""


@dataclass
class PeriodCounts:
    """The counts of one period: of its blocks up to and including `sequence`, and of recent batches."""

    record: PeriodRecord
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


class PeriodCounter:
    """Loads the counts of periods, brings them up to date, and writes their checkpoints."""

    def __init__(self, log: LogReader, states: Path) -> None:
        self._log = log
        self._states = states

    def load(self, record: PeriodRecord, collection: Collection) -> PeriodCounts:
        """The counts of a period as they were when they were last written down."""
        return self._from_checkpoint(record, collection) or self._from_log(record, collection)

    def advance(self, counts: PeriodCounts, deadline: float | None) -> None:
        """Count blocks, then recent batches. If a block was finished in between, go on with it.

        Recent batches only come, until they become a block. So if there are as many as were counted, and no new block,
        they are the same.
        """
        number = counts.record.number
        recent = None
        while recent is None:
            newest = self._log.last(number)
            if counts.sequence == newest and self._log.count(number) == counts.batches:
                return
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

    def behind(self, counts: PeriodCounts) -> int:
        """How many batches the log holds that the counts do not."""
        return max(0, self._log.count(counts.record.number) - counts.batches)

    def save(self, counts: PeriodCounts) -> Path:
        """Write a checkpoint of the counts."""
        record, oracle, recent = counts.record, counts.oracle, sorted(counts.recent)
        tie = self._log.tie(record.number, counts.sequence) or _fold_tie(record)
        about = (counts.collection.id, record.period, counts.sequence)
        state, shard = oracle.to_bytes(), record.shard
        path = write_checkpoint(
            self._states, Checkpoint(*about, oracle.reports, counts.batches, tie, recent, state, shard)
        )
        counts.saved = counts.batches
        return path

    def _count(self, counts: PeriodCounts, batches: Sequence[StoredBatch]) -> None:
        try:
            counts.oracle.accumulate(b"".join([batch.payload for batch in batches]))
        except ServerRefused:
            # The log was checked before it was acknowledged: it is damaged, or of another version.
            width = counts.collection.randomizer.report_bytes
            raise Corrupt(
                f"the log holds a report that is out of range ({width} bytes each): restore a backup"
            ) from None

    def _unless_gone(self, counts: PeriodCounts) -> None:
        """Say so if batches may be missing because their collection was deleted, or their period folded, meanwhile."""
        record = self._log.period(counts.record.number)
        if record is None or record.deleted or record.generation != counts.record.generation:
            raise Unavailable("the collection was deleted or compacted meanwhile: ask again", 1.0)

    def _from_checkpoint(self, record: PeriodRecord, collection: Collection) -> PeriodCounts | None:
        found = read_checkpoint(self._states, collection.id, record.period, record.shard)
        if found is None or not self._belongs(found, record):
            return None
        try:
            oracle = restore(collection, found.state)
        except ServerRefused:
            return None
        return PeriodCounts(record, collection, oracle, found.sequence, set(found.recent), found.batches)

    def _from_log(self, record: PeriodRecord, collection: Collection) -> PeriodCounts:
        state = self._log.folded_state(record)
        if state is None:
            return PeriodCounts(record, collection, oracle_for(collection), 0)
        try:
            oracle = restore(collection, state)
        except ServerRefused:
            raise Corrupt("the folded counts of a collection are damaged: restore a backup") from None
        return PeriodCounts(record, collection, oracle, record.folded)

    def _belongs(self, checkpoint: Checkpoint, record: PeriodRecord) -> bool:
        """Whether a checkpoint continues this very log, and not one that was since replaced by a backup."""
        if checkpoint.sequence < record.folded or not self._log.known(record, checkpoint.recent):
            return False
        if checkpoint.sequence == record.folded:
            return checkpoint.tie == _fold_tie(record)
        return checkpoint.tie == self._log.tie(record.number, checkpoint.sequence)


def _fold_tie(record: PeriodRecord) -> bytes:
    """What stands for a block's tie in a checkpoint that has no block after the folded counts."""
    return b"folded!!" + (record.generation or 0).to_bytes(8, "little")
