"""What `report` did, as it tells the app. It depends on the collection and the ledger, never on the item."""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["AGAIN", "IN_MEMORY", "MADE", "STANDS", "Receipt"]


class Receipt(NamedTuple):
    """What `report` did. It depends on the collection and the ledger, never on the item."""

    made: bool
    """A new report was made and charged."""
    queued: bool
    """A batch entered the outbox: the new report, or the standing answer for a new window."""
    durable: bool
    """What was made is on the disk. False: in memory, paid from a lease."""


MADE = Receipt(made=True, queued=True, durable=True)
IN_MEMORY = Receipt(made=True, queued=True, durable=False)
AGAIN = Receipt(made=False, queued=True, durable=True)
STANDS = Receipt(made=False, queued=False, durable=True)
