"""A network that fails: a process on loopback between senders and collectors, and between collectors and their store.

    python -m simulator.wire.proxy

reads orders, a line of JSON each, and answers each with a line. {"route": NAME, "to": WHERE} opens a way to WHERE,
which is host:port or the path of a socket, and is answered by {"port": N}. {"route": NAME, "cut": KIND, "seconds": S}
lets it fail, and is answered by {"connections": N} when it passes again: how many connections were met. The kinds are

stall      nothing passes for so long, in either direction; new connections wait, too
reset      all connections are reset, and new ones for so long
truncate   each connection passes on half of the next bytes in either direction, and ends

It ends when its standard input is closed.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
import struct
import subprocess
import sys
from collections.abc import Mapping
from types import TracebackType
from typing import Any, Self

from ldp_client.errors import Unavailable
from ldp_server.child import safe_command, safe_environment

__all__ = ["CUTS", "FailingNetwork", "Route"]

CUTS = ("stall", "reset", "truncate")
_CHUNK = 1 << 16
_RESET = struct.pack("ii", 1, 0)
"""SO_LINGER for no time: closing sends a reset."""


class Route:
    """One way through: everything that comes to a port of this process goes on to another place."""

    def __init__(self, where: str) -> None:
        self._where = where
        self._open = asyncio.Event()
        self._open.set()
        self._refusing = False
        self._writers: dict[asyncio.StreamWriter, bool] = {}
        """The writers of all connections, and whether each is to be cut off."""

    async def passing(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection, from its begin to its end."""
        there: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None
        try:
            await self._open.wait()
            if not self._refusing:
                there = await self._connect()
                self._writers.update({writer: False, there[1]: False})
                ends = asyncio.gather(self._pump(reader, there[1]), self._pump(there[0], writer))
                await ends
        except OSError:
            pass  # one end has gone: the other one is told by the end of its connection
        finally:
            for one in (writer, there[1] if there else None):
                if one is not None:
                    self._writers.pop(one, None)
                    _end(one, reset=self._refusing)

    async def _connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        if self._where.startswith("/"):
            return await asyncio.open_unix_connection(self._where)
        host, _, port = self._where.rpartition(":")
        return await asyncio.open_connection(host.strip("[]"), int(port))

    async def _pump(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(_CHUNK):
            await self._open.wait()
            if self._writers.get(writer, True):
                writer.write(data[: len(data) // 2])
                await writer.drain()
                raise ConnectionAbortedError
            writer.write(data)
            await writer.drain()
        raise ConnectionAbortedError  # one half has ended: so does the other

    async def cut(self, kind: str, seconds: float) -> int:
        """Let the way fail; return how many connections there were."""
        met = len(self._writers) // 2
        if kind == "truncate":
            self._writers = dict.fromkeys(self._writers, True)
        elif kind == "stall":
            self._open.clear()
            await asyncio.sleep(seconds)
            self._open.set()
        else:
            self._refusing = True
            for writer in list(self._writers):
                _end(writer, reset=True)
            await asyncio.sleep(seconds)
            self._refusing = False
        return met


def _end(writer: asyncio.StreamWriter, *, reset: bool) -> None:
    end = writer.get_extra_info("socket")
    if reset and end is not None and end.family != socket.AF_UNIX:
        with contextlib.suppress(OSError):
            end.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
    writer.transport.abort()


class FailingNetwork:
    """The process, for whoever started it. One order at a time."""

    def __init__(self) -> None:
        self.routes: list[str] = []

    def __enter__(self) -> Self:
        self._process = subprocess.Popen(  # noqa: S603 - our own program
            safe_command("simulator.wire.proxy"),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=safe_environment(),
            start_new_session=True,  # Ctrl-C is for the process that started it
        )
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                with contextlib.suppress(OSError):
                    pipe.close()
        self._process.wait()

    def open(self, route: str, where: str) -> str:
        """Open a way to a place, and return the address at which it begins."""
        self.routes.append(route)
        return f"127.0.0.1:{self._ask({'route': route, 'to': where})['port']}"

    def cut(self, route: str, kind: str, seconds: float) -> int:
        """Let a route fail, wait until it passes again, and return how many connections were met."""
        return int(self._ask({"route": route, "cut": kind, "seconds": seconds})["connections"])

    def _ask(self, order: Mapping[str, Any]) -> dict[str, Any]:
        assert self._process.stdin is not None  # noqa: S101 - opened above
        assert self._process.stdout is not None  # noqa: S101
        try:
            self._process.stdin.write(json.dumps(order) + "\n")
            self._process.stdin.flush()
            answer = self._process.stdout.readline()
        except OSError:
            answer = ""
        if not answer:
            raise Unavailable("the process between senders and collectors has ended")
        found: dict[str, Any] = json.loads(answer)
        return found


async def _serve() -> None:
    lines = asyncio.StreamReader()
    loop = asyncio.get_running_loop()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(lines), sys.stdin)
    routes: dict[str, Route] = {}
    servers = []
    while line := await lines.readline():
        order = json.loads(line)
        if "to" in order:
            routes[order["route"]] = Route(order["to"])
            server = await asyncio.start_server(routes[order["route"]].passing, "127.0.0.1", 0)
            servers.append(server)
            _say({"port": server.sockets[0].getsockname()[1]})
        else:
            _say({"connections": await routes[order["route"]].cut(order["cut"], order["seconds"])})
    for server in servers:
        server.close()
    await asyncio.gather(*(route.cut("reset", 0.05) for route in routes.values()))


def _say(answer: object) -> None:
    sys.stdout.write(json.dumps(answer) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    asyncio.run(_serve())
