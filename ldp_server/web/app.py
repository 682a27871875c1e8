"""The application: addresses, and what every page does before and after its own work."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp

from ldp_client.errors import Cancelled, InvalidSpec, LdpError, ServerRefused, Unavailable
from ldp_server.analyst import RoleNeeded, TokenRefused
from ldp_server.web.gate import Visit, same_csrf
from ldp_server.web.guard import Guard, log_line
from ldp_server.web.pages import (
    across,
    collections,
    downloads,
    fair,
    planning,
    public,
    question,
    serverpage,
    signin,
    volunteers,
)
from ldp_server.web.render import page, static_file, static_names
from ldp_server.web.site import Site, form_of, site_of

__all__ = ["application"]

Handler = Callable[[Visit], Awaitable[Response]]
Open = Callable[[Request], Awaitable[Response]]

_PAGES: tuple[tuple[str, str, str, Handler], ...] = (
    ("/", "GET", "collections", collections.index),
    ("/live.json", "GET", "live", collections.live),
    ("/new", "GET", "new", collections.new),
    ("/new", "POST", "create", collections.create),
    ("/c/{which}", "GET", "question", question.overview),
    ("/c/{which}/spec.ldp", "GET", "spec", downloads.spec),
    ("/c/{which}/trend", "GET", "trend", across.trend),
    ("/c/{which}/trend", "POST", "trend", across.trend),
    ("/c/{which}/compare", "GET", "compare", across.compare),
    ("/c/{which}/compare", "POST", "compare", across.compare),
    ("/c/{which}/volunteers", "GET", "volunteers", volunteers.volunteers),
    ("/c/{which}/data/volunteers.{form}", "GET", "download", volunteers.volunteers_file),
    ("/c/{which}/fair-map", "GET", "fair-map", fair.fair_map),
    ("/c/{which}/fair-map", "POST", "fair-map", fair.fair_map),
    ("/c/{which}/data/fair-map.json", "POST", "download", fair.fair_map_file),
    ("/c/{which}/{view}", "GET", "view", question.view),
    ("/c/{which}/{view}", "POST", "asked", question.asked),
    ("/c/{which}/data/over-time/{view}.{form}", "GET", "download", across.across_file),
    ("/c/{which}/data/over-time/{view}.{form}", "POST", "download", across.across_file),
    ("/c/{which}/data/{view}.{form}", "GET", "download", downloads.download),
    ("/c/{which}/data/{view}.{form}", "POST", "download", downloads.download_given),
    ("/c/{which}/search/start", "POST", "search", question.start_search),
    ("/c/{which}/search/cancel", "POST", "cancel", question.cancel_search),
    ("/c/{which}/search/progress.json", "GET", "progress", question.search_progress),
    ("/c/{which}/change/{what}", "POST", "change", collections.change),
    ("/plan", "GET", "plan", planning.plan_page),
    ("/server", "GET", "server", serverpage.server_page),
    ("/sign-out", "POST", "sign-out", signin.sign_out),
)
"""Address, method, the name in the log, and the page, for those who are signed in."""


def application(site: Site) -> ASGIApp:
    """Return the pages of a site, behind their guard."""
    routes = [
        Route("/static/{name}", _logged("static", _static), methods=["GET"]),
        Route("/sign-in", _logged("sign-in", signin.form), methods=["GET"]),
        Route("/sign-in", _logged("sign-in", signin.sign_in), methods=["POST"]),
        Route("/enter", _logged("enter", signin.enter), methods=["GET"]),
        Route("/public", _logged("public", public.public_list), methods=["GET"]),
        Route("/public/list.json", _logged("public-json", public.public_list_json), methods=["GET"]),
        Route("/public/{which}", _logged("public-question", public.public_question), methods=["GET"]),
        Route("/public/{which}/question.json", _logged("public-json", public.public_question_json), methods=["GET"]),
        Route("/public/{which}/spec.ldp", _logged("public-spec", public.public_spec), methods=["GET"]),
        *(Route(path, _page(name, handler), methods=[method]) for path, method, name, handler in _PAGES),
    ]
    app = Starlette(routes=routes, exception_handlers={HTTPException: _refused})
    app.state.site = site
    return Guard(app, site.settings)


def _logged(name: str, handler: Open) -> Open:
    async def named(request: Request) -> Response:
        request.scope["route_name"] = name
        try:
            return await handler(request)
        except LdpError as error:
            return _error_page(request, error)
        except HTTPException as error:
            return await _refused(request, error)
        except Exception as error:  # whatever it is, the browser gets a page and the log a line
            return await _defect(request, error)

    return named


def _page(name: str, handler: Handler) -> Open:
    """Wrap a page for those who are signed in."""

    async def signed_in(request: Request) -> Response:
        site = site_of(request)
        session = site.sessions.find(signin.cookie_of(request))
        if session is None:
            return _to_sign_in(request)
        form = {}
        if request.method == "POST":
            form = await form_of(request)
            if not same_csrf(session, form):
                raise HTTPException(
                    403, "this form is from another session: go back, load the page anew, and try again"
                )
        visit = Visit(request, site, session, form)
        try:
            # One short call a page: is the token still good, and does the server answer?
            visit.status = await site.call(session.analyst.status)
            return await handler(visit)
        except TokenRefused:
            site.searches.end_all_of(session.id)
            site.sessions.end(session)
            return _to_sign_in(request)
        except LdpError as error:
            return _error_page(request, error)

    return _logged(name, signed_in)


def _to_sign_in(request: Request) -> Response:
    if request.url.path.endswith(".json"):
        raise HTTPException(401, "sign in first")
    response = RedirectResponse("/sign-in?ended" if signin.cookie_of(request) else "/sign-in", 303)
    signin.forget(request, response)
    return response


_STATUS: tuple[tuple[type[LdpError], int, str], ...] = (
    (RoleNeeded, 403, "Your token does not allow this"),
    (InvalidSpec, 400, "This cannot be asked"),
    (Cancelled, 503, "The question was cancelled"),
    (Unavailable, 503, "The collection server does not answer"),
    (ServerRefused, 409, "The collection server says no"),
)
_REASONS = {"NOT_FOUND": (404, "There is no such collection"), "INVALID_ARGUMENT": (400, "This cannot be asked")}


def _error_page(request: Request, error: LdpError) -> Response:
    status, title = next(((code, text) for kind, code, text in _STATUS if isinstance(error, kind)), (500, "Error"))
    detail = str(error)
    if isinstance(error, ServerRefused):
        status, title = _REASONS.get(error.reason, (status, title))
        detail = error.detail or error.reason
    return _said(request, status, title, detail)


def _said(request: Request, status: int, title: str, detail: str) -> Response:
    session = site_of(request).sessions.find(signin.cookie_of(request))
    csrf = None if session is None else session.csrf
    return page("error", status, title=title, detail=detail, csrf=csrf, here="", role="", again=request.method == "GET")


async def _refused(request: Request, error: Exception) -> Response:
    status = error.status_code if isinstance(error, HTTPException) else 500
    detail = error.detail if isinstance(error, HTTPException) else ""
    titles = {404: "There is no such page", 403: "This was refused", 405: "This page does not take that"}
    if status == 404:
        detail = "Check the address, or begin with the list of collections."
    return _said(request, status, titles.get(status, "This cannot be done"), detail)


async def _defect(request: Request, error: Exception) -> Response:
    """Log where it happened, but not the text of the error: it may quote what somebody asked for."""
    place = error.__traceback__
    while place is not None and place.tb_next is not None:
        place = place.tb_next
    where = "" if place is None else f"{place.tb_frame.f_code.co_filename}:{place.tb_lineno}"
    log_line(logging.ERROR, "a page failed", kind=type(error).__name__, where=where)
    return _said(request, 500, "This page has a defect", "The log of the pages says where. Please report it.")


async def _static(request: Request) -> Response:
    name = request.path_params["name"]
    if name not in static_names():
        raise HTTPException(404)
    data, kind = static_file(name)
    return Response(data, media_type=kind, headers={"cache-control": "max-age=3600"})
