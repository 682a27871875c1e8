"""The wire's service Collector, over raw bytes: fetch collections, submit batches (ldp_server/service/intake)."""

from __future__ import annotations

import asyncio
from typing import Any

import grpc

from ldp_client.errors import LdpError, Unavailable
from ldp_client.protocol.v1 import collector_pb2 as pb
from ldp_client.trust.list_heads import Cosignature
from ldp_server.service.admission import Peer
from ldp_server.service.bounded import Bounds, bounded_call
from ldp_server.service.collector.ingest import Ingest
from ldp_server.service.intake import IntakeCalls, StreamLimits
from ldp_server.service.live import LiveCollections
from ldp_server.service.metrics import Metrics
from ldp_server.service.signed_list import ListPublisher
from ldp_server.service.wire import CallStatus, Context, parse

__all__ = ["Collector"]


class Collector:
    """The methods of the service."""

    def __init__(
        self,
        ingest: Ingest,
        collections: LiveCollections,
        publisher: ListPublisher,
        metrics: Metrics,
        limits: StreamLimits,
        bounds: Bounds,
    ) -> None:
        self._bounds = bounds
        self._collections = collections
        self._publisher = publisher
        self._keeping = asyncio.Lock()
        self._intake = IntakeCalls(ingest, metrics, limits, bounds)

    def handlers(self) -> dict[str, grpc.RpcMethodHandler[Any, Any]]:
        """The methods by their names on the wire."""
        return {
            "Cosign": bounded_call(self.cosign, self._bounds),
            "GetCollection": bounded_call(self.get_collection, self._bounds),
            "ListCollections": bounded_call(self.list_collections, self._bounds),
            "ProveList": bounded_call(self.prove_list, self._bounds),
            **self._intake.handlers(),
        }

    def drain(self) -> None:
        """Read no more; what was read is still made durable and answered."""
        self._intake.drain()

    async def get_collection(self, data: bytes, _: Peer, context: Context) -> bytes:
        try:
            request = parse(pb.GetCollectionRequest, data)
            live = self._collections.get(request.collection_id)
            if live is None and not self._collections.surely_missing(request.collection_id):
                raise Unavailable("the collection is being looked up: ask again", 1.0)
            if live is None or live.record.deleted is not None:
                raise CallStatus(grpc.StatusCode.NOT_FOUND, "no such collection here")
        except LdpError as error:
            return await self._intake.abort(context, error)
        return pb.GetCollectionResponse(spec_bytes=live.record.spec).SerializeToString()

    async def list_collections(self, data: bytes, _: Peer, context: Context) -> bytes:
        try:
            return self._publisher.response(parse(pb.ListCollectionsRequest, data).part)
        except LdpError as error:
            return await self._intake.abort(context, error)

    async def prove_list(self, data: bytes, _: Peer, context: Context) -> bytes:
        try:
            request = parse(pb.ProveListRequest, data)
            return self._publisher.proof(request.size, request.collection_id)
        except LdpError as error:
            return await self._intake.abort(context, error)

    async def cosign(self, data: bytes, _: Peer, context: Context) -> bytes:
        try:
            request = parse(pb.CosignRequest, data)
            given = Cosignature(request.cosignature.public_key, request.cosignature.signature)
            if self._publisher.cosign(request.list_digest, given):
                async with self._keeping:
                    await asyncio.to_thread(self._publisher.keep_cosignatures)
        except LdpError as error:
            return await self._intake.abort(context, error)
        return pb.CosignResponse().SerializeToString()
