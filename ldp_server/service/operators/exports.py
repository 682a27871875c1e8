"""The export of counts or reports, in pieces: of a whole collection, or of some periods."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Callable

import grpc

from ldp_client.errors import InvalidSpec
from ldp_client.protocol.v1 import analyst_pb2 as pb
from ldp_server.answers.over_time.periods import PeriodSpan, span_of
from ldp_server.answers.wire import to_wire
from ldp_server.oracles.base import TooFewReports
from ldp_server.service.live import LiveCollection, LiveCollections
from ldp_server.service.operators.queries import info
from ldp_server.service.wire import CallStatus
from ldp_server.store import LogReader, PeriodRecord
from ldp_server.worker.client import Worker

__all__ = ["Exports"]

_PIECE = 1 << 20


class Exports:
    """The method Export of the analyst's service."""

    def __init__(
        self,
        collections: LiveCollections,
        worker: Worker,
        reader: Callable[[], LogReader],
        clock: Callable[[], float],
    ) -> None:
        """`reader` opens the log for reading."""
        self._collections = collections
        self._worker = worker
        self._reader = reader
        self._clock = clock

    async def export(self, request: pb.ExportRequest) -> AsyncGenerator[bytes, None]:
        live = self._collections.find_kept(request)
        if request.kind == pb.COUNTS:
            pieces = self._counts(live, request)
        elif request.kind == pb.REPORTS:
            pieces = self._reports(live, request)
        else:
            raise InvalidSpec("export counts or reports")
        about: pb.CollectionInfo | None = info(live, self._clock())
        async with contextlib.aclosing(pieces):
            async for piece in pieces:
                if about is not None:
                    piece.collection.CopyFrom(about)
                    about = None
                yield piece.SerializeToString()

    async def _counts(self, live: LiveCollection, request: pb.ExportRequest) -> AsyncGenerator[pb.ExportResponse, None]:
        counted, state = await self._worker.counted(live.record.number, request.SerializeToString())
        schedule = live.collection.schedule
        about = None if schedule is None else PeriodSpan.of(schedule, counted.first, counted.last)
        for start in range(0, max(1, len(state)), _PIECE):
            yield _piece(state[start : start + _PIECE], counted.reports, about)
            about = None

    async def _reports(
        self, live: LiveCollection, request: pb.ExportRequest
    ) -> AsyncGenerator[pb.ExportResponse, None]:
        schedule = live.collection.schedule
        asked = span_of(live.collection, request.periods) if request.HasField("periods") else None
        log = await asyncio.to_thread(self._reader)
        try:
            periods = _chosen(await asyncio.to_thread(log.periods, live.record.number), asked)
            about = None
            if schedule is not None and periods:
                about = PeriodSpan.of(schedule, periods[0].period, periods[-1].period)
            reports = 0
            for period in periods:
                batches = log.read_all(period.number, 0, max_bytes=_PIECE)
                while (found := await asyncio.to_thread(next, batches, None)) is not None:
                    data = b"".join(batch.payload for batch in found)
                    reports += len(data) // live.width
                    yield _piece(data, reports, about)
                    about = None
            if not reports:
                yield _piece(b"", 0, None)
        finally:
            log.close()


def _piece(data: bytes, reports: int, about: PeriodSpan | None) -> pb.ExportResponse:
    periods = None if about is None else to_wire(about, pb.PeriodSpan)
    return pb.ExportResponse(data=data, reports=reports, periods=periods)


def _chosen(periods: list[PeriodRecord], asked: PeriodSpan | None) -> list[PeriodRecord]:
    """The periods whose reports are to be exported; refused if the reports of one were dropped."""
    if asked is not None:
        periods = [one for one in periods if asked.first <= one.period <= asked.last]
        if not periods:
            raise TooFewReports(
                f"there are no reports in {asked}: `ldp-server periods` lists the periods that have some"
            )
    if any(one.generation is not None for one in periods):
        raise CallStatus(
            grpc.StatusCode.FAILED_PRECONDITION,
            "compacted: reports were dropped, export counts"
            if asked is None or len(periods) == 1
            else "reports of some of these periods were dropped, export counts",
        )
    return periods
