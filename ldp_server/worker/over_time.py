"""Answers about several periods, or about two sets of reports, as the serialised responses that are passed on."""

from __future__ import annotations

from collections.abc import Iterator

from ldp_client.errors import InvalidSpec
from ldp_client.protocol.v1 import analyst_pb2 as pb
from ldp_server.answers.estimates import Coverage
from ldp_server.answers.over_time.change import change
from ldp_server.answers.over_time.compare import compare
from ldp_server.answers.over_time.periods import PeriodSpan
from ldp_server.answers.over_time.trend import TrendQuestion, trend
from ldp_server.answers.wire import integer_from_wire, item_from_wire, to_wire
from ldp_server.oracles.base import Oracle
from ldp_server.worker.counts import CountsCache, PeriodsOfCollection
from ldp_server.worker.estimating import areas_of, slices_of

__all__ = ["change_of", "comparison_of", "trend_of"]

_CONFIDENCE = 0.95


def _question(asked: pb.Asked) -> TrendQuestion:
    if asked.ranges.bins:
        raise InvalidSpec("ask for given ranges, not for a number of bins")
    try:
        return TrendQuestion(
            items=tuple(item_from_wire(item) for item in asked.given.items),
            attributes=tuple(asked.attributes.names),
            ranges=tuple((integer_from_wire(one.first), integer_from_wire(one.last)) for one in asked.ranges.between),
            quantiles=tuple(asked.quantiles.shares),
            average=asked.HasField("average"),
            fields=tuple(asked.table.fields),
            where=tuple((name, tuple(values)) for name, values in slices_of(asked.table.where).items()),
            cells=tuple(item_from_wire(item) for item in asked.table.cells),
            averages=asked.HasField("averages"),
            areas=tuple(areas_of(asked.areas)),
        )
    except TypeError as error:  # an item of another type than the domain's
        raise InvalidSpec(str(error)) from None


def _oracles(found: PeriodsOfCollection) -> Iterator[tuple[tuple[int, int, int], Oracle]]:
    """Each period with its counts, one after the other."""
    schedule = found.schedule
    for period, oracle in found.counts:
        yield (period, schedule.begins(period), schedule.begins(period + 1)), oracle


def _span(found: PeriodsOfCollection) -> pb.PeriodSpan:
    return to_wire(PeriodSpan.of(found.schedule, found.periods[0], found.periods[-1]), pb.PeriodSpan)


def trend_of(cache: CountsCache, number: int, request: pb.TrendRequest) -> bytes:
    """Return the serialised TrendResponse to a request."""
    found = cache.each(number, request.periods if request.HasField("periods") else None)
    answer = trend(
        found.collection,
        _oracles(found),
        _question(request.asked),
        count=len(found.periods),
        confidence=request.confidence or _CONFIDENCE,
        coverage=Coverage.TOGETHER if request.together else Coverage.EACH,
    )
    response = to_wire(answer, pb.TrendResponse)
    response.periods.CopyFrom(_span(found))
    return response.SerializeToString()


def change_of(cache: CountsCache, number: int, request: pb.TrendRequest) -> bytes:
    """Return the serialised ChangeResponse to a request."""
    found = cache.each(number, request.periods if request.HasField("periods") else None)
    confidence = request.confidence or _CONFIDENCE
    answer = change(found.collection, _oracles(found), _question(request.asked), confidence=confidence)
    response = to_wire(answer, pb.ChangeResponse)
    response.periods.CopyFrom(_span(found))
    return response.SerializeToString()


def comparison_of(cache: CountsCache, numbers: tuple[int, int], request: pb.CompareRequest) -> bytes:
    """Return the serialised CompareResponse to a request."""
    sides = [
        cache.get(number, side.periods if side.HasField("periods") else None)
        for number, side in zip(numbers, (request.first, request.second), strict=True)
    ]
    answer = compare(
        (sides[0].collection, sides[0].oracle),
        (sides[1].collection, sides[1].oracle),
        _question(request.asked),
        confidence=request.confidence or _CONFIDENCE,
        coverage=Coverage.TOGETHER if request.together else Coverage.EACH,
    )
    response = to_wire(answer, pb.CompareResponse)
    for side, field in zip(sides, (response.first_periods, response.second_periods), strict=True):
        if side.periods is not None:
            field.CopyFrom(to_wire(side.periods, pb.PeriodSpan))
    return response.SerializeToString()
