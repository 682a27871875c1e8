"""The list of collections, creating one, and what changes one."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse, RedirectResponse, Response

from ldp_client.collection import Collection
from ldp_client.errors import InvalidSpec, LdpError
from ldp_server.analyst import CollectionInfo, CollectionSummary
from ldp_server.web.gate import Visit

__all__ = ["ON_A_PAGE", "CollectionLine", "change", "create", "index", "live", "new", "short"]

ON_A_PAGE = 15
_CHANGES = {"close": "close_collection", "compact": "compact_collection", "delete": "delete_collection"}


def short(info: CollectionInfo) -> str:
    """The digits of an id that stand in an address."""
    return info.id.hex()[:16]


@dataclass(frozen=True)
class CollectionLine:
    """A line of the list."""

    info: CollectionInfo
    summary: CollectionSummary | None
    """None for a deleted collection, and where the server did not say."""
    intake: float | None
    """Reports a minute, since the pages first looked."""

    @property
    def which(self) -> str:
        return short(self.info)


async def _summary(visit: Visit, info: CollectionInfo) -> CollectionLine:
    if info.state == "deleted":
        return CollectionLine(info, None, None)
    try:
        summary = await visit.site.call(visit.analyst.show, info.id)
    except LdpError:
        return CollectionLine(info, None, None)
    return CollectionLine(info, summary, visit.site.intake.note(info.id, summary.reports))


async def _listed(visit: Visit) -> tuple[list[CollectionLine], int, int]:
    """The lines of the page that is asked for, its number, and the number of pages."""
    kept = await visit.site.call(visit.analyst.collections)
    kept = sorted(kept, key=lambda info: (info.state == "deleted", -info.created))
    pages = max(1, -(-len(kept) // ON_A_PAGE))
    given = visit.query.get("page", "1")
    number = min(pages, int(given)) if given.isdigit() and len(given) < 7 and int(given) else 1
    shown = kept[(number - 1) * ON_A_PAGE : number * ON_A_PAGE]
    return list(await asyncio.gather(*(_summary(visit, info) for info in shown))), number, pages


async def index(visit: Visit) -> Response:
    """Every collection with its state, its reports, how fast they come, and the error now."""
    lines, number, pages = await _listed(visit)
    return visit.page("collections", "collections", lines=lines, number=number, pages=pages, status_of=visit.status)


async def live(visit: Visit) -> Response:
    """The numbers of that page that change, for its script."""
    lines, _, _ = await _listed(visit)
    rows = {
        line.which: {"reports": line.summary.reports, "intake": line.intake, "state": line.info.state}
        for line in lines
        if line.summary is not None
    }
    return JSONResponse(rows)


async def new(visit: Visit) -> Response:
    """The form for a new collection."""
    return visit.page("new", "collections", text="", problem="")


async def create(visit: Visit) -> Response:
    """Create the collection that a form describes; the server decides whether the token may."""
    text = visit.form.get("spec", "")
    admission = visit.form.get("admission", "open")
    unlisted = visit.form.get("unlisted") == "yes"
    try:
        collection = Collection.from_toml(text)
        info = await visit.site.call(visit.analyst.create, collection, admission=admission, unlisted=unlisted)
    except LdpError as error:
        return visit.page("new", "collections", 400, text=text, problem=str(error))
    return RedirectResponse(f"/c/{short(info)}", 303)


async def change(visit: Visit) -> Response:
    """Close, compact or delete a collection; deleting takes a second word."""
    what, which = visit.request.path_params["what"], visit.request.path_params["which"]
    if what not in _CHANGES:
        raise HTTPException(404)
    if what == "delete" and visit.form.get("sure") != "yes":
        raise InvalidSpec("deleting is for good: tick the box beside the button")
    await visit.site.call(getattr(visit.analyst, _CHANGES[what]), which)
    return RedirectResponse(f"/c/{which}", 303)
