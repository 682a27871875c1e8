"""What operators and analysts ask besides questions: to create, list, show, close and export collections."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, BinaryIO, Literal

from ldp_client.collection import Collection, Schedule
from ldp_client.errors import InvalidSpec, Unavailable
from ldp_client.protocol.v1 import analyst_pb2 as pb
from ldp_server.analyst.asking import Call, Pieces, asked
from ldp_server.analyst.collections import CollectionInfo, CollectionSummary, Exported, ServerStatus
from ldp_server.analyst.questions import Which, named
from ldp_server.answers.over_time.periods import Periods, PeriodSpan, asked_periods
from ldp_server.answers.wire import from_wire
from ldp_server.planning import Draft, Goal, draft

__all__ = ["Operations"]

_ADMISSION = {
    "open": pb.OPEN,
    "certificate": pb.CERTIFICATE,
    "linkable-token": pb.LINKABLE_TOKEN,
    "unlinkable-token": pb.UNLINKABLE_TOKEN,
}
_EXPORTS = {"counts": pb.COUNTS, "reports": pb.REPORTS}


class Operations:
    """The calls about collections and about the server itself."""

    @staticmethod
    def draft(
        question: str,
        goal: Goal,
        *,
        opens: int,
        closes: int,
        schedule: Schedule | None = None,
        nonce: int = 0,
        smallest_batch: int | None = None,
    ) -> Draft:
        """Plan a question that reaches a goal: its collection, its file, and what will be learned. Calls no server.

        `opens` and `closes` are seconds since 1970. `create` takes the draft's `collection`.
        """
        return draft(
            question,
            goal,
            opens=opens,
            closes=closes,
            schedule=schedule,
            nonce=nonce,
            smallest_batch=smallest_batch,
        )

    @asked
    def create(
        self,
        collection: Collection,
        *,
        admission: Literal["open", "certificate", "linkable-token", "unlinkable-token"] = "open",
        reports_per_token: int = 1,
        unlisted: bool = False,
    ) -> Call[CollectionInfo]:
        """Create a collection on the server. `unlisted` leaves it out of the public list."""
        if admission not in _ADMISSION:
            raise InvalidSpec(f"admission is one of {', '.join(_ADMISSION)}, not {admission!r}")
        request = pb.CreateCollectionRequest(
            spec_bytes=collection.spec_bytes,
            admission=_ADMISSION[admission],
            reports_per_token=reports_per_token,
            unlisted=unlisted,
        )
        return Call("CreateCollection", request, CollectionInfo.of)

    @asked
    def collections(self) -> Call[list[CollectionInfo]]:
        """Every collection, oldest first, deleted ones included."""
        request = pb.ListAllCollectionsRequest()
        return Call(
            "ListAllCollections", request, lambda found: [CollectionInfo.of(info) for info in found.collections]
        )

    @asked
    def show(self, which: Which) -> Call[CollectionSummary]:
        """Return one collection's state, how many reports it has, and the privacy statement for its users."""
        return Call("ShowCollection", pb.ShowCollectionRequest(**named(which)), CollectionSummary.of)

    @asked
    def close_collection(self, which: Which) -> Call[CollectionInfo]:
        """Take no more batches, whatever the window says."""
        return Call("CloseCollection", pb.CollectionRequest(**named(which)), CollectionInfo.of)

    @asked
    def delete_collection(self, which: Which) -> Call[CollectionInfo]:
        """Drop a collection's reports and counts for good. Its id cannot be used again."""
        return Call("DeleteCollection", pb.CollectionRequest(**named(which)), CollectionInfo.of)

    @asked
    def compact_collection(self, which: Which) -> Call[CollectionInfo]:
        """Fold a collection's reports into counts and drop the reports. It must take no more batches."""
        return Call("CompactCollection", pb.CollectionRequest(**named(which)), CollectionInfo.of, long=True)

    @asked
    def export(
        self,
        which: Which,
        file: BinaryIO,
        *,
        kind: Literal["counts", "reports"] = "counts",
        progress: Callable[[Exported], None] | None = None,
        periods: Periods | None = None,
    ) -> Pieces[Exported]:
        """Write a collection's counts, or every report, to an open file.

        Counts are what `ldp_server.oracles.restore` reads. Reports are packed one after the other, in no order.
        """
        if kind not in _EXPORTS:
            raise InvalidSpec(f"export counts or reports, not {kind!r}")
        writing = _Writing(file, progress)
        request = pb.ExportRequest(**named(which), kind=_EXPORTS[kind], periods=asked_periods(periods))
        return Pieces("Export", request, writing.take, writing.end)

    @asked
    def status(self) -> Call[ServerStatus]:
        """Return the server's version, load and size."""
        return Call("ServerStatus", pb.ServerStatusRequest(), ServerStatus.of)


def _begun(piece: Any) -> Exported:
    """What the first piece says."""
    periods = from_wire(PeriodSpan, piece.periods) if piece.HasField("periods") else None
    return Exported(CollectionInfo.of(piece.collection), periods=periods)


class _Writing:
    """An export on its way into a file."""

    def __init__(self, file: BinaryIO, progress: Callable[[Exported], None] | None) -> None:
        self._file = file
        self._progress = progress
        self._done: Exported | None = None

    def take(self, piece: Any) -> None:
        self._file.write(piece.data)
        done = self._done or _begun(piece)
        self._done = replace(done, reports=piece.reports, bytes=done.bytes + len(piece.data))
        if self._progress is not None:
            self._progress(self._done)

    def end(self) -> Exported:
        if self._done is None:
            raise Unavailable("the server ended the export without an answer: try again")
        return self._done
