"""Which server to call: by its address, by its data directory, or as the environment says."""

from __future__ import annotations

import copy
import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Generic, Self, TypeVar

from ldp_client.errors import InvalidSpec
from ldp_client.sending.target import Tls
from ldp_server.analyst.connection import Endpoint, PinnedTls, Timeouts
from ldp_server.local_server import LocalServer
from ldp_server.store import DataDirectory

__all__ = ["Reaching"]

_DATA = Path("hearsay-data")
E_co = TypeVar("E_co", bound=Endpoint, covariant=True)


class Reaching(Generic[E_co]):
    """The ways to make an Analyst, and its time limits."""

    _connection: E_co

    def __init__(
        self, target: str, *, token: str | Path | None = None, tls: Tls | None = None, timeouts: Timeouts | None = None
    ) -> None:
        self._connection = self._connect(target, token, tls)
        self._timeouts = timeouts or Timeouts()

    def _connect(self, target: str, token: str | Path | None, tls: Tls | None) -> E_co:
        raise NotImplementedError

    @classmethod
    def local(
        cls,
        data: str | Path = _DATA,
        *,
        token: str | Path | None = None,
        tls: Tls | None = None,
        timeouts: Timeouts | None = None,
    ) -> Self:
        """Call the server that runs on a data directory of this machine.

        The server writes its address, the path of its certificate and a token for the directory's owner there.
        Arguments that are given replace them.
        """
        server = LocalServer.read(Path(data))
        return cls(server.address, token=token or _local_token(data), tls=_tls(server, tls), timeouts=timeouts)

    @classmethod
    def from_environment(cls, variables: Mapping[str, str] = os.environ, *, timeouts: Timeouts | None = None) -> Self:
        """Call the server that the environment names, with the variables that the command line knows.

        LDP_SERVER (HOST:PORT) or LDP_SERVER_DATA (the data directory of a server on this machine),
        LDP_SERVER_TOKEN_FILE, LDP_SERVER_CA, LDP_SERVER_CERT, LDP_SERVER_KEY.
        """
        ca, cert, key = (variables.get(f"LDP_SERVER_{name}") or None for name in ("CA", "CERT", "KEY"))
        file = variables.get("LDP_SERVER_TOKEN_FILE")
        return cls.reach(
            variables.get("LDP_SERVER") or None,
            variables.get("LDP_SERVER_DATA") or _DATA,
            token=Path(file) if file else None,
            tls=Tls(ca, cert, key) if ca or cert or key else None,
            timeouts=timeouts,
        )

    @classmethod
    def reach(
        cls,
        target: str | None,
        data: str | Path = _DATA,
        *,
        token: str | Path | None = None,
        tls: Tls | None = None,
        timeouts: Timeouts | None = None,
    ) -> Self:
        """Call the server at `target`, or without one the server that runs on the data directory.

        The data directory's own token is sent to the address that its server left there, and nowhere else.
        """
        if target is None or (token is None and target == LocalServer.address_of(Path(data))):
            return cls.local(data, token=token, tls=tls, timeouts=timeouts)
        return cls(target, token=token, tls=tls, timeouts=timeouts)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.target!r})"

    @property
    def target(self) -> str:
        return self._connection.target

    def within(self, seconds: float) -> Self:
        """Return the same connection with this time limit for each of its calls: `analyst.within(5).top(which)`."""
        if not seconds > 0:
            raise InvalidSpec("a time limit is a number of seconds above 0")
        other = copy.copy(self)
        other._timeouts = replace(self._timeouts, call=seconds, long=seconds, stream=seconds)
        return other


def _tls(server: LocalServer, given: Tls | None) -> Tls | None:
    """Return the TLS settings for calling a server of this machine; the caller's own are used where they are given."""
    if server.client_certificate and (given is None or given.certificate is None):
        raise InvalidSpec(
            "this server asks for a client certificate: pass one (--cert FILE --key FILE; in Python "
            "tls=Tls(certificate=..., key=...))"
        )
    if server.certificate is None or (given is not None and given.ca is not None):
        return given
    given = given or Tls()
    return PinnedTls(certificate=given.certificate, key=given.key, server=server.certificate)


def _local_token(data: str | Path) -> Path | None:
    """The token that a server leaves for the owner of its data directory."""
    file = DataDirectory(Path(data)).local_token
    return file if os.access(file, os.R_OK) else None
