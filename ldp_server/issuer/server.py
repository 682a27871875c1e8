"""Puts one issuer together, runs it, and ends it: SIGTERM and Ctrl-C let what is being signed be answered."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from contextlib import AsyncExitStack

import grpc
from grpc_health.v1 import health_pb2

from ldp_server.config import CallLimits
from ldp_server.issuer.accounts import Accounts
from ldp_server.issuer.counters import IssuerMetrics
from ldp_server.issuer.handlers import ISSUER, Issuing
from ldp_server.issuer.settings import IssuerConfig
from ldp_server.issuer.signing import KeyRing, read_secret
from ldp_server.service.admission import Connections, Deadlines, Peers, Places, RateLimit
from ldp_server.service.bounded import Bounds
from ldp_server.service.collector.issuer_keys import ISSUER_KEYS, issuer_key_methods
from ldp_server.service.health import DrainingHealth
from ldp_server.service.logs import event
from ldp_server.service.ports import Service, add_services, bind, new_server
from ldp_server.service.running import RunningServer, cancel
from ldp_server.service.tls import end_of
from ldp_server.store import DataDirectory, DirectoryLock
from ldp_server.store.errors import translated

__all__ = ["IssuerServer"]

_MESSAGE = 16 * 1024
"""Room for the most requests of one call, and the account."""
_SWEEP_SECONDS = 3_600.0
_HEALTH_PLACES, _HEALTH_SECONDS = 16, 10.0
_ANY_SIZE = 1 << 40


class IssuerServer(RunningServer):
    """One issuer on one directory. Use `start`, then `wait`, then `stop`."""

    def __init__(self, config: IssuerConfig, *, clock: Callable[[], float] = time.time) -> None:
        config.require()
        super().__init__(config.limits.drain_seconds)
        self.config = config
        self.metrics = IssuerMetrics()
        self.metrics.certificate_ends.set_function(end_of(config.tls.certificate))
        self.port = 0
        """The port, once `start` is done."""
        self._clock = clock
        self._health = DrainingHealth()

    async def start(self) -> None:
        """Get ready and begin to listen; raises `StorageError` or `InvalidSpec` if it cannot be."""
        config, limits = self.config, self.config.limits
        keys = KeyRing.load(config.keys)
        secrets = [read_secret(path) for path in config.secrets]
        async with AsyncExitStack() as stack:
            accounts = self._accounts(stack)
            rate = RateLimit(limits.signatures_per_second, limits.burst, time.monotonic)
            issuing = Issuing(keys, accounts, secrets, rate, self.metrics)
            stack.push_async_callback(asyncio.to_thread, issuing.close)
            connections = Connections(Peers(), limits.connections, self.metrics.ended.inc)
            refused = self.metrics.refused.labels("places").inc
            bounds = self._bounds(Places(limits.calls, limits.calls, refused), limits.idle_seconds, connections)
            of_health = self._bounds(Places(_HEALTH_PLACES, _HEALTH_PLACES), _HEALTH_SECONDS, connections)
            of_calls = CallLimits(connections=limits.connections, idle_seconds=limits.idle_seconds)
            server = new_server(_MESSAGE, of_calls)
            services = [
                Service(ISSUER, issuing.handlers(bounds)),
                Service(ISSUER_KEYS, issuer_key_methods(keys.public, bounds)),
            ]
            add_services(server, self._health, of_health, services)
            self.port = bind(server, config.tls, "listen", config.listen, config.client_ca)
            stack.push_async_callback(self._close, server)
            connections.ports = frozenset({self.port})
            for work in (self._tend(issuing), connections.run()):
                stack.push_async_callback(cancel, asyncio.create_task(work))
            await server.start()
            stack.push_async_callback(self._drain, issuing)
            for service in ("", ISSUER, ISSUER_KEYS):
                await self._health.set(service, health_pb2.HealthCheckResponse.SERVING)
            self._stack = stack.pop_all()

    def _accounts(self, stack: AsyncExitStack) -> Accounts:
        config = self.config
        with translated(config.data):
            config.data.mkdir(parents=True, exist_ok=True, mode=0o700)
        stack.enter_context(DirectoryLock(DataDirectory(config.data)))
        accounts = Accounts(config.data / "issued.db", config.tokens, config.period_seconds, self._clock)
        stack.callback(accounts.close)
        return accounts

    @staticmethod
    def _bounds(places: Places, seconds: float, connections: Connections) -> Bounds:
        return Bounds(places, Places(_ANY_SIZE, _ANY_SIZE), Peers(), connections, Deadlines(seconds))

    async def _close(self, server: grpc.aio.Server) -> None:
        await server.stop(self._grace)

    async def _tend(self, issuing: Issuing) -> None:
        """Say that the event loop is alive, and now and then forget old periods."""
        swept = float("-inf")
        while True:
            self._look(None)
            now = time.monotonic()
            if now - swept > _SWEEP_SECONDS:
                swept = now
                try:
                    await asyncio.to_thread(issuing.sweep)
                except Exception as error:
                    event(logging.WARNING, "old periods could not be forgotten", error=type(error).__name__)
            await asyncio.sleep(1.0)

    async def _drain(self, issuing: Issuing) -> None:
        issuing.draining = True
        await self._health.enter_graceful_shutdown()
