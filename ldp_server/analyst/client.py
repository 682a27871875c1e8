"""The operator's and analyst's client: every call that a collection server answers, typed."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, BinaryIO, Literal, Self

from google.protobuf.message import Message

from ldp_client.collection import Collection
from ldp_client.errors import InvalidSpec, Unavailable
from ldp_client.protocol.domain import Item
from ldp_client.protocol.v1 import analyst_pb2 as pb
from ldp_client.sending.target import Tls
from ldp_server.analyst.answers import CollectionEstimates, CollectionHeavyHitters
from ldp_server.analyst.collections import CollectionInfo, CollectionSummary, Exported, ServerStatus
from ldp_server.analyst.connection import Connection, Timeouts
from ldp_server.analyst.local import LocalServer
from ldp_server.answers.wire import item_to_wire
from ldp_server.heavy_hitters import BETA, check_beta
from ldp_server.store import DataDirectory

__all__ = ["Analyst", "Which"]

Which = Collection | bytes | str
"""A collection: itself, its id, or the first digits of its id (at least four)."""

_DATA = Path("hearsay-data")
_ADMISSION = {"open": pb.OPEN, "certificate": pb.CERTIFICATE, "token": pb.TOKEN}
_EXPORTS = {"counts": pb.COUNTS, "reports": pb.REPORTS}


class Analyst:
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
        self._connection = Connection(target, token, tls)
        self._timeouts = timeouts or Timeouts()

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
        request = pb.ShowCollectionRequest(**_named(which))
        return CollectionSummary.of(self._ask("ShowCollection", request))

    def close_collection(self, which: Which) -> CollectionInfo:
        """Take no more batches, whatever the window says."""
        return CollectionInfo.of(self._ask("CloseCollection", pb.CollectionRequest(**_named(which))))

    def delete_collection(self, which: Which) -> CollectionInfo:
        """Drop a collection's reports and counts for good. Its id cannot be used again."""
        return CollectionInfo.of(self._ask("DeleteCollection", pb.CollectionRequest(**_named(which))))

    def compact_collection(self, which: Which) -> CollectionInfo:
        """Fold a collection's reports into counts and drop the reports. It must take no more batches."""
        request = pb.CollectionRequest(**_named(which))
        return CollectionInfo.of(self._ask("CompactCollection", request, long=True))

    def estimate(
        self,
        which: Which,
        *,
        items: Iterable[Item] | None = None,
        top: int | None = None,
        every_item: bool = False,
        confidence: float = 0.95,
        threshold: float | None = None,
        together: bool = False,
    ) -> CollectionEstimates:
        """Estimate how many users hold an item: the given `items`, the `top` N of them, or every item of the domain.

        Without a choice: the ten most frequent. `threshold` also asks whether each item is held by at least so many
        users. With `together`, the intervals of given items are right for all of them at once.
        """
        if (items is not None) + (top is not None) + every_item > 1:
            raise InvalidSpec("choose one of items, top and every_item")
        request = pb.EstimateRequest(
            **_named(which), confidence=confidence, threshold=threshold or 0.0, together=together
        )
        if items is not None:
            request.given.items.extend(item_to_wire(item) for item in items)
        elif every_item:
            request.all.SetInParent()
        else:
            request.top.count = 10 if top is None else top
        return CollectionEstimates.of(self._ask("Estimate", request, long=True))

    def heavy_hitters(
        self,
        which: Which,
        *,
        limit: int = 0,
        beta: float = BETA,
        progress: Callable[[str, float], None] | None = None,
    ) -> CollectionHeavyHitters:
        """Find the items that many users hold, in a domain too large to list.

        `limit` is the most items to return (0: as many as the server allows). `beta` is the failure probability of the
        list: half for missing an item that `threshold_all` users hold, half for items from noise. `progress` is called
        with what is being done and how much of it is, from 0 to 1.
        """
        request = pb.HeavyHittersRequest(**_named(which), limit=limit, beta=check_beta(beta))
        for event in self._connection.stream("HeavyHitters", request, self._timeouts.stream):
            if event.WhichOneof("event") == "result":
                return CollectionHeavyHitters.of(event.result)
            if progress is not None:
                progress(event.progress.stage, event.progress.fraction)
        raise Unavailable("the server ended the search without a result: try again")

    def export(
        self,
        which: Which,
        file: BinaryIO,
        *,
        kind: Literal["counts", "reports"] = "counts",
        progress: Callable[[Exported], None] | None = None,
    ) -> Exported:
        """Write a collection's counts, or every report, to an open file.

        Counts are what `ldp_server.oracles.restore` reads. Reports are packed one after the other, in no order.
        """
        if kind not in _EXPORTS:
            raise InvalidSpec(f"export counts or reports, not {kind!r}")
        request = pb.ExportRequest(**_named(which), kind=_EXPORTS[kind])
        done: Exported | None = None
        for piece in self._connection.stream("Export", request, self._timeouts.stream):
            file.write(piece.data)
            if done is None:
                done = Exported(CollectionInfo.of(piece.collection))
            done = replace(done, reports=piece.reports, bytes=done.bytes + len(piece.data))
            if progress is not None:
                progress(done)
        if done is None:
            raise Unavailable("the server ended the export without an answer: try again")
        return done

    def status(self) -> ServerStatus:
        """Return the server's version, load and size."""
        return ServerStatus.of(self._ask("ServerStatus", pb.ServerStatusRequest()))

    def _ask(self, method: str, request: Message, *, long: bool = False) -> Any:
        timeout = self._timeouts.long if long else self._timeouts.call
        return self._connection.call(method, request, timeout)


def _local_token(data: str | Path) -> Path | None:
    """The token that a server leaves for the owner of its data directory."""
    file = DataDirectory(Path(data)).local_token
    return file if os.access(file, os.R_OK) else None


def _named(which: Which) -> dict[str, Any]:
    """The fields of a request that name a collection."""
    if isinstance(which, Collection):
        return {"collection_id": which.id}
    if isinstance(which, bytes):
        return {"collection_id": which}
    if not isinstance(which, str) or not re.fullmatch(r"[0-9a-f]{4,64}", which):
        raise InvalidSpec("name a collection by its id, by at least the first four digits of its id, or by its file")
    return {"id_prefix": which}
