"""Serve the pages until told to stop."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import signal
import socket
import sys
from collections.abc import Callable, Iterator

import uvicorn

from ldp_client.errors import InvalidSpec
from ldp_server.child import lower_priority
from ldp_server.web.app import application
from ldp_server.web.settings import WebSettings
from ldp_server.web.site import Site

__all__ = ["Started", "serve_pages"]

_CONNECTIONS = 200
_KEEP_ALIVE_SECONDS = 5
_STOP_SECONDS = 3
_NICENESS = 5
"""Readers of pages wait a little longer, and apps that send reports do not."""

Started = Callable[[str, str | None], None]
"""Called once the pages can be opened: with their address, and with the link that signs in once, if there is one."""


class _Pages(uvicorn.Server):
    """uvicorn, without its own handling of signals and its words on the terminal."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


def serve_pages(site: Site, started: Started, *, link: bool = False, until_stdin_closes: bool = False) -> None:
    """Serve a site. SIGTERM and Ctrl-C end it cleanly; `link` makes a key that signs the owner in once."""
    listening = _listen(site.settings)
    try:
        lower_priority(_NICENESS)
        asyncio.run(_serve(site, listening, started, link=link, until_stdin_closes=until_stdin_closes))
    finally:
        listening.close()
        site.close()


def _listen(settings: WebSettings) -> socket.socket:
    host, port = settings.address
    try:
        return socket.create_server((host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET)
    except (OSError, OverflowError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise InvalidSpec(f"the pages cannot listen on {settings.listen}: {reason}") from None


async def _serve(
    site: Site, listening: socket.socket, started: Started, *, link: bool, until_stdin_closes: bool
) -> None:
    settings = site.settings
    config = uvicorn.Config(
        application(site),
        lifespan="off",
        log_config=None,
        access_log=False,
        proxy_headers=False,
        server_header=False,
        date_header=True,
        ws="none",
        limit_concurrency=_CONNECTIONS,
        timeout_keep_alive=_KEEP_ALIVE_SECONDS,
        timeout_graceful_shutdown=_STOP_SECONDS,
        h11_max_incomplete_event_size=16_384,
        http="h11",
        ssl_certfile=None if settings.certificate is None else str(settings.certificate),
        ssl_keyfile=None if settings.key is None else str(settings.key),
    )
    logging.getLogger("uvicorn").setLevel("WARNING")  # its start and its end are in our own lines
    server = _Pages(config)

    def stop() -> None:
        server.should_exit = True

    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop)
    if until_stdin_closes:
        loop.add_reader(sys.stdin.fileno(), stop)
    address = _address(settings, listening)
    started(address, f"{address}/enter?key={site.keys.make()}" if link else None)
    await server.serve(sockets=[listening])


def _address(settings: WebSettings, listening: socket.socket) -> str:
    port = listening.getsockname()[1]
    host = settings.names[0] if settings.names else settings.address[0]
    shown = f"[{host}]" if ":" in host else host
    return f"{'http' if settings.certificate is None else 'https'}://{shown}:{port}"
