"""What operators and analysts ask without changing anything: list, show, estimate, numbers, attributes, heavy
hitters, periods.

`info` is a collection as the wire describes it, in these answers and in those of handlers.py.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncGenerator, Callable, Iterable
from dataclasses import dataclass

import grpc

from ldp_client.errors import InvalidSpec
from ldp_client.protocol.domain import Attributes, Domain, Integers, Record
from ldp_client.protocol.v1 import analyst_pb2 as pb
from ldp_server.answers.over_time.periods import PeriodSpan
from ldp_server.answers.records import record_of_text
from ldp_server.answers.wire import item_to_wire
from ldp_server.config import LimitsConfig
from ldp_server.service.live import LiveCollection, LiveCollections, Naming
from ldp_server.service.metrics import Metrics
from ldp_server.service.operators.last_lists import LastLists, asked_span
from ldp_server.service.wire import CallStatus
from ldp_server.worker.client import Worker
from ldp_server.worker.decoders import Decoders
from ldp_server.worker.messages import AskDecode, Progress

Answers = (
    pb.EstimateResponse
    | pb.NumbersResponse
    | pb.AttributesResponse
    | pb.TablesResponse
    | pb.RelationsResponse
    | pb.TrendResponse
    | pb.ChangeResponse
)

__all__ = ["KINDS", "Queries", "QuerySources", "info"]

_WIRE_KINDS = {
    "open": pb.OPEN,
    "certificate": pb.CERTIFICATE,
    "linkable-token": pb.LINKABLE_TOKEN,
    "unlinkable-token": pb.UNLINKABLE_TOKEN,
}
KINDS = {pb.ADMISSION_UNSPECIFIED: "open"} | {number: name for name, number in _WIRE_KINDS.items()}
_COPIES = {pb.COPIES_UNSPECIFIED: "weighed", pb.WEIGHED: "weighed", pb.ONCE: "once"}
_FRESH = 1.0
"""Seconds for which a collection's state and rate are not written anew. A change by an operator shows at once."""
_AND = " + "
"""Between the names of a set of attributes that is given as text."""


@dataclass(frozen=True)
class QuerySources:
    """Where answers come from."""

    worker: Worker
    """Counts and estimates."""
    decoders: Decoders
    """Lends a child process of its own to one decode."""


class Queries:
    """The methods of the analyst's service that change nothing. They give serialised responses."""

    def __init__(
        self,
        collections: LiveCollections,
        sources: QuerySources,
        limits: LimitsConfig,
        metrics: Metrics,
        clock: Callable[[], float],
    ) -> None:
        self._collections = collections
        self._sources = sources
        self._limits = limits
        self._metrics = metrics
        self._clock = clock
        self.decodes = asyncio.Semaphore(limits.decodes)
        self.last_lists = LastLists()

    async def list_all(self, _: pb.ListAllCollectionsRequest) -> bytes:
        response = pb.ListAllCollectionsResponse()
        for live in self._collections:
            response.collections.append(info(live, self._clock()))
        return response.SerializeToString()

    async def show(self, request: pb.ShowCollectionRequest) -> bytes:
        live = self._collections.find(request)
        summary = pb.CollectionSummary(info=info(live, self._clock()))
        summary.statement.extend(live.statement or await asyncio.to_thread(live.write_statement))
        if live.record.deleted is None:
            found = await self._sources.worker.summary(live.record.number)
            summary.reports, summary.batches = found.reports, found.batches
            summary.standard_error = found.standard_error
            summary.lists_domain = found.lists_domain
            summary.decodes_heavy_hitters = found.decodes_heavy_hitters
            summary.stored_bytes = found.stored_bytes
        return summary.SerializeToString()

    async def estimate(self, request: pb.EstimateRequest) -> bytes:
        live = self._collections.find_kept(request)
        most = self._limits.query_items
        slices = [*request.where, *(one for asked in request.conditions for one in asked.where)]
        sliced = sum(len(one.items) for one in slices)
        if len(request.given.items) > most or request.top.count > most or sliced > most:
            raise InvalidSpec(f"a question names at most {most} items (limits.query_items)")
        _read_text(request, live.collection.domain)
        started = time.perf_counter()
        response = await self._sources.worker.estimate(live.record.number, request.SerializeToString())
        self._metrics.query.observe(time.perf_counter() - started)
        # A message is the concatenation of its fields, so the worker's columns need not be parsed to add one.
        return response + await self._beside(pb.EstimateResponse, live)

    async def numbers(self, request: pb.NumbersRequest) -> bytes:
        live = self._collections.find_kept(request)
        with self._metrics.query.time():
            response = await self._sources.worker.numbers(live.record.number, request.SerializeToString())
        return response + await self._beside(pb.NumbersResponse, live)

    async def attributes(self, request: pb.AttributesRequest) -> bytes:
        live = self._collections.find_kept(request)
        with self._metrics.query.time():
            response = await self._sources.worker.attributes(live.record.number, request.SerializeToString())
        return response + await self._beside(pb.AttributesResponse, live)

    async def tables(self, request: pb.TablesRequest) -> bytes:
        live = self._collections.find_kept(request)
        with self._metrics.query.time():
            response = await self._sources.worker.tables(live.record.number, request.SerializeToString())
        return response + await self._beside(pb.TablesResponse, live)

    async def relations(self, request: pb.RelationsRequest) -> bytes:
        live = self._collections.find_kept(request)
        named = sum(len(one.items) for one in request.gaps.where)
        if max(len(request.gaps.counted), len(request.rules.positive), named) > self._limits.query_items:
            raise InvalidSpec(f"a question names at most {self._limits.query_items} items (limits.query_items)")
        with self._metrics.query.time():
            response = await self._sources.worker.relations(live.record.number, request.SerializeToString())
        return response + await self._beside(pb.RelationsResponse, live)

    async def periods(self, request: pb.ListPeriodsRequest) -> bytes:
        live = self._collections.find_kept(request)
        response = await self._sources.worker.periods(live.record.number, request.SerializeToString())
        return response + pb.ListPeriodsResponse(collection=info(live, self._clock())).SerializeToString()

    async def trend(self, request: pb.TrendRequest) -> bytes:
        live = self._named(request, request.asked)
        with self._metrics.query.time():
            response = await self._sources.worker.trend(live.record.number, request.SerializeToString())
        return response + await self._beside(pb.TrendResponse, live)

    async def change(self, request: pb.TrendRequest) -> bytes:
        live = self._named(request, request.asked)
        with self._metrics.query.time():
            response = await self._sources.worker.change(live.record.number, request.SerializeToString())
        return response + await self._beside(pb.ChangeResponse, live)

    async def compare(self, request: pb.CompareRequest) -> bytes:
        first, second = self._named(request.first, request.asked), self._named(request.second, request.asked)
        numbers = (first.record.number, second.record.number)
        with self._metrics.query.time():
            response = await self._sources.worker.compare(numbers, request.SerializeToString())
        sides = pb.CompareResponse(first=await self._about(first), second=await self._about(second))
        return response + sides.SerializeToString()

    def _named(self, request: Naming, asked: pb.Asked) -> LiveCollection:
        live = self._collections.find_kept(request)
        _read_items(asked.given.items, live.collection.domain)
        return live

    async def heavy_hitters(self, request: pb.HeavyHittersRequest) -> AsyncGenerator[bytes, None]:
        live = self._collections.find_kept(request)
        if self.decodes.locked():
            raise CallStatus(grpc.StatusCode.RESOURCE_EXHAUSTED, "another decode is running (limits.decodes)", 5.0)
        result = b""
        async with self.decodes:
            started = time.perf_counter()
            most = min(request.limit or self._limits.query_items, self._limits.query_items)
            copies = _COPIES.get(request.copies)
            if copies is None:
                raise InvalidSpec("copies are weighed or counted once")
            question = AskDecode(live.record.number, most, request.beta, copies)
            _read_items(request.start, live.collection.domain)
            span = asked_span(live.collection, request)
            prepared = self.last_lists.prepared(live.record.number, span, request)
            named = prepared.request.SerializeToString()
            async with (
                self._sources.decoders.one() as worker,
                contextlib.aclosing(worker.decode(question, self._limits.decode_seconds, named)) as answers,
            ):
                async for answer in answers:
                    if isinstance(answer, Progress):
                        yield _progress(answer)
                    else:
                        result = answer
            self._metrics.decode.observe(time.perf_counter() - started)
        found = _of_earlier(pb.HeavyHittersResult.FromString(result), prepared.earlier)
        self.last_lists.remember(live.record.number, span, (row.item for row in found.items), prepared.newest)
        found.collection.CopyFrom(await self._about(live))
        # Only now, without a place: who has the list may ask for the next search at once.
        yield pb.HeavyHittersResponse(result=found).SerializeToString()

    async def _beside(self, kind: type[Answers], live: LiveCollection) -> bytes:
        """The field of an answer that says which collection it is about, as it was a second ago at most."""
        now = self._clock()
        written, known = live.beside.get(kind.DESCRIPTOR.name, (now - _FRESH, b""))
        if not 0 <= now - written < _FRESH:
            known = kind(collection=await self._about(live)).SerializeToString()
            live.beside[kind.DESCRIPTOR.name] = now, known
        return known

    async def _about(self, live: LiveCollection) -> pb.CollectionInfo:
        """The collection, as an answer to a question says it: with the privacy statement."""
        about = info(live, self._clock())
        about.statement.extend(live.statement or await asyncio.to_thread(live.write_statement))
        return about


def _progress(answer: Progress) -> bytes:
    progress = pb.DecodeProgress(stage=answer.stage, fraction=answer.fraction)
    return pb.HeavyHittersResponse(progress=progress).SerializeToString()


def _of_earlier(found: pb.HeavyHittersResult, earlier: PeriodSpan | None) -> pb.HeavyHittersResult:
    """Write into the answer whose list its dictionary is, if the server chose it."""
    if earlier is not None and found.HasField("dictionary"):
        found.dictionary.earlier = str(earlier)
        found.guarantee.append(
            f"The dictionary is the list that this server found for {earlier}. It was made from other reports."
        )
    return found


def _read_text(request: pb.EstimateRequest, domain: Domain) -> None:
    _read_items(request.given.items, domain)


def _read_items(items: Iterable[pb.Item], domain: Domain) -> None:
    """Lets a caller who has not seen the spec give integers and sets of attributes as text."""
    for item in items:
        if item.WhichOneof("kind") == "text":
            if isinstance(domain, Integers):
                item.integer = item.text
            elif isinstance(domain, Attributes):
                known = item.text in domain.names
                item.attributes.names.extend([item.text] if known else item.text.split(_AND))
            elif isinstance(domain, Record):
                item.CopyFrom(item_to_wire(record_of_text(item.text)))


def info(live: LiveCollection, now: float) -> pb.CollectionInfo:
    """The collection at this time."""
    record = live.record
    per_day, seconds = (0.0, 0) if live.refusal_reason(now) else live.arrivals.rate(now)
    return pb.CollectionInfo(
        collection_id=record.id,
        spec_bytes=record.spec,
        state=_state(live, now),
        admission=_WIRE_KINDS[record.admission.kind],
        reports_per_token=record.admission.reports_per_token,
        unlisted=not record.public,
        created=record.created,
        closed=record.closed or 0,
        deleted=record.deleted or 0,
        reports_per_day=per_day,
        rate_seconds=seconds,
    )


def _state(live: LiveCollection, now: float) -> pb.CollectionState:
    """The collection's state at this time."""
    record = live.record
    if record.deleted is not None:
        return pb.DELETED
    if record.compacted:
        return pb.COMPACTED
    if record.closed is not None:
        return pb.CLOSED
    if now < live.opens:
        return pb.UPCOMING
    return pb.RUNNING if now < live.takes_until else pb.ENDED
