"""Answers as the analyst gets them: those of ldp_server/answers and ldp_server/heavy_hitters, with their collection."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from ldp_client.protocol.v1 import analyst_pb2 as pb
from ldp_server.analyst.collections import CollectionInfo
from ldp_server.answers.attributes import AttributesAnswer
from ldp_server.answers.estimates import Estimates
from ldp_server.answers.numbers import AverageAnswer, QuantilesAnswer, RangesAnswer
from ldp_server.answers.wire import from_wire
from ldp_server.heavy_hitters.results import HeavyHitters

__all__ = [
    "CollectionAttributes",
    "CollectionAverage",
    "CollectionEstimates",
    "CollectionHeavyHitters",
    "CollectionQuantiles",
    "CollectionRanges",
]


@dataclass(frozen=True)
class _About:
    """The collection that an answer is about."""

    info: CollectionInfo | None = field(default=None, metadata={"json": "never"})

    @property
    def question(self) -> str:
        return "" if self.info is None else self.info.collection.question


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
        return replace(from_wire(cls, response.average), info=CollectionInfo.of(response.collection))


@dataclass(frozen=True)
class CollectionQuantiles(_About, QuantilesAnswer):
    """Quantiles, and the collection that they are about."""

    @classmethod
    def of(cls, response: pb.NumbersResponse) -> CollectionQuantiles:
        return replace(from_wire(cls, response.quantiles), info=CollectionInfo.of(response.collection))


@dataclass(frozen=True)
class CollectionRanges(_About, RangesAnswer):
    """Ranges, and the collection that they are about."""

    @classmethod
    def of(cls, response: pb.NumbersResponse) -> CollectionRanges:
        return replace(from_wire(cls, response.ranges), info=CollectionInfo.of(response.collection))


@dataclass(frozen=True)
class CollectionAttributes(_About, AttributesAnswer):
    """Attributes or pairs of them, and the collection that they are about."""

    @classmethod
    def of(cls, response: pb.AttributesResponse) -> CollectionAttributes:
        return replace(from_wire(cls, response), info=CollectionInfo.of(response.collection))
