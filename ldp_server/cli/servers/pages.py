"""web: the pages for analysts and operators; and the same pages beside `serve`."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import click

from ldp_client.errors import InvalidSpec, LdpError
from ldp_client.sending.target import Tls
from ldp_server.analyst import Analyst
from ldp_server.analyst.connection import read_token
from ldp_server.cli.connection import data_option, tls_of
from ldp_server.cli.main import cli
from ldp_server.cli.servers.pages_beside import say_pages
from ldp_server.extra import extra
from ldp_server.service.logs import set_up_logs
from ldp_server.store import DataDirectory

__all__ = ["web"]

_FILE = click.Path(path_type=Path, dir_okay=False)


@cli.command()
@click.option("--server", envvar="LDP_SERVER", metavar="HOST:PORT", help="The server. [default: that of --data]")
@data_option
@click.option("--ca", type=_FILE, envvar="LDP_SERVER_CA", help="PEM: the authority that signed the server.")
@click.option("--cert", type=_FILE, envvar="LDP_SERVER_CERT", help="PEM: a client certificate to show the server.")
@click.option("--key", type=_FILE, envvar="LDP_SERVER_KEY", help="PEM: its key.")
@click.option(
    "--listen", default="127.0.0.1:7980", show_default=True, metavar="HOST:PORT", help="Where browsers connect."
)
@click.option(
    "--name", "names", multiple=True, metavar="HOST", help="A name by which browsers reach the pages; repeatable."
)
@click.option("--pages-cert", type=_FILE, help="PEM: the certificate of the pages.")
@click.option("--pages-key", type=_FILE, help="PEM: its key.")
@click.option("--plaintext", is_flag=True, help="Allow plain text from elsewhere, behind a proxy that has TLS.")
@click.option(
    "--trusted-proxy",
    "proxies",
    multiple=True,
    metavar="ADDRESS",
    help="A proxy whose headers are believed; repeatable.",
)
@click.option(
    "--link/--no-link",
    default=None,
    help="Print a link that signs the owner of --data in, once. [default: on a terminal, for this machine]",
)
@click.option("--public", is_flag=True, help="Let everybody read at /public what is asked, without any answer.")
@click.option(
    "--released",
    type=click.Path(path_type=Path, file_okay=False),
    help="With --public: the folder of the answers that everybody may read; a query's --release writes them.",
)
@click.option(
    "--curator-releases",
    type=click.Path(path_type=Path, file_okay=False),
    help="A folder of a curator's releases, shown beside the reports to those who are signed in.",
)
@click.option("--curator-key", type=_FILE, help="With --curator-releases: the curator's public key.")
@click.option("--truth", type=_FILE, hidden=True, help="What a demo knows of its simulated users, as JSON.")
@click.option("--log-format", type=click.Choice(["text", "json"]), hidden=True, help="Of the logs alone.")
@click.option("--until-stdin-closes", is_flag=True, help="Also stop when standard input is closed.")
@click.option("--json", "as_json", is_flag=True, help="Logs, and the line that says where it listens, as JSON.")
def web(**options: Any) -> None:
    """Serve pages for analysts and operators until told to stop (SIGTERM, Ctrl-C).

    Whoever opens them signs in with an analyst token, and sees and does what the token allows.
    """
    with extra("ldp-server web", "web"):
        from ldp_server.web import CuratedReleases, Site, WebSettings, serve_pages  # noqa: PLC0415 - an extra

    settings = WebSettings(
        listen=options["listen"],
        names=options["names"],
        certificate=options["pages_cert"],
        key=options["pages_key"],
        plaintext=options["plaintext"],
        trusted_proxies=options["proxies"],
    )
    server, data = options["server"], options["data"]
    tls = tls_of(options["ca"], options["cert"], options["key"])
    link = options["link"]
    if link is None:
        link = settings.is_local and server is None and sys.stdout.isatty()
    if link and not settings.is_local:
        raise InvalidSpec("--link is for pages on this machine's own address: elsewhere, sign in with a token")
    set_up_logs("info", options["log_format"] or ("json" if options["as_json"] else "text"))

    def connect(token: str | None) -> Analyst:
        return _reach(server, data, token, tls)

    def started(address: str, once: str | None) -> None:
        say_pages(address, once, as_json=options["as_json"])

    if options["public"] and server is not None:
        raise InvalidSpec("--public asks with the token of a data directory: give --data, and no --server")
    if options["released"] is not None and not options["public"]:
        raise InvalidSpec("--released is for the public pages: add --public")
    truth = _truth(options["truth"])
    curated = CuratedReleases.of_options(options["curator_releases"], options["curator_key"])
    site = Site(settings, connect, lambda: _owner_token(data), truth, options["public"], options["released"], curated)
    serve_pages(site, started, link=link, until_stdin_closes=options["until_stdin_closes"])


def _reach(server: str | None, data: Path, token: str | None, tls: Tls | None) -> Analyst:
    return Analyst.reach(server, data, token=token, tls=tls)


def _owner_token(data: Path) -> str | None:
    try:
        return read_token(DataDirectory(data).local_token)
    except LdpError:
        return None


def _truth(file: Path | None) -> dict[str, dict[Any, int]]:
    """What a demo knows of its simulated users: {collection's id: {item: users}}."""
    if file is None:
        return {}
    try:
        found: dict[str, dict[Any, int]] = json.loads(file.read_text("utf-8"))
    except (OSError, ValueError):
        raise InvalidSpec(f"cannot read {file}: a JSON object of collections") from None
    return found
