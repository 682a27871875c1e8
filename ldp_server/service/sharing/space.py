"""How much space the store takes. A store on another machine is asked on a thread, and now and then."""

from __future__ import annotations

import asyncio
import contextlib

from ldp_server.store import Store, StoreUsage
from ldp_server.store.errors import StorageError

__all__ = ["Space"]

EVERY = 30.0


class Space:
    """The space of one store, as it is or was a moment ago."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._known = StoreUsage(0, None)

    def now(self) -> StoreUsage:
        return self._known if self._store.shared else self._store.usage()

    async def run(self) -> None:
        """Ask until cancelled, if it is to be asked."""
        while self._store.shared:
            with contextlib.suppress(StorageError):  # who reads and writes says so
                self._known = await asyncio.to_thread(self._store.usage)
            await asyncio.sleep(EVERY)
