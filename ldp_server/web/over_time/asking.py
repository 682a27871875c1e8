"""The calls of the pages over time.

Items that are picked because they are the most frequent ones of the same reports have been looked at. So their
intervals, and the error rate of the change test, are those of all D items of the domain at once: with a confidence c
and m lines, the server is asked for 1 - (1 - c) m/D where it divides the error among the lines, else for
1 - (1 - c)/D. Whatever was picked, the stated confidence c holds then.
"""

from __future__ import annotations

from dataclasses import dataclass

from ldp_client.errors import InvalidSpec, ServerRefused
from ldp_server.analyst import (
    Analyst,
    CollectionChange,
    CollectionComparison,
    CollectionSummary,
    CollectionTrend,
)
from ldp_server.analyst.over_time import AskedValues, Side
from ldp_server.answers.records import where_of_lines
from ldp_server.web.over_time.choice import MOST_LINES, TOLD, AcrossOptions, attribute_names
from ldp_server.web.periods import NumberSpan

__all__ = ["ComparisonShown", "TrendShown", "ask_comparison", "ask_trend", "confidences", "sides_of"]


@dataclass(frozen=True)
class TrendShown:
    """Values over time, and whether they changed."""

    trend: CollectionTrend
    change: CollectionChange | None
    why_no_change: str
    """Why it is not known whether something changed; empty where that is not asked."""
    among: int
    """Of how many items the shown ones were picked; 0 if they were given."""


@dataclass(frozen=True)
class ComparisonShown:
    """A comparison."""

    comparison: CollectionComparison
    among: int


def confidences(options: AcrossOptions, lines: int, among: int, *, together: bool) -> float:
    """The confidence to ask for, so that the chosen one holds whichever of `among` items was picked."""
    if not among:
        return options.confidence
    return 1 - (1 - options.confidence) * (lines if together else 1) / max(among, lines)


def ask_trend(analyst: Analyst, which: str, options: AcrossOptions, summary: CollectionSummary) -> TrendShown:
    """Ask for a trend, and whether something changed where this is told."""
    values, lines, among = _values(analyst, (which, options.periods), options, summary)
    sure = confidences(options, lines, among, together=options.together)
    trend = analyst.trend(which, periods=options.periods, confidence=sure, together=options.together, **values)
    change, why = None, ""
    if options.kind in TOLD:
        sure = confidences(options, lines, among, together=True)
        try:
            change = analyst.change(which, periods=options.periods, confidence=sure, **values)
        except ServerRefused as error:
            if error.reason != "FAILED_PRECONDITION":
                raise
            why = error.detail or error.reason
    return TrendShown(trend, change, why, among)


def ask_comparison(analyst: Analyst, which: str, options: AcrossOptions, summary: CollectionSummary) -> ComparisonShown:
    """Ask for the differences between two sides. Items are picked from the second one."""
    first, second = sides_of(which, options)
    values, lines, among = _values(analyst, (options.other or which, options.second), options, summary)
    sure = confidences(options, lines, among, together=options.together)
    return ComparisonShown(analyst.compare(first, second, confidence=sure, together=options.together, **values), among)


def sides_of(which: str, options: AcrossOptions) -> tuple[Side, Side]:
    """The two sides as the call takes them."""
    other = options.other or which
    first: Side = which if options.first is None else (which, options.first)
    return first, other if options.second is None else (other, options.second)


def _of_records(options: AcrossOptions) -> AskedValues:
    """What is asked of records, or the average of all; how many lines it has is the server's matter."""
    if options.kind == "areas":
        return {"areas": options.areas}
    if options.kind == "averages":
        return {"averages": True}
    if options.kind == "average":
        return {"average": True}
    found: AskedValues = {"fields": options.fields} if options.fields else {}
    if options.where:
        found["where"] = where_of_lines(options.where, "the slice")
    return found


def _values(
    analyst: Analyst, where: tuple[str, NumberSpan | None], options: AcrossOptions, summary: CollectionSummary
) -> tuple[AskedValues, int, int]:
    """What is asked of each period or side, how many lines it has, and of how many items they were picked."""
    if options.kind in {"fields", "averages", "areas", "average"}:
        return _of_records(options), 0, 0
    if options.kind == "quantiles":
        return {"quantiles": options.shares}, len(options.shares), 0
    if options.kind == "ranges":
        return {"ranges": options.between}, len(options.between), 0
    if options.kind == "attributes":
        names = options.items or attribute_names(summary.info.collection)
        if len(names) > MOST_LINES:
            raise InvalidSpec(f"name the attributes, at most {MOST_LINES}")
        return {"attributes": names}, len(names), 0
    if options.items:
        return {"items": options.items}, len(options.items), 0
    which, periods = where
    rows = analyst.estimate(which, top=options.count, periods=periods).rows
    found = [row.item for row in rows]
    return {"items": found}, len(found), summary.info.collection.domain.counted.size
