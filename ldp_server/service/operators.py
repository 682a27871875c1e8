"""The methods that operators call. Every one of them first asks who is calling."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncGenerator, Awaitable, Callable
from typing import Any, TypeVar

import grpc
from google.protobuf.message import Message

from ldp_client.errors import InvalidSpec, StorageError
from ldp_client.privacy.statement import privacy_statement
from ldp_client.protocol.domain import Domain, Integers
from ldp_client.protocol.v1 import analyst_pb2 as pb
from ldp_server import __version__
from ldp_server.service.auth import Auth
from ldp_server.service.calls import Call
from ldp_server.service.ingest import Ingest
from ldp_server.service.lifecycle import Lifecycle
from ldp_server.service.live import LiveCollection
from ldp_server.service.wire import CallStatus, parse
from ldp_server.store import Admission, SqliteLog
from ldp_server.store.checkpoints import read_checkpoint
from ldp_server.worker.client import Worker

__all__ = ["Operators"]

R = TypeVar("R", bound=Message)
Context = Any  # grpc.aio.ServicerContext of raw bytes: the stubs cannot say so

_KINDS = {pb.ADMISSION_UNSPECIFIED: "open", pb.OPEN: "open", pb.CERTIFICATE: "certificate", pb.TOKEN: "token"}
_WIRE_KINDS = {"open": pb.OPEN, "certificate": pb.CERTIFICATE, "token": pb.TOKEN}
_MAX_PER_TOKEN = 1_000_000
_PIECE = 1 << 20


class Operators:
    """The wire's service Analyst, over raw bytes."""

    def __init__(self, lifecycle: Lifecycle, auth: Auth, ingest: Ingest) -> None:
        self._lifecycle = lifecycle
        self._auth = auth
        self._ingest = ingest
        self._started = int(lifecycle.clock())
        self._decodes = asyncio.Semaphore(lifecycle.config.limits.decodes)
        self.draining = False

    def unary(self) -> dict[str, Callable[[bytes, Context], Awaitable[bytes]]]:
        """The methods with one answer."""
        return {
            "CreateCollection": self._one("CreateCollection", pb.CreateCollectionRequest, self._create),
            "ListAllCollections": self._one("ListAllCollections", pb.ListAllCollectionsRequest, self._list),
            "ShowCollection": self._one("ShowCollection", pb.ShowCollectionRequest, self._show),
            "CloseCollection": self._one("CloseCollection", pb.CollectionRequest, self._close),
            "DeleteCollection": self._one("DeleteCollection", pb.CollectionRequest, self._delete),
            "CompactCollection": self._one("CompactCollection", pb.CollectionRequest, self._compact),
            "Estimate": self._one("Estimate", pb.EstimateRequest, self._estimate),
            "ServerStatus": self._one("ServerStatus", pb.ServerStatusRequest, self._status),
        }

    def streams(self) -> dict[str, Callable[[bytes, Context], Awaitable[None]]]:
        """The methods that answer with a stream."""
        return {
            "HeavyHitters": self._many("HeavyHitters", pb.HeavyHittersRequest, self._heavy_hitters),
            "Export": self._many("Export", pb.ExportRequest, self._export),
        }

    def _one(
        self, name: str, kind: type[R], method: Callable[[R], Awaitable[bytes]]
    ) -> Callable[[bytes, Context], Awaitable[bytes]]:
        async def handler(data: bytes, context: Context) -> bytes:
            async with Call(self._auth, self._lifecycle.metrics, name, context) as call:
                request = parse(kind, data)
                call.about(request)
                call.response = await method(request)
            return await call.finish()

        return handler

    def _many(
        self, name: str, kind: type[R], method: Callable[[R], AsyncGenerator[bytes, None]]
    ) -> Callable[[bytes, Context], Awaitable[None]]:
        async def handler(data: bytes, context: Context) -> None:
            async with Call(self._auth, self._lifecycle.metrics, name, context) as call:
                request = parse(kind, data)
                call.about(request)
                async with contextlib.aclosing(method(request)) as pieces:
                    async for piece in pieces:
                        await context.write(piece)
            await call.finish()

        return handler

    async def _create(self, request: pb.CreateCollectionRequest) -> bytes:
        kind = _KINDS.get(request.admission)
        if kind is None:
            raise InvalidSpec("unknown kind of admission")
        if request.reports_per_token > _MAX_PER_TOKEN:
            raise InvalidSpec(f"reports_per_token is at most {_MAX_PER_TOKEN}")
        admission = Admission(kind, request.reports_per_token or 1)
        record = await self._lifecycle.create(request.spec_bytes, admission, public=not request.unlisted)
        return self._info(self._lifecycle.collections.by_id[record.id]).SerializeToString()

    async def _list(self, _: pb.ListAllCollectionsRequest) -> bytes:
        collections = sorted(self._lifecycle.collections.by_id.values(), key=lambda live: live.record.number)
        response = pb.ListAllCollectionsResponse()
        for live in collections:
            response.collections.append(self._info(live))
        return response.SerializeToString()

    async def _show(self, request: pb.ShowCollectionRequest) -> bytes:
        live = self._lifecycle.collections.find(request)
        summary = pb.CollectionSummary(info=self._info(live))
        summary.statement.extend(await asyncio.to_thread(lambda: privacy_statement(live.collection).lines))
        if live.record.deleted is None:
            found, _ = await self._lifecycle.worker.ask({"op": "summary", "number": live.record.number})
            summary.reports, summary.batches = found["reports"], found["batches"]
            summary.standard_error = found["standard_error"]
            summary.lists_domain, summary.decodes_heavy_hitters = found["lists"], found["decodes"]
            summary.stored_bytes = found["stored_bytes"]
        return summary.SerializeToString()

    async def _close(self, request: pb.CollectionRequest) -> bytes:
        await self._lifecycle.close(self._lifecycle.find_kept(request))
        return self._info(self._lifecycle.collections.find(request)).SerializeToString()

    async def _delete(self, request: pb.CollectionRequest) -> bytes:
        await self._lifecycle.delete(self._lifecycle.find_kept(request))
        return self._info(self._lifecycle.collections.find(request)).SerializeToString()

    async def _compact(self, request: pb.CollectionRequest) -> bytes:
        await self._lifecycle.compact(self._lifecycle.find_kept(request))
        return self._info(self._lifecycle.collections.find(request)).SerializeToString()

    async def _estimate(self, request: pb.EstimateRequest) -> bytes:
        live = self._lifecycle.find_kept(request)
        limit = self._lifecycle.config.limits.query_items
        if len(request.given.items) > limit or request.top.count > limit:
            raise InvalidSpec(f"a question names at most {limit} items (limits.query_items)")
        started = time.perf_counter()
        _text_as_integers(request, live.collection.domain)
        question = {"op": "estimate", "number": live.record.number}
        _, response = await self._lifecycle.worker.ask(question, request.SerializeToString())
        self._lifecycle.metrics.query.observe(time.perf_counter() - started)
        # A message is the concatenation of its fields, so the child's columns need not be parsed to add one.
        return response + pb.EstimateResponse(collection=self._info(live)).SerializeToString()

    async def _status(self, _: pb.ServerStatusRequest) -> bytes:
        return pb.ServerStatusResponse(
            version=__version__,
            started=self._started,
            collections=len(self._lifecycle.collections),
            waiting_bytes=self._ingest.held,
            log_bytes=self._lifecycle.log_bytes(),
            draining=self.draining,
        ).SerializeToString()

    async def _heavy_hitters(self, request: pb.HeavyHittersRequest) -> AsyncGenerator[bytes, None]:
        live = self._lifecycle.find_kept(request)
        if self._decodes.locked():
            raise CallStatus(grpc.StatusCode.RESOURCE_EXHAUSTED, "another decode is running (limits.decodes)", 5.0)
        async with self._decodes:
            started = time.perf_counter()
            limits = self._lifecycle.config.limits
            worker = Worker(self._lifecycle.directory.root, memory_mb=limits.worker_memory_mb, nice=19)
            limit = min(request.limit or limits.query_items, limits.query_items)
            question = {"op": "decode", "number": live.record.number, "limit": limit}
            try:
                async with contextlib.aclosing(worker.stream(question)) as answers:
                    async for header, body in answers:
                        yield _event(header, body, self._info(live))
            finally:
                await worker.close()
            self._lifecycle.metrics.decode.observe(time.perf_counter() - started)

    async def _export(self, request: pb.ExportRequest) -> AsyncGenerator[bytes, None]:
        live = self._lifecycle.find_kept(request)
        if request.kind == pb.COUNTS:
            pieces = self._export_counts(live)
        elif request.kind == pb.REPORTS:
            if live.record.generation is not None:
                raise CallStatus(
                    grpc.StatusCode.FAILED_PRECONDITION, "compacted: its reports were dropped, export counts"
                )
            pieces = self._export_reports(live)
        else:
            raise InvalidSpec("export counts or reports")
        info: pb.CollectionInfo | None = self._info(live)
        async with contextlib.aclosing(pieces):
            async for data, reports in pieces:
                yield pb.ExportResponse(data=data, reports=reports, collection=info).SerializeToString()
                info = None

    async def _export_counts(self, live: LiveCollection) -> AsyncGenerator[tuple[bytes, int], None]:
        await self._lifecycle.worker.ask({"op": "checkpoint", "number": live.record.number})
        checkpoint = await asyncio.to_thread(read_checkpoint, self._lifecycle.directory.states, live.record.id)
        if checkpoint is None:
            raise StorageError("the checkpoint that was just written is not there")
        for start in range(0, max(1, len(checkpoint.state)), _PIECE):
            yield checkpoint.state[start : start + _PIECE], checkpoint.reports

    async def _export_reports(self, live: LiveCollection) -> AsyncGenerator[tuple[bytes, int], None]:
        log = await asyncio.to_thread(SqliteLog, self._lifecycle.directory.log, read_only=True)
        try:
            batches = log.read(live.record.number, 0, max_bytes=_PIECE)
            reports = 0
            while (found := await asyncio.to_thread(next, batches, None)) is not None:
                data = b"".join(batch.payload for batch in found)
                reports += len(data) // live.width
                yield data, reports
            if not reports:
                yield b"", 0
        finally:
            log.close()

    def _info(self, live: LiveCollection) -> pb.CollectionInfo:
        record = live.record
        return pb.CollectionInfo(
            collection_id=record.id,
            spec_bytes=record.spec,
            state=self._state(live),
            admission=_WIRE_KINDS[record.admission.kind],
            reports_per_token=record.admission.reports_per_token,
            unlisted=not record.public,
            created=record.created,
            closed=record.closed or 0,
            deleted=record.deleted or 0,
        )

    def _state(self, live: LiveCollection) -> pb.CollectionState:
        record, now = live.record, self._lifecycle.clock()
        if record.deleted is not None:
            return pb.DELETED
        if record.generation is not None:
            return pb.COMPACTED
        if record.closed is not None:
            return pb.CLOSED
        if now < live.opens:
            return pb.UPCOMING
        return pb.RUNNING if now < live.closes else pb.ENDED


def _text_as_integers(request: pb.EstimateRequest, domain: Domain) -> None:
    """Lets a caller who has not seen the spec give integers as text."""
    if isinstance(domain, Integers):
        for item in request.given.items:
            if item.WhichOneof("kind") == "text":
                item.integer = item.text


def _event(header: dict[str, Any], body: bytes, info: pb.CollectionInfo) -> bytes:
    """The child's progress or result, as the caller gets it."""
    if "progress" in header:
        stage, fraction = header["progress"]
        progress = pb.DecodeProgress(stage=stage, fraction=fraction)
        return pb.HeavyHittersResponse(progress=progress).SerializeToString()
    result = pb.HeavyHittersResult.FromString(body)
    result.collection.CopyFrom(info)
    return pb.HeavyHittersResponse(result=result).SerializeToString()
