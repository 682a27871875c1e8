"""Follows collections that other servers enter and change, and what witnesses have signed at other servers.

A collection that was just entered elsewhere may be asked for here before the news of it. "Unknown" is final for a
device, so an id is called unknown only if it is still missing after all rows were read anew.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

from ldp_server.service.live import LiveCollections
from ldp_server.store import CollectionRecord
from ldp_server.store.interface.store import CosignedList

__all__ = ["Followed"]

MOST = 1000
"""So many missing ids are remembered. Any others are told "not now"."""
READS = 2
"""How many times all rows must have been read since an id was first missed: the first read may have begun before."""


class Followed:
    """Brings collections up to date. Everything but `changed` and `cosigned` is called on the event loop."""

    def __init__(
        self, collections: LiveCollections, then: Callable[[], None], take: Callable[[Sequence[CosignedList]], None]
    ) -> None:
        """`then` is called after changes, and `take` with the witnesses' signatures."""
        self._collections = collections
        self._take_signatures = take
        self._then = then
        self._loop = asyncio.get_running_loop()
        self._missed: dict[bytes, int] = {}
        self._reads = 0
        self.asked = False
        """Whether somebody waits for the next read."""

    def changed(self, records: Sequence[CollectionRecord]) -> None:
        """Take all rows, on any thread."""
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._take, records)

    def cosigned(self, signatures: Sequence[CosignedList]) -> None:
        """Take what witnesses have signed, on any thread."""
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._take_signatures, signatures)

    def _take(self, records: Sequence[CollectionRecord]) -> None:
        self._reads += 1
        changed = False
        for record in records:
            known = self._collections.get(record.id)
            if known is None or known.record != record:
                self._collections.put(record)
                changed = True
        self._missed = {one: first for one, first in self._missed.items() if first + 2 * READS >= self._reads}
        self.asked = any(first + READS > self._reads for first in self._missed.values())
        if changed:
            self._then()

    def surely_missing(self, collection_id: bytes) -> bool:
        """Whether an id that is not among the collections is in no row either."""
        first = self._missed.get(collection_id)
        if first is None:
            if len(self._missed) < MOST:
                self._missed[collection_id] = self._reads
                self.asked = True
            return False
        return self._reads >= first + READS
