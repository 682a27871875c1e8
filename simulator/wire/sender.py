"""A sender: the client library's own gateway, with answers that get lost on purpose.

The gateway streams prepared batches, and sends what is unanswered again when the connection breaks: the same bytes
under the same ids. An answer that is lost on purpose is treated as if it had never come: its batch is sent again
afterwards.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

from ldp_client.sending.gateway import Gateway
from ldp_client.sending.transport import Accepted, Batch

__all__ = ["Entry", "Sent", "send"]


@dataclass(frozen=True)
class Entry:
    """One batch."""

    batch: Batch
    reports: int
    lose: bool = False
    """Whether its first answer is lost."""


@dataclass
class Sent:
    """What a sender saw."""

    acknowledged: int = 0
    """Reports in batches that were acknowledged as durable; a batch that was sent twice at once counts once."""
    duplicates: int = 0
    """Batches acknowledged as held already: sent again, and not counted again."""
    rejected: Counter[str] = field(default_factory=Counter)
    """Batches refused for good, by reason."""
    reconnections: int = 0


def send(target: str, entries: Iterable[Entry], timeout: float, tell: Callable[[int], None] | None = None) -> Sent:
    """Send all, then once more those whose answer was lost; `Unavailable` if that takes longer than `timeout`."""
    sent, gateway = Sent(), Gateway(target, tls=False)
    try:
        lost = _round(gateway, entries, timeout, sent, tell)
        _round(gateway, [Entry(entry.batch, entry.reports) for entry in lost], timeout, sent, tell)
        sent.reconnections = gateway.retries
    finally:
        gateway.close()
    return sent


def _round(
    gateway: Gateway, entries: Iterable[Entry], timeout: float, sent: Sent, tell: Callable[[int], None] | None
) -> list[Entry]:
    """Send, and note what came back, in order; return the entries whose answer was lost."""
    under_way: deque[Entry] = deque()
    lost: list[Entry] = []

    def batches() -> Iterator[Batch]:
        for entry in entries:
            under_way.append(entry)
            yield entry.batch

    for outcome in gateway.send(batches(), timeout):
        entry = under_way.popleft()
        if isinstance(outcome, Accepted):
            sent.duplicates += outcome.duplicate
        if entry.lose:
            lost.append(entry)
        elif isinstance(outcome, Accepted):
            sent.acknowledged += entry.reports
            if tell is not None:
                tell(entry.reports)
        else:
            sent.rejected[outcome.reason] += 1
    return lost
