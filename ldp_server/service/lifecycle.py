"""Creating, closing and deleting collections: a row of the log first, then the collection as the server holds it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import grpc

from ldp_client.collection import Collection
from ldp_client.errors import InvalidSpec
from ldp_client.trust.signed_list import MAX_LISTED
from ldp_server.oracles import ORACLES, oracle_for
from ldp_server.service.live import LiveCollection, LiveCollections, Naming
from ldp_server.service.wire import CallStatus
from ldp_server.store import TOKEN_KINDS, Admission, CollectionRecord, GroupCommit, NewCollection, ReportLog
from ldp_server.store.checkpoints import drop_other_checkpoints
from ldp_server.worker.counts import memory_bytes

__all__ = ["CreationRules", "Lifecycle"]


@dataclass(frozen=True)
class CreationRules:
    """What a new collection must fit into."""

    collections: int
    """The most collections of the server, deleted ones included."""
    periods: int
    """The most periods in the window of one collection."""
    memory_mb: int
    """The most memory for counting one collection."""
    token_kinds: frozenset[str]
    """The kinds of admission by token for which there are keys."""
    has_client_ca: bool
    has_sealing_keys: Callable[[], bool]


class Lifecycle:
    """Changes the log on the writer thread, and the live collections on the event loop."""

    def __init__(
        self,
        collections: LiveCollections,
        commit: GroupCommit[ReportLog],
        states: Path,
        rules: CreationRules,
        clock: Callable[[], float],
    ) -> None:
        self.collections = collections
        self._commit = commit
        self._states = states
        self._rules = rules
        self._clock = clock
        self._changes: set[asyncio.Task[LiveCollection]] = set()
        self._creating = asyncio.Lock()

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

        return await self._finish(self._enter(new, work))

    async def close(self, request: Naming) -> LiveCollection:
        """Take no more batches."""
        number, now = self.collections.find_kept(request).record.number, int(self._clock())
        return await self.change(lambda log: log.close_collection(number, now))

    async def delete(self, request: Naming) -> LiveCollection:
        """Keep the id and the spec only. `Compaction.sweep` drops the rest."""
        number, now = self.collections.find_kept(request).record.number, int(self._clock())
        live = await self.change(lambda log: log.delete_collection(number, now))
        self.drop_checkpoints()
        return live

    def drop_checkpoints(self) -> None:
        """Drop what counting wrote while its collection was being deleted."""
        drop_other_checkpoints(self._states, {live.record.id for live in self.collections if not live.record.deleted})

    async def change(self, work: Callable[[ReportLog], CollectionRecord]) -> LiveCollection:
        """Run `work` on the writer thread, then hold its collection as the new row says."""
        return await self._finish(self._change(work))

    async def _finish(self, change: Coroutine[Any, Any, LiveCollection]) -> LiveCollection:
        """Finish a change even if its caller goes away: a row without its live collection would be missing until the
        next start, and would then stand in the middle of the public list.
        """
        task = asyncio.create_task(change)
        self._changes.add(task)
        task.add_done_callback(self._changes.discard)
        return await asyncio.shield(task)

    async def _enter(self, new: NewCollection, work: Callable[[ReportLog], CollectionRecord]) -> LiveCollection:
        """One collection at a time, so that two cannot take the last place of the list."""
        async with self._creating:
            if new.public and self.collections.list_is_full and self.collections.get(new.id) is None:
                raise CallStatus(
                    grpc.StatusCode.FAILED_PRECONDITION,
                    f"the public list is full ({MAX_LISTED} collections, deleted ones included): create this one "
                    "unlisted, or start a server with a new data directory",
                )
            return await self._change(work)

    async def _change(self, work: Callable[[ReportLog], CollectionRecord]) -> LiveCollection:
        record = await asyncio.wrap_future(self._commit.run(work))
        self.collections.put(record)
        return self.collections.numbered(record.number)

    def _check_new(self, collection: Collection, admission: Admission) -> None:
        rules = self._rules
        if collection.randomizer.name not in ORACLES:
            raise CallStatus(
                grpc.StatusCode.FAILED_PRECONDITION,
                f"this server cannot count reports of {collection.randomizer.name}: choose one of {', '.join(ORACLES)}",
            )
        _check_sealing(collection, admission, has_keys=rules.has_sealing_keys())
        if len(self.collections) >= rules.collections:
            raise CallStatus(grpc.StatusCode.FAILED_PRECONDITION, "too many collections: raise limits.collections")
        _check_periods(collection, rules.periods)
        needed = _megabytes(collection)
        if needed > rules.memory_mb:
            raise InvalidSpec(
                f"counting this collection takes {needed} MB: choose a smaller mechanism or raise "
                "limits.worker_memory_mb"
            )
        if admission.kind in TOKEN_KINDS - rules.token_kinds:
            setting = f"admission.{admission.kind.replace('-', '_')}_keys"
            raise CallStatus(grpc.StatusCode.FAILED_PRECONDITION, f"admission by {admission.kind} needs {setting}")
        if admission.kind == "certificate" and not rules.has_client_ca:
            raise CallStatus(grpc.StatusCode.FAILED_PRECONDITION, "admission by certificate needs collector.client_ca")


def _check_periods(collection: Collection, most: int) -> None:
    """Refuse a window in which senders could fill the disk with rows of periods that nobody asked about."""
    first, last = collection.periods
    if collection.schedule is not None and last - first >= most:
        raise InvalidSpec(
            f"the window has {last - first + 1:,} periods of {collection.schedule.period_seconds:,} seconds, and this "
            f"server takes at most {most:,}: choose a longer period or a shorter window, or raise limits.periods"
        )


def _check_sealing(collection: Collection, admission: Admission, *, has_keys: bool) -> None:
    if not collection.relayed:
        return
    if not has_keys:
        raise CallStatus(
            grpc.StatusCode.FAILED_PRECONDITION,
            "a collection with a relay needs a key that reports are sealed to: make one (ldp-server key new) and set "
            "sealing.keys",
        )
    if admission.kind.endswith("token"):
        raise CallStatus(
            grpc.StatusCode.FAILED_PRECONDITION,
            "a batch from a relay holds reports of many devices, so one token cannot admit it: choose certificate, "
            "for the relay's own, or open",
        )


def _megabytes(collection: Collection) -> int:
    """About the memory for a collection's counts and estimates. The arrays are not touched, so nothing is used."""
    try:
        return memory_bytes(oracle_for(collection)) >> 20
    except MemoryError:
        return 1 << 30
