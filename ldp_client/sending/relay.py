"""A connection to a relay: the collector's calls for batches, and what the relay promises for a collection."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from ldp_client.sending.grpc_transport import GrpcTransport
from ldp_client.sending.transport import Transport

if TYPE_CHECKING:
    import grpc

    from ldp_client.protocol.v1 import relay_pb2

__all__ = ["GrpcRelay", "RelayTransport"]


class RelayTransport(Transport, Protocol):
    """How sealed batches leave the device."""

    def promise(self, collection_id: bytes, timeout: float) -> int:
        """Return the smallest batch that the relay passes on for this collection, as it says. May raise Unavailable."""
        ...


class GrpcRelay(GrpcTransport):
    """One connection to a relay. It serves one collection and is then closed."""

    def promise(self, collection_id: bytes, timeout: float) -> int:
        from ldp_client.protocol.v1 import relay_pb2

        request = relay_pb2.PromiseRequest(collection_id=collection_id)
        reply: relay_pb2.PromiseResponse = self._ask("Promise", request, timeout)
        return reply.smallest_batch if reply.collection_id == collection_id else 0

    def _stub_on(self, channel: grpc.Channel) -> Any:
        from ldp_client.protocol.v1 import relay_pb2_grpc

        return relay_pb2_grpc.RelayStub(channel)  # type: ignore[no-untyped-call]  # generated
