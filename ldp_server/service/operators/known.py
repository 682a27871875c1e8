"""Tokens that were just looked up, so that the next call of the same analyst needs no look-up in the file.

What is remembered holds while nobody has changed the file of tokens. The file counts its changes, whoever makes them,
and the count is read at every call. So a token that a command in another process revokes is looked up again at the next
call. Whether a token has expired is not remembered: that is a question of the clock, asked at every call. The tokens
themselves are not kept. What is kept is found by their SHA-256.
"""

from __future__ import annotations

import asyncio
import hashlib
import time
from collections.abc import Callable

from ldp_server.store import AccessTokens, AnalystToken

__all__ = ["LASTS", "MOST", "KnownTokens"]

LASTS = 10.0
"""Seconds. A file system that does not show the changes of others at once can keep a token alive no longer."""
MOST = 1000
"""So many tokens are remembered; then all are looked up anew."""


class KnownTokens:
    """The tokens of a file, looked up once while the file stays as it is."""

    def __init__(self, access: AccessTokens, clock: Callable[[], float] = time.monotonic) -> None:
        self._access = access
        self._clock = clock
        self._changes: int | None = None
        self._known: dict[bytes, tuple[float, AnalystToken]] = {}

    async def find(self, token: str) -> AnalystToken | None:
        """Whose token this is, as `AccessTokens.find` says it now."""
        changes = self._access.changes()
        if changes is None or changes != self._changes:
            self._known.clear()
            self._changes = changes
        name, now = hashlib.sha256(token.encode("utf-8", "surrogatepass")).digest(), self._clock()
        until, known = self._known.get(name, (0.0, None))
        if known is not None and now < until:
            return known
        found = await asyncio.to_thread(self._access.find, token)
        # Counted before the look-up. If the file changed meanwhile, the next call forgets what is kept here.
        if found is not None and changes is not None and changes == self._changes:
            if len(self._known) >= MOST:
                self._known.clear()
            self._known[name] = now + LASTS, found
        return found
