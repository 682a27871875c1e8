"""What every request passes before a page sees it, and every answer before it leaves.

- a request for a name that is not ours is refused: another site may have pointed its own name at this address;
- a request that changes something must come from a page of ours (`Sec-Fetch-Site`, or `Origin`), be a form, and be
  small; its form also carries the session's CSRF token, which the pages check;
- every answer says that nothing else may be loaded, that nobody may frame it, and that nobody may keep it;
- the log has the kind of page, never a path or a query as it was sent: they may be anything.
"""

from __future__ import annotations

import asyncio
import ipaddress
import logging
import time
from collections.abc import Mapping
from dataclasses import dataclass

from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ldp_server.web.settings import Address, WebSettings, host_of

__all__ = ["FORM_BYTES", "LOGGER", "Browser", "Guard", "log_line"]

LOGGER = logging.getLogger("hearsay.web")

FORM_BYTES = 1 << 20
"""The largest form: a list of items to ask for."""
_TOO_LARGE = f"this form is larger than {FORM_BYTES >> 20} MB: the commands of ldp-server take longer lists"
_FORM_SECONDS = 30.0
_URL_BYTES = 4096

_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
_HEADERS = {
    "content-security-policy": _POLICY,
    "x-frame-options": "DENY",
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
}
_HSTS = "max-age=31536000"


def log_line(level: int, text: str, **fields: object) -> None:
    """Write one line to the log."""
    LOGGER.log(level, text, extra={"fields": fields})


@dataclass(frozen=True)
class Browser:
    """Who made a request, as far as the connection and trusted proxies tell."""

    address: Address | None
    secure: bool
    """Whether the browser's own connection is encrypted."""

    @property
    def is_here(self) -> bool:
        """Whether the browser runs on this machine."""
        return self.address is not None and self.address.is_loopback


class Guard:
    """The outermost layer of the application."""

    def __init__(self, app: ASGIApp, settings: WebSettings) -> None:
        self._app, self._settings = app, settings

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            if scope["type"] == "websocket":
                await send({"type": "websocket.close", "code": 1008})
            return
        started, status = time.perf_counter(), 0
        headers = Headers(scope=scope)
        browser = self._browser(scope, headers)
        scope["state"] = {**scope.get("state", {}), "browser": browser}

        async def sending(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                _harden(MutableHeaders(scope=message), secure=browser.secure)
            await send(message)

        refusal = self._refusal(scope, headers, browser)
        try:
            if refusal is not None:
                await _plain(sending, *refusal)
            else:
                await self._app(scope, _bounded(receive), sending)
        finally:
            page = scope.get("route_name", "-")
            log_line(
                logging.INFO,
                "page",
                page=page,
                method=scope["method"] if scope["method"] in {"GET", "HEAD", "POST"} else "other",
                status=status,
                ms=round((time.perf_counter() - started) * 1000),
            )

    def _browser(self, scope: Scope, headers: Headers) -> Browser:
        """Follow X-Forwarded-For from here outwards, as long as the address is that of a proxy we trust."""
        client = scope.get("client")
        address = _parsed(client[0] if client else "")
        secure = scope.get("scheme") == "https"
        if not self._settings.trusts(address):
            forwarded = any(name in headers for name in ("x-forwarded-for", "forwarded", "x-real-ip"))
            # A proxy that nobody told us of: the browser is elsewhere, wherever the connection comes from.
            return Browser(None if forwarded else address, secure)
        if headers.get("x-forwarded-proto"):
            secure = headers["x-forwarded-proto"].strip().lower() == "https"
        for hop in reversed(",".join(headers.getlist("x-forwarded-for")).split(",")[-16:]):
            address = _parsed(hop.strip())
            if not self._settings.trusts(address):
                break
        return Browser(address, secure)

    def _refusal(self, scope: Scope, headers: Headers, browser: Browser) -> tuple[int, str] | None:
        hosts = headers.getlist("host")
        if len(hosts) != 1 or host_of(hosts[0]) not in self._settings.hosts:
            return 421, "these pages are not served under this name (the option --name sets it)"
        if len(scope.get("raw_path", b"")) + len(scope.get("query_string", b"")) > _URL_BYTES:
            return 414, "this address is too long"
        if scope["method"] in {"GET", "HEAD"}:
            return None
        return self._refused_form(scope, headers, browser)

    @staticmethod
    def _refused_form(scope: Scope, headers: Headers, browser: Browser) -> tuple[int, str] | None:
        hosts = headers.getlist("host")
        if scope["method"] != "POST":
            return 405, "these pages take GET and POST"
        if not _from_our_page(headers, hosts[0], browser):
            return 403, "this form was not sent from a page of this server"
        if headers.get("content-type", "").partition(";")[0].strip() != "application/x-www-form-urlencoded":
            return 415, "these pages take forms"
        length = headers.get("content-length", "0")
        if not length.isdigit() or int(length) > FORM_BYTES:
            return 413, _TOO_LARGE
        return None


def _from_our_page(headers: Mapping[str, str], host: str, browser: Browser) -> bool:
    """Whether a browser says that the request was made by a page of this very origin."""
    site = headers.get("sec-fetch-site")
    if site is not None:
        return site == "same-origin"
    return headers.get("origin") == f"{'https' if browser.secure else 'http'}://{host}"


def _parsed(text: str) -> Address | None:
    host = text[1:].partition("]")[0] if text.startswith("[") else text
    host = host.partition(":")[0] if host.count(":") == 1 else host
    try:
        address = ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return None
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return mapped or address


def _harden(headers: MutableHeaders, *, secure: bool) -> None:
    for name, value in _HEADERS.items():
        headers.setdefault(name, value)
    headers.setdefault("cache-control", "no-store")
    if secure:
        headers.setdefault("strict-transport-security", _HSTS)


def _bounded(receive: Receive) -> Receive:
    """Read a body of at most FORM_BYTES, in a limited time."""
    seen, until = 0, time.monotonic() + _FORM_SECONDS
    done = False

    async def bounded() -> Message:
        nonlocal seen, done
        if done:
            return await receive()  # waits for the browser to leave
        try:
            message = await asyncio.wait_for(receive(), max(0.001, until - time.monotonic()))
        except TimeoutError:
            raise HTTPException(408, "this form did not arrive in time") from None
        if message["type"] == "http.request":
            seen += len(message.get("body", b""))
            done = not message.get("more_body", False)
            if seen > FORM_BYTES:
                raise HTTPException(413, _TOO_LARGE)
        return message

    return bounded


async def _plain(send: Send, status: int, text: str) -> None:
    body = f"{text}\n".encode()
    headers = [(b"content-type", b"text/plain; charset=utf-8"), (b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
