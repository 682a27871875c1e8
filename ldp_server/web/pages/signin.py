"""Signing in with an analyst token, or once with the link of a command; signing out."""

from __future__ import annotations

import hmac

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from ldp_client.errors import InvalidSpec, LdpError
from ldp_server.analyst import Analyst, TokenRefused
from ldp_server.web.gate import Visit, same_csrf
from ldp_server.web.render import page
from ldp_server.web.sessions import Session, Visitor
from ldp_server.web.site import Site, browser_of, form_of, site_of

__all__ = ["cookie_of", "enter", "forget", "form", "sign_in", "sign_out"]


def _name(request: Request) -> str:
    """The cookie's name: the port is in it, because browsers send cookies to every port of a host."""
    if browser_of(request).secure:
        return "__Host-hearsay"
    return f"hearsay-{request.url.port or 80}"


def cookie_of(request: Request) -> str:
    """The value of our cookie, as the browser sent it."""
    return request.cookies.get(_name(request), "")


def _remember(request: Request, response: Response, visitor: Visitor) -> None:
    site = site_of(request)
    response.set_cookie(
        _name(request),
        site.sessions.cookie(visitor),
        max_age=int(site.settings.session_seconds) if isinstance(visitor, Session) else 3600,
        secure=browser_of(request).secure,
        httponly=True,
        samesite="strict",
    )


def forget(request: Request, response: Response) -> None:
    """Delete the browser's cookie."""
    secure = browser_of(request).secure
    response.delete_cookie(_name(request), secure=secure, httponly=True, samesite="strict")


async def form(request: Request) -> Response:
    """Show the form; who is signed in already goes to the collections."""
    if site_of(request).sessions.find(cookie_of(request)) is not None:
        return RedirectResponse("/", 303)
    notice = "Your session has ended. Sign in again." if "ended" in request.query_params else ""
    return _form(request, 200, "", notice)


def _form(request: Request, status: int, problem: str, notice: str = "") -> Response:
    visitor = site_of(request).sessions.visitor(cookie_of(request))
    response = page(
        "signin", status, here="", role="", csrf=None, form_csrf=visitor.csrf, problem=problem, notice=notice
    )
    _remember(request, response, visitor)
    return response


async def sign_in(request: Request) -> Response:
    """Check a token with the server, and open a session under a new id."""
    site = site_of(request)
    given = await form_of(request)
    if not same_csrf(site.sessions.visitor(cookie_of(request)), given):
        return _form(request, 403, "This form had become stale. Try again.")
    address = browser_of(request).address
    if not site.attempts.may(address):
        return _form(request, 429, "Too many wrong tokens were tried. Wait a minute.")
    token = given.get("token", "").strip()
    try:
        return await _open(request, site, _checked(request, site, token))
    except (InvalidSpec, TokenRefused):
        site.attempts.failed(address)
        return _form(request, 403, "The server does not accept this token: it is wrong, has expired, or was revoked.")
    except LdpError as error:
        return _form(request, 503, f"The collection server does not answer: {error}")


def _checked(request: Request, site: Site, token: str) -> str:
    if not token or len(token) > 256:
        raise InvalidSpec("this is no token")
    own = site.owner_token()
    if own is not None and hmac.compare_digest(own.encode(), token.encode()) and not browser_of(request).is_here:
        raise InvalidSpec("the owner's token is good on the server's own machine only")
    return token


async def _open(request: Request, site: Site, token: str | None) -> Response:
    def connect() -> Analyst:
        return site.connect(token)

    session = site.sessions.begin(connect)
    try:
        await site.call(session.analyst.status)
    except LdpError:
        site.sessions.end(session)
        raise
    response = RedirectResponse("/", 303)
    _remember(request, response, session)
    return response


async def enter(request: Request) -> Response:
    """Sign in the owner of this machine's data directory, with the key of a link that works once."""
    site = site_of(request)
    if request.method != "GET":  # a look by HEAD must not use up the key
        raise HTTPException(405)
    if not browser_of(request).is_here or not site.keys.use(request.query_params.get("key", "")):
        return _form(
            request, 403, "This link was used before, or is too old. The command that printed it makes a new one."
        )
    return await _open(request, site, None)


async def sign_out(visit: Visit) -> Response:
    """End the session, its searches and its connection."""
    visit.site.searches.end_all_of(visit.session.id)
    visit.site.sessions.end(visit.session)
    response = RedirectResponse("/sign-in", 303)
    forget(visit.request, response)
    return response
