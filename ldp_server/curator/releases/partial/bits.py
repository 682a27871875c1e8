"""Texts of 0 and 1, one for each person, as an array: a row for each person, a column for each attribute."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from ldp_client.errors import InvalidSpec
from ldp_server.curator.people import Record

__all__ = ["Bits", "bits_of", "check_bits", "texts_of"]

Bits = npt.NDArray[np.uint8]
_MOST = 65_536


def bits_of(records: Sequence[Record], bits: int) -> Bits:
    """Return the texts as 0 and 1; raise InvalidSpec for one of another length or with another character."""
    for number, record in enumerate(records, 1):
        if not isinstance(record, str) or len(record) != bits or record.strip("01"):
            raise InvalidSpec(f"row {number:,}: not a text of {bits:,} characters, each 0 or 1")
    return (np.frombuffer("".join(map(str, records)).encode(), np.uint8) - ord("0")).reshape(len(records), bits)


def check_bits(bits: int, least: int = 2) -> None:
    """Check how many attributes a text has."""
    if not least <= bits <= _MOST:
        raise InvalidSpec(f"--bits: {least} to {_MOST:,} characters")


def texts_of(rows: Bits) -> list[str]:
    """Return rows of an array as texts."""
    return ["".join(map(str, row)) for row in rows.tolist()]
