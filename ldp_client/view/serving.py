"""The server of the user's page: this machine only, one user, one page.

- It listens on 127.0.0.1. A link that works once opens the page and becomes a cookie. Cookies do not tell ports apart,
  so the pages lie below a secret place, and the cookie is sent for this place only.
- A request must name this very address as its host: a foreign name that points here (DNS rebinding) is refused.
- It takes GET, and POST for its one button. The form must come from this page and carry the session's own secret.
- It logs nothing, and answers nothing to whoever has no cookie.
- It ends with Ctrl-C, with `close`, and when nobody has asked for a while.
"""

from __future__ import annotations

import contextlib
import hmac
import json
import secrets
import socket
import threading
import time
from collections.abc import Callable, Iterable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING
from urllib.parse import parse_qs, urlsplit

from ldp_client.durations import parse_duration
from ldp_client.errors import InvalidSpec, StorageError
from ldp_client.view.content import Sight, UserView, user_view
from ldp_client.view.pages import ICON, STYLE, page, plain_page

if TYPE_CHECKING:
    from typing import Self

    from ldp_client.client import Client
    from ldp_client.collection import Collection

__all__ = ["LocalPage", "serve"]

_Request = socket.socket | tuple[bytes, socket.socket]

HERE = "127.0.0.1"
COOKIE = "hearsay_view"
_FORM_BYTES = 4096
_PATH_BYTES = 2048
_SOCKET_SECONDS = 10.0
_CONNECTIONS = 32
_KEPT = 16
"""How many links wait to be used, and how many sessions there are, at most."""
_POLL_SECONDS = 0.5
_HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; style-src 'self'; img-src 'self'; form-action 'self'; base-uri 'none'; "
        "frame-ancestors 'none'"
    ),
    "X-Frame-Options": "DENY",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}


class LocalPage:
    """The page of one device, until `close` or until nobody has asked for `idle`."""

    def __init__(
        self,
        looked_at: Client | Sight,
        collections: Iterable[Collection] = (),
        *,
        port: int = 0,
        idle: str = "10 minutes",
        reports: int = 10,
    ) -> None:
        self._sight = looked_at if isinstance(looked_at, Sight) else Sight.of(looked_at)
        self._collections, self._reports = tuple(collections), reports
        self._idle = parse_duration(idle, "idle")
        self._place = secrets.token_urlsafe(16)
        self._links: dict[str, str] = {}
        self._sessions: dict[str, str] = {}
        self._lock, self._closing = threading.Lock(), threading.Event()
        self._asked = time.monotonic()
        self._thread: threading.Thread | None = None
        try:
            self._server = _Listener(self, port)
        except (OSError, OverflowError) as error:
            reason = getattr(error, "strerror", None) or str(error)
            raise InvalidSpec(f"the page cannot listen on {HERE}:{port}: {reason}") from None
        self.host = f"{HERE}:{self._server.server_address[1]}"

    def __repr__(self) -> str:
        return f"LocalPage({self.host!r})"

    def link(self) -> str:
        """Return a new link that opens the page once, in one browser."""
        key = secrets.token_urlsafe(32)
        with self._lock:
            _put(self._links, key, "")
        self._asked = time.monotonic()
        return f"http://{self.host}/{self._place}/enter?key={key}"

    def run(self) -> None:
        """Serve until the page is closed or idle."""
        try:
            while not self._closing.is_set() and time.monotonic() - self._asked < self._idle:
                self._server.handle_request()
        finally:
            self._closing.set()
            self._server.server_close()

    def start(self) -> Self:
        """Serve in a thread of its own."""
        self._thread = threading.Thread(target=self.run, name="ldp-client-view", daemon=True)
        self._thread.start()
        return self

    @property
    def running(self) -> bool:
        """Whether the page can still be opened."""
        return not self._closing.is_set()

    def close(self) -> None:
        """End the page."""
        self._closing.set()
        if self._thread is not None:
            with contextlib.suppress(OSError):  # the thread waits for a connection
                socket.create_connection((HERE, self._server.server_address[1]), timeout=1.0).close()
            self._thread.join()
        self._server.server_close()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.close()

    # -- for the handler

    def path_below(self, path: str) -> str | None:
        """Return what follows the secret place; None for any other path."""
        beginning = f"/{self._place}/"
        if not hmac.compare_digest(path[: len(beginning)].encode("utf-8", "replace"), beginning.encode()):
            return None
        return path[len(beginning) :]

    def enter(self, key: str) -> str | None:
        """Use up a link; return the cookie of a new session."""
        with self._lock:
            found = [link for link in self._links if hmac.compare_digest(link.encode(), key.encode("utf-8", "replace"))]
            if not found:
                return None
            del self._links[found[0]]
            session = secrets.token_urlsafe(32)
            _put(self._sessions, session, secrets.token_urlsafe(32))
        return f"{COOKIE}={session}; Path=/{self._place}/; HttpOnly; SameSite=Strict"

    def csrf_of(self, cookies: str) -> str | None:
        """Return the form's secret of the session that these cookies belong to; None without a session."""
        self._asked = time.monotonic()
        given = [part.strip().partition("=") for part in cookies.split(";")]
        values = [value for name, _, value in given if name == COOKIE]
        with self._lock:
            for session, csrf in self._sessions.items():
                if any(hmac.compare_digest(session.encode(), value.encode("utf-8", "replace")) for value in values):
                    return csrf
        return None

    def look(self) -> UserView:
        """Return what there is to see now."""
        return user_view(self._sight, self._collections, self._reports)

    def decide(self, action: str) -> None:
        """Stop or resume."""
        stop = self._sight.storage.stop
        if action == "stop":
            stop.put(int(self._sight.clock.time()))
        else:
            stop.remove()
            self._sight.resumed()


def serve(
    looked_at: Client | Sight,
    collections: Iterable[Collection] = (),
    *,
    started: Callable[[str], object],
    port: int = 0,
    idle: str = "10 minutes",
    reports: int = 10,
) -> None:
    """Serve the page until it is idle or the program is interrupted; `started` is called with the link."""
    local = LocalPage(looked_at, collections, port=port, idle=idle, reports=reports)
    try:
        started(local.link())
        local.run()
    finally:
        local.close()


class _Listener(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    request_queue_size = 2 * _CONNECTIONS
    timeout = _POLL_SECONDS

    def __init__(self, local: LocalPage, port: int) -> None:
        self.local = local
        self._places = threading.BoundedSemaphore(_CONNECTIONS)
        super().__init__((HERE, port), _Handler)

    def process_request(self, request: _Request, client_address: object) -> None:
        if not self._places.acquire(blocking=False):
            self.shutdown_request(request)
            return
        super().process_request(request, client_address)

    def process_request_thread(self, request: _Request, client_address: object) -> None:
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._places.release()

    def handle_error(self, request: object, client_address: object) -> None:
        """A connection that broke is no news; nothing of a request is printed."""


class _Handler(BaseHTTPRequestHandler):
    """One request. HTTP/1.0: every answer ends its connection."""

    server: _Listener
    timeout = _SOCKET_SECONDS
    server_version, sys_version = "hearsay", ""

    def do_GET(self) -> None:
        below = self._below()
        if below is None:
            return
        if below == "enter":
            self._enter()
            return
        csrf = self.server.local.csrf_of(self.headers.get("Cookie", ""))
        if csrf is None:
            self._say(403, "No entry", "This page opens with the link of the command or app that shows it, once.")
        elif below == "":
            self._send(200, "text/html; charset=utf-8", page(self.server.local.look(), csrf))
        elif below == "view.json":
            found = json.dumps(self.server.local.look().as_dict(), ensure_ascii=False)
            self._send(200, "application/json", found + "\n")
        elif below in _FILES:
            self._send(200, *_FILES[below])
        else:
            self._say(404, "There is no such page", "Go back to the page itself.")

    def do_HEAD(self) -> None:
        self.do_GET()

    def do_POST(self) -> None:
        below = self._below()
        if below is None:
            return
        csrf = self.server.local.csrf_of(self.headers.get("Cookie", ""))
        if csrf is None or below not in {"stop", "resume"}:
            self._say(403 if csrf is None else 404, "This was refused", "There is no such form for this browser.")
            return
        if not self._is_own_form(csrf):
            self._say(403, "This was refused", "This form was not sent by this page. Load the page anew and try again.")
            return
        try:
            self.server.local.decide(below)
        except StorageError as error:
            self._say(500, "This could not be done", str(error))
            return
        self._send(303, "text/plain", "", Location=self._top())

    def _below(self) -> str | None:
        """Check host and path; answer and return None if they are not ours."""
        hosts = self.headers.get_all("Host", [])
        if hosts != [self.server.local.host]:
            self._say(421, "Another name", "This page is not served under this name.")
            return None
        path = urlsplit(self.path).path if self.path.startswith("/") and len(self.path) <= _PATH_BYTES else ""
        below = self.server.local.path_below(path)
        if below is None:
            self._say(404, "There is no such page", "Open the link of the command or app that shows the page.")
        return below

    def _enter(self) -> None:
        if self.command != "GET":  # a look by HEAD must not use up the link
            self._say(405, "This was refused", "Open the link in a browser.")
            return
        keys = parse_qs(urlsplit(self.path).query).get("key", [""])
        cookie = self.server.local.enter(keys[0])
        if cookie is None:
            self._say(403, "No entry", "This link was used before. The command or app that printed it makes a new one.")
            return
        self._send(303, "text/plain", "", Location=self._top(), Set_Cookie=cookie)

    def _top(self) -> str:
        return urlsplit(self.path).path.rpartition("/")[0] + "/"

    def _is_own_form(self, csrf: str) -> bool:
        site, length = self.headers.get("Sec-Fetch-Site"), self.headers.get("Content-Length", "")
        own = site == "same-origin" if site else self.headers.get("Origin") == f"http://{self.server.local.host}"
        kind = self.headers.get("Content-Type", "").partition(";")[0].strip()
        form = "application/x-www-form-urlencoded"
        if not own or kind != form or not (length.isascii() and length.isdigit() and int(length) <= _FORM_BYTES):
            return False
        given = parse_qs(self.rfile.read(int(length)).decode("utf-8", "replace")).get("csrf", [""])
        return hmac.compare_digest(given[0].encode(), csrf.encode())

    # -- answering

    def _say(self, status: int, title: str, line: str) -> None:
        self._send(status, "text/html; charset=utf-8", plain_page(title, line))

    def _send(self, status: int, kind: str, text: str, **headers: str) -> None:
        body = text.encode()
        self.send_response(status)
        for name, value in _HEADERS.items():
            self.send_header(name, value)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:  # noqa: ARG002
        """Answer what cannot be read as a request, without its words."""
        self.command = self.command or "GET"
        self._say(code, "This was refused", "This page takes plain requests of a browser only.")

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name of the library
        """Log nothing: paths and queries hold secrets."""


_FILES = {"style.css": ("text/css; charset=utf-8", STYLE), "icon.svg": ("image/svg+xml", ICON)}


def _put(kept: dict[str, str], key: str, value: str) -> None:
    """Keep the newest few."""
    while len(kept) >= _KEPT:
        del kept[next(iter(kept))]
    kept[key] = value
