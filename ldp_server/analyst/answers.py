"""Answers as the analyst gets them: those of ldp_server/answers and ldp_server/heavy_hitters, with their collection."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

from ldp_client.protocol.v1 import analyst_pb2 as pb
from ldp_server.analyst.collections import CollectionInfo
from ldp_server.answers.attributes import AttributesAnswer
from ldp_server.answers.change import ChangeAnswer
from ldp_server.answers.compare import Comparison
from ldp_server.answers.estimates import Estimates
from ldp_server.answers.numbers import AverageAnswer, QuantilesAnswer, RangesAnswer
from ldp_server.answers.periods import PeriodLine, PeriodSpan
from ldp_server.answers.trend import TrendAnswer
from ldp_server.answers.wire import from_wire
from ldp_server.heavy_hitters.results import HeavyHitters

__all__ = [
    "CollectionAttributes",
    "CollectionAverage",
    "CollectionChange",
    "CollectionComparison",
    "CollectionEstimates",
    "CollectionHeavyHitters",
    "CollectionPeriods",
    "CollectionQuantiles",
    "CollectionRanges",
    "CollectionTrend",
]


@dataclass(frozen=True)
class _About:
    """The collection that an answer is about, and which of its periods."""

    info: CollectionInfo | None = field(default=None, metadata={"json": "never"})
    periods: PeriodSpan | None = field(default=None, metadata={"json": "unless None"})
    """The first and the last period that is counted; None for a question without a schedule."""

    @property
    def question(self) -> str:
        return "" if self.info is None else self.info.collection.question


def _about(response: pb.NumbersResponse) -> dict[str, Any]:
    periods = from_wire(PeriodSpan, response.periods) if response.HasField("periods") else None
    return {"info": CollectionInfo.of(response.collection), "periods": periods}


@dataclass(frozen=True)
class CollectionEstimates(_About, Estimates):
    """Estimates, and the collection that they are about."""

    @classmethod
    def of(cls, response: pb.EstimateResponse) -> CollectionEstimates:
        info = CollectionInfo.of(response.collection)
        return replace(from_wire(cls, response, domain=info.collection.domain), info=info)


@dataclass(frozen=True)
class CollectionHeavyHitters(_About, HeavyHitters):
    """Heavy hitters, and the collection that they are about."""

    @classmethod
    def of(cls, result: pb.HeavyHittersResult) -> CollectionHeavyHitters:
        return replace(from_wire(cls, result), info=CollectionInfo.of(result.collection))


@dataclass(frozen=True)
class CollectionAverage(_About, AverageAnswer):
    """An average, and the collection that it is about."""

    @classmethod
    def of(cls, response: pb.NumbersResponse) -> CollectionAverage:
        return replace(from_wire(cls, response.average), **_about(response))


@dataclass(frozen=True)
class CollectionQuantiles(_About, QuantilesAnswer):
    """Quantiles, and the collection that they are about."""

    @classmethod
    def of(cls, response: pb.NumbersResponse) -> CollectionQuantiles:
        return replace(from_wire(cls, response.quantiles), **_about(response))


@dataclass(frozen=True)
class CollectionRanges(_About, RangesAnswer):
    """Ranges, and the collection that they are about."""

    @classmethod
    def of(cls, response: pb.NumbersResponse) -> CollectionRanges:
        return replace(from_wire(cls, response.ranges), **_about(response))


@dataclass(frozen=True)
class CollectionAttributes(_About, AttributesAnswer):
    """Attributes or pairs of them, and the collection that they are about."""

    @classmethod
    def of(cls, response: pb.AttributesResponse) -> CollectionAttributes:
        return replace(from_wire(cls, response), info=CollectionInfo.of(response.collection))


@dataclass(frozen=True)
class CollectionPeriods:
    """The periods of a collection that have reports, oldest first."""

    info: CollectionInfo = field(metadata={"json": "never"})
    rows: tuple[PeriodLine, ...]

    @classmethod
    def of(cls, response: pb.ListPeriodsResponse) -> CollectionPeriods:
        rows = tuple(from_wire(PeriodLine, line) for line in response.periods)
        return cls(CollectionInfo.of(response.collection), rows)


@dataclass(frozen=True)
class CollectionTrend(_About, TrendAnswer):
    """Values over time, and the collection that they are about."""

    @classmethod
    def of(cls, response: pb.TrendResponse) -> CollectionTrend:
        return replace(from_wire(cls, response), info=CollectionInfo.of(response.collection))


@dataclass(frozen=True)
class CollectionChange(_About, ChangeAnswer):
    """Whether something changed, and the collection that it is about."""

    @classmethod
    def of(cls, response: pb.ChangeResponse) -> CollectionChange:
        return replace(from_wire(cls, response), info=CollectionInfo.of(response.collection))


@dataclass(frozen=True)
class CollectionComparison(Comparison):
    """Differences, and the two collections that they are about; they may be the same one."""

    first_periods: PeriodSpan | None = field(default=None, metadata={"json": "unless None"})
    second_periods: PeriodSpan | None = field(default=None, metadata={"json": "unless None"})
    first: CollectionInfo | None = field(default=None, metadata={"json": "never"})
    second: CollectionInfo | None = field(default=None, metadata={"json": "never"})

    @classmethod
    def of(cls, response: pb.CompareResponse) -> CollectionComparison:
        first, second = CollectionInfo.of(response.first), CollectionInfo.of(response.second)
        response.ClearField("first")
        response.ClearField("second")
        return replace(from_wire(cls, response), first=first, second=second)
