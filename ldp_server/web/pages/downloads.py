"""Answers and specs as files."""

from __future__ import annotations

import io
from collections.abc import Mapping
from typing import Any

from starlette.exceptions import HTTPException
from starlette.responses import Response

from ldp_client.errors import InvalidSpec
from ldp_server.analyst import Analyst, CollectionSummary, SyntheticRecords
from ldp_server.answers.to_json import dump, to_json
from ldp_server.web import figures
from ldp_server.web.gate import Visit
from ldp_server.web.pages.collections import short
from ldp_server.web.pages.question import chosen_options, items_of, known, openly
from ldp_server.web.views import VIEWS, ViewOptions

__all__ = ["FORMS", "as_file", "download", "download_given", "spec"]

FORMS: Mapping[str, str] = {
    "json": "application/json",
    "csv": "text/csv; charset=utf-8",
    "parquet": "application/vnd.apache.parquet",
    "svg": "image/svg+xml",
}
_MADE_UP = "synthetic"
_SYNTHETIC = ((_MADE_UP, "csv"), (_MADE_UP, "parquet"))
_RECORDS = 10_000
_MOST_CELLS = 1 << 18
_SVG_POLICY = "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'; sandbox"


async def spec(visit: Visit) -> Response:
    """The exact question, in the form that devices check."""
    summary = await known(visit)
    text = summary.info.collection.to_toml()
    return _file(text.encode(), "application/toml", f"{short(summary.info)}.ldp")


async def download(visit: Visit) -> Response:
    """An answer, as it would be shown."""
    return await _download(visit, openly(visit.query))


async def download_given(visit: Visit) -> Response:
    """The answer about a list of items, which comes by POST."""
    return await _download(visit, visit.form, items_of(visit.form))


async def _download(visit: Visit, given: Mapping[str, str], items: tuple[str, ...] = ()) -> Response:
    name, form = visit.request.path_params["view"], visit.request.path_params["form"]
    if (name not in VIEWS or form not in FORMS) and (name, form) not in _SYNTHETIC:
        raise HTTPException(404)
    summary = await known(visit)
    which, options = summary.info.id.hex(), chosen_options(summary, given, items, name)
    if summary.info.state == "deleted":
        raise HTTPException(410, "This collection was deleted.")
    if name == _MADE_UP:
        made = await visit.site.ask_long((which, name, options.periods), _synthetic, visit.analyst, which, options)
        data = await visit.site.call(_written, form, made, summary, options)
        return as_file(data, form, f"{short(summary.info)}-{name}.{form}")
    if name == "gaps" and len(options.fields) != 2:
        raise InvalidSpec("name the field of the groups and that of the outcome")
    if name in ("rules", "line") and not options.label:
        raise InvalidSpec("name the fields and the label")
    if name == "given" and not options.items:
        raise InvalidSpec("give the items, one a line")
    if name == "hitters":
        search = visit.site.searches.latest(visit.session.id, which)
        answer = None if search is None else search.found
        options = options if search is None else search.options
        if answer is None:
            raise InvalidSpec("look for the popular items first: the file holds what was found")
    else:
        answer = await visit.site.ask(visit.analyst, which, name, options)
    data = await visit.site.call(_written, form, answer, summary, options)
    return as_file(data, form, f"{short(summary.info)}-{name}.{form}")


def _synthetic(analyst: Analyst, which: str, options: ViewOptions) -> SyntheticRecords:
    """Synthetic records of all fields, for a page: of a record whose law is fitted in a few seconds."""
    found = analyst.tables(which, periods=options.periods)
    size = found.record.size
    if size > _MOST_CELLS:
        raise InvalidSpec(
            f"a page makes synthetic records of at most {_MOST_CELLS:,} different contents, and these have {size:,}: "
            "use `ldp-server synthesize`, with --fields if they are more than it takes"
        )
    return found.synthetic(_RECORDS)


def as_file(data: bytes, form: str, name: str) -> Response:
    """Return an answer as a file in one of the forms."""
    return _file(data, FORMS[form], name, svg=form == "svg")


def _written(form: str, answer: Any, summary: CollectionSummary, options: ViewOptions) -> bytes:
    if form == "json":
        return (dump(to_json(answer)) + "\n").encode()
    if form == "svg":
        figure = figures.figure_of(answer, summary, options)
        if figure is None:
            raise InvalidSpec("there is no chart of this answer: take the table")
        return figures.standalone(figure.wide).encode()
    if form == "csv":
        return str(answer.to_csv()).encode()
    out = io.BytesIO()
    answer.to_parquet(out)
    return out.getvalue()


def _file(data: bytes, kind: str, name: str, *, svg: bool = False) -> Response:
    headers = {"content-disposition": f'attachment; filename="hearsay-{name}"'}
    if svg:
        headers["content-security-policy"] = _SVG_POLICY
    return Response(data, media_type=kind, headers=headers)
