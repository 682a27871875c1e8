"""What the analyst's methods and the background work share: one server's parts, and the few things done to them."""

from __future__ import annotations

import asyncio
import os
import secrets
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial

import grpc

from ldp_client.collection import Collection
from ldp_client.errors import InvalidSpec, StorageError
from ldp_server.config import Config
from ldp_server.oracles import ORACLES, oracle_for
from ldp_server.service.live import LiveCollection, LiveCollections, Naming
from ldp_server.service.metrics import Metrics
from ldp_server.service.signed_list import ListPublisher
from ldp_server.service.wire import CallStatus
from ldp_server.store import Admission, CollectionRecord, DataDirectory, GroupCommit, SqliteLog
from ldp_server.store.checkpoints import drop_checkpoint, read_checkpoint
from ldp_server.store.retention import fold_commit, fold_parts, sweep, write_part
from ldp_server.worker.client import Worker
from ldp_server.worker.counts import state_bytes

__all__ = ["Lifecycle"]

_TIMES = 3
"""What counting and estimating take, in times the counts: the counts, and estimates beside them."""


@dataclass
class Lifecycle:
    """The parts of one running server."""

    config: Config
    directory: DataDirectory
    collections: LiveCollections
    publisher: ListPublisher
    metrics: Metrics
    commit: GroupCommit
    worker: Worker
    clock: Callable[[], float]
    has_client_ca: bool
    has_token_keys: bool
    folding: asyncio.Lock = field(default_factory=asyncio.Lock)
    """Held while a collection is folded or what is dead is swept."""

    async def on_writer(self, work: Callable[[SqliteLog], CollectionRecord]) -> CollectionRecord:
        """Run `work` on the writer thread, then hold its collection as the new row says."""
        record = await asyncio.wrap_future(self.commit.run(work))
        self.collections.put(record, self.metrics.label(record.id))
        self.publisher.put(record)
        return record

    def find_kept(self, request: Naming) -> LiveCollection:
        """The collection that a request names, unless it was deleted."""
        live = self.collections.find(request)
        if live.record.deleted is not None:
            raise CallStatus(grpc.StatusCode.NOT_FOUND, "this collection was deleted")
        return live

    async def create(self, spec: bytes, admission: Admission, *, public: bool) -> CollectionRecord:
        """Enter a new collection."""
        collection = await asyncio.to_thread(Collection.from_bytes, spec)
        await asyncio.to_thread(self._check_new, collection, admission)
        now = int(self.clock())

        def work(log: SqliteLog) -> CollectionRecord:
            known = log.catalog.get(collection.id)
            if known is not None and known.deleted is not None:
                raise CallStatus(
                    grpc.StatusCode.FAILED_PRECONDITION,
                    "this collection was deleted here, and its id is never taken again: change its nonce or window",
                )
            if known is not None:
                raise CallStatus(grpc.StatusCode.ALREADY_EXISTS, "this collection exists already")
            return log.transaction(
                lambda _: log.catalog.add(collection.id, spec, public=public, admission=admission, created=now)
            )

        return await self.on_writer(work)

    def _check_new(self, collection: Collection, admission: Admission) -> None:
        if collection.randomizer.name not in ORACLES:
            raise CallStatus(grpc.StatusCode.UNIMPLEMENTED, f"no oracle for {collection.randomizer.name} here")
        if len(self.collections) >= self.config.limits.collections:
            raise CallStatus(grpc.StatusCode.FAILED_PRECONDITION, "too many collections: raise limits.collections")
        needed = _memory(collection)
        if needed > self.config.limits.worker_memory_mb // 2:
            raise InvalidSpec(
                f"counting this collection takes {needed} MB: choose a smaller mechanism or raise "
                "limits.worker_memory_mb"
            )
        if admission.kind == "token" and not self.has_token_keys:
            raise CallStatus(grpc.StatusCode.FAILED_PRECONDITION, "admission by token needs admission.token_keys")
        if admission.kind == "certificate" and not self.has_client_ca:
            raise CallStatus(grpc.StatusCode.FAILED_PRECONDITION, "admission by certificate needs collector.client_ca")

    async def close(self, live: LiveCollection) -> CollectionRecord:
        """Take no more batches."""
        number, now = live.record.number, int(self.clock())

        def work(log: SqliteLog) -> CollectionRecord:
            log.transaction(lambda _: log.catalog.close(number, now))
            log.seal(number)
            return _again(log, number)

        return await self.on_writer(work)

    async def delete(self, live: LiveCollection) -> CollectionRecord:
        """Leave a tombstone; what it held is swept afterwards."""
        number, now = live.record.number, int(self.clock())

        def work(log: SqliteLog) -> CollectionRecord:
            log.transaction(lambda _: log.catalog.delete(number, now))
            log.seal(number)
            return _again(log, number)

        record = await self.on_writer(work)
        drop_checkpoint(self.directory.states, record.id)
        return record

    async def compact(self, live: LiveCollection) -> CollectionRecord:
        """Fold reports into counts. `sweep` drops the reports afterwards."""
        async with self.folding:
            record = live.record
            if record.generation is not None:
                return record
            if record.closed is None and self.clock() < live.closes:
                raise CallStatus(
                    grpc.StatusCode.FAILED_PRECONDITION, "the collection still takes batches: close it first"
                )
            await asyncio.wrap_future(self.commit.run(lambda log: log.seal(record.number)))
            try:
                return await self._fold(record)
            except BaseException:
                # Perhaps the clock was wrong and the window is not over: a fold that failed must not close it.
                self.commit.run(lambda log: log.unseal(record.number))
                raise

    async def _fold(self, record: CollectionRecord) -> CollectionRecord:
        meta, _ = await self.worker.ask({"op": "checkpoint", "number": record.number})
        checkpoint = await asyncio.to_thread(read_checkpoint, self.directory.states, record.id)
        if checkpoint is None or checkpoint.sequence != meta["sequence"]:
            raise StorageError("the checkpoint that was just written is not there")
        generation = secrets.randbits(62)
        for row in fold_parts(record.number, generation, checkpoint.state):
            await asyncio.wrap_future(self.commit.run(partial(write_part, row=row)))

        def work(log: SqliteLog) -> CollectionRecord:
            fold_commit(
                log,
                record,
                generation=generation,
                size=len(checkpoint.state),
                sequence=checkpoint.sequence,
                batches=checkpoint.batches,
                reports=checkpoint.reports,
            )
            return _again(log, record.number)

        return await self.on_writer(work)

    async def sweep(self, slices: int = 1 << 30) -> None:
        """Drop what nothing refers to any more, giving way to ingest between slices."""
        for _ in range(slices):
            async with self.folding:
                more = await asyncio.wrap_future(self.commit.run(sweep))
            if not more:
                return
            await asyncio.sleep(0)

    def log_bytes(self) -> int:
        """Bytes of the database on disk, write-ahead log included."""
        total = 0
        for name in ("log.db", "log.db-wal"):
            try:
                total += os.stat(self.directory.root / name).st_size  # noqa: PTH116 - two names, one line
            except OSError:
                continue
        return total


def _memory(collection: Collection) -> int:
    """About how many megabytes a collection's counts and estimates take; nothing is touched, so nothing is used."""
    try:
        return state_bytes(oracle_for(collection)) * _TIMES >> 20
    except MemoryError:
        return 1 << 30


def _again(log: SqliteLog, number: int) -> CollectionRecord:
    record = log.catalog.by_number(number)
    if record is None:
        raise StorageError("a collection's row has gone")
    return record
