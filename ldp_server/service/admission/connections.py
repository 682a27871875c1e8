"""The connections of the server's ports: how many one address holds, and the end of one that must end.

gRPC for Python can limit connections in all (`grpc.max_allowed_incoming_connections`), but not by address, and cannot
end one. The process knows its own sockets, so both are done here: a socket that is shut down looks to gRPC like a
caller that hung up.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import stat
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

from ldp_server.service.admission.peers import Peers

__all__ = ["Connections"]

_EVERY = 1.0
_DESCRIPTORS = next((path for path in ("/proc/self/fd", "/dev/fd") if Path(path).is_dir()), None)


class Connections:
    """The open connections of this process; `share` is how many one address may hold."""

    def __init__(self, peers: Peers, share: int, ended: Callable[[], None] = lambda: None) -> None:
        self._peers = peers
        self._share = share
        self._ended = ended
        self._doomed: set[str] = set()
        self.ports: frozenset[int] = frozenset()
        """The server's ports, once they are known: other connections of the process are left alone."""

    async def run(self) -> None:
        """End connections beyond their addresses' shares, and those that must end, again and again."""
        while True:
            await asyncio.sleep(_EVERY)
            await asyncio.to_thread(self.look)

    def end(self, peer: str) -> None:
        """End one connection, named as gRPC names its other end, at the next look."""
        self._doomed.add(peer)

    def look(self) -> None:
        """Look once at all connections."""
        doomed, self._doomed = self._doomed, set()
        held: Counter[str] = Counter()
        for peer, connection in self._open(0 if doomed else self._share):
            address = self._peers.connected(peer)
            if address is not None:
                held[address] += 1
            if peer in doomed or (address is not None and held[address] > self._share):
                _shut(connection)
                self._ended()

    def _open(self, least: int) -> Iterator[tuple[str, socket.socket]]:
        """Every connection with its other end. None if the process has not even `least` descriptors."""
        if _DESCRIPTORS is None:
            return
        numbers = sorted(map(int, os.listdir(_DESCRIPTORS)))  # noqa: PTH208 - thousands of names, no paths wanted
        if len(numbers) <= least:
            return
        for number in numbers:
            with contextlib.suppress(OSError):
                if not stat.S_ISSOCK(os.fstat(number).st_mode):
                    continue
                with socket.socket(fileno=os.dup(number)) as connection:  # a copy: gRPC may close its own meanwhile
                    if (
                        connection.family in {socket.AF_INET, socket.AF_INET6}
                        and connection.getsockname()[1] in self.ports
                    ):
                        yield _name(connection), connection


def _name(connection: socket.socket) -> str:
    """The other end as gRPC writes it; fails if there is none."""
    host, port = connection.getpeername()[:2]
    if connection.family == socket.AF_INET6:
        return f"ipv4:{host[7:]}:{port}" if host.startswith("::ffff:") else f"ipv6:%5B{host}%5D:{port}"
    return f"ipv4:{host}:{port}"


def _shut(connection: socket.socket) -> None:
    with contextlib.suppress(OSError):
        connection.shutdown(socket.SHUT_RDWR)
