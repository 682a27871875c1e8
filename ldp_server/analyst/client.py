"""The operator's and analyst's client: every call that a collection server answers, typed.

The questions of analysts are in questions.py, the other calls in operations.py. aio.py has the client for asyncio.
"""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import Self, TypeVar

from ldp_client.sending.target import Tls
from ldp_server.analyst.asking import Blocking, Call, Pieces
from ldp_server.analyst.connection import Connection
from ldp_server.analyst.operations import Operations
from ldp_server.analyst.over_time import AcrossPeriods
from ldp_server.analyst.questions import Which
from ldp_server.analyst.reaching import Reaching

__all__ = ["Analyst", "Which"]

T = TypeVar("T")


class Analyst(Reaching[Connection], AcrossPeriods, Operations, Blocking):
    """A connection to a collection server for those who create collections and read estimates.

        with Analyst("stats.example.org:443", token=Path("alice.token")) as analyst:
            for estimate in analyst.top("3fa9").rows:
                print(estimate.item, estimate.low, estimate.high)

    `token` is the token itself or a file that holds it; `ldp-server token create` makes one. A server on this machine
    is called in plain text unless `tls` is given. Every other server is called over TLS, and `tls` says which
    authority signed it (none: the public authorities) and which client certificate to show.

    The connection is made with the first call, and again after a failure. The methods raise the errors of
    ldp_client/errors.py: `ServerRefused` (no, with the gRPC status as `reason`), `Unavailable` (nobody answered, or
    not now), `InvalidSpec` (an argument is wrong), `Cancelled`. Two kinds of `ServerRefused` are about the token:
    `TokenRefused` (unknown, expired, revoked) and `RoleNeeded` (it does not allow this call). Several threads may share
    an Analyst. A token's file is read again at every call, so it may be renewed.
    """

    def _connect(self, target: str, token: str | Path | None, tls: Tls | None) -> Connection:
        return Connection(target, token, tls)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connection; the next call opens it again."""
        self._connection.close()

    def ask(self, asking: Call[T] | Pieces[T]) -> T:
        """Make a call and return its answer. The other methods do this."""
        limits = self._timeouts
        if isinstance(asking, Call):
            timeout = limits.long if asking.long else limits.call
            return asking.read(self._connection.call(asking.method, asking.request, timeout))
        with closing(self._connection.stream(asking.method, asking.request, limits.stream)) as pieces:
            for piece in pieces:
                found = asking.take(piece)
                if found is not None:
                    return found
        return asking.end()
