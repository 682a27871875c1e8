"""A collection as the analyst's wire describes it."""

from __future__ import annotations

from ldp_client.protocol.v1 import analyst_pb2 as pb
from ldp_server.service.live import LiveCollection

__all__ = ["KINDS", "info", "state"]

KINDS = {pb.ADMISSION_UNSPECIFIED: "open", pb.OPEN: "open", pb.CERTIFICATE: "certificate", pb.TOKEN: "token"}
_WIRE_KINDS = {"open": pb.OPEN, "certificate": pb.CERTIFICATE, "token": pb.TOKEN}


def info(live: LiveCollection, now: float) -> pb.CollectionInfo:
    """The collection at this time."""
    record = live.record
    return pb.CollectionInfo(
        collection_id=record.id,
        spec_bytes=record.spec,
        state=state(live, now),
        admission=_WIRE_KINDS[record.admission.kind],
        reports_per_token=record.admission.reports_per_token,
        unlisted=not record.public,
        created=record.created,
        closed=record.closed or 0,
        deleted=record.deleted or 0,
    )


def state(live: LiveCollection, now: float) -> pb.CollectionState:
    """The collection's state at this time."""
    record = live.record
    if record.deleted is not None:
        return pb.DELETED
    if record.generation is not None:
        return pb.COMPACTED
    if record.closed is not None:
        return pb.CLOSED
    if now < live.opens:
        return pb.UPCOMING
    return pb.RUNNING if now < live.takes_until else pb.ENDED
