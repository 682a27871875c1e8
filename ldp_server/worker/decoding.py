"""Heavy hitters through whatever decoder the collection's mechanism has."""

from __future__ import annotations

from collections.abc import Callable

from ldp_server.worker.client import Unsupported
from ldp_server.worker.counts import Warm

__all__ = ["can_decode", "decode"]


def can_decode(mechanism: str) -> bool:
    """Whether there is a decoder for a mechanism's reports."""
    return mechanism in ()


def decode(warm: Warm, limit: int, progress: Callable[[str, float], None]) -> bytes:
    """The serialised HeavyHittersResult of a collection."""
    del limit, progress
    raise Unsupported(
        f"collections of the mechanism {warm.collection.randomizer.name} have no heavy-hitter decoder: "
        "ask for the top of a listable domain, or for given items"
    )
