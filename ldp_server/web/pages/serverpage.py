"""The page about the server itself: intake, lag, disk, and what is wrong, in words."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

from starlette.responses import Response

from ldp_server.analyst import ServerStatus
from ldp_server.web.gate import Visit

__all__ = ["alerts", "server_page"]

_LITTLE_DISK = 1_000_000_000
_LAG_BATCHES = 100_000
_WAITING_BYTES = 48_000_000
_REFUSED_SHARE = 0.01


async def server_page(visit: Visit) -> Response:
    """Version, load and size, and sentences about what needs somebody."""
    status = await visit.site.call(visit.analyst.status)
    rate = visit.site.intake.note("server", status.reports)
    refused = [(one.reason, one.count, _REFUSED.get(one.reason, "")) for one in status.refused if one.count]
    busy = [(one.reason, one.count, _BUSY.get(one.reason, "")) for one in status.busy if one.count]
    values: dict[str, Any] = {"rate": rate, "alerts": list(alerts(status)), "refused": refused, "busy": busy}
    return visit.page("server", "server", of=status, up=_about(time.time() - status.started), **values)


def _about(seconds: float) -> str:
    for size, name in ((86_400, "day"), (3600, "hour"), (60, "minute")):
        if seconds >= size:
            count = int(seconds // size)
            return f"{count} {name}" + ("s" if count != 1 else "")
    return "less than a minute"


def alerts(status: ServerStatus) -> Iterator[str]:
    """What is wrong, and what to do."""
    if status.draining:
        yield "The server is stopping: it takes no new batches."
    if status.free_bytes and status.free_bytes < _LITTLE_DISK:
        yield "The disk is nearly full: below 1 GB is free. Compact ended collections, or make room."
    if status.storage_errors:
        yield f"{status.storage_errors:,} groups of batches could not be written. The log of the server says why."
    if status.damage:
        yield f"Stored data was found damaged {status.damage:,} times. Run `ldp-server doctor`, and look at the disk."
    if status.failures:
        yield f"{status.failures:,} calls ended in a defect of the program. The server's log has them: please report."
    if status.waiting_bytes > _WAITING_BYTES:
        yield "Batches come faster than the disk takes them: apps are told to wait."
    if status.lag_batches > _LAG_BATCHES:
        yield f"{status.lag_batches:,} batches are not counted yet: the next answers take longer."
    refused = sum(one.count for one in status.refused)
    if refused > _REFUSED_SHARE * (refused + status.batches) and refused > 10:
        share = refused / (refused + status.batches)
        yield f"{share:.1%} of the batches were refused. The reasons are below."


_REFUSED = {
    "UNKNOWN_COLLECTION": "the collection was never created here",
    "NOT_YET_OPEN": "before the collection's window",
    "WINDOW_CLOSED": "after the collection's window",
    "COLLECTION_CLOSED": "an operator closed the collection",
    "COLLECTION_DELETED": "an operator deleted the collection",
    "BATCH_TOO_LARGE": "more bytes than a batch may have",
    "WRONG_LENGTH": "not a whole number of reports",
    "REPORT_OUT_OF_RANGE": "a report that no device can make",
    "BATCH_ID_CONFLICT": "the same batch id with other bytes",
    "NOT_ADMITTED": "a valid token or certificate is missing",
    "TOKEN_USED": "its token had admitted another batch",
    "TOKEN_FOR_ANOTHER": "its token was for another question",
}
_BUSY = {"full": "more waits for the disk than fits into memory", "rate": "one address sent more than its share"}
