"""The wire's service Analyst, over raw bytes: its methods by name, and those that change something."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import grpc

from ldp_client.errors import InvalidSpec
from ldp_client.protocol.v1 import analyst_pb2 as pb
from ldp_server import __version__
from ldp_server.service.compaction import Compaction
from ldp_server.service.lifecycle import Lifecycle
from ldp_server.service.live import LiveCollection
from ldp_server.service.metrics import Metrics
from ldp_server.service.operators.calls import Calls, role_of_caller
from ldp_server.service.operators.exports import Exports
from ldp_server.service.operators.queries import KINDS, Queries, info
from ldp_server.store import Admission, StoreUsage

__all__ = ["Operators", "ServerFacts"]

_MAX_PER_TOKEN = 1_000_000


@dataclass(frozen=True)
class ServerFacts:
    """What ServerStatus says of the server."""

    clock: Callable[[], float]
    waiting_bytes: Callable[[], int]
    usage: Callable[[], StoreUsage]
    metrics: Metrics
    list_key: Callable[[], bytes]

    def counted(self) -> dict[str, Any]:
        """What was counted since the start, by the fields of ServerStatusResponse."""
        metrics = self.metrics
        plain = ("reports", "batches", "duplicates", "storage_errors", "damage", "failures")
        found: dict[str, Any] = {name: metrics.total(getattr(metrics, name)) for name in plain}
        for name, counter in (("refused", metrics.refused_batches), ("busy", metrics.busy)):
            counts = sorted(metrics.by_label(counter).items())
            found[name] = [pb.CountedReason(reason=reason, count=count) for reason, count in counts]
        (lag,) = metrics.lag.collect()
        return {**found, "lag_batches": int(lag.samples[0].value)}


class Operators:
    """The methods of the service."""

    def __init__(
        self,
        calls: Calls,
        queries: Queries,
        exports: Exports,
        lifecycle: Lifecycle,
        compaction: Compaction,
        facts: ServerFacts,
    ) -> None:
        self._calls = calls
        self._queries = queries
        self._exports = exports
        self._lifecycle = lifecycle
        self._compaction = compaction
        self._facts = facts
        self._started = int(facts.clock())
        self.draining = False

    def handlers(self) -> dict[str, grpc.RpcMethodHandler[Any, Any]]:
        """The methods by their names on the wire. Every one of them first asks who is calling."""
        one, many, queries = self._calls.one, self._calls.many, self._queries
        return {
            "CreateCollection": one("CreateCollection", pb.CreateCollectionRequest, self._create),
            "ListAllCollections": one("ListAllCollections", pb.ListAllCollectionsRequest, queries.list_all),
            "ShowCollection": one("ShowCollection", pb.ShowCollectionRequest, queries.show),
            "CloseCollection": one("CloseCollection", pb.CollectionRequest, self._close),
            "DeleteCollection": one("DeleteCollection", pb.CollectionRequest, self._delete),
            "CompactCollection": one("CompactCollection", pb.CollectionRequest, self._compact),
            "Estimate": one("Estimate", pb.EstimateRequest, queries.estimate),
            "Numbers": one("Numbers", pb.NumbersRequest, queries.numbers),
            "Attributes": one("Attributes", pb.AttributesRequest, queries.attributes),
            "Tables": one("Tables", pb.TablesRequest, queries.tables),
            "Relations": one("Relations", pb.RelationsRequest, queries.relations),
            "ListPeriods": one("ListPeriods", pb.ListPeriodsRequest, queries.periods),
            "Trend": one("Trend", pb.TrendRequest, queries.trend),
            "Change": one("Change", pb.TrendRequest, queries.change),
            "Compare": one("Compare", pb.CompareRequest, queries.compare),
            "HeavyHitters": many("HeavyHitters", pb.HeavyHittersRequest, queries.heavy_hitters),
            "Export": many("Export", pb.ExportRequest, self._exports.export),
            "ServerStatus": one("ServerStatus", pb.ServerStatusRequest, self._status),
        }

    async def _create(self, request: pb.CreateCollectionRequest) -> bytes:
        kind = KINDS.get(request.admission)
        if kind is None:
            raise InvalidSpec("unknown kind of admission")
        if request.reports_per_token > _MAX_PER_TOKEN:
            raise InvalidSpec(f"reports_per_token is at most {_MAX_PER_TOKEN}")
        admission = Admission(kind, request.reports_per_token or 1)
        return self._info(await self._lifecycle.create(request.spec_bytes, admission, public=not request.unlisted))

    async def _close(self, request: pb.CollectionRequest) -> bytes:
        return self._info(await self._lifecycle.close(request))

    async def _delete(self, request: pb.CollectionRequest) -> bytes:
        live = await self._lifecycle.delete(request)
        self._queries.last_lists.forget(live.record.number)
        return self._info(live)

    async def _compact(self, request: pb.CollectionRequest) -> bytes:
        live = self._lifecycle.collections.find_kept(request)
        return self._info(await self._compaction.compact(live))

    async def _status(self, _: pb.ServerStatusRequest) -> bytes:
        usage = self._facts.usage()
        return pb.ServerStatusResponse(
            version=__version__,
            started=self._started,
            collections=len(self._lifecycle.collections),
            waiting_bytes=self._facts.waiting_bytes(),
            log_bytes=usage.used,
            draining=self.draining,
            role=role_of_caller(),
            free_bytes=usage.free or 0,
            list_key=self._facts.list_key(),
            **self._facts.counted(),
        ).SerializeToString()

    def _info(self, live: LiveCollection) -> bytes:
        return info(live, self._facts.clock()).SerializeToString()
