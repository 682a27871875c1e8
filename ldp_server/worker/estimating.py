"""Frequencies of a collection's items, as the serialised response that the serving process passes on."""

from __future__ import annotations

import numpy as np

from ldp_client.errors import InvalidSpec
from ldp_client.protocol.v1 import analyst_pb2 as pb
from ldp_server.answers import estimates
from ldp_server.answers.estimates import Coverage, Estimates
from ldp_server.answers.wire import item_from_wire, to_wire
from ldp_server.oracles import as_frequency
from ldp_server.oracles.base import Oracle
from ldp_server.worker.counts import CollectionCounts

__all__ = ["estimate", "null_error"]

MOST = 1 << 20
"""The most items that one answer lists: some forty megabytes."""

_CONFIDENCE = 0.95


def null_error(oracle: Oracle) -> float:
    """Return the standard error for an item that nobody holds; 0 where frequencies are not what is asked."""
    if not oracle.reports:
        return 0.0
    try:
        return float(np.sqrt(as_frequency(oracle).variance(np.zeros(1))[0]))
    except InvalidSpec:
        return 0.0


def estimate(counts: CollectionCounts, request: pb.EstimateRequest) -> bytes:
    """Return the serialised EstimateResponse to a request."""
    return to_wire(_answer(counts, request), pb.EstimateResponse).SerializeToString()


def _answer(counts: CollectionCounts, request: pb.EstimateRequest) -> Estimates:
    confidence = request.confidence or _CONFIDENCE
    threshold = request.threshold if request.threshold > 0 else None
    collection, oracle, which = counts.collection, counts.oracle, request.WhichOneof("which")
    if which == "all":
        if collection.domain.size > MOST:
            raise InvalidSpec(f"an answer lists at most {MOST} items: ask for the top ones, or for given items")
        return estimates.every_item(collection, oracle, confidence=confidence, threshold=threshold)
    if which == "top":
        return estimates.top(collection, oracle, request.top.count, confidence=confidence, threshold=threshold)
    if which != "given" or not request.given.items:
        raise InvalidSpec("ask for at least one given item, for all items or for the top ones")
    items = [item_from_wire(item) for item in request.given.items]
    coverage = Coverage.TOGETHER if request.together else Coverage.EACH
    try:
        return estimates.given_items(
            collection, oracle, items, confidence=confidence, coverage=coverage, threshold=threshold
        )
    except TypeError as error:  # an item of another type than the domain's
        raise InvalidSpec(str(error)) from None
