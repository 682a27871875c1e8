"""Analyst tokens: who may ask, create and manage, and until when. A store keeps them hashed.

    hearsay_<8 bytes of id, hex>_<32 random bytes, base64url>

The secret has 256 bits of entropy, so a plain SHA-256 of it is as good as a slow hash. It is compared in constant
time, shown once when it is made, and never logged. The hash covers the id and a salt of this store, so that a row
copied from another one is worthless.

Every token has a role and a day on which it expires. A role includes the ones before it: `ask`, `create`, `manage`.
Among the tokens in use a name is unique. The name of a revoked or expired token may be given again: that is a new
token. A *local* token is the one that a running server leaves in its data directory. It is short-lived and renewed
(service/operators/local_token.py).
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import os
import re
import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from ldp_client.errors import InvalidSpec
from ldp_client.protocol import tags

__all__ = ["LIFETIME", "LONGEST_LIFETIME", "ROLES", "AccessTokens", "AnalystToken", "SteadyClock", "TokenRow"]

ROLES = ("ask", "create", "manage")
"""What a token allows. Each role includes the ones before it."""
LIFETIME = 90 * 86_400
"""After how many seconds a token expires, unless its maker says otherwise."""
LONGEST_LIFETIME = 3_650 * 86_400
_FORM = re.compile(r"hearsay_([0-9a-f]{16})_([A-Za-z0-9_-]{43})")


class SteadyClock:
    """Wall-clock time that never runs back while this process lives, so that no expired token comes back to life.

    A clock that is set forward is followed while it is ahead.
    """

    def __init__(self, wall: Callable[[], float], steady: Callable[[], float] = time.monotonic) -> None:
        self._wall = wall
        self._steady = steady
        self._start = wall() - steady()

    def __call__(self) -> float:
        return max(self._wall(), self._start + self._steady())


@dataclass(frozen=True, slots=True)
class AnalystToken:
    """What is known of a token; not its secret."""

    id: str
    name: str
    role: str
    created: int
    expires: int
    revoked: int | None
    local: bool

    def state(self, now: float) -> str:
        """active, expired or revoked."""
        if self.revoked is not None and self.revoked < self.expires:
            return "revoked"
        return "expired" if self.revoked is not None or now >= self.expires else "active"

    def may(self, role: str) -> bool:
        """Whether the token's role includes another one."""
        return self.role in ROLES and ROLES.index(role) <= ROLES.index(self.role)


class TokenRow(NamedTuple):
    """A token as a store keeps it."""

    token: AnalystToken
    hash: bytes


class AccessTokens(ABC):
    """The tokens of one store. They may be asked about from any thread."""

    clock: Callable[[], float]
    _salt: bytes

    @abstractmethod
    def changes(self) -> int | None:
        """A number that is another one after every change by anybody; None if it cannot be told at once."""

    @abstractmethod
    def create_local(self, lifetime: int) -> str:
        """Make a token for the owner of the data directory, who may do everything. Forget local ones that expired."""

    @abstractmethod
    def drop_local(self) -> None:
        """Make this server's local tokens worthless, when it stops."""

    @abstractmethod
    def tokens(self) -> list[AnalystToken]:
        """Every token ever made, revoked ones included. Of local ones, those that were valid a moment ago."""

    @abstractmethod
    def close(self) -> None:
        """Give back files and connections."""

    @abstractmethod
    def _enter(self, row: TokenRow) -> bool:
        """Keep a token; False if its name is in use. A name whose token has expired is free."""

    @abstractmethod
    def _revoke(self, name: str, now: int) -> bool:
        """Make a token worthless; False if there never was one of this name. What has expired stays expired."""

    @abstractmethod
    def _row(self, id_: str) -> TokenRow | None:
        """The token with this id; None if there is none. A store on another machine may raise `StorageError`."""

    def create(self, name: str, role: str = "ask", lifetime: int = LIFETIME) -> str:
        """Make a token and return it: the only time it can be seen."""
        if not re.fullmatch(r"[A-Za-z0-9._@-]{1,64}", name):
            raise InvalidSpec("a token's name has 1 to 64 letters, digits or . _ @ -")
        if role not in ROLES:
            raise InvalidSpec(f"a token's role is one of {', '.join(ROLES)}, not {role!r}")
        if not 0 < lifetime <= LONGEST_LIFETIME:
            raise InvalidSpec(f"a token lives for at most {LONGEST_LIFETIME // 86_400} days: give --expires less")
        return self._add(name, role, lifetime, local=False)

    def _add(self, name: str, role: str, lifetime: int, *, local: bool) -> str:
        id_, secret, now = os.urandom(8).hex(), os.urandom(32), int(self.clock())
        token = AnalystToken(id_, name, role, now, now + lifetime, None, local)
        if not self._enter(TokenRow(token, self._hash(id_, secret))):
            raise InvalidSpec(f"a token named {name} is in use: revoke it first, or take another name")
        return f"hearsay_{id_}_{base64.urlsafe_b64encode(secret).decode().rstrip('=')}"

    def revoke(self, name: str) -> None:
        """Make a token worthless from now on. Revoking it again changes nothing."""
        if not self._revoke(name, int(self.clock())):
            raise InvalidSpec(f"there is no token named {name}")

    def find(self, token: str) -> AnalystToken | None:
        """Whose token this is, also if it is revoked or expired; None if its secret is not one of this store."""
        form = _FORM.fullmatch(token)
        id_, text = form.groups() if form else ("", "A" * 43)
        secret = base64.urlsafe_b64decode(text + "=")
        row = self._row(id_)
        right = hmac.compare_digest(self._hash(id_, secret), bytes(32) if row is None else row.hash)
        return row.token if row is not None and right else None

    def verify(self, token: str) -> AnalystToken | None:
        """Whose token this is; None if it is not a valid one of this server at this time."""
        found = self.find(token)
        return found if found is not None and found.state(self.clock()) == "active" else None

    def again(self, token: AnalystToken) -> AnalystToken | None:
        """What is known of a token now; None if its row is gone."""
        row = self._row(token.id)
        return None if row is None else row.token

    def _hash(self, id_: str, secret: bytes) -> bytes:
        return hashlib.sha256(tags.ANALYST_TOKEN + self._salt + id_.encode() + secret).digest()
