"""Packed reports to arrays and back, the twin of ldp_client/protocol/packing.py."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from ldp_client.errors import ServerRefused

__all__ = ["Reports", "pack", "unpack"]

Reports = npt.NDArray[np.uint32] | npt.NDArray[np.uint64]


def _word(width: int) -> np.dtype[Any]:
    return np.dtype("<u4") if width <= 4 else np.dtype("<u8")


def unpack(payload: bytes, width: int, bound: int) -> Reports:
    """Read the reports of a payload of any length, each below `bound`; `ServerRefused` if it is anything else.

    Reports of other widths than 1, 2, 4 and 8 bytes are read as overlapping words, and the next report's bytes are
    masked.
    """
    count, rest = divmod(len(payload), width)
    if rest:
        raise ServerRefused("WRONG_LENGTH", f"{len(payload)} bytes is not a whole number of reports of {width} bytes")
    word = _word(width)
    if width == word.itemsize:
        reports: Reports = np.frombuffer(payload, word)
    else:
        padded = payload + bytes(word.itemsize - width)
        overlapping = np.ndarray((count,), word, padded, strides=(width,))
        reports = overlapping & word.type((1 << 8 * width) - 1)
    if count and int(reports.max()) >= bound:
        raise ServerRefused("REPORT_OUT_OF_RANGE", f"reports are integers below {bound}")
    return reports


def pack(reports: npt.NDArray[np.unsignedinteger], width: int) -> bytes:
    """Pack reports of `width` bytes each."""
    words = np.ascontiguousarray(reports, _word(width))
    return words.view(np.uint8).reshape(len(words), words.itemsize)[:, :width].tobytes()
