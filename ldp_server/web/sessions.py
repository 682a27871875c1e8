"""Who is signed in. The token stays in this process; the browser holds a signed random id.

    cookie   KIND.ID.SIGNATURE    KIND is "v" (a visitor of the sign-in form) or "s" (signed in), ID 256 random bits
    csrf     HMAC of ID           in every form; another site can neither read nor guess it

Whoever signs in gets a new id. So an id that somebody planted in the browser beforehand is worth nothing afterwards.
Ids are forgotten with the process: after a restart everybody signs in again.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import secrets
import threading
import time
from collections import OrderedDict, deque
from collections.abc import Callable
from dataclasses import dataclass, field

from ldp_server.analyst import Analyst
from ldp_server.web.settings import SESSION_SECONDS

__all__ = ["Attempts", "OneTimeKeys", "Session", "Sessions", "Visitor"]

_MOST = 1000
"""Sessions at the same time; the oldest one ends when there would be more."""
_LINK_SECONDS = 600.0

Clock = Callable[[], float]


@dataclass(frozen=True)
class Visitor:
    """A browser, known by a random id."""

    id: str = field(repr=False)
    csrf: str = field(repr=False)


@dataclass(frozen=True)
class Session(Visitor):
    """A browser that is signed in, and the connection that asks with its token."""

    analyst: Analyst = field(repr=False)
    connect: Callable[[], Analyst] = field(repr=False)
    """Makes another connection with the same token."""
    until: float


class Sessions:
    """The sessions of this process."""

    def __init__(self, seconds: float = SESSION_SECONDS, clock: Clock = time.monotonic) -> None:
        self._secret = secrets.token_bytes(32)
        self._seconds, self._clock = seconds, clock
        self._open: dict[str, Session] = {}
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._open)

    def begin(self, connect: Callable[[], Analyst]) -> Session:
        """Sign a browser in, under a new id."""
        name = secrets.token_urlsafe(32)
        session = Session(name, self._sign("csrf", name), connect(), connect, self._clock() + self._seconds)
        with self._lock:
            ended = [one for one in self._open.values() if one.until <= self._clock()]
            ended += list(self._open.values())[: max(0, len(self._open) - len(ended) - _MOST + 1)]
            for one in ended:
                self._open.pop(one.id, None)
            self._open[name] = session
        for one in ended:
            one.analyst.close()
        return session

    def find(self, cookie: str) -> Session | None:
        """Return the session that a cookie names, unless it has ended."""
        session = self._open.get(self._id(cookie, "s"))
        if session is not None and session.until <= self._clock():
            self.end(session)
            return None
        return session

    def end(self, session: Session) -> None:
        with self._lock:
            self._open.pop(session.id, None)
        session.analyst.close()

    def close(self) -> None:
        for session in list(self._open.values()):
            self.end(session)

    def visitor(self, cookie: str) -> Visitor:
        """Return the visitor that a cookie names, or a new one."""
        name = self._id(cookie, "v") or secrets.token_urlsafe(32)
        return Visitor(name, self._sign("csrf", name))

    def cookie(self, visitor: Visitor) -> str:
        """Return the value of a visitor's or a session's cookie."""
        kind = "s" if isinstance(visitor, Session) else "v"
        return f"{kind}.{visitor.id}.{self._sign(kind, visitor.id)}"

    def _id(self, cookie: str, kind: str) -> str:
        given, _, rest = cookie.partition(".")
        name, _, signature = rest.rpartition(".")
        right = name and given == kind and hmac.compare_digest(signature.encode(), self._sign(kind, name).encode())
        return name if right else ""

    def _sign(self, purpose: str, name: str) -> str:
        digest = hmac.new(self._secret, f"{purpose}\0{name}".encode(), hashlib.sha256).digest()
        return base64.urlsafe_b64encode(digest).decode().rstrip("=")


class OneTimeKeys:
    """Keys that sign in once: the link that a command prints for the owner of a data directory."""

    def __init__(self, seconds: float = _LINK_SECONDS, clock: Clock = time.monotonic) -> None:
        self._seconds, self._clock = seconds, clock
        self._keys: dict[bytes, float] = {}
        self._lock = threading.Lock()

    def make(self) -> str:
        key = secrets.token_urlsafe(32)
        with self._lock:
            self._keys[_digest(key)] = self._clock() + self._seconds
        return key

    def use(self, key: str) -> bool:
        """Whether the key is good; from now on it is not."""
        with self._lock:
            until = self._keys.pop(_digest(key), None)
        return until is not None and self._clock() < until


class Attempts:
    """How often an address showed a wrong token within the last minute."""

    def __init__(self, most: int = 20, seconds: float = 60.0, clock: Clock = time.monotonic) -> None:
        self._most, self._seconds, self._clock = most, seconds, clock
        self._wrong: OrderedDict[object, deque[float]] = OrderedDict()

    def may(self, address: object) -> bool:
        """Whether the address may try again."""
        wrong = self._wrong.get(address)
        return wrong is None or len(wrong) < self._most or self._clock() - wrong[0] > self._seconds

    def failed(self, address: object) -> None:
        self._wrong.setdefault(address, deque(maxlen=self._most)).append(self._clock())
        self._wrong.move_to_end(address)
        while len(self._wrong) > _MOST:
            self._wrong.popitem(last=False)


def _digest(key: str) -> bytes:
    return hashlib.sha256(key.encode("utf-8", "replace")).digest()
