"""Pages for everybody: what is asked, of whom, since when, by which key, and what is promised.

They exist only where the operator says so (`--public`), and show the collections that the public list has too. They
have no counts and no estimates, but answers that the operator has released as files (ldp_server/released.py).

Each page has the signed list's size and root, so that anybody can compare them with what a device holds, and a proof
that the question is on this list. Both are worked out here, from the ids of all public collections.
"""

from __future__ import annotations

import logging
import time
from dataclasses import asdict
from typing import Any

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from ldp_client.errors import InvalidSpec
from ldp_client.privacy.statement import privacy_statement
from ldp_server.analyst import CollectionInfo
from ldp_server.released import ReleasedAnswer, read_released
from ldp_server.web.guard import log_line
from ldp_server.web.pages.collections import short
from ldp_server.web.public_list import PublicList
from ldp_server.web.render import page
from ldp_server.web.site import Site, site_of

__all__ = ["public_list", "public_list_json", "public_question", "public_question_json", "public_spec"]

_KEPT_SECONDS = 30.0
_SPEC_SHOWN = 65_536
"""A longer spec is only in the file of its own."""
_ROWS_SHOWN = 200


async def _public(request: Request) -> PublicList:
    """The collections that everybody may know. They are kept for a while: a visitor causes no call of their own."""
    site = site_of(request)
    if not site.public:
        raise HTTPException(404)
    if site.listed is None or time.monotonic() >= site.listed_until:
        site.listed_until = time.monotonic() + _KEPT_SECONDS
        site.listed = await site.call(_ask, site)
    return site.listed


def _ask(site: Site) -> PublicList:
    with site.connect(None) as analyst:
        key = analyst.status().list_key
        return PublicList.of(analyst.collections(), key)


async def _question(request: Request) -> tuple[PublicList, CollectionInfo]:
    which = request.path_params["which"]
    listed = await _public(request)
    found = next((info for info in listed.infos if short(info) == which), None)
    if found is None:
        raise HTTPException(404)
    return listed, found


async def public_list(request: Request) -> Response:
    """What is asked."""
    listed = await _public(request)
    infos = [(short(info), info) for info in listed.infos]
    return page("public", csrf=None, role="", here="", infos=infos, listed=listed)


async def public_list_json(request: Request) -> Response:
    """The same, for programs."""
    listed = await _public(request)
    asked = [{"id": info.id.hex(), "question": info.collection.question, "state": info.state} for info in listed.infos]
    return JSONResponse({"list": listed.as_dict(), "questions": asked})


async def public_question(request: Request) -> Response:
    """One question, with its promise, its exact bytes, and what was released."""
    listed, info = await _question(request)
    asked = info.collection
    lines = await site_of(request).call(lambda: privacy_statement(asked).lines)
    address = f"/public/{short(info)}"
    values: dict[str, Any] = {"info": info, "asked": asked, "lines": lines, "spec": f"{address}/spec.ldp"}
    values |= {"json": f"{address}/question.json", "listed": listed, "proof": listed.proof(info.id)}
    released = await _released(request, info)
    values |= {"released": released, "rows": () if released is None else released.rows[:_ROWS_SHOWN]}
    values |= {"volunteers": None if released is None else _volunteers(released.answer)}
    return page("public_question", csrf=None, role="", here="", **values)


async def public_question_json(request: Request) -> Response:
    """The same, for programs."""
    listed, info = await _question(request)
    asked = info.collection
    lines = await site_of(request).call(lambda: privacy_statement(asked).lines)
    released = await _released(request, info)
    spec = asked.spec_bytes
    return JSONResponse(
        {
            "id": info.id.hex(),
            "question_id": asked.question_id.hex(),
            "question": asked.question,
            "state": info.state,
            "admission": info.admission,
            "opens": asked.opens,
            "closes": asked.closes,
            "schedule": None if asked.schedule is None else asdict(asked.schedule),
            "mechanism": asked.randomizer.name,
            "epsilon": asked.epsilon.text,
            "report_bytes": asked.randomizer.report_bytes,
            "statement": list(lines),
            "spec_bytes": spec.hex() if len(spec) <= _SPEC_SHOWN else None,
            "list": listed.as_dict() | listed.proof(info.id),
            "released": None if released is None else released.as_dict(),
        }
    )


def _volunteers(answer: dict[str, Any]) -> dict[str, Any] | None:
    """What an answer with two sources says of the volunteers: how many, what was promised, whether the two disagree."""
    lines, warning = answer.get("volunteers_statement"), answer.get("warning")
    counts = answer.get("volunteers"), answer.get("reports")
    if not isinstance(lines, list) or not all(isinstance(count, int) for count in counts):
        return None
    return {
        "people": counts[0],
        "reports": counts[1],
        "lines": [str(line) for line in lines],
        "warning": warning if isinstance(warning, str) else None,
        "by": ", ".join(str(name) for name in answer.get("reweighed_by", ())),
    }


async def _released(request: Request, info: CollectionInfo) -> ReleasedAnswer | None:
    """What was released of a collection. A file that is none is noted in the log, and nothing of it is shown."""
    site = site_of(request)
    if site.released is None:
        return None
    try:
        return await site.call(read_released, site.released, info.id)
    except InvalidSpec:
        log_line(logging.ERROR, "a released answer cannot be read", collection=short(info))
        return None


async def public_spec(request: Request) -> Response:
    """The exact question, as devices check it."""
    _, info = await _question(request)
    headers = {"content-disposition": f'attachment; filename="hearsay-{short(info)}.ldp"'}
    return Response(info.collection.to_toml(), media_type="application/toml", headers=headers)
