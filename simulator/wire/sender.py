"""A sender: the client library's gateway, with acknowledgements that are lost on purpose.

The gateway streams batches. When the connection breaks, it sends those that are unanswered again: the same bytes under
the same ids. A lost acknowledgement is ignored, as if it had never come, and its batch is sent again at the end.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace

from ldp_client.collection import Collection
from ldp_client.sending.gateway import Gateway
from ldp_client.sending.transport import Accepted, Batch

__all__ = ["Sent", "Unacknowledged", "send"]


@dataclass(frozen=True)
class Unacknowledged:
    """A batch that is to be sent, or was sent and has no acknowledgement yet."""

    batch: Batch
    reports: int
    lose: bool = False
    """Whether its first acknowledgement is lost."""
    second: bool = False
    """Whether it is sent only when everything else was: as a duplicate, through another collector."""


@dataclass
class Sent:
    """The answers that a sender got."""

    acknowledged: int = 0
    """Reports in batches that were acknowledged as durable. A batch that was sent twice counts once."""
    duplicates: int = 0
    """Batches that the server had already: acknowledged, and not counted again."""
    refused: Counter[str] = field(default_factory=Counter)
    """Number of refused batches by reason."""
    reconnections: int = 0


def send(
    target: str,
    batches: Iterable[Unacknowledged],
    timeout: float,
    tell: Callable[[int], None] | None = None,
    *,
    relay: Collection | None = None,
    again: str | None = None,
) -> Sent:
    """Send all, then again those whose acknowledgement was lost. `Unavailable` if that takes longer than `timeout`.

    `tell` is called with the number of reports in each batch that is acknowledged. `relay`: the target is a relay, and
    the batches are sealed ones of this collection. `again` is where batches are sent again, if not to the target.
    """
    sent, lost = Sent(), batches
    for where in (target, again or target):
        gateway = Gateway(where, tls=False, relay=relay)
        try:
            left = _round(gateway, lost, timeout, sent, tell)
            lost = [replace(batch, lose=False, second=False) for batch in left]
            sent.reconnections += gateway.retries
        finally:
            gateway.close()
    return sent


def _round(
    gateway: Gateway, batches: Iterable[Unacknowledged], timeout: float, sent: Sent, tell: Callable[[int], None] | None
) -> list[Unacknowledged]:
    """Send, and note the answers in `sent`; return the batches whose acknowledgement was lost."""
    under_way: deque[Unacknowledged] = deque()
    lost: list[Unacknowledged] = []

    def leaving() -> Iterator[Batch]:
        for batch in batches:
            if batch.second:
                lost.append(batch)
                continue
            under_way.append(batch)
            yield batch.batch

    for outcome in gateway.send(leaving(), timeout):
        answered = under_way.popleft()
        if isinstance(outcome, Accepted):
            sent.duplicates += outcome.duplicate
        if answered.lose:
            lost.append(answered)
        elif isinstance(outcome, Accepted):
            sent.acknowledged += answered.reports
            if tell is not None:
                tell(answered.reports)
        else:
            sent.refused[outcome.reason] += 1
    return lost
