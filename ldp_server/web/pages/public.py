"""Pages for everybody: what is asked, of whom, since when, and what is promised. No counts and no estimates.

They exist only where the operator says so (`--public`), and show the collections that the public list has too.
"""

from __future__ import annotations

import time
from typing import Any

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from ldp_client.privacy.statement import privacy_statement
from ldp_server.analyst import CollectionInfo
from ldp_server.web.pages.collections import short
from ldp_server.web.render import page
from ldp_server.web.site import Site, site_of

__all__ = ["public_list", "public_question", "public_spec"]

_KEPT_SECONDS = 30.0


async def _questions(request: Request) -> list[CollectionInfo]:
    """The collections that everybody may know. They are kept for a while: a visitor causes no call of their own."""
    site = site_of(request)
    if not site.public:
        raise HTTPException(404)
    if time.monotonic() >= site.listed_until:
        site.listed_until = time.monotonic() + _KEPT_SECONDS
        site.listed = await site.call(_ask, site)
    return site.listed


def _ask(site: Site) -> list[CollectionInfo]:
    with site.connect(None) as analyst:
        found = analyst.collections()
    return [info for info in found if not info.unlisted and info.state != "deleted"]


async def _question(request: Request) -> CollectionInfo:
    which = request.path_params["which"]
    found = next((info for info in await _questions(request) if short(info) == which), None)
    if found is None:
        raise HTTPException(404)
    return found


async def public_list(request: Request) -> Response:
    """What is asked."""
    infos = [(short(info), info) for info in await _questions(request)]
    return page("public", csrf=None, role="", here="", infos=infos)


async def public_question(request: Request) -> Response:
    """One question, with its promise and its exact bytes."""
    info = await _question(request)
    asked = info.collection
    lines = await site_of(request).call(lambda: privacy_statement(asked).lines)
    values: dict[str, Any] = {"info": info, "asked": asked, "lines": lines, "spec": f"/public/{short(info)}/spec.ldp"}
    return page("public_question", csrf=None, role="", here="", **values)


async def public_spec(request: Request) -> Response:
    """The exact question, as devices check it."""
    info = await _question(request)
    headers = {"content-disposition": f'attachment; filename="hearsay-{short(info)}.ldp"'}
    return Response(info.collection.to_toml(), media_type="application/toml", headers=headers)
