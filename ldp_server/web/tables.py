"""Answers as tables of a page: what stands in the columns, and which rows of a large domain are shown."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ldp_server.answers.attributes import AttributesAnswer
from ldp_server.answers.estimates import Coverage, Estimates
from ldp_server.answers.fields.areas import AreasAnswer
from ldp_server.answers.fields.averages import AveragesAnswer
from ldp_server.answers.numbers import AverageAnswer, QuantilesAnswer, RangesAnswer
from ldp_server.answers.words import item_text, signed, visible, whole
from ldp_server.fairness.gaps import GapsAnswer, GroupShare
from ldp_server.heavy_hitters.results import HeavyHitters
from ldp_server.learning.line import LineAnswer
from ldp_server.learning.rules import RulesAnswer

__all__ = ["COVERAGE", "PAGE_ROWS", "Part", "TableView", "gaps_of", "part_of", "table_of"]

PAGE_ROWS = 100

COVERAGE = {
    Coverage.EACH: "Each interval, taken alone, holds the truth with this confidence.",
    Coverage.TOGETHER: "All intervals hold the truth at once, with this confidence, however the rows are sorted.",
    Coverage.SELECTED: "The intervals allow for having picked the largest of the whole domain: all hold at once.",
}


@dataclass(frozen=True)
class TableView:
    """Heads and cells; the columns of `words` are text, all others are numbers."""

    heads: Sequence[str]
    rows: Sequence[Sequence[str]]
    words: frozenset[int] = frozenset({0})
    rest: Sequence[str] | None = None
    """The line of everything else."""


def _number(value: float) -> str:
    return "unknown" if math.isinf(value) or math.isnan(value) else whole(value)


def _ends(row: Any) -> str:
    return f"{whole(row.low)} to {whole(row.high)}"


def _users(row: Any) -> list[str]:
    return [whole(row.estimate), _number(row.standard_error), _ends(row)]


def _interval(confidence: float) -> str:
    return f"{confidence * 100:.6g}% interval"


def table_of(answer: Any, truth: Mapping[Any, int] | None = None) -> TableView:
    """Return the table of any answer; `truth` is what a demo knows, and gets a column."""
    if isinstance(answer, Estimates):
        return _with_truth(_estimates(answer), [row.item for row in answer.rows], truth)
    if isinstance(answer, HeavyHitters):
        return _with_truth(_hitters(answer), [row.item for row in answer.items], truth)
    if isinstance(answer, RulesAnswer | LineAnswer):
        return _rules(answer) if isinstance(answer, RulesAnswer) else _line(answer)
    if isinstance(answer, AttributesAnswer):
        rows = [[" + ".join(map(visible, row.attributes)), *_users(row)] for row in answer.rows]
        return TableView(("who hold", "users", "standard error", _interval(answer.confidence)), rows)
    if isinstance(answer, RangesAnswer):
        rows = [[f"{row.first:,}", f"{row.last:,}", *_users(row)] for row in answer.ranges]
        return TableView(("from", "to", "users", "standard error", _interval(answer.confidence)), rows, frozenset())
    return _few(answer)


def _few(answer: Any) -> TableView:
    """The table of an answer whose numbers are no users."""
    if isinstance(answer, QuantilesAnswer):
        rows = [
            [f"{row.share * 100:.6g}%", f"{row.estimate:,}", f"{row.low:,} to {row.high:,}"] for row in answer.quantiles
        ]
        return TableView(("share", "number", _interval(answer.confidence)), rows, frozenset())
    if isinstance(answer, AverageAnswer | AveragesAnswer):
        return _average(answer) if isinstance(answer, AverageAnswer) else _averages(answer)
    if isinstance(answer, GapsAnswer):
        heads = (
            visible(answer.group),
            "share",
            "standard error",
            _interval(answer.confidence),
            "users",
            "standard error",
        )
        return TableView(heads, [_group(row) for row in answer.rows])
    if isinstance(answer, AreasAnswer):
        return _areas(answer)
    raise TypeError(f"no table for {type(answer).__name__}")


def _average(answer: AverageAnswer) -> TableView:
    row = answer.average
    error = "unknown" if math.isinf(row.standard_error) else f"{row.standard_error:,.4g}"
    cells = [f"{row.estimate:,.6g}", error, f"{row.low:,.6g} to {row.high:,.6g}", whole(row.holders)]
    return TableView(("average", "standard error", _interval(answer.confidence), "who have one"), [cells], frozenset())


def _averages(answer: AveragesAnswer) -> TableView:
    interval = _interval(answer.confidence)
    rows = [
        [
            item_text(row.item),
            "too few to tell" if math.isinf(row.standard_error) else f"{row.estimate:,.6g}",
            "unknown" if math.isinf(row.standard_error) else f"{row.standard_error:,.4g}",
            f"{row.low:,.6g} to {row.high:,.6g}",
            whole(row.users),
            f"{whole(row.users_low)} to {whole(row.users_high)}",
        ]
        for row in answer.averages
    ]
    heads = ("cell", f"average of {visible(answer.number)}", "standard error", interval, "who have one", interval)
    return TableView(heads, rows)


def _areas(answer: AreasAnswer) -> TableView:
    rows = [
        [f"{row.first_x:,} to {row.last_x:,}", f"{row.first_y:,} to {row.last_y:,}", *_users(row)]
        for row in answer.areas
    ]
    heads = (visible(answer.x), visible(answer.y), "users", "± noise", _interval(answer.confidence))
    return TableView(heads, rows, frozenset())


def _rules(answer: RulesAnswer) -> TableView:
    rows = [
        [
            row.form.value,
            visible(row.rule),
            "not seen" if math.isinf(row.standard_error) else f"{row.estimate:.1%}",
            f"{row.low:.1%} to {row.high:.1%}",
            signed(row.gain),
            f"{signed(row.gain_low)} to {signed(row.gain_high)}",
            row.verdict.value,
        ]
        for row in answer.rows
    ]
    interval = _interval(answer.confidence)
    heads = ("kind", "rule", "error", interval, "gain over a constant", interval, "better?")
    return TableView(heads, rows, frozenset({0, 1, 6}))


def _line(answer: LineAnswer) -> TableView:
    rows = [
        [visible(row.name), f"{row.estimate:.4g}", f"{row.standard_error:.2g}", f"{row.low:.4g} to {row.high:.4g}"]
        for row in answer.rows
    ]
    return TableView(
        ("field", f"adds to {visible(answer.label)}", "standard error", _interval(answer.confidence)), rows
    )


def _group(row: GroupShare) -> list[str]:
    unseen = math.isinf(row.standard_error)
    share, error = ("not seen", "unknown") if unseen else (f"{row.estimate:.1%}", f"{row.standard_error:.1%}")
    users = whole(row.users), whole(row.users_error)
    return [visible(row.group), share, error, f"{row.low:.1%} to {row.high:.1%}", *users]


def gaps_of(answer: GapsAnswer) -> TableView:
    """Return the table of the gaps between groups."""
    rows = [
        [
            f"{visible(one.first)} minus {visible(one.second)}",
            signed(one.estimate),
            f"{signed(one.low)} to {signed(one.high)}",
            one.verdict.value,
        ]
        for one in answer.gaps
    ]
    heads = ("groups", "difference", _interval(answer.confidence), f"within {answer.tolerance:g}?")
    return TableView(heads, rows, frozenset({0, 3}))


def _with_truth(table: TableView, items: Sequence[Any], truth: Mapping[Any, int] | None) -> TableView:
    if truth is None:
        return table
    held = [whole(truth.get(item, 0)) for item in items]
    held += [""] * (len(table.rows) - len(held))
    rows = [[*row, cell] for row, cell in zip(table.rows, held, strict=True)]
    rest = None if table.rest is None else [*table.rest, ""]
    return TableView([*table.heads, "truth"], rows, table.words, rest)


def _estimates(answer: Estimates) -> TableView:
    heads = ["item", "users", "standard error", _interval(answer.confidence)]
    judged = "verdict" in answer.rows.columns
    rows = [
        [item_text(row.item), *_users(row), *([row.verdict.value] if row.verdict is not None else [])]
        for row in answer.rows
    ]
    rest = answer.everything_else
    foot = None if rest is None else ["everything else", *_users(rest), *([""] if judged else [])]
    words = frozenset({0, 4}) if judged else frozenset({0})
    return TableView([*heads, *(["frequent?"] if judged else [])], rows, words, foot)


def _hitters(answer: HeavyHitters) -> TableView:
    heads = ["item", "users", "standard error", "95% interval", "right for every item at once", "score"]
    named = answer.dictionary is not None
    listed = [*answer.items, *([] if answer.none is None else [answer.none])]
    rows = [
        [
            item_text(row.item),
            *_users(row),
            f"{whole(row.surest_low)} to {whole(row.surest_high)}",
            f"{row.score:.1f}",
            *([f"{row.bar:.1f}", "dictionary" if row.candidate else "domain"] if named else []),
        ]
        for row in listed
    ]
    return TableView(
        [*heads, *(["listed from", "tested in"] if named else [])], rows, frozenset({0, 7} if named else {0})
    )


@dataclass(frozen=True)
class Part:
    """The rows of a large answer that one page shows."""

    answer: Estimates
    found: int
    number: int
    pages: int
    sort: str
    search: str


_SORTS: Mapping[str, tuple[str, bool]] = {
    "users": ("estimate", True),
    "fewest": ("estimate", False),
    "lower": ("low", True),
    "upper": ("high", True),
}


def part_of(answer: Estimates, sort: str = "users", search: str = "", number: str = "1") -> Part:
    """Search, sort and cut. `sort` "item" is the order of the domain; a search finds parts of an item's text."""
    places = np.arange(len(answer.rows))
    if search:
        wanted = search.casefold()
        items = answer.rows.columns["item"]
        hits = [place for place, item in enumerate(items) if wanted in item_text(item).casefold()]
        places = np.asarray(hits, dtype=np.intp)
    sort = sort if sort in _SORTS or sort == "item" else "users"
    if sort != "item":
        column, falling = _SORTS[sort]
        keys = np.asarray(answer.rows.columns[column], dtype=np.float64)[places]
        places = places[np.argsort(-keys if falling else keys, kind="stable")]
    pages = max(1, -(-len(places) // PAGE_ROWS))
    wanted_page = int(number) if number.isdigit() and len(number) < 9 else 1
    page = min(max(1, wanted_page), pages)
    shown = places[(page - 1) * PAGE_ROWS : page * PAGE_ROWS].tolist()
    columns = {name: [column[place] for place in shown] for name, column in answer.rows.columns.items()}
    rows = type(answer.rows)(answer.rows.kind, columns)
    cut = Estimates(answer.reports, answer.confidence, answer.coverage, rows, None)
    return Part(cut, len(places), page, pages, sort, search)
