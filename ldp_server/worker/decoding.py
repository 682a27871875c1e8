"""Heavy hitters of a collection, as the serialised result that the serving process passes on."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

from ldp_client.errors import InvalidSpec, WrongType
from ldp_client.protocol.domain import Item
from ldp_client.protocol.v1 import analyst_pb2 as pb
from ldp_server import heavy_hitters
from ldp_server.answers.wire import item_from_wire, to_wire
from ldp_server.heavy_hitters.dictionary import Dictionary
from ldp_server.oracles.base import Unsupported
from ldp_server.worker.counts import CollectionCounts
from ldp_server.worker.messages import AskDecode

__all__ = ["can_decode", "decode"]

_MAY_USE = getattr(os, "sched_getaffinity", None)
THREADS = min(2, len(_MAY_USE(0)) if _MAY_USE else os.cpu_count() or 1)
"""Transforms and searches run on two threads, where this process may use two cores: most of their time is spent outside
of Python. Each takes 150 MB."""


def can_decode(mechanism: str) -> bool:
    """Return whether there is a decoder for a mechanism's reports."""
    return mechanism in heavy_hitters.DECODERS


def decode(
    counts: CollectionCounts,
    question: AskDecode,
    request: pb.HeavyHittersRequest,
    progress: Callable[[str, float], None],
) -> bytes:
    """Return the serialised HeavyHittersResult of a collection; whoever wants to cancel ends this process."""
    name, beta = counts.collection.randomizer.name, question.beta or heavy_hitters.BETA
    if not can_decode(name):
        raise Unsupported(
            f"collections of the mechanism {name} have no heavy-hitter decoder "
            f"(those of {', '.join(heavy_hitters.DECODERS)} have one): ask for the top of a listable domain, or for "
            "given items"
        )
    limits = heavy_hitters.DecodeLimits(copies=heavy_hitters.Copies(question.copies), exploratory=request.exploratory)
    with ThreadPoolExecutor(THREADS) as threads:
        found = heavy_hitters.decode(
            counts.collection,
            counts.oracle,
            beta=beta,
            dictionary=_dictionary(counts, request),
            limits=limits,
            start=_start(counts, request),
            progress=progress,
            executor=threads,
        )
    found = replace(found, items=found.items[: question.limit])
    return counts.serialized(to_wire(found, pb.HeavyHittersResult))


def _dictionary(counts: CollectionCounts, request: pb.HeavyHittersRequest) -> Dictionary | None:
    """Return the candidates. The server's own list is left out where it cannot be used."""
    own = request.dictionary_source == pb.EARLIER_LIST
    if not request.dictionary or (own and not heavy_hitters.begins_with_items(counts.oracle)):
        return None
    return replace(Dictionary.unpacked(counts.collection.domain.counted, request.dictionary), related=own)


def _start(counts: CollectionCounts, request: pb.HeavyHittersRequest) -> list[Item]:
    """Return the items that the search begins with. The server's own list is left out where it cannot be used."""
    if request.beginning == pb.LAST and not heavy_hitters.begins_with_items(counts.oracle):
        return []
    domain, items = counts.collection.domain, [item_from_wire(item) for item in request.start]
    for item in items:
        try:
            domain.index(item)
        except WrongType as error:
            raise InvalidSpec(f"to start with: {error}") from None
    return items
