"""What all pages share: who is signed in, the calls to the server in threads, and answers kept for a moment."""

from __future__ import annotations

import asyncio
import functools
import threading
import time
from collections import OrderedDict, deque
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import parse_qsl

import anyio
import anyio.to_thread
from starlette.exceptions import HTTPException
from starlette.requests import Request

from ldp_server.analyst import Analyst
from ldp_server.web.guard import Browser
from ldp_server.web.public_list import PublicList
from ldp_server.web.searches import Searches
from ldp_server.web.sessions import Attempts, OneTimeKeys, Sessions
from ldp_server.web.settings import WebSettings
from ldp_server.web.two_sources import CuratedReleases
from ldp_server.web.views import VIEWS, ViewOptions

__all__ = ["Connect", "Pace", "Site", "browser_of", "form_of", "site_of"]

T = TypeVar("T")

Connect = Callable[[str | None], Analyst]
"""Makes a connection with a token, or with None for the owner of this machine's data directory."""

_KEPT_SECONDS = 3.0
_MOST_KEPT = 16
_MOST_FIELDS = 64
_SAMPLES = 120
_MOST_SEEN = 10_000
_INTAKE_SECONDS = 600.0


class Pace:
    """How many reports there were at the last looks, of each collection and of the server: how fast they come."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._seen: OrderedDict[object, deque[tuple[float, int]]] = OrderedDict()

    def note(self, of: object, reports: int) -> float | None:
        """Note a look, and return the reports a minute since the first look of the last ten minutes."""
        now, seen = self._clock(), self._seen.setdefault(of, deque(maxlen=_SAMPLES))
        self._seen.move_to_end(of)
        if len(self._seen) > _MOST_SEEN:
            self._seen.popitem(last=False)
        while seen and (now - seen[0][0] > _INTAKE_SECONDS or reports < seen[-1][1]):
            seen.popleft()
        if not seen or now - seen[-1][0] >= _INTAKE_SECONDS / _SAMPLES:
            seen.append((now, reports))
        begun, before = seen[0]
        return None if now - begun < 1 else (reports - before) / (now - begun) * 60


@dataclass
class Site:
    """One server of pages."""

    settings: WebSettings
    connect: Connect
    owner_token: Callable[[], str | None] = lambda: None
    """The token of the data directory's owner, which is good on this machine only."""
    truth: Mapping[str, Mapping[Any, int]] = field(default_factory=dict)
    """Of a demo: how many simulated users hold each item, by the collection's id."""
    public: bool = False
    """Whether everybody may read what is asked (pages/public.py)."""
    released: Path | None = None
    """The folder of the answers that everybody may read (ldp_server/released.py)."""
    curated: CuratedReleases | None = None
    """What a curator has released about volunteers, shown beside the reports to those who are signed in."""
    listed: PublicList | None = None
    listed_until: float = 0.0
    sessions: Sessions = field(default_factory=Sessions)
    keys: OneTimeKeys = field(default_factory=OneTimeKeys)
    attempts: Attempts = field(default_factory=Attempts)
    intake: Pace = field(default_factory=Pace)
    searches: Searches = field(default_factory=Searches)
    _kept: OrderedDict[Any, tuple[float, Any]] = field(default_factory=OrderedDict)
    _running: dict[Hashable, asyncio.Task[Any]] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def __post_init__(self) -> None:
        self._short, self._long = anyio.CapacityLimiter(16), anyio.CapacityLimiter(2)

    def close(self) -> None:
        self.searches.close()
        self.sessions.close()

    async def has_curated(self, collection: bytes) -> bool:
        """Whether a curator has released something about a collection that can be merged with reports."""
        return self.curated is not None and bool(await self.call(self.curated.of, collection))

    async def call(self, work: Callable[..., T], *arguments: Any, **named: Any) -> T:
        """Make a short call to the server, in a thread."""
        bound = functools.partial(work, *arguments, **named)
        return await anyio.to_thread.run_sync(bound, limiter=self._short, abandon_on_cancel=True)

    async def ask(self, analyst: Analyst, which: str, view: str, options: ViewOptions) -> Any:
        """Ask for a view."""
        return await self.ask_long((which, view, options), VIEWS[view].ask, analyst, which, options)

    async def ask_long(self, key: Hashable, work: Callable[..., T], *arguments: Any) -> T:
        """Ask a question that may take long. The answer is kept for a few seconds, under a key that says all of it,
        for the next page of a table and for other readers. Who asks while it is being answered waits for that answer.

        The caller has shown that its token is valid just now: every token may ask.
        """
        with self._lock:
            until, found = self._kept.get(key, (0.0, None))
        if time.monotonic() < until:
            kept: T = found
            return kept
        if (running := self._running.get(key)) is None:
            running = asyncio.create_task(self._answer(key, functools.partial(work, *arguments)))
            self._running[key] = running
            running.add_done_callback(functools.partial(self._answered, key))
        answer: T = await asyncio.shield(running)  # a reader who leaves ends nobody else's question
        return answer

    async def _answer(self, key: Hashable, asked: Callable[[], T]) -> T:
        made = await anyio.to_thread.run_sync(asked, limiter=self._long, abandon_on_cancel=True)
        with self._lock:
            self._kept[key] = time.monotonic() + _KEPT_SECONDS, made
            while len(self._kept) > _MOST_KEPT:
                self._kept.popitem(last=False)
        return made

    def _answered(self, key: Hashable, task: asyncio.Task[Any]) -> None:
        self._running.pop(key, None)
        if not task.cancelled():
            task.exception()  # whoever waits raises it; if nobody waits any more, nobody needs to know


def site_of(request: Request) -> Site:
    """The site that a request is for."""
    site: Site = request.app.state.site
    return site


def browser_of(request: Request) -> Browser:
    """The browser that made a request."""
    browser: Browser = request.state.browser
    return browser


async def form_of(request: Request) -> dict[str, str]:
    """Read a form of text fields; the last value of a field counts."""
    body = await request.body()
    try:
        return dict(parse_qsl(body.decode(), keep_blank_values=True, max_num_fields=_MOST_FIELDS, errors="strict"))
    except ValueError:
        raise HTTPException(400, "this is not a form") from None
