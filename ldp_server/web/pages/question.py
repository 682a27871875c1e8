"""The pages of one collection."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any
from urllib.parse import urlencode

from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse, RedirectResponse, Response

from ldp_client.errors import InvalidSpec, LdpError, ServerRefused
from ldp_client.protocol.domain import Record
from ldp_server.analyst import CollectionSummary
from ldp_server.answers.estimates import Coverage
from ldp_server.answers.numbers import QuantilesAnswer, RangesAnswer
from ldp_server.answers.words import visible
from ldp_server.fairness.gaps import GapsAnswer
from ldp_server.heavy_hitters.dictionary import MOST_ITEMS, words_of
from ldp_server.web import figures, tables
from ldp_server.web.gate import Visit
from ldp_server.web.guard import FORM_BYTES
from ldp_server.web.pages.collections import short
from ldp_server.web.pages.tabs import period_lines, tabs
from ldp_server.web.periods import addressed, choices, read_periods
from ldp_server.web.views import (
    CONFIDENCES,
    VIEWS,
    ViewOptions,
    areas_text,
    fitting,
    offered,
    read_options,
    takes_dictionary,
)

__all__ = [
    "asked",
    "cancel_search",
    "chosen_options",
    "items_of",
    "known",
    "openly",
    "overview",
    "search_progress",
    "start_search",
    "view",
]

BY_POST = frozenset({"given", "fields", "rules"})
"""Views that are asked with items or values of fields: never part of an address."""

_UNFIT = {
    "fields": "its items are no records",
    "rules": "no device is asked about a feature and a label of yes and no together",
    "line": "no device is asked about two fields of numbers together",
    "gaps": "no device is asked about groups and an outcome of yes and no together",
}
_CHOSEN = (
    "confidence",
    "threshold",
    "count",
    "bins",
    "shares",
    "between",
    "areas",
    "fields",
    "label",
    "tolerance",
    "every_look",
    "beta",
)
"""The parts of an address that say what to show. None of them tells an item."""


async def known(visit: Visit) -> CollectionSummary:
    """The collection that the address names."""
    return await visit.site.call(visit.analyst.show, visit.request.path_params["which"])


def items_of(form: Mapping[str, str]) -> tuple[str, ...]:
    """The items of a form, one a line."""
    text = form.get("items", "").replace("\r\n", "\n").removesuffix("\n")
    return tuple(text.split("\n")) if text else ()


def openly(query: Mapping[str, str]) -> dict[str, str]:
    """Return what an address may say: values of a slice come by POST alone."""
    return {name: value for name, value in query.items() if name != "where"}


def chosen_options(
    summary: CollectionSummary, given: Mapping[str, str], items: tuple[str, ...] = (), view: str = ""
) -> ViewOptions:
    """What a reader chose, as this collection can be asked."""
    collection = summary.info.collection
    return replace(fitting(read_options(given, items), collection, view), periods=read_periods(given, collection))


async def overview(visit: Visit) -> Response:
    """The first view of a collection, or why there is none."""
    summary = await known(visit)
    views = [] if summary.info.state == "deleted" else offered(summary)
    if not views:
        return await _page(visit, summary, "", read_options({}), problem="")
    return await _view(visit, summary, views[0])


async def view(visit: Visit) -> Response:
    """One view of a collection."""
    name = visit.request.path_params["view"]
    if name not in VIEWS:
        raise HTTPException(404)
    return await _view(visit, await known(visit), name)


async def asked(visit: Visit) -> Response:
    """A view with a search, or about a list of items: both come by POST, so that no address and no log has them."""
    return await view(visit)


async def _view(visit: Visit, summary: CollectionSummary, name: str) -> Response:
    if summary.info.state == "deleted":
        return await _page(visit, summary, "", read_options({}))
    given = {**openly(visit.query), **visit.form}
    try:
        options = chosen_options(summary, given, items_of(visit.form), name)
    except InvalidSpec as error:
        return await _page(visit, summary, name, read_options({}), problem=str(error), status=400)
    if name == "hitters":
        return await _hitters(visit, summary, options)
    unfit = name in _UNFIT and not isinstance(summary.info.collection.domain, Record)
    unfit = unfit or (name == "gaps" and len(options.fields) != 2) or (name in ("rules", "line") and not options.label)
    if unfit or (name == "given" and not options.items) or (name == "ranges" and not options.between):
        problem = _UNFIT[name] if unfit else ""
        return await _page(visit, summary, name, options, status=409 if unfit else 200, problem=problem)
    try:
        answer = await visit.site.ask(visit.analyst, summary.info.id.hex(), name, options)
        over = await _quantiles(visit, summary, options) if name == "histogram" and not options.every_look else None
    except ServerRefused as error:
        if error.reason not in {"FAILED_PRECONDITION", "INVALID_ARGUMENT"}:
            raise
        return await _page(visit, summary, name, options, problem=error.detail or error.reason, status=409)
    return await _page(visit, summary, name, options, answer=answer, over=over)


async def _quantiles(visit: Visit, summary: CollectionSummary, options: ViewOptions) -> QuantilesAnswer | None:
    found = await visit.site.ask(visit.analyst, summary.info.id.hex(), "quantiles", options)
    return found if isinstance(found, QuantilesAnswer) else None


async def _hitters(visit: Visit, summary: CollectionSummary, options: ViewOptions) -> Response:
    search = visit.site.searches.latest(visit.session.id, summary.info.id.hex())
    answer = None if search is None else search.found
    if search is not None:
        options = search.options
    problem = ""
    if search is not None and isinstance(search.error, LdpError) and not search.cancelled:
        error = search.error
        problem = error.detail if isinstance(error, ServerRefused) and error.detail else str(error)
    return await _page(visit, summary, "hitters", options, answer=answer, problem=problem, search=search)


async def _page(
    visit: Visit, summary: CollectionSummary, name: str, options: ViewOptions, *, status: int = 200, **shown: Any
) -> Response:
    answer, over = shown.pop("answer", None), shown.pop("over", None)
    part = None
    given = {**visit.query, **visit.form}
    if name == "every" and answer is not None:
        part = tables.part_of(answer, given.get("sort", ""), given.get("search", ""), given.get("page", "1"))
    whole = options.periods is None  # the truth that a demo knows is that of all its reports
    truth = visit.site.truth.get(summary.info.id.hex()) if given.get("truth") and whole else None
    figure = None
    if answer is not None and part is None:
        figure = figures.figure_of(answer, summary, options, truth)
        if isinstance(answer, RangesAnswer) and over is not None:
            title = visible(summary.info.collection.question)
            figure = figures.with_quantiles(title, answer, over)
    table = None if answer is None else tables.table_of(answer if part is None else part.answer, truth)
    values = {
        "summary": summary, "info": summary.info, "asked": summary.info.collection, "which": short(summary.info),
        "views": [] if summary.info.state == "deleted" else offered(summary), "all_views": VIEWS, "name": name,
        "tabs": tabs(summary, name, options.periods, volunteers=await visit.site.has_curated(summary.info.id)),
        **(await _periods(visit, summary, options)),
        "options": options, "confidences": sorted({*CONFIDENCES, options.confidence}), "answer": answer,
        "figure": figure, "table": table, "part": part, "coverage": _coverage(answer),
        "intake": visit.site.intake.note(summary.info.id, summary.reports),
        "same": _same_elsewhere(summary, name, options), "by_post": name in BY_POST,
        "chosen": _chosen(options, name), "over": None if over is None else tables.table_of(over),
        "gaps": tables.gaps_of(answer) if isinstance(answer, GapsAnswer) else None,
        "takes_dictionary": takes_dictionary(summary), "form_bytes": FORM_BYTES, "most_words": MOST_ITEMS,
        "knows_truth": summary.info.id.hex() in visit.site.truth, "truth": truth is not None,
        "problem": "", "search": None, **shown,
    }  # fmt: skip
    return visit.page("question", "collections", status, **values)


async def _periods(visit: Visit, summary: CollectionSummary, options: ViewOptions) -> dict[str, Any]:
    """The selector of periods, and what it has chosen."""
    lines, chosen = await period_lines(visit, summary), options.periods
    ends = [] if chosen is None else [(end, end) for end in chosen]
    return {
        "period_choices": choices(summary.info.collection, lines, ends), "period_fields": addressed(chosen),
        "scheduled": summary.info.collection.schedule is not None,
    }  # fmt: skip


def _coverage(answer: Any) -> str:
    coverage = getattr(answer, "coverage", None)
    if not isinstance(coverage, Coverage):
        return ""
    return f"{tables.COVERAGE[coverage]} An estimate outside its interval comes from noise."


def _chosen(options: ViewOptions, name: str) -> str:
    """What was chosen, as the end of an address."""
    default = ViewOptions()
    found = {
        key: getattr(options, key)
        for key in _CHOSEN
        if key not in {"shares", "between", "areas", "fields", "label", "every_look"}
    }
    found = {key: value for key, value in found.items() if value != getattr(default, key)} | addressed(options.periods)
    if options.every_look:
        found["every_look"] = 1
    if options.shares != default.shares:
        found["shares"] = " ".join(f"{share:.12g}" for share in options.shares)
    if options.between and name == "ranges":
        found["between"] = " ".join(f"{first}:{last}" for first, last in options.between)
    if options.areas and name == "areas":
        found["areas"] = areas_text(options.areas)
    if options.fields and name in ("fields", "gaps", "rules", "line"):
        found["fields"] = ",".join(options.fields)
    if options.label and name in ("rules", "line"):
        found["label"] = options.label
    return f"?{urlencode(found)}" if found else ""


def _same_elsewhere(summary: CollectionSummary, name: str, options: ViewOptions) -> tuple[str, str] | None:
    """The command and the line of Python that give the same answer."""
    if name not in VIEWS:
        return None
    chosen, which = VIEWS[name], short(summary.info)
    command = f"ldp-server {chosen.command} {which} {chosen.arguments(options)}".strip()
    return command, f"answer = analyst.{chosen.call(options).replace('{}', repr(which))}"


async def start_search(visit: Visit) -> Response:
    """Start to look for popular items. A dictionary comes by POST, one item a line, as the items of a list do."""
    summary = await known(visit)
    if "hitters" not in offered(summary):
        raise InvalidSpec("this collection lists no popular items: its other views say what it answers")
    options = chosen_options(summary, visit.form, items_of(visit.form))
    words_of(options.items)  # what is wrong with a line is said before the search begins
    if options.items and not takes_dictionary(summary):
        raise InvalidSpec(f"{summary.info.collection.randomizer.name} is searched without a dictionary: leave it empty")
    if options.exploratory and not takes_dictionary(summary):
        raise InvalidSpec(f"{summary.info.collection.randomizer.name} makes no exploratory list: leave that box empty")
    if options.start_last and not takes_dictionary(summary):
        raise InvalidSpec(f"{summary.info.collection.randomizer.name} begins with no list: leave that box empty")
    analyst = await visit.site.call(visit.session.connect)
    visit.site.searches.start(analyst, visit.session.id, summary.info.id.hex(), options)
    return RedirectResponse(f"/c/{short(summary.info)}/hitters", 303)


async def cancel_search(visit: Visit) -> Response:
    """Stop the search; the server stops it too."""
    summary = await known(visit)
    search = visit.site.searches.latest(visit.session.id, summary.info.id.hex())
    if search is not None:
        search.cancel()
    return RedirectResponse(f"/c/{short(summary.info)}/hitters", 303)


async def search_progress(visit: Visit) -> Response:
    """How far the search is, for the page's script."""
    summary = await known(visit)
    search = visit.site.searches.latest(visit.session.id, summary.info.id.hex())
    return JSONResponse({"done": True, "fraction": 0, "stage": "", "seconds": 0} if search is None else search.shape())
