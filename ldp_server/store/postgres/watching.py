"""Changes of collections that other servers make, and what witnesses have signed, as PostgreSQL tells them."""

from __future__ import annotations

import logging
import threading
from types import TracebackType
from typing import Self

from ldp_server.store.errors import StorageError
from ldp_server.store.interface.store import Changed, CosignedList
from ldp_server.store.postgres.connecting import Connection, Destination
from ldp_server.store.postgres.entering import CHANGED
from ldp_server.store.postgres.failures import translated
from ldp_server.store.postgres.rows import COLLECTIONS, collection_record

__all__ = ["CatalogueWatch"]

LOGGER = logging.getLogger("hearsay.server")

EVERY = 30.0
"""After so many seconds all rows are read again, whatever was told."""
LOOKS = 1.0
"""How often the thread looks whether it is to end."""
PAUSE = 1.0
"""Seconds between attempts to connect again."""
_COSIGNATURES = "SELECT public_key, serial, list_bytes, signature FROM hearsay.cosignatures"


class CatalogueWatch:
    """A thread with a connection of its own. It reads all rows after each change, and after each new connection."""

    def __init__(self, destination: Destination, told: Changed) -> None:
        self._destination = destination
        self._told = told
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._main, name="hearsay-catalogue", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ending.set()
        self._thread.join()

    def _main(self) -> None:
        told = False
        while not self._ending.is_set():
            try:
                name = self._destination.name
                with translated(name), self._destination.connect(writes=False) as connection:
                    told = False
                    connection.execute(f"LISTEN {CHANGED}".encode())
                    self._follow(connection)
            except StorageError as error:
                if not told:
                    LOGGER.warning("changes of collections are not seen", extra={"fields": {"reason": str(error)}})
                told = True
                self._ending.wait(PAUSE)

    def _follow(self, connection: Connection) -> None:
        while not self._ending.is_set():
            # The signatures first: then the rows hold all collections of the lists that they are about.
            signed = connection.execute(_COSIGNATURES.encode(), binary=True).fetchall()
            rows = connection.execute(f"{COLLECTIONS} ORDER BY k.number".encode(), binary=True).fetchall()
            self._told.changed([collection_record(row) for row in rows])
            self._told.cosigned([CosignedList._make(row) for row in signed])
            waited = 0.0
            while waited < EVERY and not self._ending.is_set():
                if list(connection.notifies(timeout=LOOKS, stop_after=1)) or self._told.asked:
                    break
                waited += LOOKS
