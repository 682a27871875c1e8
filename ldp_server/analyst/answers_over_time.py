"""Answers about several periods or two collections, as the analyst gets them.

They become tables, files, pages and plots as every `Answer` does. A row of a table is a point of a trend's line, one
look at a line, or a difference. `label` is the item, attribute or range as text.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

from ldp_client.protocol.v1 import analyst_pb2 as pb
from ldp_server.analyst.answer import Answer
from ldp_server.analyst.collections import CollectionInfo
from ldp_server.answers.over_time.change import ChangeAnswer, Look
from ldp_server.answers.over_time.compare import Comparison
from ldp_server.answers.over_time.periods import PeriodSpan
from ldp_server.answers.over_time.trend import TrendAnswer, TrendPoint
from ldp_server.answers.wire import from_wire
from ldp_server.tables.metadata import AnswerMetadata, metadata_of
from ldp_server.tables.table import AnswerTable, table_of_lines

__all__ = ["CollectionChange", "CollectionComparison", "CollectionTrend"]


@dataclass(frozen=True)
class CollectionTrend(Answer, TrendAnswer):
    """Values over time, and the collection that they are about."""

    ROWS: ClassVar[str] = "lines"

    @property
    def reports(self) -> int:
        """Those of all its periods together."""
        return sum(point.reports for line in self.lines[:1] for point in line.points)

    @property
    def table(self) -> AnswerTable:
        """A row for each line and period."""
        rows = [(line.label, point) for line in self.lines for point in line.points]
        return table_of_lines(TrendPoint, rows, self.metadata)

    @classmethod
    def of(cls, response: pb.TrendResponse) -> CollectionTrend:
        return replace(from_wire(cls, response), info=CollectionInfo.of(response.collection))


@dataclass(frozen=True)
class CollectionChange(Answer, ChangeAnswer):
    """Whether something changed, and the collection that it is about."""

    ROWS: ClassVar[str] = "lines"

    @property
    def reports(self) -> int:
        """Those of all its periods together."""
        return sum(line.looks[-1].reports + line.looks[-1].reports_before for line in self.lines[:1])

    @property
    def coverage(self) -> str:
        """What the confidence is about: all looks at once."""
        return "looks"

    @property
    def table(self) -> AnswerTable:
        """A row for each line and look."""
        return table_of_lines(Look, [(line.label, look) for line in self.lines for look in line.looks], self.metadata)

    @classmethod
    def of(cls, response: pb.ChangeResponse) -> CollectionChange:
        return replace(from_wire(cls, response), info=CollectionInfo.of(response.collection))


@dataclass(frozen=True)
class CollectionComparison(Answer, Comparison):
    """Differences, and the two collections that they are about; they may be the same one."""

    first_periods: PeriodSpan | None = field(default=None, metadata={"json": "unless None"})
    second_periods: PeriodSpan | None = field(default=None, metadata={"json": "unless None"})
    first: CollectionInfo | None = field(default=None, metadata={"json": "never"})
    """The same as `info`."""
    second: CollectionInfo | None = field(default=None, metadata={"json": "never"})
    ROWS: ClassVar[str] = "rows"

    @property
    def reports(self) -> int:
        """Those of both sides together."""
        return self.first_reports + self.second_reports

    @property
    def statement(self) -> tuple[str, ...]:
        """The privacy statement of the first collection, and below it that of the second, if this is another one."""
        statements = [one.statement for one in (self.first, self.second) if one is not None]
        return tuple(line for lines in dict.fromkeys(statements) for line in lines)

    @property
    def metadata(self) -> AnswerMetadata:
        """The facts of the first collection; under `more`, the ids of both, and the facts of the second one."""
        found = metadata_of(self, self.about.collection, self.statement, (self.ROWS,))
        return replace(found, more={**found.more, **self._both(found)})

    def _both(self, found: AnswerMetadata) -> dict[str, Any]:
        second = self.about if self.second is None else self.second
        ids = {"first_collection_id": found.collection_id, "second_collection_id": second.collection.id.hex()}
        if second.collection.id == self.about.collection.id:
            return ids
        facts = metadata_of(self, second.collection, (), (self.ROWS,)).as_dict()
        return {**ids, "second_collection": {name: facts[name] for name in _OF_A_COLLECTION}}

    @classmethod
    def of(cls, response: pb.CompareResponse) -> CollectionComparison:
        first, second = CollectionInfo.of(response.first), CollectionInfo.of(response.second)
        response.ClearField("first")
        response.ClearField("second")
        return replace(from_wire(cls, response), info=first, first=first, second=second)


_OF_A_COLLECTION = (
    "question",
    "collection_id",
    "mechanism",
    "parameters",
    "domain",
    "epsilon",
    "reports_per_device",
    "period_seconds",
)
"""The facts that are about a collection, and not about an answer."""
