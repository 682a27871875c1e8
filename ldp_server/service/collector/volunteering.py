"""The wire's service Volunteers, over raw bytes: keeps sealed records, and deletes what is withdrawn.

A record is checked by its length alone: this process has no key for it. Only open collections take volunteers, because
a record shows no token.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import grpc

from ldp_client.errors import LdpError
from ldp_client.protocol.v1 import volunteers_pb2 as pb
from ldp_client.volunteering.records import NAME_BYTES, SECRET_BYTES, record_name, volunteer_bytes
from ldp_server.service.admission import Peer
from ldp_server.service.bounded import Bounds, bounded_call
from ldp_server.service.live import LiveCollections
from ldp_server.service.wire import CallStatus, Context, abort, parse
from ldp_server.volunteers.interface import Given, SealedRecords

__all__ = ["VOLUNTEERS", "VolunteerCalls"]

VOLUNTEERS = pb.DESCRIPTOR.services_by_name["Volunteers"].full_name
_OPEN = "open"
_OUTCOMES = {Given.KEPT: pb.GIVEN, Given.OTHER_RECORD: pb.OTHER_RECORD, Given.OVER: pb.QUESTION_OVER}


class VolunteerCalls:
    """The methods of the service. Without a store, no volunteer's record is taken."""

    def __init__(
        self, collections: LiveCollections, kept: SealedRecords | None, bounds: Bounds, clock: Callable[[], float]
    ) -> None:
        self._collections, self._kept, self._bounds, self._clock = collections, kept, bounds, clock

    def handlers(self) -> dict[str, grpc.RpcMethodHandler[Any, Any]]:
        """The methods by their names on the wire."""
        return {
            "Give": bounded_call(self.give, self._bounds),
            "Withdraw": bounded_call(self.withdraw, self._bounds),
        }

    async def give(self, data: bytes, _: Peer, context: Context) -> bytes:
        try:
            request = parse(pb.GiveRequest, data)
            outcome = self._refusal(request)
            if outcome is None and self._kept is not None:
                plain = (request.collection_id, request.name, request.sealed, int(self._clock()))
                outcome = _OUTCOMES[await asyncio.to_thread(self._kept.give, *plain)]
        except LdpError as error:
            return await abort(context, error)
        return pb.GiveResponse(outcome=outcome).SerializeToString()

    def _refusal(self, request: pb.GiveRequest) -> pb.GiveOutcome | None:
        live = self._collections.get(request.collection_id)
        if live is None:
            return pb.NO_SUCH_COLLECTION
        if self._kept is None or live.record.admission.kind != _OPEN:
            return pb.NO_VOLUNTEERS
        reason = live.refusal_reason(self._clock())
        if reason == "NOT_YET_OPEN":
            return pb.GIVE_OUTCOME_UNSPECIFIED
        if reason is not None:
            return pb.QUESTION_OVER
        if len(request.name) != NAME_BYTES or len(request.sealed) != volunteer_bytes(live.collection.domain):
            return pb.MALFORMED_RECORD
        return None

    async def withdraw(self, data: bytes, _: Peer, context: Context) -> bytes:
        try:
            request = parse(pb.WithdrawRequest, data)
            if len(request.secret) != SECRET_BYTES:
                raise CallStatus(grpc.StatusCode.INVALID_ARGUMENT, f"a secret has {SECRET_BYTES} bytes")
            gone = True
            if self._kept is not None:
                name = record_name(request.secret)
                gone = await asyncio.to_thread(self._kept.withdraw, request.collection_id, name)
        except LdpError as error:
            return await abort(context, error)
        return pb.WithdrawResponse(outcome=pb.WITHDRAWN if gone else pb.USED).SerializeToString()
