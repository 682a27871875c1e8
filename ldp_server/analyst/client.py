"""The operator's and analyst's client: every call that a collection server answers, typed.

The questions of analysts are in questions.py.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import BinaryIO, Literal, Self

from ldp_client.collection import Collection
from ldp_client.errors import InvalidSpec, Unavailable
from ldp_client.protocol.v1 import analyst_pb2 as pb
from ldp_client.sending.target import Tls
from ldp_server.analyst.collections import CollectionInfo, CollectionSummary, Exported, ServerStatus
from ldp_server.analyst.connection import Connection, Timeouts
from ldp_server.analyst.local import LocalServer
from ldp_server.analyst.over_time import OverTime
from ldp_server.analyst.questions import Which, named
from ldp_server.answers.periods import Periods, PeriodSpan, asked_periods
from ldp_server.answers.wire import from_wire
from ldp_server.store import DataDirectory

__all__ = ["Analyst", "Which"]

_DATA = Path("hearsay-data")
_ADMISSION = {"open": pb.OPEN, "certificate": pb.CERTIFICATE, "token": pb.TOKEN}
_EXPORTS = {"counts": pb.COUNTS, "reports": pb.REPORTS}


class Analyst(OverTime):
    """A connection to a collection server for those who create collections and read estimates.

        with Analyst("stats.example.org:443", token=Path("alice.token")) as analyst:
            for estimate in analyst.estimate("3fa9", top=10).rows:
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

    def __init__(
        self, target: str, *, token: str | Path | None = None, tls: Tls | None = None, timeouts: Timeouts | None = None
    ) -> None:
        super().__init__(Connection(target, token, tls), timeouts or Timeouts())

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
        return cls(server.address, token=token or _local_token(data), tls=server.tls(tls), timeouts=timeouts)

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
        return f"Analyst({self.target!r})"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connection; the next call opens it again."""
        self._connection.close()

    @property
    def target(self) -> str:
        return self._connection.target

    def create(
        self,
        collection: Collection,
        *,
        admission: Literal["open", "certificate", "token"] = "open",
        reports_per_token: int = 1,
        unlisted: bool = False,
    ) -> CollectionInfo:
        """Create a collection on the server. `unlisted` leaves it out of the public list."""
        if admission not in _ADMISSION:
            raise InvalidSpec(f"admission is one of {', '.join(_ADMISSION)}, not {admission!r}")
        request = pb.CreateCollectionRequest(
            spec_bytes=collection.spec_bytes,
            admission=_ADMISSION[admission],
            reports_per_token=reports_per_token,
            unlisted=unlisted,
        )
        return CollectionInfo.of(self._ask("CreateCollection", request))

    def collections(self) -> list[CollectionInfo]:
        """Every collection, oldest first, deleted ones included."""
        found = self._ask("ListAllCollections", pb.ListAllCollectionsRequest())
        return [CollectionInfo.of(info) for info in found.collections]

    def show(self, which: Which) -> CollectionSummary:
        """Return one collection's state, how many reports it has, and the privacy statement for its users."""
        request = pb.ShowCollectionRequest(**named(which))
        return CollectionSummary.of(self._ask("ShowCollection", request))

    def close_collection(self, which: Which) -> CollectionInfo:
        """Take no more batches, whatever the window says."""
        return CollectionInfo.of(self._ask("CloseCollection", pb.CollectionRequest(**named(which))))

    def delete_collection(self, which: Which) -> CollectionInfo:
        """Drop a collection's reports and counts for good. Its id cannot be used again."""
        return CollectionInfo.of(self._ask("DeleteCollection", pb.CollectionRequest(**named(which))))

    def compact_collection(self, which: Which) -> CollectionInfo:
        """Fold a collection's reports into counts and drop the reports. It must take no more batches."""
        request = pb.CollectionRequest(**named(which))
        return CollectionInfo.of(self._ask("CompactCollection", request, long=True))

    def export(
        self,
        which: Which,
        file: BinaryIO,
        *,
        kind: Literal["counts", "reports"] = "counts",
        progress: Callable[[Exported], None] | None = None,
        periods: Periods | None = None,
    ) -> Exported:
        """Write a collection's counts, or every report, to an open file.

        Counts are what `ldp_server.oracles.restore` reads. Reports are packed one after the other, in no order.
        """
        if kind not in _EXPORTS:
            raise InvalidSpec(f"export counts or reports, not {kind!r}")
        request = pb.ExportRequest(**named(which), kind=_EXPORTS[kind], periods=asked_periods(periods))
        done: Exported | None = None
        for piece in self._connection.stream("Export", request, self._timeouts.stream):
            file.write(piece.data)
            if done is None:
                about = from_wire(PeriodSpan, piece.periods) if piece.HasField("periods") else None
                done = Exported(CollectionInfo.of(piece.collection), periods=about)
            done = replace(done, reports=piece.reports, bytes=done.bytes + len(piece.data))
            if progress is not None:
                progress(done)
        if done is None:
            raise Unavailable("the server ended the export without an answer: try again")
        return done

    def status(self) -> ServerStatus:
        """Return the server's version, load and size."""
        return ServerStatus.of(self._ask("ServerStatus", pb.ServerStatusRequest()))


def _local_token(data: str | Path) -> Path | None:
    """The token that a server leaves for the owner of its data directory."""
    file = DataDirectory(Path(data)).local_token
    return file if os.access(file, os.R_OK) else None
