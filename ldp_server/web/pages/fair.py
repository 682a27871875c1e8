"""The page of a decision map: losses and distances come by POST, the map goes out as the file that devices check."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from starlette.responses import Response

from ldp_client.decisions import DecisionMap
from ldp_client.errors import InvalidSpec, ServerRefused
from ldp_client.protocol.domain import Record
from ldp_server.analyst import Analyst, CollectionSummary
from ldp_server.answers.words import item_text, visible
from ldp_server.fairness.decisions import FairMap, programme_size
from ldp_server.fairness.named import NamedTable, made_map, named_table
from ldp_server.web import figures
from ldp_server.web.charts.dots import Dot, DotChart, dots
from ldp_server.web.gate import Visit
from ldp_server.web.pages.collections import short
from ldp_server.web.pages.downloads import as_file
from ldp_server.web.pages.question import known
from ldp_server.web.pages.tabs import tabs
from ldp_server.web.tables import TableView
from ldp_server.web.views import first_fields, offered

__all__ = ["MapAsked", "MapShown", "fair_map", "fair_map_file"]

_MOST_TYPES = 60
_MOST_VARIABLES = 10_000
"""Of a linear programme that is solved in the process of the pages: about three seconds of one core."""
_WORDS = 1 << 64


@dataclass(frozen=True)
class MapAsked:
    """What a reader wrote."""

    fields: tuple[str, ...]
    loss: str = field(default="", repr=False)
    """CSV, as `ldp-server fair-map` reads it; so are the distances."""
    distances: str = field(default="", repr=False)
    first: tuple[str, ...] = field(default=(), repr=False)
    parity: float = 0.0


@dataclass(frozen=True)
class MapShown:
    """A map, what it costs, and with two groups the bias with its range."""

    made: DecisionMap
    found: FairMap
    bias: tuple[float, float, float] | None
    reports: int


async def fair_map(visit: Visit) -> Response:
    """The form, and the map that follows from it."""
    summary = await known(visit)
    asked, problem, status, shown = MapAsked(()), "", 200, None
    if summary.info.state != "deleted":
        try:
            asked = _asked(summary, visit.form)
            if asked.loss and asked.distances:
                shown = await _solved(visit, summary, asked)
        except InvalidSpec as error:
            problem, status = str(error), 400
        except ServerRefused as error:
            if error.reason not in {"FAILED_PRECONDITION", "INVALID_ARGUMENT"}:
                raise
            problem, status = error.detail or error.reason, 409
    return _page(visit, summary, asked, shown, problem=problem, status=status)


async def fair_map_file(visit: Visit) -> Response:
    """The map as the file that a device checks."""
    summary = await known(visit)
    asked = _asked(summary, visit.form)
    shown = await _solved(visit, summary, asked)
    return as_file((shown.made.to_json() + "\n").encode(), "json", f"{short(summary.info)}-fair-map.json")


def _asked(summary: CollectionSummary, form: Mapping[str, str]) -> MapAsked:
    domain = summary.info.collection.domain
    if not isinstance(domain, Record) or "gaps" not in offered(summary):
        raise InvalidSpec("a map is made of the types of records: this collection has none that can be compared")
    fields = tuple(name for part in form.get("fields", "").split(",") if (name := part.strip()))
    try:
        parity = float(form.get("parity", "").strip() or 0)
    except ValueError:
        parity = -1.0
    if not 0 <= parity <= 1:
        raise InvalidSpec("the largest difference of the groups' chances is a number from 0 to 1")
    return MapAsked(
        fields or first_fields(summary.info.collection, domain)[:1],
        form.get("loss", "").strip(),
        form.get("distances", "").strip(),
        tuple(line.strip() for line in form.get("first", "").splitlines() if line.strip()),
        parity,
    )


async def _solved(visit: Visit, summary: CollectionSummary, asked: MapAsked) -> MapShown:
    """The map, as a long question: two at a time, and the file is that of the page if it is asked for at once."""
    which = summary.info.id.hex()
    return await visit.site.ask_long((which, "fair-map", asked), _shown, visit.analyst, which, asked)


def _check_size(loss: NamedTable, first: int) -> None:
    """Refuse what takes long, before the server is asked."""
    types, decisions = len(loss.lines), len(loss.columns)
    elsewhere = "use `ldp-server fair-map`, or fewer types"
    if types > _MOST_TYPES:
        raise InvalidSpec(f"a page makes maps of at most {_MOST_TYPES} types: {elsewhere}")
    size = programme_size(types, decisions, first)
    if size > _MOST_VARIABLES:
        groups = f", {first} of them in the first group," if first else ""
        raise InvalidSpec(
            f"{types} types{groups} and {decisions} decisions make a linear programme of {size:,} variables, and a "
            f"page solves at most {_MOST_VARIABLES:,}: {elsewhere} or decisions"
        )


def _shown(analyst: Analyst, which: str, asked: MapAsked) -> MapShown:
    loss, far = named_table(asked.loss, "the losses"), named_table(asked.distances, "the distances")
    _check_size(loss, len(set(asked.first) & set(loss.lines)))
    answer = analyst.table(which, asked.fields, together=True)
    made, found, bias = made_map(answer, loss, far, asked.first, asked.parity)
    return MapShown(made, found, bias, answer.reports)


def _page(
    visit: Visit, summary: CollectionSummary, asked: MapAsked, shown: MapShown | None, *, problem: str, status: int
) -> Response:
    values = {
        "summary": summary, "info": summary.info, "asked": summary.info.collection, "which": short(summary.info),
        "tabs": tabs(summary, "fair-map"), "options": asked, "shown": shown, "problem": problem,
        "types": _types(summary, asked), "intake": visit.site.intake.note(summary.info.id, summary.reports),
        "figure": None if shown is None else _figure(summary, shown),
        "table": None if shown is None else _table(shown),
    }  # fmt: skip
    return visit.page("fair_map", "collections", status, **values)


def _types(summary: CollectionSummary, asked: MapAsked) -> list[str]:
    """The names of the types, as losses and distances have to name them."""
    domain = summary.info.collection.domain
    if not isinstance(domain, Record) or not set(asked.fields) <= set(domain.names) or not asked.fields:
        return []
    part = domain.part(asked.fields)
    return [item_text(part.item(index)) for index in range(1, part.size)] if part.size <= _MOST_TYPES else []


def _chances(made: DecisionMap) -> list[list[float]]:
    return [[weight / _WORDS for weight in line] for line in made.weights]


def _figure(summary: CollectionSummary, shown: MapShown) -> figures.Figure:
    """The chance of the first decision for each type. It is chosen and not estimated, so it has no whisker."""
    made, title = shown.made, visible(summary.info.collection.question)
    lines = [
        Dot(visible(name), line[0], line[0], line[0]) for name, line in zip(made.types, _chances(made), strict=True)
    ]
    unit = f"chance of {visible(made.decisions[0])}"
    chart = DotChart(title, lines, unit, write=lambda x: f"{x:.1%}", tick=lambda x: f"{x:.0%}", bars=True)
    marks = [("dot", f"the chance of {visible(made.decisions[0])} for people of a type")]
    return figures.Figure(dots(chart, figures.WIDE), dots(chart, figures.NARROW), marks)


def _table(shown: MapShown) -> TableView:
    made = shown.made
    rows = [
        [visible(name), *(f"{chance:.2%}" for chance in line)]
        for name, line in zip(made.types, _chances(made), strict=True)
    ]
    return TableView(["type", *map(visible, made.decisions)], rows)
