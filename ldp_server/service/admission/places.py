"""Places: how many calls may be open at once, and how many bytes of answers may be on their way.

A call takes its place before a byte of its message is read. So an address that opens many calls and sends nothing, or
never finishes a message, is refused after its share, and the others still find places. Who calls from this machine for
itself has no share, only the total.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import grpc

from ldp_server.service.admission.peers import Peer
from ldp_server.service.wire import CallStatus

__all__ = ["HeldPlaces", "Places"]


class Places:
    """At most `most` at once, and at most `share` of them for one address."""

    def __init__(self, most: int, share: int, refused: Callable[[], None] = lambda: None) -> None:
        self._most = most
        self._share = share
        self._refused = refused
        self._held: Counter[str] = Counter()
        self.taken = 0

    def take(self, peer: Peer, size: int = 1) -> HeldPlaces:
        """Hold `size` places during the block of a `with`; it raises `CallStatus` (not now) if there are not so many.

        Whoever holds none yet may take more than the share, and if nobody holds any, more than there are: a long
        answer is given to one caller at a time rather than to nobody.
        """
        return HeldPlaces(self, peer, size)

    def _add(self, peer: Peer, size: int) -> None:
        key = "" if peer.local else peer.address
        held = self._held[key]
        full = bool(self.taken) and self.taken + size > self._most
        if full or (not peer.local and held and held + size > self._share):
            self._refused()
            raise CallStatus(grpc.StatusCode.RESOURCE_EXHAUSTED, "too much is going on: not now", 2.0)
        self._held[key] = held + size
        self.taken += size

    def _give_back(self, peer: Peer, size: int) -> None:
        key = "" if peer.local else peer.address
        self.taken -= size
        left = self._held[key] - size
        if left:
            self._held[key] = left
        else:
            del self._held[key]


class HeldPlaces:
    """Places that a call holds while its block runs."""

    __slots__ = ("_peer", "_places", "_size")

    def __init__(self, places: Places, peer: Peer, size: int) -> None:
        self._places = places
        self._peer = peer
        self._size = size

    def __enter__(self) -> None:
        self._places._add(self._peer, self._size)

    def __exit__(self, *_: object) -> None:
        self._places._give_back(self._peer, self._size)
