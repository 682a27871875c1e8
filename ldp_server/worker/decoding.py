"""Heavy hitters through whatever decoder the collection's mechanism has."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from ldp_client.protocol.v1 import analyst_pb2 as pb
from ldp_server import heavy_hitters
from ldp_server.worker.counts import Warm
from ldp_server.worker.items import to_wire
from ldp_server.worker.messages import Unsupported

__all__ = ["can_decode", "decode"]

_PROBABILITY = 0.95


def can_decode(mechanism: str) -> bool:
    """Whether there is a decoder for a mechanism's reports."""
    return mechanism in heavy_hitters.DECODERS


def decode(warm: Warm, limit: int, progress: Callable[[str, float], None]) -> bytes:
    """The serialised HeavyHittersResult of a collection; whoever wants to cancel ends this process."""
    name = warm.collection.randomizer.name
    if not can_decode(name):
        raise Unsupported(
            f"collections of the mechanism {name} have no heavy-hitter decoder: "
            "ask for the top of a listable domain, or for given items"
        )
    found = heavy_hitters.decode(warm.collection, warm.oracle, progress=progress)
    enough = bool(found.enough)
    result = pb.HeavyHittersResult(
        reports=found.reports,
        threshold=found.reliable if enough and math.isfinite(found.reliable) else 0.0,
        probability=_PROBABILITY,
        guarantee=[found.guarantee],
        too_few_reports=not enough,
        users_needed=found.users_needed or 0,
        false_items=found.false_items,
        decoder=found.decoder,
    )
    result.items.extend(_hitter(hitter) for hitter in found.items[:limit])
    if found.none is not None:
        result.none.CopyFrom(_hitter(found.none))
    return result.SerializeToString()


def _hitter(hitter: Any) -> pb.HeavyHitter:
    return pb.HeavyHitter(
        item=to_wire(hitter.item),
        estimate=hitter.estimate,
        standard_error=hitter.standard_error,
        low=hitter.low,
        high=hitter.high,
        score=hitter.score,
        surest_low=hitter.surest_low,
        surest_high=hitter.surest_high,
    )
