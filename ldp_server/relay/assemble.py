"""Puts one relay together, runs it, and drains it, as ldp_server/service/assemble.py does for the collection server."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass

import grpc
from grpc_health.v1 import health_pb2

from ldp_client.protocol.v1 import relay_pb2
from ldp_client.sending.grpc_transport import GrpcTransport
from ldp_server.relay.config import RelayConfig, check_use
from ldp_server.relay.door import RelayDoor, RelayIngest, RelayWaiting
from ldp_server.relay.forward import Forwarder
from ldp_server.relay.keeper import Keeper, update_gauges
from ldp_server.relay.metrics import RelayMetrics
from ldp_server.relay.served import Refresher, ServedCollections
from ldp_server.relay.store import RelayLog
from ldp_server.service.admission import Peers, RateLimit
from ldp_server.service.bounded import AllBounds
from ldp_server.service.health import DrainingHealth
from ldp_server.service.intake import IntakeCalls, StreamLimits
from ldp_server.service.ports import BATCH_MESSAGE, Service, add_services, bind, new_server
from ldp_server.service.running import RunningServer, cancel
from ldp_server.service.tls import end_of
from ldp_server.store import DirectoryLock, GroupCommit
from ldp_server.store.errors import translated

__all__ = ["RELAY", "RelayDirectory", "RelayParts", "RelayServer"]

_PATIENCE = 5.0
"""Seconds that the start waits for the list of collections."""
RELAY = relay_pb2.DESCRIPTOR.services_by_name["Relay"].full_name


class RelayDirectory:
    """The paths of a relay's data directory."""

    def __init__(self, config: RelayConfig) -> None:
        self.root = config.data
        self.lock = config.data / "lock"
        self.log = config.data / "relay.db"

    def create(self) -> RelayDirectory:
        """Make it if it is missing, readable by its owner alone."""
        with translated(self.root):
            self.root.mkdir(parents=True, exist_ok=True, mode=0o700)
        return self


@dataclass(frozen=True)
class RelayParts:
    """The parts of a running relay."""

    log: RelayLog
    commit: GroupCommit[RelayLog]
    served: ServedCollections
    waiting: RelayWaiting
    refresher: Refresher
    forwarder: Forwarder
    keeper: Keeper
    door: RelayDoor
    bounds: AllBounds


def _parts(config: RelayConfig, clock: Callable[[], float], metrics: RelayMetrics, stack: AsyncExitStack) -> RelayParts:
    """Open the data directory and connect everything. What must be closed is on the stack."""
    directory, limits, admission = RelayDirectory(config).create(), config.limits, config.admission
    stack.enter_context(DirectoryLock(directory))
    served = ServedCollections(config, metrics)
    log = RelayLog(directory.log, lambda number, period: served.round_of(number, period, clock()))
    stack.enter_context(contextlib.closing(log))
    for held in log.collections():
        served.put(held)
    served.sealing_keys = log.sealing_keys()
    for standing in log.standings():
        metrics.short.labels(metrics.label(standing.id)).set(standing.short)
    transport = GrpcTransport(config.forward.collector, tls=config.forward.tls())
    waiting = RelayWaiting(served, metrics, limits.waiting_bytes)
    commit = GroupCommit(log, lambda _, payloads: [True] * len(payloads), waiting.delivered)
    stack.push_async_callback(asyncio.to_thread, commit.stop)
    stack.push_async_callback(asyncio.to_thread, transport.close)
    bounds = AllBounds.of(
        limits, Peers(admission.trusted_proxies, limit_this_machine=admission.limit_this_machine), metrics
    )
    rates = RateLimit(admission.reports_per_second, admission.burst, time.monotonic)
    ingest = RelayIngest(
        served, rates, waiting, commit, lambda size: log.bytes + waiting.bytes + size <= limits.held_bytes, clock
    )
    of_stream = StreamLimits(limits.stream_batches, limits.stream_bytes, limits.idle_seconds)
    calls = IntakeCalls(ingest, metrics, of_stream, bounds.apps)
    forwarder = Forwarder(transport, served, commit, metrics, config.hold.give_up_seconds, clock)
    return RelayParts(
        log=log,
        commit=commit,
        served=served,
        waiting=waiting,
        refresher=Refresher(config, transport, served, commit, metrics),
        forwarder=forwarder,
        keeper=Keeper(served, commit, metrics, forwarder, config.hold.remember_rounds, clock),
        door=RelayDoor(calls, served, config.relay.operator, bounds.apps),
        bounds=bounds,
    )


class RelayServer(RunningServer):
    """One relay on one data directory. Use `start`, then `wait`, then `stop`."""

    def __init__(self, config: RelayConfig, *, clock: Callable[[], float] = time.time) -> None:
        super().__init__(config.limits.drain_seconds)
        self.config = config
        self.metrics = RelayMetrics(config.watch.collections)
        self.metrics.certificate_ends.set_function(end_of(config.tls.certificate))
        self.port = 0
        """The port for apps, once `start` is done."""
        self._clock = clock
        self._health = DrainingHealth()
        self._parts: RelayParts | None = None

    @property
    def parts(self) -> RelayParts:
        """The parts, once `start` is done."""
        if self._parts is None:
            raise RuntimeError("the relay is not started")
        return self._parts

    async def start(self) -> None:
        """Get ready and begin to listen; raises `StorageError` or `InvalidSpec` if it cannot be."""
        check_use(self.config)
        async with AsyncExitStack() as stack:
            parts = _parts(self.config, self._clock, self.metrics, stack)
            server = new_server(BATCH_MESSAGE, self.config.limits)
            bounds = parts.bounds.health
            add_services(server, self._health, bounds, [Service(RELAY, parts.door.handlers())])
            parts.commit.start()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_PATIENCE):  # the list is fetched again beside everything else
                    await parts.refresher.once()
            await parts.keeper.once()
            for work in (
                parts.refresher.run(),
                parts.forwarder.run(),
                parts.keeper.run(),
                parts.keeper.run_laying(),
                self._watch(parts),
                bounds.connections.run(),
            ):
                stack.push_async_callback(cancel, asyncio.create_task(work))
            stack.push_async_callback(self._close, server)
            self.port = bind(server, self.config.tls, "relay.listen", self.config.relay.listen, None)
            await server.start()
            bounds.connections.ports = frozenset({self.port})
            stack.push_async_callback(self._drain, parts)
            for service in ("", RELAY):
                await self._health.set(service, health_pb2.HealthCheckResponse.SERVING)
            self._parts = parts
            self._stack = stack.pop_all()

    async def _watch(self, parts: RelayParts) -> None:
        while not self._stopping.is_set():
            waiting = parts.waiting
            update_gauges(self.metrics, waiting.bytes, waiting.batches, parts.log.bytes, self.config.data)
            self._look(parts.commit.failure)
            await asyncio.sleep(1.0)

    async def _drain(self, parts: RelayParts) -> None:
        await self._health.enter_graceful_shutdown()
        parts.door.drain()

    async def _close(self, server: grpc.aio.Server) -> None:
        await server.stop(self._grace)
