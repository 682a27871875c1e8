"""Puts one server together, runs it, and drains it.

1. lock the data directory, open the log (which checks and migrates it), hold every collection
2. start the writer thread, bind the ports, say SERVING
3. on SIGTERM or SIGINT: say NOT_SERVING, refuse what is new, read no more from streams, let the disk finish what
   was read, answer it, end the child, close the log, release the lock

What was started is on one exit stack. `stop` unwinds it in reverse order, after a whole start or a part of one.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable, Coroutine
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import Any, TypedDict

from grpc_health.v1 import health_pb2

from ldp_client.errors import StorageError
from ldp_server.config import Config, split_address
from ldp_server.sealing.keys import KeyDirectory
from ldp_server.sealing.pool import OpeningPool
from ldp_server.service.admission import AdmissionControl, Peers, RateLimit, Verifiers
from ldp_server.service.admission.key_files import load_private_key, load_public_key
from ldp_server.service.background import BackgroundSchedule, BackgroundWork, Gauges
from ldp_server.service.bounded import AllBounds
from ldp_server.service.collector import Collector, Ingest, Unsealing, Waiting
from ldp_server.service.collector.issuer_keys import ISSUER_KEYS, issuer_key_methods
from ldp_server.service.collector.volunteering import VOLUNTEERS, VolunteerCalls
from ldp_server.service.compaction import Compaction
from ldp_server.service.health import DrainingHealth
from ldp_server.service.intake import StreamLimits
from ldp_server.service.lifecycle import CreationRules, Lifecycle
from ldp_server.service.live import LiveCollections
from ldp_server.service.metrics import Metrics
from ldp_server.service.operators import Auth, Calls, Exports, Operators, Queries, QuerySources, ServerFacts
from ldp_server.service.ports import ANALYST, COLLECTOR, Ports, Service
from ldp_server.service.running import RunningServer, cancel
from ldp_server.service.sharing import SERVE, Role, StoreOpening
from ldp_server.service.signed_list import ListPublisher
from ldp_server.service.structure import StructureCheck
from ldp_server.service.tls import end_of
from ldp_server.store import (
    AccessTokens,
    Committing,
    DataDirectory,
    GroupCommit,
    ReportLog,
)
from ldp_server.store.engines import open_store
from ldp_server.volunteers.opening import served_records
from ldp_server.watch.spans import Spans, spans_to
from ldp_server.worker.client import Worker
from ldp_server.worker.decoders import Decoders
from ldp_server.worker.remembered import RememberedAnswers

__all__ = ["CollectionServer", "Parts"]

_SEARCH_NICENESS = 12
"""Searches yield to the server and to other questions. They still get on where other programs keep the machine busy:
each other session has 15 times a search's share of the processor. At 19 it would have 68 times."""

Clock = Callable[[], float]


@dataclass(frozen=True)
class Parts:
    """The parts of a running server."""

    access: AccessTokens | None
    """None where nobody asks."""
    log: ReportLog
    commit: Committing
    keeping: GroupCommit[ReportLog]
    """Where everything but appending is done: the same thread, unless the store is shared."""
    worker: Worker
    waiting: Waiting
    lifecycle: Lifecycle
    compaction: Compaction
    background: BackgroundWork
    gauges: Gauges
    queries: Queries
    collector: Collector
    issuer_keys: Service
    operators: Operators | None
    volunteers: Service
    bounds: AllBounds
    opening: StoreOpening


@dataclass(frozen=True)
class _Answering:
    """The parts that answers to operators need."""

    lifecycle: Lifecycle
    compaction: Compaction
    waiting: Waiting
    publisher: ListPublisher
    access: AccessTokens | None


class _Answered(TypedDict):
    queries: Queries
    operators: Operators | None
    volunteers: Service


class _Assembly:
    """Builds the parts from the bottom up: each step needs only what the steps before it made."""

    def __init__(
        self,
        config: Config,
        clock: Clock,
        metrics: Metrics,
        spans: Spans | None,
        stack: AsyncExitStack,
        role: Role,
    ) -> None:
        self._config = config
        self._role = role
        self._store = open_store(config.store, config.data)
        self._clock = clock
        self._metrics = metrics
        self._spans = spans
        self._stack = stack
        self._directory = DataDirectory(config.data)
        admission = config.admission
        peers = Peers(admission.trusted_proxies, limit_this_machine=admission.limit_this_machine)
        self._bounds = AllBounds.of(config.limits, peers, metrics)

    def parts(self) -> Parts:
        """Open the data directory and connect everything. What must be closed is on the stack."""
        config, clock, metrics, linger = self._config, self._clock, self._metrics, self._config.limits.linger_seconds
        opening = StoreOpening(config, self._role, clock, self._stack)
        log, access = opening.log(), opening.access()
        verifiers = Verifiers.load(config.admission)
        keys = KeyDirectory(config.sealing.keys, config.sealing.opens_seconds, clock)
        publisher = self._publisher(keys)
        collections = self._collections(log, publisher)
        waiting = Waiting(collections, metrics, config.limits.waiting_bytes, clock)
        commit, keeping = opening.commits(log, collections, waiting, linger)
        unsealing = self._unsealing(keys, verifiers, waiting, commit)
        ingest = Ingest(collections, self._control(verifiers), waiting, commit, clock, unsealing)
        worker = self._worker(nice=10, remembered=None if opening.shared else _remembered(collections, waiting))
        self._stack.push_async_callback(worker.close)
        lifecycle = self._lifecycle(collections, keeping, verifiers, keys)
        compaction = Compaction(lifecycle, keeping, worker, self._directory.states, clock)
        arrived = opening.arrived(waiting)
        work = BackgroundWork(collections, compaction, worker, arrived, metrics, self._schedule(), self._spans)
        answering = _Answering(lifecycle, compaction, waiting, publisher, access)
        return Parts(
            access=access,
            log=log,
            commit=commit,
            keeping=keeping,
            worker=worker,
            waiting=waiting,
            lifecycle=lifecycle,
            compaction=compaction,
            background=work,
            gauges=Gauges(metrics, waiting, opening.space.now),
            collector=self._collector(collections, publisher, ingest),
            issuer_keys=Service(ISSUER_KEYS, issuer_key_methods(verifiers.unlinkable.keys, self._bounds.apps)),
            bounds=self._bounds,
            opening=opening.follow(collections, lifecycle),
            **self._answered(answering, worker, opening),
        )

    def _answered(self, made: _Answering, worker: Worker, opening: StoreOpening) -> _Answered:
        """What operators and analysts call, if this server answers them."""
        collections = made.lifecycle.collections
        queries = self._queries(collections, worker)
        volunteers = Service(VOLUNTEERS, self._volunteers(collections).handlers())
        if made.access is None:
            return {"queries": queries, "operators": None, "volunteers": volunteers}
        exports = Exports(collections, worker, opening.store.reader, self._clock)
        calls = Calls(self._auth(made.access), self._metrics, self._bounds.operators, self._spans)
        held = lambda: made.waiting.bytes  # noqa: E731
        facts = ServerFacts(self._clock, held, opening.space.now, self._metrics, made.publisher.key)
        operators = Operators(calls, queries, exports, made.lifecycle, made.compaction, facts)
        return {"queries": queries, "operators": operators, "volunteers": volunteers}

    def _volunteers(self, collections: LiveCollections) -> VolunteerCalls:
        kept = None
        if self._config.collector.volunteers and self._role.collects:
            records = served_records(self._config.store, self._directory.root)
            kept = self._stack.enter_context(contextlib.closing(records))
        return VolunteerCalls(collections, kept, self._bounds.apps, self._clock)

    def _auth(self, access: AccessTokens) -> Auth:
        config = self._config
        host, _ = split_address(config.analyst.listen or config.collector.listen, "listen")
        return Auth(access, self._metrics, config.analyst.certificate_names, host)

    def _publisher(self, keys: KeyDirectory) -> ListPublisher:
        publish = self._config.publish
        return ListPublisher(
            load_private_key(publish.signing_key) if publish.signing_key else None,
            load_public_key(publish.next_key) if publish.next_key else None,
            frozenset(load_public_key(path).public_bytes_raw() for path in publish.witnesses),
            keys.published,
            None if self._store.shared else self._directory.cosignatures,
            self._store.keep_cosignatures if self._store.shared else None,
        )

    def _collections(self, log: ReportLog, publisher: ListPublisher) -> LiveCollections:
        collections = LiveCollections(self._metrics.label, publisher)
        for record in log.records():
            collections.put(record)
        if collections.unreadable:
            raise StorageError(
                f"the log holds {len(collections.unreadable)} collections that this version does not understand: "
                "use the version that made them, or a newer one"
            )
        return collections

    def _worker(self, nice: int, remembered: RememberedAnswers | None = None) -> Worker:
        memory_mb = self._config.limits.worker_memory_mb
        return Worker(
            self._config.data,
            memory_mb=memory_mb,
            nice=nice,
            spans=self._spans,
            remembered=remembered,
            environment=self._store.environment(),
        )

    def _lifecycle(
        self, collections: LiveCollections, commit: GroupCommit[ReportLog], verifiers: Verifiers, keys: KeyDirectory
    ) -> Lifecycle:
        limits = self._config.limits
        rules = CreationRules(
            collections=limits.collections,
            periods=limits.periods,
            memory_mb=limits.worker_memory_mb // 2,
            token_kinds=verifiers.kinds,
            has_client_ca=self._config.collector.client_ca is not None,
            has_sealing_keys=lambda: bool(keys.published()),
        )
        return Lifecycle(collections, commit, self._directory.states, rules, self._clock)

    def _queries(self, collections: LiveCollections, worker: Worker) -> Queries:
        decoders = Decoders(lambda: self._worker(nice=_SEARCH_NICENESS))
        self._stack.push_async_callback(decoders.close)
        sources = QuerySources(worker, decoders)
        return Queries(collections, sources, self._config.limits, self._metrics, self._clock)

    def _schedule(self) -> BackgroundSchedule:
        retention = self._config.retention
        return BackgroundSchedule(
            self._clock,
            every=retention.checkpoint_seconds,
            compact_after=retention.compact_seconds,
            fold_after=retention.fold_seconds,
            drop_after=retention.drop_seconds,
        )

    def _unsealing(self, keys: KeyDirectory, verifiers: Verifiers, waiting: Waiting, commit: Committing) -> Unsealing:
        self._metrics.sealing_key_ends.set_function(keys.ends)
        pool = OpeningPool(self._config.sealing.workers)
        self._stack.push_async_callback(pool.close)
        return Unsealing(pool, keys, verifiers.unlinkable.keys, waiting, commit, self._metrics, self._clock)

    def _control(self, verifiers: Verifiers) -> AdmissionControl:
        admission, parts = self._config.admission, self._config.admission.collectors
        return AdmissionControl(
            RateLimit(admission.reports_per_second / parts, admission.burst / parts, time.monotonic),
            RateLimit(
                admission.certificate_reports_per_second / parts, admission.certificate_burst / parts, time.monotonic
            ),
            verifiers,
        )

    def _collector(self, collections: LiveCollections, publisher: ListPublisher, ingest: Ingest) -> Collector:
        limits = self._config.limits
        of_stream = StreamLimits(limits.stream_batches, limits.stream_bytes, limits.idle_seconds)
        return Collector(ingest, collections, publisher, self._metrics, of_stream, self._bounds.apps)


def _remembered(collections: LiveCollections, waiting: Waiting) -> RememberedAnswers:
    """Answers hold while a collection has the same row, and as many batches that were made durable."""
    return RememberedAnswers(lambda number: (collections.numbered(number), waiting.stored.get(number, 0)))


class CollectionServer(RunningServer):
    """One server on one data directory. Use `start`, then `wait`, then `stop`."""

    def __init__(
        self, config: Config, *, clock: Clock = time.time, spans: Spans | None = None, role: Role = SERVE
    ) -> None:
        """`spans` takes the place of those that `watch.traces` asks for."""
        super().__init__(config.limits.drain_seconds)
        self.config = config
        self.role = role
        self.metrics = Metrics(config.watch.collections)
        self.metrics.certificate_ends.set_function(end_of(config.tls.certificate))
        self._spans = spans_to(config.watch.traces) if spans is None else spans
        self._clock = clock
        self._health = DrainingHealth()
        self._parts: Parts | None = None
        self._ports: Ports | None = None

    @property
    def parts(self) -> Parts:
        """The parts, once `start` is done."""
        if self._parts is None:
            raise RuntimeError("the server is not started")
        return self._parts

    @property
    def port(self) -> int:
        """The port for apps, once `start` is done; 0 before."""
        return 0 if self._ports is None else self._ports.collector

    @property
    def analyst_port(self) -> int:
        """The port for operators, once `start` is done; 0 before."""
        return 0 if self._ports is None else self._ports.analyst

    async def start(self) -> None:
        """Get ready and begin to listen; raises `StorageError` or `InvalidSpec` if it cannot be."""
        async with AsyncExitStack() as stack:
            if self._spans:
                stack.push_async_callback(asyncio.to_thread, self._spans.close)
            assembly = _Assembly(self.config, self._clock, self.metrics, self._spans, stack, self.role)
            parts = assembly.parts()
            ports = self._served(parts)
            parts.commit.start()
            if parts.keeping is not parts.commit:
                parts.keeping.start()
            bounds = parts.bounds.health
            for work in (*self._work(parts), self._watch(parts), parts.opening.space.run(), bounds.connections.run()):
                stack.push_async_callback(cancel, asyncio.create_task(work))
            stack.push_async_callback(self._close, ports)
            await ports.open()
            bounds.connections.ports = frozenset({ports.collector, ports.analyst})
            stack.push_async_callback(self._drain, parts)
            for service in ("", COLLECTOR, ISSUER_KEYS, VOLUNTEERS, ANALYST):
                await self._health.set(service, health_pb2.HealthCheckResponse.SERVING)
            self._parts, self._ports = parts, ports
            self._stack = stack.pop_all()

    def _served(self, parts: Parts) -> Ports:
        """The ports with the services of this server's role."""
        collector = Service(COLLECTOR, parts.collector.handlers())
        apps = [collector, parts.issuer_keys, parts.volunteers] if self.role.collects else []
        analyst = [] if parts.operators is None else [Service(ANALYST, parts.operators.handlers())]
        return Ports(self.config, apps, analyst, self._health, parts.bounds.health)

    def _work(self, parts: Parts) -> list[Coroutine[Any, Any, None]]:
        """What this server's role does in the background."""
        if not self.role.keeps:
            return []
        work = [parts.background.run(), StructureCheck(parts.opening.store.reader, self.metrics).run()]
        return [*work, parts.background.gather()] if parts.opening.shared else work

    async def _watch(self, parts: Parts) -> None:
        """Notice when the writer thread ended, and keep the gauges fresh."""
        while not self._stopping.is_set():
            parts.gauges.update()
            self._look(parts.commit.failure or parts.keeping.failure)
            await asyncio.sleep(1.0)

    async def _drain(self, parts: Parts) -> None:
        await self._health.enter_graceful_shutdown()
        if parts.operators is not None:
            parts.operators.draining = True
        parts.collector.drain()

    async def _close(self, ports: Ports) -> None:
        await ports.close(self._grace)
