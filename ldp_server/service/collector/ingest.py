"""From a request to a ticket, and from a ticket to an answer.

`offer` refuses for good (`ServerRefused`), refuses for now (`Busy`), or lets the batch wait for the disk. Nothing here
does I/O.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from functools import lru_cache

from ldp_client.errors import ServerRefused
from ldp_client.protocol.packing import check_length
from ldp_client.protocol.v1 import collector_pb2 as pb
from ldp_server.service.admission import AdmissionControl, Peer
from ldp_server.service.collector.unsealing import Unsealing, count_units
from ldp_server.service.collector.waiting import REASONS, Waiting
from ldp_server.service.live import LiveCollections
from ldp_server.service.wire import Busy
from ldp_server.store import AppendOutcome, GroupCommit, Submission, Ticket

__all__ = ["Ingest", "answer", "refusal"]


@lru_cache(maxsize=4096)
def _accepted(reports: int, duplicate: bool, dropped: int) -> bytes:
    accepted = pb.Accepted(reports=reports, duplicate=duplicate, dropped=dropped)
    return pb.SubmitResponse(accepted=accepted).SerializeToString()


def refusal(batch_id: bytes, rejected: ServerRefused) -> bytes:
    """The response that refuses a batch."""
    reason = pb.Reason.Name(pb.Reason.Value(rejected.reason))  # raises, as a defect, if there is no such reason
    return pb.SubmitResponse(
        batch_id=batch_id[:64], refusal=pb.Refusal(reason=reason, detail=rejected.detail)
    ).SerializeToString()


def answer(ticket: Ticket) -> bytes:
    """The response to a ticket that has an outcome; raises the storage's error if it has one instead.

    A protobuf message is the concatenation of its fields: the part that all batches of a size share is made once.
    """
    if ticket.refused is not None:
        return refusal(ticket.batch_id, ticket.refused)
    if ticket.error is not None or ticket.outcome is None:
        raise ticket.error or AssertionError("the ticket is still waiting")
    batch_id, outcome = ticket.batch_id, ticket.outcome
    if outcome is AppendOutcome.STORED or outcome is AppendOutcome.DUPLICATE:
        return b"\x0a\x10" + batch_id + _accepted(ticket.reports, outcome is AppendOutcome.DUPLICATE, ticket.dropped)
    return refusal(batch_id, ServerRefused(REASONS[outcome]))


class Ingest:
    """Checks requests and hands them to the writer thread. Used on the event loop."""

    def __init__(
        self,
        collections: LiveCollections,
        admission: AdmissionControl,
        waiting: Waiting,
        commit: GroupCommit,
        clock: Callable[[], float],
        unsealing: Unsealing,
    ) -> None:
        self._collections = collections
        self._admission = admission
        self._commit = commit
        self._clock = clock
        self._unsealing = unsealing
        self.waiting = waiting

    def offer(self, request: pb.SubmitRequest, peer: Peer, done: Callable[[Ticket], None]) -> Ticket:
        """Let a batch wait for the disk; `done` is called with its ticket when it has an outcome or an error."""
        live = self._collections.get(request.collection_id)
        if live is None:
            raise _unknown(request.collection_id)
        batch_id, payload = request.batch_id, request.payload
        if len(batch_id) != 16:
            raise ServerRefused("BAD_BATCH_ID", "a batch id has 16 bytes")
        sealed = live.collection.relayed
        reports = count_units(payload, live.width) if sealed else check_length(len(payload), live.width)
        now = self._clock()
        reason = live.refusal_reason(now) or live.period_reason(request.period, now)
        if reason is not None:
            raise ServerRefused(reason)
        token_id = self._admission.admit(live.record, request.admission_token, peer, reports)
        if not self.waiting.enter(len(payload)):
            raise Busy("full", 0.5)
        digest = b"" if sealed else hashlib.sha256(payload).digest()[:16]
        submission = Submission(live.record.number, batch_id, digest, payload, token_id, request.period)
        ticket = Ticket(submission, reports, done)
        if sealed:
            self._unsealing.begin(live, ticket)
        else:
            self._commit.submit(ticket)
        return ticket


def _unknown(collection_id: bytes) -> ServerRefused:
    if len(collection_id) != 32:
        return ServerRefused("BAD_COLLECTION_ID", "a collection id has 32 bytes")
    return ServerRefused("UNKNOWN_COLLECTION")
