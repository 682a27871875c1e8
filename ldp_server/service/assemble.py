"""Puts one server together, runs it, and drains it.

1. lock the data directory, open the log (which checks and migrates it), hold every collection
2. start the writer thread, bind the ports, say SERVING
3. on SIGTERM or SIGINT: say NOT_SERVING, refuse what is new, read no more from streams, let the disk finish what
   was read, answer it, end the child, close the log, give the lock back
"""

from __future__ import annotations

import asyncio
import logging
import signal
import time
from collections.abc import Callable, Mapping
from typing import Any

import grpc
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_health.v1._async import HealthServicer
from grpc_reflection.v1alpha import reflection

from ldp_client.errors import InvalidSpec, StorageError
from ldp_client.protocol.v1 import analyst_pb2, collector_pb2
from ldp_server.config import Config, is_loopback, split_address
from ldp_server.service.admission import RateLimit, TokenVerifier
from ldp_server.service.admission.tokens import load_private_key, load_public_key
from ldp_server.service.auth import Auth
from ldp_server.service.background import BackgroundWork
from ldp_server.service.collector import Collector
from ldp_server.service.ingest import Ingest
from ldp_server.service.lifecycle import Lifecycle
from ldp_server.service.live import LiveCollections
from ldp_server.service.logs import event
from ldp_server.service.metrics import Metrics
from ldp_server.service.operators import Operators
from ldp_server.service.signed_list import ListPublisher
from ldp_server.service.tls import TlsFiles
from ldp_server.store import AccessFile, DataDirectory, DirectoryLock, GroupCommit, SqliteLog
from ldp_server.worker.client import Worker

__all__ = ["CollectionServer"]

COLLECTOR = collector_pb2.DESCRIPTOR.services_by_name["Collector"].full_name
HEALTH = health_pb2.DESCRIPTOR.services_by_name["Health"].full_name
ANALYST = analyst_pb2.DESCRIPTOR.services_by_name["Analyst"].full_name

_BATCH_MESSAGE = 512 * 1024
_ANALYST_MESSAGE = 4 << 20


def _options(message: int) -> list[tuple[str, int]]:
    return [
        ("grpc.max_receive_message_length", message),
        ("grpc.max_metadata_size", 16 * 1024),
        ("grpc.max_concurrent_streams", 2000),
        ("grpc.keepalive_time_ms", 120_000),  # a phone that vanished is noticed within minutes
        ("grpc.keepalive_timeout_ms", 20_000),
        ("grpc.keepalive_permit_without_calls", 1),
        ("grpc.http2.min_ping_interval_without_data_ms", 30_000),
        ("grpc.http2.min_recv_ping_interval_without_data_ms", 30_000),
        ("grpc.so_reuseport", 0),  # a second server on a port is an error, not a lottery
    ]


class CollectionServer:
    """One server on one data directory. Use `start`, then `wait`, then `stop`."""

    def __init__(self, config: Config, *, clock: Callable[[], float] = time.time) -> None:
        self.config = config
        self._clock = clock
        self._directory = DataDirectory(config.data)
        self._lock = DirectoryLock(self._directory)
        self._servers: list[grpc.aio.Server] = []
        self._health = HealthServicer()
        self._tasks: list[asyncio.Task[None]] = []
        self._stopping = asyncio.Event()
        self.failure: StorageError | None = None
        self.port = 0
        self.analyst_port = 0
        self.metrics = Metrics(config.watch.collections)

    async def start(self) -> None:
        """Get ready and begin to listen; raises `StorageError` or `InvalidSpec` if it cannot be."""
        self._directory.create()
        self._lock.acquire()
        try:
            self._assemble()
            await self._listen()
        except BaseException:
            await self.stop(grace=0)
            raise
        self._lifecycle.commit.start()
        self._tasks = [asyncio.create_task(self._background.run()), asyncio.create_task(self._watch())]
        for service in ("", COLLECTOR, ANALYST):
            await self._health.set(service, health_pb2.HealthCheckResponse.SERVING)

    def _assemble(self) -> None:
        config = self.config
        verifier = TokenVerifier.load(config.admission.token_keys)
        publish = config.publish
        publisher = ListPublisher(
            load_private_key(publish.signing_key) if publish.signing_key else None,
            load_public_key(publish.next_key) if publish.next_key else None,
        )
        self._access = AccessFile(self._directory.access, self._clock)
        log = SqliteLog(self._directory.log)
        collections = LiveCollections()
        for record in log.catalog.records():
            collections.put(record, self.metrics.label(record.id))
            publisher.put(record)
        if collections.unreadable:
            log.close()
            raise StorageError(
                f"the log holds {len(collections.unreadable)} collections that this version does not understand: "
                "use the version that made them, or a newer one"
            )
        rate = RateLimit(config.admission.reports_per_second, config.admission.burst, time.monotonic)
        self._ingest = Ingest(
            collections, self.metrics, rate, verifier, waiting_bytes=config.limits.waiting_bytes, clock=self._clock
        )
        commit = GroupCommit(log, collections.in_range, self._ingest.delivered)
        self._ingest.commit = commit
        self._lifecycle = Lifecycle(
            config,
            self._directory,
            collections,
            publisher,
            self.metrics,
            commit,
            Worker(config.data, memory_mb=config.limits.worker_memory_mb, nice=10),
            self._clock,
            has_client_ca=config.collector.client_ca is not None,
            has_token_keys=bool(verifier),
        )
        self._background = BackgroundWork(self._lifecycle, self._ingest)
        self._collector = Collector(
            self._ingest,
            collections,
            publisher,
            self.metrics,
            stream_batches=config.limits.stream_batches,
            stream_bytes=config.limits.stream_bytes,
        )
        self._operators = Operators(self._lifecycle, Auth(self._access, config.analyst.certificate_names), self._ingest)

    async def _listen(self) -> None:
        config, split = self.config, bool(self.config.analyst.listen)
        first = self._server(_BATCH_MESSAGE if split else _ANALYST_MESSAGE, collector=True, analyst=not split)
        self.port = self._bind(first, config.collector.listen, "collector.listen", config.collector.client_ca)
        self.analyst_port = self.port
        if split:
            second = self._server(_ANALYST_MESSAGE, collector=False, analyst=True)
            self.analyst_port = self._bind(second, config.analyst.listen, "analyst.listen", config.analyst.client_ca)
        for server in self._servers:
            await server.start()

    def _server(self, message: int, *, collector: bool, analyst: bool) -> grpc.aio.Server:
        server = grpc.aio.server(options=_options(message), maximum_concurrent_rpcs=self.config.limits.calls)
        names = [reflection.SERVICE_NAME, HEALTH]
        if collector:
            server.add_generic_rpc_handlers((_collector_handlers(self._collector),))
            names.append(COLLECTOR)
        if analyst:
            unary, streams = self._operators.unary(), self._operators.streams()
            server.add_generic_rpc_handlers((_handlers(ANALYST, unary, streams),))
            names.append(ANALYST)
        health_pb2_grpc.add_HealthServicer_to_server(self._health, server)
        reflection.enable_server_reflection(names, server)
        self._servers.append(server)
        return server

    def _bind(self, server: grpc.aio.Server, listen: str, setting: str, client_ca: Any) -> int:
        host, _ = split_address(listen, setting)
        try:
            if self.config.tls.certificate is not None:
                return server.add_secure_port(listen, TlsFiles(self.config.tls, client_ca).credentials())
            if not is_loopback(host):
                if not self.config.collector.plaintext:
                    raise InvalidSpec(
                        f"{setting} is {listen} without TLS: set tls.certificate and tls.key, or collector.plaintext "
                        "= true if something in front of this server encrypts"
                    )
                event(logging.WARNING, "unencrypted connections are taken from other machines", listen=listen)
            return server.add_insecure_port(listen)
        except RuntimeError as error:
            raise InvalidSpec(f"cannot listen on {listen} ({setting}): is the port taken?") from error

    async def _watch(self) -> None:
        """Notice when the writer thread gave up, and keep the gauges fresh."""
        while not self._stopping.is_set():
            self._background.look()
            if self._lifecycle.commit.failure is not None:
                self.failure = self._lifecycle.commit.failure
                event(logging.ERROR, "the log cannot be written; stopping", reason=str(self.failure))
                self._stopping.set()
            await asyncio.sleep(1.0)

    def request_stop(self) -> None:
        """Ask `wait` to return."""
        self._stopping.set()

    async def wait(self, *, signals: bool = True) -> None:
        """Serve until asked to stop."""
        if signals:
            loop = asyncio.get_running_loop()
            for number in (signal.SIGTERM, signal.SIGINT):
                loop.add_signal_handler(number, self.request_stop)
        await self._stopping.wait()

    async def stop(self, grace: float | None = None) -> None:
        """Drain and close; safe to call at any point of a start."""
        grace = self.config.limits.drain_seconds if grace is None else grace
        await self._health.enter_graceful_shutdown()
        if hasattr(self, "_collector"):
            self._operators.draining = True
            self._collector.drain()
        await asyncio.gather(*(server.stop(grace) for server in self._servers))
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        if hasattr(self, "_lifecycle"):
            await self._lifecycle.worker.close()
            await asyncio.to_thread(self._lifecycle.commit.stop)
        if hasattr(self, "_access"):
            self._access.close()
        self._lock.release()


def _collector_handlers(collector: Collector) -> Any:
    unary = {
        "GetCollection": collector.get_collection,
        "ListCollections": collector.list_collections,
        "Submit": collector.submit,
    }
    handlers = {name: grpc.unary_unary_rpc_method_handler(method) for name, method in unary.items()}
    handlers["SubmitStream"] = grpc.stream_stream_rpc_method_handler(collector.submit_stream)
    return grpc.method_handlers_generic_handler(COLLECTOR, handlers)


def _handlers(service: str, unary: Mapping[str, Any], streams: Mapping[str, Any]) -> Any:
    handlers = {name: grpc.unary_unary_rpc_method_handler(method) for name, method in unary.items()}
    handlers |= {name: grpc.unary_stream_rpc_method_handler(method) for name, method in streams.items()}
    return grpc.method_handlers_generic_handler(service, handlers)
