"""What a refusal means: for each `Reason` of proto/ldp/v1/collector.proto, whether it is final or says "later".

A final reason is about the bytes themselves, or is a decision that nobody takes back: the batch is counted and dropped.
Every other reason may pass: clocks that differ, a collection that is not there yet, a token that ran out, a server that
was set up wrongly. The device has paid for the report, so it keeps the batch and asks again after a long pause, until
the window is over by its own clock. A reason that this version does not know says "later", too.
"""

from __future__ import annotations

__all__ = ["NEW_TOKEN", "REASONS", "RELAY_SLACK_SECONDS", "WINDOW_SLACK_SECONDS", "is_final"]

WINDOW_SLACK_SECONDS = 60
"""A server takes batches from this long before a window opens until this long after it closes, because clocks differ.

The same holds for the begin of a period. A collection that an operator has closed takes nothing.
"""

RELAY_SLACK_SECONDS = 7 * 86_400
"""The same after the window of a collection whose reports pass through a relay.

The relay takes no report that comes more than `WINDOW_SLACK_SECONDS` after the window. It releases the last ones then,
and needs time to pass them on.
"""

_FINAL, _LATER = True, False

REASONS = {
    "REASON_UNSPECIFIED": _LATER,  # nothing was said about the batch
    "UNKNOWN_COLLECTION": _LATER,  # not created yet, restored from an old backup, or the wrong server
    "NOT_YET_OPEN": _LATER,
    "WINDOW_CLOSED": _LATER,  # the server's clock may be wrong; if the device's own says so too, it is final
    "COLLECTION_CLOSED": _FINAL,  # an operator's decision
    "COLLECTION_DELETED": _FINAL,  # an operator's decision
    "BAD_COLLECTION_ID": _FINAL,
    "BAD_BATCH_ID": _FINAL,
    "EMPTY_BATCH": _FINAL,
    "BATCH_TOO_LARGE": _FINAL,
    "WRONG_LENGTH": _FINAL,
    "REPORT_OUT_OF_RANGE": _FINAL,
    "BATCH_ID_CONFLICT": _FINAL,
    "NOT_ADMITTED": _LATER,  # a new token or certificate may be valid
    "TOKEN_USED": _LATER,  # a new token may be valid
    "BAD_STATE": _LATER,  # never said about a batch
    "WRONG_PERIOD": _FINAL,
    "PERIOD_NOT_BEGUN": _LATER,  # the clocks differ
    "PERIOD_OVER": _FINAL,  # an operator's decision
    "UNKNOWN_SEALING_KEY": _LATER,  # the server may get the key, or the relay may know of it later
    "SEAL_EXPIRED": _FINAL,  # of these bytes; the sender may seal the report again (sending/sealer.py)
    "NOT_SEALED": _FINAL,
    "SEALED_WRONG_LENGTH": _FINAL,
    "BAD_SEAL": _FINAL,
    "TOKEN_FOR_ANOTHER": _LATER,  # a new token may be valid
}
"""Every reason of the wire, and whether it is final."""

NEW_TOKEN = frozenset({"NOT_ADMITTED", "TOKEN_USED", "TOKEN_FOR_ANOTHER"})
"""Reasons after which the batch needs another admission token."""


def is_final(reason: str) -> bool:
    """Return whether this refusal is final, whatever the time is."""
    return REASONS.get(reason, _LATER)
