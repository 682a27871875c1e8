"""Tokens for batches, before they are sent. A token is stored with its batch before it is shown to anybody."""

from __future__ import annotations

from collections.abc import Sequence

from ldp_client.errors import Unavailable
from ldp_client.sending.outbox import Outbox, WaitingBatch
from ldp_client.tokens.sources import Tokens
from ldp_client.tokens.wallet import NoTokenYet

__all__ = ["admitted"]


def admitted(
    due: Sequence[WaitingBatch], tokens: Tokens, outbox: Outbox
) -> tuple[list[WaitingBatch], list[WaitingBatch]]:
    """Get a token for every batch that needs one and has none. Return those that may go, and those that must wait."""
    ready: list[WaitingBatch] = []
    late: list[WaitingBatch] = []
    got: list[WaitingBatch] = []
    failure: str | None = None
    for waiting in due:
        batch = waiting.batch
        sealed = waiting.sealed is not None  # then its token, if it needs one, is inside
        relayed = waiting.smallest is not None
        if batch.token is not None or sealed or not tokens.needed(batch.collection_id, relayed=relayed):
            ready.append(waiting)
        elif failure is None:
            try:
                got.append(waiting._replace(batch=batch._replace(token=tokens.take(batch.collection_id))))
                ready.append(got[-1])
            except NoTokenYet:
                late.append(waiting)
            except Exception as error:  # the app's own code; its words may hold a token
                failure = type(error).__name__
    if got:
        outbox.keep_tokens(got)
    if failure:
        raise Unavailable(f"the app's token source failed: {failure}")
    return ready, late
