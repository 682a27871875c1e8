"""Servers in this process that share one store."""

from __future__ import annotations

import os
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import grpc

from ldp_server.config import Config
from ldp_server.service.assemble import CollectionServer
from ldp_server.service.sharing import SERVE, Role
from ldp_server.store.engines import open_store
from tests.server.helpers import Clock, Live


@asynccontextmanager
async def shared(data: Path, address: str, role: Role = SERVE, clock=None, **changes):
    """A server on a store that others may use, too."""
    clock = clock or Clock()
    config = replace(Config(), data=data, store=address, **changes).with_listen("127.0.0.1:0")
    server = CollectionServer(config, clock=clock, role=role)
    await server.start()
    try:
        token = ""
        if role.answers:
            access = open_store(address, data).access(clock)
            token = access.create(f"test-{os.urandom(4).hex()}", "manage")
            access.close()
        async with grpc.aio.insecure_channel(f"127.0.0.1:{server.port or server.analyst_port}") as opened:
            yield Live(server, token, opened)
    finally:
        await server.stop(grace=1)
