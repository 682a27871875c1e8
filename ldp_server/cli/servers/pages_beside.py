"""The pages of `ldp-server serve --web`: a process beside the server."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

from ldp_client.errors import InvalidSpec
from ldp_server.child import ended, safe_command, safe_environment
from ldp_server.config import Config
from ldp_server.service.logs import event

__all__ = ["pages_beside", "say_pages"]

_PATIENCE = 60.0
_STOP = 10.0


def say_pages(address: str, once: str | None, *, as_json: bool) -> None:
    """Print where the pages are, and the link that signs the owner in, if there is one."""
    if as_json:
        sys.stdout.write(json.dumps({"pages": address, "link": once}) + "\n")
    else:
        sys.stdout.write(f"pages on {address}\n")
        if once is not None:
            sys.stdout.write(f"sign in with this link, which works once and for ten minutes:\n  {once}\n")
    sys.stdout.flush()


def _options(config: Config, *, as_json: bool = False) -> Sequence[str]:
    pages = config.web
    options = ["--data", str(config.data), "--listen", pages.listen, "--until-stdin-closes", "--json"]
    options.append(f"--log-format={'json' if as_json else config.watch.log_format}")
    options += [f"--name={name}" for name in pages.names]
    options += [f"--trusted-proxy={address}" for address in pages.trusted_proxies]
    if pages.certificate is not None:
        options.append(f"--pages-cert={pages.certificate}")
    if pages.key is not None:
        options.append(f"--pages-key={pages.key}")
    options += ["--plaintext"] * pages.plaintext + ["--public"] * pages.public
    if pages.released is not None:
        options.append(f"--released={pages.released}")
    if pages.curator_releases is not None:
        options += [f"--curator-releases={pages.curator_releases}", f"--curator-key={pages.curator_key}"]
    return [*options, "--link" if sys.stdout.isatty() and not pages.names else "--no-link"]


@asynccontextmanager
async def pages_beside(config: Config, *, as_json: bool) -> AsyncIterator[None]:
    """Run the pages in a process of their own while the block runs, if the configuration has an address for them.

    They ask this server as any analyst does. A reader of pages therefore takes no time of the serving process.
    """
    if not config.web.listen:
        yield
        return
    child = await asyncio.create_subprocess_exec(
        *safe_command("ldp_server", "web", *_options(config, as_json=as_json)),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        env={**safe_environment(), "LDP_SERVER": ""},
        start_new_session=True,  # Ctrl-C is for the server; it stops the pages
    )
    try:
        assert child.stdout is not None  # noqa: S101 - opened above
        line = await asyncio.wait_for(child.stdout.readline(), _PATIENCE)
        if not line:
            raise InvalidSpec("the pages did not start: the line above says why (the setting web.listen)")
        found = json.loads(line)
        say_pages(found["pages"], found["link"], as_json=as_json)
        event(logging.INFO, "pages", listening=found["pages"])
        yield
    finally:
        await _end(child)


async def _end(child: asyncio.subprocess.Process) -> None:
    if child.stdin is not None:
        child.stdin.close()
    with contextlib.suppress(ProcessLookupError):
        try:
            await asyncio.wait_for(child.wait(), _STOP)
        except TimeoutError:
            child.kill()
    await ended(child)
