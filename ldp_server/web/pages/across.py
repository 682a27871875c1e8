"""The pages of one collection over time: values of each period, whether they changed, and comparisons.

Items and attributes come by POST, as on the other pages, so that no address and no log has them.
"""

from __future__ import annotations

import io
import time
from dataclasses import dataclass, replace
from typing import Any

from starlette.exceptions import HTTPException
from starlette.responses import Response

from ldp_client.errors import InvalidSpec, ServerRefused
from ldp_server.analyst import CollectionSummary
from ldp_server.answers.over_time.periods import PeriodLine
from ldp_server.answers.to_json import dump, to_json
from ldp_server.tables.arrow import write_parquet
from ldp_server.tables.csv_text import csv_text
from ldp_server.web import figures
from ldp_server.web.gate import Visit
from ldp_server.web.over_time import (
    ACROSS,
    BY_POST,
    TOLD,
    AcrossOptions,
    ComparisonShown,
    TrendShown,
    ask_comparison,
    ask_trend,
    drawing,
    kinds_of,
    read_across,
    tables,
    words,
)
from ldp_server.web.pages.collections import short
from ldp_server.web.pages.downloads import FORMS, as_file
from ldp_server.web.pages.question import items_of, known, openly
from ldp_server.web.pages.tabs import period_lines, tabs
from ldp_server.web.periods import addressed, choices, in_part, read_side, shell_span
from ldp_server.web.views import CONFIDENCES, areas_text

__all__ = ["AcrossAsked", "across_file", "compare", "trend"]


@dataclass(frozen=True)
class AcrossAsked:
    """A collection, what a reader chose, and which periods there are."""

    summary: CollectionSummary
    view: str
    options: AcrossOptions
    lines: tuple[PeriodLine, ...]
    volunteers: bool = False
    """Whether a curator has released something about it."""


async def trend(visit: Visit) -> Response:
    """Values over time."""
    return await _across(visit, "trend")


async def compare(visit: Visit) -> Response:
    """Two periods, or two collections."""
    return await _across(visit, "compare")


async def _across(visit: Visit, view: str) -> Response:
    summary = await known(visit)
    if summary.info.state == "deleted":
        return _page(visit, AcrossAsked(summary, view, AcrossOptions(""), ()))
    lines = await period_lines(visit, summary)
    first, curated = next(iter(kinds_of(summary, view)), ""), await visit.site.has_curated(summary.info.id)
    asked = AcrossAsked(summary, view, AcrossOptions(first), lines, curated)
    problem, status, shown = "", 200, None
    try:
        asked = replace(asked, options=await _options(visit, asked))
        if _ready(asked):
            shown = await _shown(visit, asked)
    except InvalidSpec as error:
        problem, status = str(error), 400
    except ServerRefused as error:
        if error.reason not in {"FAILED_PRECONDITION", "INVALID_ARGUMENT", "NOT_FOUND"}:
            raise
        problem, status = error.detail or error.reason, 409
    return _page(visit, asked, shown, problem=problem, status=status)


async def _options(visit: Visit, asked: AcrossAsked) -> AcrossOptions:
    """What a reader chose. A comparison without a choice is that of the last two periods that have reports."""
    given = {**openly(visit.query), **visit.form}
    if not kinds_of(asked.summary, asked.view):
        raise InvalidSpec("this collection has no values of this kind: its other views say what it answers")
    options = read_across(given, items_of(visit.form), asked.summary, asked.view)
    if asked.view == "trend":
        if asked.summary.info.collection.schedule is None:
            raise InvalidSpec("this question has no schedule, so its reports have no periods: compare two collections")
        return options
    other = asked.summary
    if options.other:
        other = await visit.site.call(visit.analyst.show, options.other)
        options = replace(options, other=short(other.info))
    options = replace(options, second=read_side(given.get("to", ""), other.info.collection))
    kept = [line.period for line in asked.lines if line.state != "dropped"]
    if not options.other and options.first is None and options.second is None and len(kept) > 1:
        return replace(options, first=(kept[-2], kept[-2]), second=(kept[-1], kept[-1]))
    return options


def _ready(asked: AcrossAsked) -> bool:
    """Whether enough was chosen for an answer."""
    options = asked.options
    named = options.kind != "items" or bool(options.items) or asked.summary.lists_domain
    if asked.view == "trend":
        return named and bool(asked.lines)
    return named and (bool(options.other) or options.first is not None or options.second is not None)


async def _shown(visit: Visit, asked: AcrossAsked) -> TrendShown | ComparisonShown:
    which = asked.summary.info.id.hex()
    key, rest = (which, asked.view, asked.options), (visit.analyst, which, asked.options, asked.summary)
    if asked.view == "trend":
        return await visit.site.ask_long(key, ask_trend, *rest)
    return await visit.site.ask_long(key, ask_comparison, *rest)


def _page(
    visit: Visit,
    asked: AcrossAsked,
    shown: TrendShown | ComparisonShown | None = None,
    *,
    status: int = 200,
    problem: str = "",
) -> Response:
    summary, options = asked.summary, asked.options
    which = short(summary.info)
    fields = _fields(options)
    values = {
        "summary": summary, "info": summary.info, "asked": summary.info.collection, "which": which,
        "views": ACROSS, "all_views": ACROSS, "name": asked.view,
        "tabs": tabs(summary, asked.view, options.periods, volunteers=asked.volunteers),
        "by_post": options.kind in BY_POST, "told": options.kind in TOLD,
        "options": options, "confidences": sorted({*CONFIDENCES, options.confidence}), "fields": fields,
        "kinds": kinds_of(summary, asked.view) if summary.info.state != "deleted" else {},
        "period_choices": _choices(asked), "period_fields": addressed(options.periods),
        "side_fields": {"from": _side(options.first), "to": _side(options.second)},
        "scheduled": summary.info.collection.schedule is not None, "there": bool(asked.lines),
        "intake": visit.site.intake.note(summary.info.id, summary.reports),
        "problem": problem, "shown": shown, **_answer(asked, shown, which),
    }  # fmt: skip
    return visit.page("across", "collections", status, **values)


def _choices(asked: AcrossAsked) -> Any:
    options = asked.options
    spans = [(end, end) for end in options.periods or ()]
    spans += [side for side in (options.first, options.second) if side is not None]
    return choices(asked.summary.info.collection, asked.lines, spans)


def _side(side: tuple[int, int] | None) -> str:
    return "" if side is None else shell_span(side)


def _fields(options: AcrossOptions) -> dict[str, str]:
    """What was chosen, but for items, as the fields of a form."""
    usual = AcrossOptions(options.kind)
    found = {"kind": options.kind, **addressed(options.periods)}
    found |= {"from": _side(options.first), "to": _side(options.second), "other": options.other}
    found |= {"confidence": "" if options.confidence == usual.confidence else repr(options.confidence)}
    found |= {"together": "1" if options.together else ""}
    if options.kind == "items":
        found["count"] = str(options.count)
    if options.kind == "fields":
        found["fields"] = ",".join(options.fields)
    if options.kind == "areas":
        found["areas"] = areas_text(options.areas)
    if options.kind == "ranges":
        found["between"] = " ".join(f"{first}:{last}" for first, last in options.between)
    if options.kind == "quantiles":
        found["shares"] = " ".join(repr(share) for share in options.shares)
    return {name: value for name, value in found.items() if value}


def _answer(asked: AcrossAsked, shown: TrendShown | ComparisonShown | None, which: str) -> dict[str, Any]:
    """What is shown of an answer."""
    options, schedule = asked.options, asked.summary.info.collection.schedule
    if isinstance(shown, TrendShown) and schedule is not None:
        parts = _parts(asked.summary, shown)
        table, left_out = tables.trend_table(shown.trend, schedule, options.confidence, parts)
        found = {
            "figure": drawing.trend_figure(shown.trend, schedule, parts), "table": table, "left_out": left_out,
            "changes": words.change_said(shown, schedule), "about": words.trend_about(shown, options.confidence),
        }  # fmt: skip
    elif isinstance(shown, ComparisonShown):
        found = {
            "figure": drawing.comparison_figure(shown.comparison), "left_out": 0, "changes": [],
            "table": tables.comparison_table(shown.comparison, options.confidence),
            "about": words.comparison_about(shown, options.confidence),
        }  # fmt: skip
    else:
        return {"figure": None, "table": None, "left_out": 0, "changes": [], "about": "", "same": None, "warnings": []}
    return {**found, "same": words.elsewhere(which, options, shown), "warnings": words.warnings_of(shown)}


def _parts(summary: CollectionSummary, shown: TrendShown) -> dict[int, str]:
    """The periods in which fewer people could report, and why."""
    now, numbers = time.time(), {point.period for line in shown.trend.lines for point in line.points}
    said = {number: in_part(summary.info.collection, number, now) for number in numbers}
    return {number: text for number, text in said.items() if text}


async def across_file(visit: Visit) -> Response:
    """A trend, what the change test says, or a comparison, as a file."""
    view, form = visit.request.path_params["view"], visit.request.path_params["form"]
    name = "trend" if view == "change" else view
    if name not in ACROSS or form not in FORMS or (view == "change" and form != "json"):
        raise HTTPException(404)
    summary = await known(visit)
    if summary.info.state == "deleted":
        raise HTTPException(410, "This collection was deleted.")
    asked = AcrossAsked(summary, name, AcrossOptions(""), await period_lines(visit, summary))
    asked = replace(asked, options=await _options(visit, asked))
    if not _ready(asked):
        raise InvalidSpec("choose what to ask first: the page says what is missing")
    shown = await _shown(visit, asked)
    data = await visit.site.call(_written, view, form, shown, summary)
    return as_file(data, form, f"{short(summary.info)}-{view}.{form}")


def _written(view: str, form: str, shown: TrendShown | ComparisonShown, summary: CollectionSummary) -> bytes:
    answer = shown.trend if isinstance(shown, TrendShown) else shown.comparison
    if view == "change" and isinstance(shown, TrendShown):
        if shown.change is None:
            raise InvalidSpec(shown.why_no_change or "whether something changed is told of items or attributes")
        return (dump(to_json(shown.change)) + "\n").encode()
    if form == "json":
        return (dump(to_json(answer)) + "\n").encode()
    if form == "svg":
        return _drawn(shown, summary)
    if isinstance(shown, TrendShown):
        table = tables.trend_file(shown.trend, summary)
    else:
        table = tables.comparison_file(shown.comparison, summary)
    if form == "csv":
        return csv_text(table).encode()
    out = io.BytesIO()
    write_parquet(table, out)
    return out.getvalue()


def _drawn(shown: TrendShown | ComparisonShown, summary: CollectionSummary) -> bytes:
    schedule = summary.info.collection.schedule
    if isinstance(shown, ComparisonShown):
        figure = drawing.comparison_figure(shown.comparison)
    else:
        figure = None if schedule is None else drawing.trend_figure(shown.trend, schedule, _parts(summary, shown))
    if figure is None:
        raise InvalidSpec("there is no chart of this answer: take the table")
    return figures.standalone(figure.wide).encode()
