"""Trends and comparisons as tables of a page, and as rows of files."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from ldp_client.collection import Schedule
from ldp_server.analyst import CollectionComparison, CollectionSummary, CollectionTrend
from ldp_server.answers.estimates import Coverage
from ldp_server.answers.over_time.compare import Difference
from ldp_server.answers.words import visible, whole
from ldp_server.tables.metadata import metadata_of
from ldp_server.tables.table import AnswerTable, table_of
from ldp_server.web.periods import dates_of
from ldp_server.web.tables import TableView

__all__ = [
    "ComparisonFile",
    "TrendFile",
    "TrendRow",
    "comparison_file",
    "comparison_table",
    "signed",
    "trend_file",
    "trend_table",
    "value_text",
]

_MOST_ROWS = 400


@dataclass(frozen=True)
class TrendRow:
    """The value of one line in one period. `begins` and `ends` are seconds since 1970."""

    label: str
    period: int
    begins: int
    ends: int
    reports: int
    estimate: float
    standard_error: float
    low: float
    high: float


@dataclass(frozen=True)
class TrendFile:
    """A trend with one row for each line and period."""

    reports: int
    confidence: float
    coverage: Coverage
    unit: str
    rows: tuple[TrendRow, ...]


@dataclass(frozen=True)
class ComparisonFile:
    """A comparison, as a file has it. `reports` are those of both sides."""

    reports: int
    first_reports: int
    second_reports: int
    confidence: float
    coverage: Coverage
    unit: str
    rows: tuple[Difference, ...]


def value_text(value: float, *, share: bool) -> str:
    """Write a share as a percentage, any other value as a number."""
    if not math.isfinite(value):
        return "unknown"
    return f"{value:.2%}" if share else f"{value:,.6g}"


def trend_table(
    trend: CollectionTrend, schedule: Schedule, confidence: float, parts: Mapping[int, str] = MappingProxyType({})
) -> tuple[TableView, int]:
    """Return the table of a trend, and how many of the oldest periods of each line it leaves out.

    `parts` says of some periods why fewer people could report in them.
    """
    share = trend.unit == "users"
    kept = max(1, _MOST_ROWS // max(1, len(trend.lines)))
    rows = []
    for line in trend.lines:
        for point in line.points[-kept:]:
            scale = 1 / point.reports if share else 1.0
            value, low, high = (value_text(one * scale, share=share) for one in (point.estimate, point.low, point.high))
            part = parts.get(point.period, "")
            dates = dates_of(schedule, (point.period, point.period)) + (f" ({part})" if part else "")
            rows.append([visible(line.label), dates, whole(point.reports), value, f"{low} to {high}"])
    heads = ("what", "period (UTC)", "reports", "share" if share else "value", f"{confidence * 100:.6g}% interval")
    longest = max((len(line.points) for line in trend.lines), default=0)
    return TableView(heads, rows, frozenset({0, 1})), max(0, longest - kept)


def comparison_table(comparison: CollectionComparison, confidence: float) -> TableView:
    """Return the table of a comparison."""
    share = comparison.unit == "share"
    rows = []
    for row in comparison.rows:
        cells = [value_text(one, share=share) for one in (row.first, row.second)]
        difference, low, high = (signed(one, share=share) for one in (row.difference, row.low, row.high))
        rows.append(
            [visible(row.label), *cells, difference, f"{low.removesuffix(' pp')} to {high}", row.direction.value]
        )
    heads = ("what", "first", "second", "difference", f"{confidence * 100:.6g}% interval", "says")
    return TableView(heads, rows, frozenset({0, 5}))


def signed(value: float, *, share: bool) -> str:
    """Write a difference, with its sign. That of two shares is in percentage points."""
    if not math.isfinite(value):
        return "unknown"
    return f"{value * 100:+.2f} pp" if share else f"{value:+,.6g}"


def trend_file(trend: CollectionTrend, summary: CollectionSummary) -> AnswerTable:
    """Return a trend as columns, for CSV and Parquet."""
    rows = tuple(
        TrendRow(
            line.label,
            *(point.period, point.begins, point.ends, point.reports),
            *(point.estimate, point.standard_error, point.low, point.high),
        )
        for line in trend.lines
        for point in line.points
    )
    reports = sum(point.reports for line in trend.lines[:1] for point in line.points)
    flat = TrendFile(reports, trend.confidence, trend.coverage, trend.unit, rows)
    return _file(flat, summary)


def comparison_file(comparison: CollectionComparison, summary: CollectionSummary) -> AnswerTable:
    """Return a comparison as columns, for CSV and Parquet."""
    one = comparison
    reports = (one.first_reports + one.second_reports, one.first_reports, one.second_reports)
    return _file(ComparisonFile(*reports, one.confidence, one.coverage, one.unit, one.rows), summary)


def _file(flat: TrendFile | ComparisonFile, summary: CollectionSummary) -> AnswerTable:
    collection = summary.info.collection
    about = metadata_of(flat, collection, summary.statement, ("rows",))
    return table_of(flat, "rows", (), about, collection.domain)
