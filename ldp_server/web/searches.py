"""Searches for popular items that run while their page waits, with progress, until done or cancelled.

A search is a stream from the server. It is read in a thread. When the reader cancels, or the session ends, its
connection is closed, and the server stops the search.
"""

from __future__ import annotations

import secrets
import threading
import time
from dataclasses import dataclass, field
from typing import Any

from ldp_client.errors import Cancelled, LdpError
from ldp_server.analyst import Analyst, CollectionHeavyHitters
from ldp_server.web.views import ViewOptions, look_for_items

__all__ = ["HitterSearch", "Searches"]

_KEPT_SECONDS = 1800.0
_MOST = 50


@dataclass
class HitterSearch:
    """One search, running or done."""

    analyst: Analyst = field(repr=False)
    """A connection of its own, so that closing it ends this call and no other."""
    which: str
    session: str = field(repr=False)
    options: ViewOptions = field(repr=False)
    name: str = field(default_factory=lambda: secrets.token_urlsafe(12))
    stage: str = "starting"
    fraction: float = 0.0
    started: float = field(default_factory=time.monotonic)
    ended: float | None = None
    found: CollectionHeavyHitters | None = field(default=None, repr=False)
    error: LdpError | None = None
    cancelled: bool = False

    @property
    def seconds(self) -> float:
        return (self.ended or time.monotonic()) - self.started

    def progress(self, stage: str, fraction: float) -> None:
        """Take the news. Raises `Cancelled` in the search's own thread, which closes the stream."""
        if self.cancelled:
            raise Cancelled("the search was cancelled")
        self.stage, self.fraction = stage, fraction

    def cancel(self) -> None:
        self.cancelled = True
        self.analyst.close()

    def shape(self) -> dict[str, Any]:
        """What the page asks for again and again."""
        return {
            "stage": self.stage,
            "fraction": round(self.fraction, 4),
            "seconds": round(self.seconds, 1),
            "done": self.ended is not None,
        }


class Searches:
    """The searches of this process."""

    def __init__(self) -> None:
        self._all: dict[str, HitterSearch] = {}
        self._lock = threading.Lock()

    def start(self, analyst: Analyst, session: str, which: str, options: ViewOptions) -> HitterSearch:
        """Start a search; the session's search of the same collection, if one runs, is cancelled."""
        search = HitterSearch(analyst, which, session, options)
        with self._lock:
            now = time.monotonic()
            for old in list(self._all.values()):
                if old.session == session and old.which == which:
                    old.cancel()
                if old.ended is not None and now - old.ended > _KEPT_SECONDS:
                    del self._all[old.name]
            for name in list(self._all)[: max(0, len(self._all) - _MOST + 1)]:
                self._all.pop(name).cancel()
            self._all[search.name] = search
        threading.Thread(target=_run, args=(search,), name="search", daemon=True).start()
        return search

    def find(self, name: str, session: str) -> HitterSearch | None:
        """Return a search of this session."""
        search = self._all.get(name)
        return search if search is not None and search.session == session else None

    def latest(self, session: str, which: str) -> HitterSearch | None:
        """Return the session's last search of a collection."""
        mine = [one for one in self._all.values() if one.session == session and one.which == which]
        return mine[-1] if mine else None

    def end_all_of(self, session: str) -> None:
        with self._lock:
            for search in [one for one in self._all.values() if one.session == session]:
                search.cancel()
                del self._all[search.name]

    def close(self) -> None:
        for search in self._all.values():
            search.cancel()


def _run(search: HitterSearch) -> None:
    try:
        search.found = look_for_items(search.analyst, search.which, search.options, search.progress)
        search.stage, search.fraction = "done", 1.0
    except LdpError as error:
        search.error = error
        search.stage = "cancelled" if search.cancelled or isinstance(error, Cancelled) else "ended"
    finally:
        search.analyst.close()
        search.ended = time.monotonic()
