"""The answers to batches, as bytes."""

from __future__ import annotations

from functools import lru_cache

from ldp_client.errors import ServerRefused
from ldp_client.protocol.v1 import collector_pb2 as pb
from ldp_server.store import AppendOutcome, Ticket

__all__ = ["REASONS", "answer", "refusal"]

REASONS = {
    AppendOutcome.CONFLICT: "BATCH_ID_CONFLICT",
    AppendOutcome.TOKEN_USED: "TOKEN_USED",
    AppendOutcome.OUT_OF_RANGE: "REPORT_OUT_OF_RANGE",
    AppendOutcome.PERIOD_OVER: "PERIOD_OVER",
    AppendOutcome.SEALED: "WINDOW_CLOSED",  # by a fold, which may fail and be undone: a device asks again later
}
"""The wire's reason for each outcome that is a refusal."""


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
