"""Answers to the questions of one message, as the serialised responses that the serving process passes on."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, cast

import numpy as np

from ldp_client.collection import Collection
from ldp_client.errors import InvalidSpec
from ldp_client.protocol.domain import FieldItem
from ldp_client.protocol.v1 import analyst_pb2 as pb
from ldp_server.answers import estimates, numbers
from ldp_server.answers.attributes import attributes_answer
from ldp_server.answers.estimates import Coverage, Estimates
from ldp_server.answers.fields.areas import Area, areas_answer
from ldp_server.answers.fields.averages import averages_answer
from ldp_server.answers.fields.conditions import Condition, conditions_answer
from ldp_server.answers.records import RecordTable
from ldp_server.answers.sets import single_items
from ldp_server.answers.synthetic.tables import tables_answer
from ldp_server.answers.wire import integer_from_wire, item_from_wire, item_to_wire, to_wire
from ldp_server.oracles import as_frequency
from ldp_server.oracles.base import Oracle, Unsupported
from ldp_server.worker.counts import CollectionCounts

__all__ = [
    "areas_of",
    "attributes_of",
    "estimate",
    "field_values",
    "null_error",
    "numbers_of",
    "slices_of",
    "tables_of_fields",
]

MOST = 1 << 20
"""The most items that one answer lists: some forty megabytes."""

_CONFIDENCE = 0.95


def null_error(oracle: Oracle) -> float:
    """Return the standard error for an item that nobody holds; 0 where frequencies are not what is asked."""
    if not oracle.reports:
        return 0.0
    try:
        return float(np.sqrt(as_frequency(single_items(oracle)).variance(np.zeros(1))[0]))
    except InvalidSpec:
        return 0.0


def estimate(counts: CollectionCounts, request: pb.EstimateRequest) -> bytes:
    """Return the serialised EstimateResponse to a request."""
    return counts.serialized(to_wire(_answer(counts, request), pb.EstimateResponse))


def _answer(counts: CollectionCounts, request: pb.EstimateRequest) -> Estimates:
    confidence = request.confidence or _CONFIDENCE
    threshold = request.threshold if request.threshold > 0 else None
    asked: dict[str, Any] = {"confidence": confidence, "threshold": threshold, "every_look": request.every_look}
    if request.conditions:
        if request.fields or request.where or request.WhichOneof("which"):
            raise InvalidSpec("conditions are asked alone: without items, fields and a slice")
        coverage = Coverage.TOGETHER if request.together else Coverage.EACH
        conditions = [
            Condition(one.name, slices_of(one.where), one.otherwise) if one.where else one.name
            for one in request.conditions
        ]
        return conditions_answer(counts.collection, counts.oracle, conditions, coverage=coverage, **asked)
    if request.fields or request.where:
        where = slices_of(request.where)
        table = RecordTable(counts.collection, request.fields, where)
        if table.counted:
            request = pb.EstimateRequest(given=pb.GivenItems(items=[item_to_wire(one) for one in table.counted]))
        return table.named(_listed(table.collection, table.oracle(counts.oracle), request, asked))
    return _listed(counts.collection, counts.oracle, request, asked)


def slices_of(named: Iterable[pb.Slice]) -> dict[str, list[FieldItem]]:
    """Return the values that count, of each field of a slice."""
    slices = list(named)
    where = {one.field: field_values(one.items) for one in slices}
    if len(where) != len(slices):
        raise InvalidSpec("each field of a slice is named once, with all of its values")
    return where


def field_values(items: Iterable[pb.Item]) -> list[FieldItem]:
    """Return values of a field."""
    found = [item_from_wire(item) for item in items]
    if not all(item is None or isinstance(item, str | int) for item in found):
        raise InvalidSpec("a value of a field is a text, an integer or none")
    return cast("list[FieldItem]", found)


def _listed(collection: Collection, oracle: Oracle, request: pb.EstimateRequest, asked: dict[str, Any]) -> Estimates:
    which = request.WhichOneof("which")
    coverage = Coverage.TOGETHER if request.together else Coverage.EACH
    if which == "all":
        if collection.domain.counted.size > MOST:
            raise InvalidSpec(f"an answer lists at most {MOST} items: ask for the top ones, or for given items")
        return estimates.every_item(collection, oracle, coverage=coverage, **asked)
    if which == "top":
        return estimates.top(collection, oracle, request.top.count, **asked)
    if which != "given" or not request.given.items:
        raise InvalidSpec("ask for at least one given item, for all items or for the top ones")
    items = [item_from_wire(item) for item in request.given.items]
    try:
        return estimates.given_items(collection, oracle, items, coverage=coverage, **asked)
    except TypeError as error:  # an item of another type than the domain's
        raise InvalidSpec(str(error)) from None


def numbers_of(counts: CollectionCounts, request: pb.NumbersRequest) -> bytes:
    """Return the serialised NumbersResponse to a request."""
    response = pb.NumbersResponse()
    asked, collection, oracle = request.WhichOneof("which"), counts.collection, counts.oracle
    confidence = request.confidence or _CONFIDENCE
    coverage = Coverage.TOGETHER if request.together else Coverage.EACH
    if asked == "average":
        found = numbers.average_answer(collection, oracle, confidence=confidence, every_look=request.every_look)
        response.average.CopyFrom(to_wire(found, pb.AverageAnswer))
    elif asked == "quantiles":
        if request.every_look:
            raise Unsupported("quantiles have no intervals for every look: ask for ranges, or for one look")
        shares = request.quantiles.shares
        several = numbers.quantiles_answer(collection, oracle, shares, confidence=confidence, coverage=coverage)
        response.quantiles.CopyFrom(to_wire(several, pb.QuantilesAnswer))
    elif asked == "ranges":
        how = {"confidence": confidence, "coverage": coverage, "every_look": request.every_look}
        ranges = _ranges(counts, request.ranges, how)
        response.ranges.CopyFrom(to_wire(ranges, pb.RangesAnswer))
    else:
        how = {"confidence": confidence, "coverage": coverage, "every_look": request.every_look}
        _of_fields(counts, request, response, how)
    return counts.serialized(response)


def _of_fields(
    counts: CollectionCounts, request: pb.NumbersRequest, response: pb.NumbersResponse, how: dict[str, Any]
) -> None:
    """Write the answer about several fields of records."""
    asked = request.WhichOneof("which")
    if asked not in ("averages", "areas"):
        raise InvalidSpec("ask for the average, for averages of cells, for areas, for quantiles or for ranges")
    if asked == "averages":
        averages = averages_answer(counts.collection, counts.oracle, **how)
        response.averages.CopyFrom(to_wire(averages, pb.AveragesAnswer))
    else:
        wanted = areas_of(request.areas)
        areas = areas_answer(counts.collection, counts.oracle, wanted or None, **how)
        response.areas.CopyFrom(to_wire(areas, pb.AreasAnswer))


def areas_of(asked: pb.AreasQuestion) -> list[Area]:
    """Return the areas of a request."""
    return [
        (
            (integer_from_wire(one.x.first), integer_from_wire(one.x.last)),
            (integer_from_wire(one.y.first), integer_from_wire(one.y.last)),
        )
        for one in asked.areas
    ]


def _ranges(counts: CollectionCounts, asked: pb.RangesQuestion, how: dict[str, Any]) -> numbers.RangesAnswer:
    if bool(asked.between) == bool(asked.bins):
        raise InvalidSpec("ask for ranges or for a number of bins")
    collection, oracle = counts.collection, counts.oracle
    if asked.bins:
        return numbers.bins_answer(collection, oracle, asked.bins, **how)
    between = [(integer_from_wire(one.first), integer_from_wire(one.last)) for one in asked.between]
    return numbers.ranges_answer(collection, oracle, between, **how)


def attributes_of(counts: CollectionCounts, request: pb.AttributesRequest) -> bytes:
    """Return the serialised AttributesResponse to a request."""
    found = attributes_answer(
        counts.collection,
        counts.oracle,
        pairs=request.pairs,
        top=request.top or None,
        confidence=request.confidence or _CONFIDENCE,
        together=request.together,
        every_look=request.every_look,
    )
    return counts.serialized(to_wire(found, pb.AttributesResponse))


def tables_of_fields(counts: CollectionCounts, request: pb.TablesRequest) -> bytes:
    """Return the serialised TablesResponse to a request, which names nothing but the collection and its periods."""
    del request
    found = tables_answer(counts.collection, counts.oracle)
    return counts.serialized(to_wire(found, pb.TablesResponse))
