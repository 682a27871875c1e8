"""The page of a question with volunteers: what the reports say, what the curator released, and both together."""

from __future__ import annotations

import io
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from starlette.exceptions import HTTPException
from starlette.responses import Response

from ldp_client.errors import InvalidSpec, ServerRefused
from ldp_client.protocol.domain import Integers
from ldp_server.analyst import (
    Analyst,
    CollectionAverage,
    CollectionEstimates,
    CollectionInfo,
    CollectionMerged,
    CollectionMergedAverage,
    CollectionRanges,
    CollectionSummary,
    average_with_volunteers,
    release_conditions,
    release_ranges,
    with_volunteers,
)
from ldp_server.answers.merging.cohorts import MergedAnswer
from ldp_server.answers.to_json import dump, to_json
from ldp_server.web import tables, two_sources
from ldp_server.web.gate import Visit
from ldp_server.web.pages.collections import short
from ldp_server.web.pages.downloads import FORMS, as_file
from ldp_server.web.pages.question import known
from ldp_server.web.pages.tabs import tabs
from ldp_server.web.two_sources import AVERAGE, CuratedRelease
from ldp_server.web.views import CONFIDENCES, VIEWS, offered, read_options

__all__ = ["BothAnswers", "volunteers", "volunteers_file"]


@dataclass(frozen=True)
class BothAnswers:
    """What each source says, and both together."""

    reports: CollectionEstimates | CollectionRanges | CollectionAverage
    merged: CollectionMerged | CollectionMergedAverage


@dataclass(frozen=True)
class _Chosen:
    release: CuratedRelease
    fields: tuple[str, ...]
    confidence: float


async def volunteers(visit: Visit) -> Response:
    """Both sources side by side, and merged."""
    summary = await known(visit)
    releases = await _releases(visit, summary)
    if summary.info.state == "deleted" or not releases:
        return _page(visit, summary, releases)
    try:
        chosen = _chosen(visit.query, releases)
    except InvalidSpec as error:
        return _page(visit, summary, releases, problem=str(error), status=400)
    try:
        found = await _answers(visit, summary, chosen)
    except InvalidSpec as error:
        return _page(visit, summary, releases, chosen, problem=str(error), status=409)
    except ServerRefused as error:
        if error.reason not in {"FAILED_PRECONDITION", "INVALID_ARGUMENT"}:
            raise
        return _page(visit, summary, releases, chosen, problem=error.detail or error.reason, status=409)
    return _page(visit, summary, releases, chosen, found)


async def _releases(visit: Visit, summary: CollectionSummary) -> tuple[CuratedRelease, ...]:
    curated = visit.site.curated
    return () if curated is None else tuple(await visit.site.call(curated.of, summary.info.id))


def _chosen(given: Mapping[str, str], releases: tuple[CuratedRelease, ...]) -> _Chosen:
    number, confidence = given.get("release", ""), read_options(given).confidence
    release = next((one for one in releases if not number or str(one.number) == number), None)
    if release is None:
        raise InvalidSpec("there is no such release about this question: choose one of those that are listed")
    asked = tuple(name for part in given.get("fields", "").split(",") if (name := part.strip()))
    fields = asked or (release.tables[0] if release.tables else ())
    return _Chosen(release, fields if release.tables else (), confidence)


async def _answers(visit: Visit, summary: CollectionSummary, chosen: _Chosen) -> BothAnswers:
    which = summary.info.id.hex()
    key = ("volunteers", which, chosen.release.signed.signature, chosen.fields, chosen.confidence)
    return await visit.site.ask_long(key, _ask, visit, summary.info, chosen)


def _ask(visit: Visit, info: CollectionInfo, chosen: _Chosen) -> BothAnswers:
    """Ask the server about what the release is about, and merge."""
    analyst: Analyst = visit.analyst
    signed, confidence, curated, which = chosen.release.signed, chosen.confidence, visit.site.curated, info.id.hex()
    if curated is None:
        raise InvalidSpec("these pages have no curator's releases")
    if chosen.release.kind == AVERAGE:
        average = analyst.average(which, confidence=confidence)
        return BothAnswers(average, average_with_volunteers(average, signed, curated.key))
    found: CollectionEstimates | CollectionRanges
    if chosen.release.about_conditions and _numbers(info):
        found = analyst.ranges(which, release_ranges(signed, curated.key, info), confidence=confidence)
    elif chosen.release.about_conditions:
        found = analyst.conditions(which, release_conditions(signed, curated.key, info), confidence=confidence)
    elif chosen.fields:
        found = analyst.table(which, chosen.fields, confidence=confidence)
    else:
        found = analyst.estimate(which, items=chosen.release.items, confidence=confidence)
    return BothAnswers(found, with_volunteers(found, signed, curated.key))


def _numbers(info: CollectionInfo) -> bool:
    return isinstance(info.collection.domain, Integers)


def _page(
    visit: Visit,
    summary: CollectionSummary,
    releases: tuple[CuratedRelease, ...],
    chosen: _Chosen | None = None,
    found: BothAnswers | None = None,
    *,
    problem: str = "",
    status: int = 200,
) -> Response:
    info = summary.info
    confidence = 0.95 if chosen is None else chosen.confidence
    values = {
        "summary": summary, "info": info, "asked": info.collection, "which": short(info), "name": "volunteers",
        "views": [] if info.state == "deleted" else offered(summary), "all_views": VIEWS,
        "tabs": tabs(summary, "volunteers", volunteers=bool(releases)),
        "intake": visit.site.intake.note(info.id, summary.reports), "problem": problem,
        "releases": releases, "chosen": chosen, "confidence": confidence,
        "confidences": sorted({*CONFIDENCES, confidence}), "end": _end(chosen),
        "shown": None if found is None or chosen is None else _shown(summary, chosen, found),
    }  # fmt: skip
    return visit.page("volunteers", "collections", status, **values)


def _end(chosen: _Chosen | None) -> str:
    """What was chosen, as the end of an address. The names of fields are public; items never stand in an address."""
    return "" if chosen is None else two_sources.address(chosen.release.number, chosen.fields, chosen.confidence)


def _shown(summary: CollectionSummary, chosen: _Chosen, found: BothAnswers) -> dict[str, Any]:
    merged = found.merged
    return {
        "figure": two_sources.figure(summary.info.collection.question, merged),
        "merged": two_sources.merged_table(merged),
        "reports": tables.table_of(found.reports),
        "release": two_sources.release_table(chosen.release.content, chosen.fields),
        "volunteers": merged.volunteers, "count": merged.reports, "warning": merged.warning,
        "fitted": isinstance(merged, MergedAnswer) and any(row.volunteers_off for row in merged.rows),
        "statement": merged.volunteers_statement, "note": str(chosen.release.content.get("note", "")),
        "made": int(chosen.release.content["made"]),
        "same": two_sources.same(
            short(summary.info), chosen.release.kind, chosen.fields, chosen.confidence, ranges=_numbers(summary.info)
        ),
    }  # fmt: skip


async def volunteers_file(visit: Visit) -> Response:
    """The merged answer as a file."""
    form = visit.request.path_params["form"]
    if form not in FORMS:
        raise HTTPException(404)
    summary = await known(visit)
    releases = await _releases(visit, summary)
    if not releases or summary.info.state == "deleted":
        raise HTTPException(404)
    merged = (await _answers(visit, summary, _chosen(visit.query, releases))).merged
    data = await visit.site.call(_written, form, merged)
    return as_file(data, form, f"{short(summary.info)}-volunteers.{form}")


def _written(form: str, merged: CollectionMerged | CollectionMergedAverage) -> bytes:
    if form == "json":
        return (dump(to_json(merged)) + "\n").encode()
    if form == "csv":
        return str(merged.to_csv()).encode()
    if form == "svg":
        return two_sources.svg(merged).encode()
    out = io.BytesIO()
    merged.to_parquet(out)
    return out.getvalue()
