"""The server's ports: gRPC's settings, TLS or not, and which services are on which port."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import grpc
from grpc_health.v1 import health_pb2
from grpc_reflection.v1alpha import reflection

from ldp_client.errors import InvalidSpec
from ldp_client.protocol.v1 import analyst_pb2, collector_pb2
from ldp_client.sending.target import is_loopback_host
from ldp_server.config import CallLimits, Config, TlsConfig, split_address
from ldp_server.service.bounded import Bounds
from ldp_server.service.health import DrainingHealth, health_methods, reflection_methods
from ldp_server.service.logs import event
from ldp_server.service.tls import TlsFiles

__all__ = [
    "ANALYST",
    "BATCH_MESSAGE",
    "COLLECTOR",
    "Ports",
    "Service",
    "add_services",
    "bind",
    "new_server",
    "plaintext_ports",
]

COLLECTOR = collector_pb2.DESCRIPTOR.services_by_name["Collector"].full_name
ANALYST = analyst_pb2.DESCRIPTOR.services_by_name["Analyst"].full_name
_HEALTH = health_pb2.DESCRIPTOR.services_by_name["Health"].full_name

BATCH_MESSAGE = 256 * 1024
"""Room for the largest batch (`MAX_PAYLOAD` bytes), its id and a token."""
_SHARED_MESSAGE = (1 << 20) + 64 * 1024
"""Where operators share the apps' port: room for the largest spec. A longer question needs a port of its own."""
_ANALYST_MESSAGE = 4 << 20
_STREAMS = 256
"""Calls on one connection. A client with more waits, or opens another connection, as proxies do."""


@dataclass(frozen=True)
class Service:
    """A service by its name on the wire, and its methods."""

    name: str
    handlers: dict[str, grpc.RpcMethodHandler[Any, Any]]


class Ports:
    """One port for apps and operators, or two if `analyst.listen` is set."""

    def __init__(
        self,
        config: Config,
        apps: Sequence[Service],
        analyst: Sequence[Service],
        health: DrainingHealth,
        bounds: Bounds,
    ) -> None:
        """`apps` is what apps may call, `analyst` what operators may; `bounds` are those of health checks."""
        self._config = config
        limits = config.limits
        self._split = bool(apps) and bool(analyst) and bool(config.analyst.listen)
        self._served = [name for name, services in (("collector", apps), ("analyst", analyst)) if services]
        self._servers = []
        if apps or analyst:
            size = _ANALYST_MESSAGE if not apps else BATCH_MESSAGE if self._split or not analyst else _SHARED_MESSAGE
            self._servers.append(new_server(size, limits, share_port=config.collector.share_port))
            add_services(self._servers[0], health, bounds, [*apps] if self._split else [*apps, *analyst])
        if self._split:
            self._servers.append(new_server(_ANALYST_MESSAGE, limits))
            add_services(self._servers[1], health, bounds, analyst)
        self._only_analyst = bool(analyst) and not apps
        self.collector = 0
        self.analyst = 0

    async def open(self) -> None:
        """Bind the ports and begin to listen."""
        config = self._config
        for setting, listen in plaintext_ports(config, self._served):
            event(logging.WARNING, "unencrypted connections are taken from other machines", listen=listen, by=setting)
        collector, analyst = config.collector, config.analyst
        if self._servers and not (self._only_analyst and analyst.listen):
            self.collector = self.analyst = bind(
                self._servers[0], config.tls, "collector.listen", collector.listen, collector.client_ca
            )
        if self._split or (self._only_analyst and analyst.listen):
            self.analyst = bind(self._servers[-1], config.tls, "analyst.listen", analyst.listen, analyst.client_ca)
        for server in self._servers:
            await server.start()

    async def close(self, grace: float) -> None:
        """Take no new calls; those under way have `grace` seconds to end."""
        await asyncio.gather(*(server.stop(grace) for server in self._servers))


def new_server(message: int, limits: CallLimits, *, share_port: bool = False) -> grpc.aio.Server:
    """A server of gRPC that takes messages of at most so many bytes."""
    age = _milliseconds(limits.connection_seconds)
    options = [
        ("grpc.max_receive_message_length", message),
        ("grpc.max_metadata_size", 16 * 1024),
        ("grpc.max_concurrent_streams", _STREAMS),
        ("grpc.max_allowed_incoming_connections", limits.connections),
        ("grpc.max_connection_idle_ms", _milliseconds(limits.idle_seconds)),
        ("grpc.max_connection_age_ms", age),
        ("grpc.max_connection_age_grace_ms", age),  # a long search or export may end
        ("grpc.server_handshake_timeout_ms", 10_000),
        ("grpc.http2.bdp_probe", 0),  # or the window of every stream grows with the fastest sender's
        ("grpc.http2.lookahead_bytes", 65_536),  # of a message that nobody has asked gRPC for
        ("grpc.keepalive_time_ms", 120_000),  # a phone that vanished is noticed within minutes
        ("grpc.keepalive_timeout_ms", 20_000),
        ("grpc.keepalive_permit_without_calls", 1),
        ("grpc.http2.min_ping_interval_without_data_ms", 30_000),
        ("grpc.http2.min_recv_ping_interval_without_data_ms", 30_000),
        ("grpc.so_reuseport", int(share_port)),  # else a second server on the same port is an error
    ]
    return grpc.aio.server(options=options)


def _milliseconds(seconds: float) -> int:
    return min(max(1, int(seconds * 1000)), (1 << 31) - 1)  # gRPC's largest number means "never"


def add_services(server: grpc.aio.Server, health: DrainingHealth, bounds: Bounds, services: Sequence[Service]) -> None:
    """Serve these, health checks and reflection; `bounds` are those of health checks."""
    services = [*services, Service(_HEALTH, health_methods(health, bounds))]
    names = [reflection.SERVICE_NAME, *(service.name for service in services)]
    services.append(Service(reflection.SERVICE_NAME, reflection_methods(names, bounds)))
    for service in services:
        server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(service.name, service.handlers),))


def plaintext_ports(config: Config, served: Sequence[str]) -> list[tuple[str, str]]:
    """The ports that take unencrypted connections from elsewhere; raises `InvalidSpec` if one is not allowed to.

    Each port asks for itself: operators' tokens must not travel in the open because apps' reports may. `served` is who
    calls here: a collector answers no operators, and what they would need is not asked of it.
    """
    found: list[tuple[str, str]] = []
    if config.tls.certificate is not None:
        return found
    collector, analyst = config.collector, config.analyst
    for setting, listen, allowed in (
        ("collector", collector.listen, collector.plaintext),
        ("analyst", analyst.listen or collector.listen, analyst.plaintext),
    ):
        host, _ = split_address(listen, f"{setting}.listen")
        if setting not in served or is_loopback_host(host):
            continue
        if not allowed:
            raise InvalidSpec(_refused_plaintext(setting, listen))
        found.append((setting, listen))
    return found


def _refused_plaintext(setting: str, listen: str) -> str:
    if setting == "collector":
        return (
            f"collector.listen is {listen} without TLS: set tls.certificate and tls.key, or collector.plaintext = true "
            "if a proxy in front of this server encrypts"
        )
    return (
        f"operators' tokens would travel unencrypted to {listen}: set tls.certificate and tls.key, or give operators a "
        'port of their own (analyst.listen = "127.0.0.1:7901"), or set analyst.plaintext = true'
    )


def bind(server: grpc.aio.Server, tls: TlsConfig, setting: str, listen: str, client_ca: Path | None) -> int:
    """Take a port, with TLS if there is a certificate; return its number."""
    try:
        if tls.certificate is not None:
            return server.add_secure_port(listen, TlsFiles(tls, client_ca).credentials())
        return server.add_insecure_port(listen)
    except RuntimeError as error:
        raise InvalidSpec(f"cannot listen on {listen} ({setting}): is the port taken?") from error
