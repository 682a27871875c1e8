"""What apps call: what the relay promises, and batches of sealed units.

The relay looks at the length of a batch, at the first byte of each unit, and at the id of the key to which it is
sealed. It knows nothing else of it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import grpc

from ldp_client.durations import format_duration
from ldp_client.errors import ServerRefused
from ldp_client.protocol.packing import check_length
from ldp_client.protocol.sealing import FORMAT, key_id_of, split_units, unit_digest
from ldp_client.protocol.v1 import collector_pb2, relay_pb2
from ldp_server.relay.metrics import RelayMetrics
from ldp_server.relay.served import Served, ServedCollections
from ldp_server.relay.store import RelayLog
from ldp_server.service.admission import Peer, RateLimit
from ldp_server.service.bounded import Bounds, bounded_call
from ldp_server.service.intake import IntakeCalls, UnderWay
from ldp_server.service.wire import Busy, CallStatus, Context, parse
from ldp_server.store import GroupCommit, Submission, Ticket

__all__ = ["RelayDoor", "RelayIngest", "RelayWaiting", "rule"]


def _count(length: int, width: int) -> int:
    """How many sealed units a payload of this length holds; `ServerRefused` if it cannot be a row of them."""
    try:
        return check_length(length, width)
    except ServerRefused as refused:
        if refused.reason != "WRONG_LENGTH":
            raise
        what = f"{length} bytes is not a whole number of sealed reports of {width} bytes"
        raise ServerRefused("SEALED_WRONG_LENGTH", what) from None


def rule(served: Served, operator: str) -> str:
    """What the relay promises for a collection, in words."""
    length = format_duration(served.rounds.seconds)
    return (
        f"{operator or 'The operator of this relay'} holds every report at least until the end of its period "
        f"({length}), and passes on at least {served.smallest_batch} together or none, in a random order, without "
        "addresses and without times. Too few reports wait for those of the next period. After the last period too few "
        "reports are deleted."
    )


class RelayWaiting(UnderWay):
    """The submissions under way, with the counters of the collections."""

    def __init__(self, served: ServedCollections, metrics: RelayMetrics, limit: int) -> None:
        super().__init__(metrics, limit)
        self._served = served
        self._counters = metrics

    def _count_stored(self, number: int, batches: int, reports: int) -> None:
        del batches
        self._counters.held.labels(self._served.numbered(number).label).inc(reports)

    def _count_duplicate(self, number: int) -> None:
        self._counters.duplicates.labels(self._served.numbered(number).label).inc()


class RelayIngest:
    """Checks requests and hands them to the writer thread. Used on the event loop."""

    def __init__(
        self,
        served: ServedCollections,
        rates: RateLimit,
        waiting: RelayWaiting,
        commit: GroupCommit[RelayLog],
        room: Callable[[int], bool],
        clock: Callable[[], float],
    ) -> None:
        """`room` says whether so many bytes more may be held."""
        self._served = served
        self._rates = rates
        self._commit = commit
        self._room = room
        self._clock = clock
        self.waiting = waiting

    def offer(self, request: collector_pb2.SubmitRequest, peer: Peer, done: Callable[[Ticket], None]) -> Ticket:
        """Let a batch wait for the disk; `done` is called with its ticket when it has an outcome or an error."""
        if len(request.collection_id) != 32:
            raise ServerRefused("BAD_COLLECTION_ID", "a collection id has 32 bytes")
        served = self._served.get(request.collection_id)
        if served is None:
            raise ServerRefused("UNKNOWN_COLLECTION", "this relay does not serve this collection")
        if len(request.batch_id) != 16:
            raise ServerRefused("BAD_BATCH_ID", "a batch id has 16 bytes")
        payload, width = request.payload, served.unit_bytes
        units = _count(len(payload), width)
        if payload[::width] != bytes([FORMAT]) * units:
            raise ServerRefused("NOT_SEALED", "this relay takes sealed reports only")
        if not self._served.knows_keys({key_id_of(one) or b"" for one in split_units(payload, width)}):
            raise ServerRefused("UNKNOWN_SEALING_KEY", "sealed to a key that is not on the collection server's list")
        reason = served.reason(request.period, self._clock())
        if reason is not None:
            raise ServerRefused(reason)
        seconds = 0.0 if peer.local else self._rates.wait(peer.address, units)
        if seconds:
            raise Busy("rate", seconds)
        if not self._room(len(payload)) or not self.waiting.enter(len(payload)):
            raise Busy("full", 0.5)
        digests = b"".join(map(unit_digest, split_units(payload, width)))
        submission = Submission(served.number, request.batch_id, digests, payload, None, request.period)
        ticket = Ticket(submission, units, done)
        self._commit.submit(ticket)
        return ticket


class RelayDoor:
    """The wire's service Relay."""

    def __init__(self, calls: IntakeCalls, served: ServedCollections, operator: str, bounds: Bounds) -> None:
        self._calls = calls
        self._served = served
        self._operator = operator
        self._bounds = bounds

    def handlers(self) -> dict[str, grpc.RpcMethodHandler[Any, Any]]:
        """The methods by their names on the wire."""
        return {"Promise": bounded_call(self.promise, self._bounds), **self._calls.handlers()}

    def drain(self) -> None:
        """Read no more; what was read is still made durable and answered."""
        self._calls.drain()

    async def promise(self, data: bytes, _: Peer, context: Context) -> bytes:
        try:
            request = parse(relay_pb2.PromiseRequest, data)
            served = self._served.get(request.collection_id)
            if served is None:
                raise CallStatus(grpc.StatusCode.NOT_FOUND, "no such collection here")
        except CallStatus as status:
            return await self._calls.abort(context, status)
        return relay_pb2.PromiseResponse(
            collection_id=served.id,
            smallest_batch=served.smallest_batch,
            period_seconds=served.rounds.seconds,
            operator=self._operator,
            rule=rule(served, self._operator),
        ).SerializeToString()
