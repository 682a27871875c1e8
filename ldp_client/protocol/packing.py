"""Reports to bytes and back: each report is an unsigned little-endian integer of a fixed number of whole bytes.

A payload is its reports one after the other and nothing else. Its length is the number of reports times their width,
and says nothing about any item. Whole bytes cost up to 7 bits a report. In return a payload has no padding bits, counts
or alignment: there is exactly one payload for a list of reports.
"""

from __future__ import annotations

from collections.abc import Iterable

from ldp_client.errors import ServerRefused

__all__ = ["MAX_PAYLOAD", "check_length", "pack", "unpack"]

MAX_PAYLOAD = 250_000
"""The most bytes a batch's payload may have."""


def pack(reports: Iterable[int], width: int) -> bytes:
    """Pack reports of `width` bytes each."""
    return b"".join([report.to_bytes(width, "little") for report in reports])


def check_length(length: int, width: int) -> int:
    """Return how many reports a payload of `length` bytes holds; `ServerRefused` if it cannot be a payload."""
    if length == 0:
        raise ServerRefused("EMPTY_BATCH")
    if length > MAX_PAYLOAD:
        raise ServerRefused("BATCH_TOO_LARGE", f"{length} bytes, at most {MAX_PAYLOAD}")
    if length % width:
        raise ServerRefused("WRONG_LENGTH", f"{length} bytes is not a whole number of reports of {width} bytes")
    return length // width


def unpack(payload: bytes, width: int, bound: int) -> list[int]:
    """Read the reports of a payload, each below `bound`; `ServerRefused` if it is anything else."""
    count = check_length(len(payload), width)
    reports = [int.from_bytes(payload[i * width : (i + 1) * width], "little") for i in range(count)]
    if max(reports) >= bound:
        raise ServerRefused("REPORT_OUT_OF_RANGE", f"reports are integers below {bound}")
    return reports
