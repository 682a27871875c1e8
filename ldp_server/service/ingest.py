"""From a request to a ticket, and from a ticket to an acknowledgement; memory stays bounded.

`offer` either refuses for good (`ServerRefused`), refuses for now (`Busy`) or lets the batch wait for the disk. Nothing
here does I/O. The bytes that wait are counted over all clients: unary callers over the limit are told to come back,
streams are simply not read any further until there is room, and their senders feel it as flow control.
"""

from __future__ import annotations

import asyncio
import hashlib
import time
from collections import deque
from collections.abc import Callable
from functools import lru_cache

from ldp_client.errors import LdpError, ServerRefused
from ldp_client.protocol.packing import check_length
from ldp_client.protocol.v1 import collector_pb2 as pb
from ldp_server.service.admission import Peer, RateLimit, TokenVerifier
from ldp_server.service.live import LiveCollection, LiveCollections
from ldp_server.service.metrics import Metrics
from ldp_server.store import AppendOutcome, GroupCommit, Submission, Ticket

__all__ = ["Busy", "Ingest", "answer", "refusal"]

_REASONS = {
    AppendOutcome.CONFLICT: "BATCH_ID_CONFLICT",
    AppendOutcome.TOKEN_USED: "TOKEN_USED",
    AppendOutcome.OUT_OF_RANGE: "REPORT_OUT_OF_RANGE",
}


class Busy(LdpError):
    """Not now: come back after `seconds`."""

    def __init__(self, why: str, seconds: float) -> None:
        super().__init__(why)
        self.why = why
        self.seconds = seconds


@lru_cache(maxsize=4096)
def _accepted(reports: int, duplicate: bool) -> bytes:
    return pb.SubmitResponse(accepted=pb.Accepted(reports=reports, duplicate=duplicate)).SerializeToString()


def refusal(batch_id: bytes, rejected: ServerRefused) -> bytes:
    """The response that refuses a batch."""
    reason = pb.Reason.Name(pb.Reason.Value(rejected.reason))  # a defect if it is none
    return pb.SubmitResponse(
        batch_id=batch_id[:64], refusal=pb.Refusal(reason=reason, detail=rejected.detail)
    ).SerializeToString()


def answer(ticket: Ticket) -> bytes:
    """The response for a ticket whose fate is known; raises the storage's error.

    A protobuf message is the concatenation of its fields: the part that all batches of a size share is made once.
    """
    if ticket.error is not None:
        raise ticket.error
    batch_id = ticket.batch.batch_id
    if ticket.outcome is AppendOutcome.STORED or ticket.outcome is AppendOutcome.DUPLICATE:
        return b"\x0a\x10" + batch_id + _accepted(ticket.reports, ticket.outcome is AppendOutcome.DUPLICATE)
    return refusal(batch_id, ServerRefused(_reason(ticket)))


def _reason(ticket: Ticket) -> str:
    if ticket.outcome is AppendOutcome.SEALED:
        live: LiveCollection = ticket.live
        return live.reason or "COLLECTION_CLOSED"
    return _REASONS[ticket.outcome]  # type: ignore[index]  # a ticket that comes here has an outcome


class Ingest:
    """The way in. Everything but `_arrive` runs on the event loop."""

    def __init__(
        self,
        collections: LiveCollections,
        metrics: Metrics,
        rate: RateLimit,
        verifier: TokenVerifier,
        *,
        waiting_bytes: int,
        clock: Callable[[], float],
    ) -> None:
        self._collections = collections
        self._metrics = metrics
        self._rate = rate
        self._verifier = verifier
        self._limit = waiting_bytes
        self._clock = clock
        self._loop = asyncio.get_running_loop()
        self._room: deque[asyncio.Future[None]] = deque()
        self.commit: GroupCommit | None = None
        self.held = 0
        self.waiting = 0
        self.stored: dict[int, int] = {}
        """Batches made durable since the start, by the collection's number."""

    def offer(self, request: pb.SubmitRequest, peer: Peer, owner: Callable[[Ticket], None]) -> Ticket:
        """Let a batch wait for the disk; `owner` is called with its ticket when its fate is known."""
        live = self._collections.by_id.get(request.collection_id)
        if live is None:
            raise self._unknown(request.collection_id)
        batch_id, payload = request.batch_id, request.payload
        if len(batch_id) != 16:
            raise ServerRefused("BAD_BATCH_ID", "a batch id has 16 bytes")
        reports = check_length(len(payload), live.width)
        closed = live.window(self._clock())
        if closed is not None:
            raise ServerRefused(closed)
        token_id = self._admit(request.admission_token, live, peer, reports)
        if self.held + len(payload) > self._limit:
            raise Busy("full", 0.5)
        digest = hashlib.sha256(payload).digest()[:16]
        ticket = Ticket(Submission(live.record.number, batch_id, digest, payload, token_id), reports, owner, live)
        self.held += len(payload)
        self.waiting += 1
        if self.commit is None:
            raise AssertionError("ingest is used once it is wired")
        self.commit.submit(ticket)
        return ticket

    def _unknown(self, collection_id: bytes) -> ServerRefused:
        if len(collection_id) != 32:
            return ServerRefused("BAD_COLLECTION_ID", "a collection id has 32 bytes")
        return ServerRefused("UNKNOWN_COLLECTION")

    def _admit(self, token: bytes, live: LiveCollection, peer: Peer, reports: int) -> bytes | None:
        if live.kind == "token":
            token_id = self._verifier.token_id(token, live.record.id)
            if token_id is None:
                raise ServerRefused("NOT_ADMITTED", "the admission token is missing or not valid for this collection")
            if reports > live.per_token:
                raise ServerRefused("NOT_ADMITTED", f"one token admits at most {live.per_token} reports")
            return token_id
        if live.kind == "certificate":
            if not peer.certified:
                raise ServerRefused("NOT_ADMITTED", "this collection asks for a client certificate")
        elif not peer.local:
            seconds = self._rate.wait(peer.address, reports)
            if seconds:
                raise Busy("rate", seconds)
        return None

    def delivered(self, tickets: list[Ticket], seconds: float) -> None:
        """Called by the writer thread: bring a group's tickets back to the event loop."""
        try:
            self._loop.call_soon_threadsafe(self._arrive, tickets, seconds)
        except RuntimeError:  # the loop is gone: nobody is left to be told, and whoever asked will ask again
            return

    def _arrive(self, tickets: list[Ticket], seconds: float) -> None:
        counts: dict[str, list[int]] = {}
        now = time.perf_counter()
        for ticket in tickets:
            self.held -= len(ticket.batch.payload)
            if ticket.outcome is AppendOutcome.STORED:
                count = counts.setdefault(ticket.live.label, [0, 0])
                count[0] += 1
                count[1] += ticket.reports
                number = ticket.batch.collection
                self.stored[number] = self.stored.get(number, 0) + 1
            elif ticket.error is None:
                self._count_other(ticket)
            ticket.owner(ticket)
        self.waiting -= len(tickets)
        metrics = self._metrics
        for label, (batches, reports) in counts.items():
            metrics.batches.labels(label).inc(batches)
            metrics.reports.labels(label).inc(reports)
        if tickets[0].error is not None:
            metrics.storage_errors.inc()
        metrics.commit.observe(seconds)
        metrics.ack.observe(now - tickets[0].born)
        metrics.group.observe(len(tickets))
        while self._room and self.held < self._limit:
            future = self._room.popleft()
            if not future.done():
                future.set_result(None)

    def _count_other(self, ticket: Ticket) -> None:
        if ticket.outcome is AppendOutcome.DUPLICATE:
            self._metrics.duplicates.labels(ticket.live.label).inc()
        else:
            self._metrics.refused_batches.labels(_reason(ticket)).inc()

    async def room(self, seconds: float) -> None:
        """Wait until some memory is free, `seconds` at most."""
        future: asyncio.Future[None] = self._loop.create_future()
        self._room.append(future)
        try:
            await asyncio.wait_for(future, seconds)
        except TimeoutError:
            return
