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
from collections.abc import Iterator
from pathlib import Path

from ldp_server.service.admission.peers import Peers

__all__ = ["Connections"]

_EVERY = 1.0
_DESCRIPTORS = next((path for path in ("/proc/self/fd", "/dev/fd") if Path(path).is_dir()), None)


class Connections:
    """The open connections of this process; `share` is how many one address may hold."""

    def __init__(self, peers: Peers, share: int) -> None:
        self._peers = peers
        self._share = share
        self.ports: frozenset[int] = frozenset()
        """The server's ports, once they are known: other connections of the process are left alone."""

    async def run(self) -> None:
        """End connections beyond their addresses' shares, again and again."""
        while True:
            await asyncio.sleep(_EVERY)
            await asyncio.to_thread(self.limit)

    def limit(self) -> int:
        """End the connections beyond their addresses' shares; return how many."""
        held: Counter[str] = Counter()
        ended = 0
        for peer, connection in self._open(self._share):
            address = self._peers.connected(peer)
            if address is None:
                continue
            held[address] += 1
            if held[address] > self._share:
                ended += 1
                _shut(connection)
        return ended

    def end(self, peer: str) -> None:
        """End one connection, named as gRPC names its other end."""
        for other, connection in self._open(0):
            if other == peer:
                _shut(connection)

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
