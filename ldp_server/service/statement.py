"""The privacy statement of a collection: what is promised to somebody who reports, and what is not."""

from __future__ import annotations

from collections.abc import Iterator

from ldp_client.collection import Collection
from ldp_client.privacy.statement import statement_for
from ldp_client.durations import format_duration

__all__ = ["privacy_statement"]


def privacy_statement(collection: Collection) -> Iterator[str]:
    """Sentences, the promise first: the same ones as in a device's ledger, then what a server must add."""
    yield from statement_for(collection).lines
    if collection.schedule is None:
        yield "Each device answers once: asking again shows nothing new."
    else:
        yield f"A device answers once every {format_duration(collection.schedule.period_seconds)}."
    yield (
        "Not hidden by epsilon: that a device takes part, its network address, and when it sends. "
        "Not prevented: people who send false reports on purpose."
    )
