"""Creating, closing and deleting collections: a row of the log first, then the collection as the server holds it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import grpc

from ldp_client.collection import Collection
from ldp_client.errors import InvalidSpec
from ldp_server.oracles import ORACLES, oracle_for
from ldp_server.service.live import LiveCollection, LiveCollections, Naming
from ldp_server.service.wire import CallStatus
from ldp_server.store import Admission, CollectionRecord, GroupCommit, NewCollection, ReportLog
from ldp_server.store.checkpoints import drop_checkpoint, drop_other_checkpoints
from ldp_server.worker.counts import memory_bytes

__all__ = ["CreationRules", "Lifecycle"]


@dataclass(frozen=True)
class CreationRules:
    """What a new collection must fit into."""

    collections: int
    """The most collections of the server, deleted ones included."""
    memory_mb: int
    """The most memory for counting one collection."""
    has_token_keys: bool
    has_client_ca: bool


class Lifecycle:
    """Changes the log on the writer thread, and the live collections on the event loop."""

    def __init__(
        self,
        collections: LiveCollections,
        commit: GroupCommit,
        states: Path,
        rules: CreationRules,
        clock: Callable[[], float],
    ) -> None:
        self.collections = collections
        self._commit = commit
        self._states = states
        self._rules = rules
        self._clock = clock

    async def create(self, spec: bytes, admission: Admission, *, public: bool) -> LiveCollection:
        """Enter a new collection."""
        collection = await asyncio.to_thread(Collection.from_bytes, spec)
        await asyncio.to_thread(self._check_new, collection, admission)
        new = NewCollection(collection.id, spec, public, admission, int(self._clock()))

        def work(log: ReportLog) -> CollectionRecord:
            known = log.record_of(new.id)
            if known is not None and known.deleted is not None:
                raise CallStatus(
                    grpc.StatusCode.FAILED_PRECONDITION,
                    "this collection was deleted here, and its id cannot be used again: change its nonce or window",
                )
            if known is not None:
                raise CallStatus(grpc.StatusCode.ALREADY_EXISTS, "this collection exists already")
            return log.add(new)

        return await self.change(work)

    async def close(self, request: Naming) -> LiveCollection:
        """Take no more batches."""
        number, now = self.collections.find_kept(request).record.number, int(self._clock())
        return await self.change(lambda log: log.close_collection(number, now))

    async def delete(self, request: Naming) -> LiveCollection:
        """Keep the id and the spec only. `Compaction.sweep` drops the rest."""
        number, now = self.collections.find_kept(request).record.number, int(self._clock())
        live = await self.change(lambda log: log.delete_collection(number, now))
        drop_checkpoint(self._states, live.record.id)
        return live

    def drop_checkpoints(self) -> None:
        """Drop what counting wrote while its collection was being deleted."""
        drop_other_checkpoints(self._states, {live.record.id for live in self.collections if not live.record.deleted})

    async def change(self, work: Callable[[ReportLog], CollectionRecord]) -> LiveCollection:
        """Run `work` on the writer thread, then hold its collection as the new row says."""
        record = await asyncio.wrap_future(self._commit.run(work))
        self.collections.put(record)
        return self.collections.numbered(record.number)

    def _check_new(self, collection: Collection, admission: Admission) -> None:
        rules = self._rules
        if collection.randomizer.name not in ORACLES:
            raise CallStatus(grpc.StatusCode.UNIMPLEMENTED, f"no oracle for {collection.randomizer.name} here")
        if len(self.collections) >= rules.collections:
            raise CallStatus(grpc.StatusCode.FAILED_PRECONDITION, "too many collections: raise limits.collections")
        needed = _megabytes(collection)
        if needed > rules.memory_mb:
            raise InvalidSpec(
                f"counting this collection takes {needed} MB: choose a smaller mechanism or raise "
                "limits.worker_memory_mb"
            )
        if admission.kind == "token" and not rules.has_token_keys:
            raise CallStatus(grpc.StatusCode.FAILED_PRECONDITION, "admission by token needs admission.token_keys")
        if admission.kind == "certificate" and not rules.has_client_ca:
            raise CallStatus(grpc.StatusCode.FAILED_PRECONDITION, "admission by certificate needs collector.client_ca")


def _megabytes(collection: Collection) -> int:
    """About the memory for a collection's counts and estimates. The arrays are not touched, so nothing is used."""
    try:
        return memory_bytes(oracle_for(collection)) >> 20
    except MemoryError:
        return 1 << 30
