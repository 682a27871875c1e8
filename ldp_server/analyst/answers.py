"""Answers as the analyst gets them: those of ldp_server/answers and ldp_server/heavy_hitters, with their collection."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import ClassVar, Self

from ldp_client.protocol.v1 import analyst_pb2 as pb
from ldp_server.analyst.answer import Answer, with_info
from ldp_server.analyst.collections import CollectionInfo
from ldp_server.answers.attributes import AttributesAnswer
from ldp_server.answers.estimates import Coverage, Estimates
from ldp_server.answers.fields.areas import AreasAnswer
from ldp_server.answers.fields.averages import AveragesAnswer
from ldp_server.answers.numbers import AverageAnswer, QuantilesAnswer, RangesAnswer
from ldp_server.answers.over_time.periods import PeriodLine, PeriodSpan
from ldp_server.answers.records import table_domain
from ldp_server.answers.wire import from_wire
from ldp_server.fairness.gaps import GapsAnswer
from ldp_server.heavy_hitters.results import CONFIDENCE, HeavyHitters
from ldp_server.learning.line import LineAnswer
from ldp_server.learning.rules import RulesAnswer

__all__ = [
    "CollectionAreas",
    "CollectionAttributes",
    "CollectionAverage",
    "CollectionAverages",
    "CollectionEstimates",
    "CollectionGaps",
    "CollectionHeavyHitters",
    "CollectionPeriods",
    "CollectionQuantiles",
    "CollectionRanges",
    "CollectionRegression",
    "CollectionRules",
]


@dataclass(frozen=True)
class _FieldAnswer(Answer):
    """An answer that is one field of the server's response."""

    FIELD: ClassVar[str]

    @classmethod
    def of(cls, response: pb.NumbersResponse | pb.RelationsResponse) -> Self:
        """Return the answer with its collection, and with the periods that it is about."""
        answer = from_wire(cls, getattr(response, cls.FIELD))
        periods = from_wire(PeriodSpan, response.periods) if response.HasField("periods") else None
        return with_info(replace(answer, periods=periods), CollectionInfo.of(response.collection))


@dataclass(frozen=True)
class CollectionEstimates(Answer, Estimates):
    """Estimates, and the collection that they are about."""

    threshold: float | None = field(default=None, metadata={"json": "never"})
    """What was asked: whether at least so many users hold an item."""
    ROWS: ClassVar[str] = "rows"
    EXTRA: ClassVar[tuple[str, ...]] = ("everything_else",)

    def marks(self) -> Mapping[str, float]:
        return {} if self.threshold is None else {"threshold": self.threshold}

    @classmethod
    def of(cls, response: pb.EstimateResponse) -> CollectionEstimates:
        info = CollectionInfo.of(response.collection)
        domain = table_domain(info.collection.domain, response.fields, response.where)
        return with_info(from_wire(cls, response, domain=domain), info)


@dataclass(frozen=True)
class CollectionHeavyHitters(Answer, HeavyHitters):
    """Heavy hitters, and the collection that they are about."""

    ROWS: ClassVar[str] = "items"
    EXTRA: ClassVar[tuple[str, ...]] = ("none",)

    def marks(self) -> Mapping[str, float]:
        listed = {"each listed from": self.threshold, "all listed from": self.threshold_all}
        return {name: value for name, value in listed.items() if value is not None}

    @property
    def confidence(self) -> float:
        """That of every interval."""
        return CONFIDENCE

    @property
    def coverage(self) -> str:
        """What it is about: the interval of an item, given that the item is listed."""
        return "listed"

    @classmethod
    def of(cls, result: pb.HeavyHittersResult) -> CollectionHeavyHitters:
        return with_info(from_wire(cls, result), CollectionInfo.of(result.collection))


@dataclass(frozen=True)
class CollectionAverage(_FieldAnswer, AverageAnswer):
    """An average, and the collection that it is about."""

    ROWS: ClassVar[str] = "average"
    FIELD: ClassVar[str] = "average"

    @property
    def coverage(self) -> Coverage:
        """There is one interval."""
        return Coverage.EACH


@dataclass(frozen=True)
class CollectionAverages(_FieldAnswer, AveragesAnswer):
    """The average in each cell of a table, and the collection that they are about."""

    ROWS: ClassVar[str] = "averages"
    FIELD: ClassVar[str] = "averages"


@dataclass(frozen=True)
class CollectionAreas(_FieldAnswer, AreasAnswer):
    """The users in areas of a map, and the collection that they are about."""

    ROWS: ClassVar[str] = "areas"
    FIELD: ClassVar[str] = "areas"


@dataclass(frozen=True)
class CollectionQuantiles(_FieldAnswer, QuantilesAnswer):
    """Quantiles, and the collection that they are about."""

    ROWS: ClassVar[str] = "quantiles"
    FIELD: ClassVar[str] = "quantiles"


@dataclass(frozen=True)
class CollectionRanges(_FieldAnswer, RangesAnswer):
    """Ranges, and the collection that they are about."""

    ROWS: ClassVar[str] = "ranges"
    FIELD: ClassVar[str] = "ranges"


@dataclass(frozen=True)
class CollectionAttributes(Answer, AttributesAnswer):
    """Attributes or pairs of them, and the collection that they are about."""

    ROWS: ClassVar[str] = "rows"

    @classmethod
    def of(cls, response: pb.AttributesResponse) -> CollectionAttributes:
        return with_info(from_wire(cls, response), CollectionInfo.of(response.collection))


@dataclass(frozen=True)
class CollectionGaps(_FieldAnswer, GapsAnswer):
    """Shares of an outcome in groups with their gaps, and the collection that they are about."""

    ROWS: ClassVar[str] = "rows"
    FIELD: ClassVar[str] = "gaps"


@dataclass(frozen=True)
class CollectionRules(_FieldAnswer, RulesAnswer):
    """Rules that tell a field from others, and the collection that they are about."""

    ROWS: ClassVar[str] = "rows"
    FIELD: ClassVar[str] = "rules"


@dataclass(frozen=True)
class CollectionRegression(_FieldAnswer, LineAnswer):
    """How a field depends on others, and the collection that it is about."""

    ROWS: ClassVar[str] = "rows"
    FIELD: ClassVar[str] = "line"


@dataclass(frozen=True)
class CollectionPeriods:
    """The periods of a collection that have reports, oldest first."""

    info: CollectionInfo = field(metadata={"json": "never"})
    rows: tuple[PeriodLine, ...]

    @classmethod
    def of(cls, response: pb.ListPeriodsResponse) -> CollectionPeriods:
        rows = tuple(from_wire(PeriodLine, line) for line in response.periods)
        return cls(CollectionInfo.of(response.collection), rows)
