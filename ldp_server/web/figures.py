"""The chart that fits an answer, in two widths: one for screens and paper, one for phones."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from markupsafe import Markup

from ldp_client.protocol.domain import Attributes, Item
from ldp_server.analyst import CollectionSummary
from ldp_server.answers.attributes import AttributesAnswer
from ldp_server.answers.estimates import Coverage, Estimates, Verdict
from ldp_server.answers.fields.areas import AreasAnswer
from ldp_server.answers.fields.averages import AveragesAnswer
from ldp_server.answers.numbers import AverageAnswer, QuantilesAnswer, RangesAnswer
from ldp_server.answers.words import item_text, visible
from ldp_server.fairness.gaps import GapsAnswer
from ldp_server.heavy_hitters.results import HeavyHitters
from ldp_server.learning.line import LineAnswer
from ldp_server.learning.rules import RulesAnswer
from ldp_server.web.charts.areas import area_map
from ldp_server.web.charts.dots import Dot, DotChart, dots
from ldp_server.web.charts.draw import STYLE
from ldp_server.web.charts.heat import heat
from ldp_server.web.charts.histogram import histogram
from ldp_server.web.charts.noise import noise_reach
from ldp_server.web.views import ViewOptions

__all__ = ["NARROW", "WIDE", "Figure", "figure_of", "standalone", "with_quantiles"]

WIDE, NARROW = 860.0, 358.0
_MOST_DOTS = 60

Truth = Mapping[Item, int]


@dataclass(frozen=True)
class Figure:
    """A chart and what its marks mean."""

    wide: Markup
    narrow: Markup
    marks: Sequence[tuple[str, str]]
    """The class of a mark, and its meaning."""


_DOT = ("dot", "estimate, with its interval")
_UNSURE = ("unsure", "cannot tell from nothing: the interval begins at 0")
_NOISE = ("noise", "what noise alone shows of an item that nobody holds")
_TRUTH = ("truth", "the truth, which only a demo knows")


def figure_of(
    answer: Any, summary: CollectionSummary, options: ViewOptions, truth: Truth | None = None
) -> Figure | None:
    """Return the chart of an answer; None where there is nothing to draw."""
    title = visible(summary.info.collection.question)
    if isinstance(answer, Estimates) and len(answer.rows):
        return _both(_estimates(title, answer, summary, options, truth), options, truth)
    if isinstance(answer, HeavyHitters) and answer.items:
        return _both(_hitters(title, answer, truth), options, truth)
    if isinstance(answer, AttributesAnswer) and answer.rows:
        return _attributes(title, answer, summary)
    if isinstance(answer, RangesAnswer) and answer.ranges:
        return _ranges(title, answer)
    return _few(title, answer)


def _areas(title: str, answer: AreasAnswer) -> Figure:
    if answer.map:
        wide, narrow = (area_map(title, (answer.x, answer.y), answer.areas, width) for width in (WIDE, NARROW))
        return Figure(wide, narrow, [("shade", "a darker tile is more users")])
    lines = [
        Dot(
            f"{row.first_x:,} to {row.last_x:,}, {row.first_y:,} to {row.last_y:,}",
            row.estimate,
            row.low,
            row.high,
            _kind(row),
        )
        for row in answer.areas[:_MOST_DOTS]
    ]
    chart = DotChart(title, lines)
    return Figure(dots(chart, WIDE), dots(chart, NARROW), [_DOT])


def _few(title: str, answer: Any) -> Figure | None:
    """The chart of an answer with a few lines that are no users."""
    if isinstance(answer, GapsAnswer):
        return _groups(title, answer)
    if isinstance(answer, RulesAnswer | LineAnswer):
        return _rules(title, answer) if isinstance(answer, RulesAnswer) else _line(title, answer)
    if isinstance(answer, AverageAnswer | AveragesAnswer):
        return _average(title, answer) if isinstance(answer, AverageAnswer) else _averages(title, answer)
    if isinstance(answer, AreasAnswer):
        return _areas(title, answer)
    return None


def _rules(title: str, answer: RulesAnswer) -> Figure:
    """How much better than a constant each rule is: unsure where the interval holds 0."""
    lines = [
        Dot(
            f"{row.form.value}: {visible(row.rule)}",
            row.gain,
            row.gain_low,
            row.gain_high,
            "" if row.verdict is Verdict.YES else "unsure",
        )
        for row in answer.rows
    ]
    chart = DotChart(title, lines, "gain", write=lambda x: f"{x:+.1%}", tick=lambda x: f"{x * 100:+.3g}%", least=0.0)
    marks = [
        ("dot", "how much smaller the error is than that of the best constant"),
        ("unsure", "cannot tell: the interval holds 0"),
    ]
    used = {line.kind or "dot" for line in lines}
    return Figure(dots(chart, WIDE), dots(chart, NARROW), [mark for mark in marks if mark[0] in used])


def _line(title: str, answer: LineAnswer) -> Figure:
    """The coefficients of the fields; the constant is in the table."""
    rows = answer.rows[1:]
    lines = [
        Dot(visible(row.name), row.estimate, row.low, row.high, "unsure" if row.low <= 0 <= row.high else "")
        for row in rows
    ]
    chart = DotChart(title, lines, f"adds to {visible(answer.label)}", write=lambda x: f"{x:+.4g}", least=0.0)
    marks = [("dot", "what one more of a field adds, with its interval")]
    if any(line.kind for line in lines):
        marks.append(("unsure", "cannot tell: the interval holds 0"))
    return Figure(dots(chart, WIDE), dots(chart, NARROW), marks)


def _average(title: str, answer: AverageAnswer) -> Figure:
    row = answer.average
    chart = DotChart(title, [Dot("average", row.estimate, row.low, row.high)], "the numbers' own unit")
    return Figure(dots(chart, WIDE), dots(chart, NARROW), [_DOT])


def _averages(title: str, answer: AveragesAnswer) -> Figure:
    """The cells with the most users, in the order of the table."""
    most = sorted(row.users for row in answer.averages)[-_MOST_DOTS:]
    rows = [row for row in answer.averages if row.users >= most[0]][:_MOST_DOTS]
    lines = [
        Dot(item_text(row.item), row.estimate, row.low, row.high, "unsure" if math.isinf(row.standard_error) else "")
        for row in rows
    ]
    chart = DotChart(title, lines, f"average of {visible(answer.number)}", write=lambda value: f"{value:,.6g}")
    marks = [("dot", "average of a cell, with its interval")]
    if any(line.kind for line in lines):
        marks.append(("unsure", "too few users to tell: the interval is the whole range"))
    return Figure(dots(chart, WIDE), dots(chart, NARROW), marks)


def _both(chart: DotChart, options: ViewOptions, truth: Truth | None) -> Figure:
    marks = [_DOT]
    if any(dot.kind == "unsure" for dot in chart.dots):
        text = "cannot tell: the interval holds the threshold"
        marks.append(_UNSURE if options.threshold is None else ("unsure", text))
    if any(dot.kind == "no" for dot in chart.dots):
        marks.append(("no", "below the threshold"))
    if chart.noise is not None:
        marks.append(_NOISE)
    if truth is not None:
        marks.append(_TRUTH)
    return Figure(dots(chart, WIDE), dots(chart, NARROW), marks)


def _kind(row: Any) -> str:
    verdict = getattr(row, "verdict", None)
    if verdict is not None:
        return {Verdict.YES: "", Verdict.NO: "no", Verdict.CANNOT_TELL: "unsure"}[verdict]
    return "unsure" if row.low <= 0 else ""


def _dot(row: Any, truth: Truth | None) -> Dot:
    held = None if truth is None else float(truth.get(row.item, 0))
    return Dot(item_text(row.item), row.estimate, row.low, row.high, _kind(row), held)


def _estimates(
    title: str, answer: Estimates, summary: CollectionSummary, options: ViewOptions, truth: Truth | None
) -> DotChart:
    rows = [_dot(row, truth) for row in answer.rows[:_MOST_DOTS]]
    collection = summary.info.collection
    if answer.fields:
        return DotChart(title, rows, threshold=options.threshold)
    items = {Coverage.EACH: 1, Coverage.TOGETHER: len(answer.rows), Coverage.SELECTED: collection.domain.counted.size}
    among = items[answer.coverage]
    error = summary.standard_error
    if error and options.periods is not None:
        # The summary is about the reports of all periods. The error grows with the square root of the reports.
        error *= math.sqrt(answer.reports / max(1, summary.reports))
    noise = noise_reach(collection, answer.reports, error, answer.confidence, among)
    return DotChart(
        title,
        rows,
        noise=noise if error and not answer.every_look else None,
        threshold=options.threshold,
    )


def _hitters(title: str, answer: HeavyHitters, truth: Truth | None) -> DotChart:
    rows = [_dot(row, truth) for row in answer.items[:_MOST_DOTS]]
    return DotChart(title, rows, threshold=answer.threshold_all, threshold_text="all are listed from")


def _attributes(title: str, answer: AttributesAnswer, summary: CollectionSummary) -> Figure:
    domain = summary.info.collection.domain
    if len(answer.rows[0].attributes) == 2 and isinstance(domain, Attributes):
        wide, narrow = (heat(title, domain.names, answer.rows, width) for width in (WIDE, NARROW))
        return Figure(wide, narrow, [("shade", "a darker cell is more users who hold both")])
    rows = sorted(answer.rows, key=lambda row: -row.estimate)
    lines = [Dot(" + ".join(map(visible, row.attributes)), row.estimate, row.low, row.high, _kind(row)) for row in rows]
    chart = DotChart(title, lines, bars=True)
    marks = [_DOT, *([_UNSURE] if any(line.kind for line in lines) else [])]
    return Figure(dots(chart, WIDE), dots(chart, NARROW), marks)


def _groups(title: str, answer: GapsAnswer) -> Figure:
    lines = [
        Dot(
            visible(row.group),
            row.estimate,
            row.low,
            row.high,
            "unsure" * math.isinf(row.standard_error),
        )
        for row in answer.rows
    ]
    chart = DotChart(title, lines, "share of the group", write=lambda x: f"{x:.1%}", tick=lambda x: f"{x:.0%}")
    marks = [_DOT]
    if any(line.kind for line in lines):
        marks.append(("unsure", "not seen: the group is below the noise"))
    return Figure(dots(chart, WIDE), dots(chart, NARROW), marks)


def _ranges(title: str, answer: RangesAnswer) -> Figure | None:
    rows = sorted(answer.ranges, key=lambda row: row.first)
    if any(one.last >= after.first for one, after in pairwise(rows)):
        chart = DotChart(
            title, [Dot(f"{row.first:,} to {row.last:,}", row.estimate, row.low, row.high) for row in rows]
        )
        return Figure(dots(chart, WIDE), dots(chart, NARROW), [_DOT])
    return with_quantiles(title, answer, None)


def with_quantiles(title: str, ranges: RangesAnswer, quantiles: QuantilesAnswer | None) -> Figure:
    """Return a histogram with quantiles over it."""
    over = () if quantiles is None else quantiles.quantiles
    wide, narrow = (histogram(title, ranges.ranges, over, width) for width in (WIDE, NARROW))
    marks = [("bar", "users in a range, with the interval")]
    if any(row.low <= 0 for row in ranges.ranges):
        marks.append(_UNSURE)
    if over:
        marks.append(("quantile", "a quantile, with its interval"))
    return Figure(wide, narrow, marks)


def standalone(chart: Markup) -> str:
    """Return a chart as a file of its own, with its colours."""
    start, close, rest = str(chart).partition(">")
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{start}{close}<style>{STYLE}</style>{rest}\n'
