"""Fetching the signed list, part by part, from a server that may not be believed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from ldp_client.errors import PolicyRefused, Unavailable
from ldp_client.sending.transport import ListPart
from ldp_client.trust.signed_list import ID_BYTES, PART_IDS, SignedHead, SignedList

__all__ = ["Lister", "download_list"]


class Lister(Protocol):
    """What has the list; every `Transport` does."""

    def list_collections(self, part: int, timeout: float) -> ListPart: ...


def download_list(
    transport: Lister,
    held: SignedList | None,
    verified: Callable[[ListPart, SignedList | None], SignedHead],
    left: Callable[[], float],
) -> tuple[ListPart, bytes]:
    """Fetch the last part that is held, and all that follows; return the last answer and all ids.

    `verified` checks the signature of each answer. `left` says how many seconds are left.
    """
    part = len(held.packed) // (PART_IDS * ID_BYTES) if held else 0
    packed = bytearray(held.packed[: part * PART_IDS * ID_BYTES] if held else b"")
    while True:
        seconds = left()
        if seconds <= 0:
            raise Unavailable("fetching the signed list took too long: try again, or allow more time")
        answer = transport.list_collections(part, seconds)
        if not answer.list_bytes:
            raise Unavailable("the server has no signed list")
        serial = verified(answer, held).serial
        expected = max(0, min(PART_IDS, serial - part * PART_IDS))
        if len(answer.ids) != expected * ID_BYTES:
            raise PolicyRefused(f"part {part} of the signed list has {expected} ids; the server sent something else")
        packed += answer.ids
        part += 1
        if len(packed) >= serial * ID_BYTES:
            return answer, bytes(packed)
