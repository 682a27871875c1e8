"""The options that say which server to call, the same for every command that calls one.

A token is never an argument, because every user of the machine can read arguments: it comes from a file. On the
server's own machine the data directory is enough: the server leaves its address, the path of its certificate and a
token for its owner there.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from ldp_client.collection import Collection
from ldp_client.errors import InvalidSpec
from ldp_client.sending.target import Tls
from ldp_server.analyst import Analyst, Which
from ldp_server.store.engines import VARIABLE

__all__ = ["COLLECTION", "connected", "data_option", "json_option", "store_option", "tls_of", "which_argument"]

F = TypeVar("F", bound=Callable[..., Any])

_FILE = click.Path(path_type=Path, dir_okay=False)

data_option = click.option(
    "--data",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path("hearsay-data"),
    show_default=True,
    envvar="LDP_SERVER_DATA",
    help="The data directory of a server on this machine.",
)

store_option = click.option(
    "--store",
    envvar=VARIABLE,
    metavar="ADDRESS",
    help="A store that several servers share, such as postgresql://hearsay@db/hearsay. [default: the data directory]",
)

json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON, with every number in full.")

_OPTIONS = (
    click.option("--server", envvar="LDP_SERVER", metavar="HOST:PORT", help="The server. [default: that of --data]"),
    data_option,
    click.option(
        "--token-file",
        type=_FILE,
        envvar="LDP_SERVER_TOKEN_FILE",
        help="A file with an analyst token. [default: the one in --data, for a server on this machine]",
    ),
    click.option("--ca", type=_FILE, envvar="LDP_SERVER_CA", help="PEM: the authority that signed the server."),
    click.option("--cert", type=_FILE, envvar="LDP_SERVER_CERT", help="PEM: a client certificate to show."),
    click.option("--key", type=_FILE, envvar="LDP_SERVER_KEY", help="PEM: its key."),
)


def connected(command: F) -> F:
    """Give a command an `Analyst` as its first argument, and the options that say which server it calls."""

    @functools.wraps(command)
    def wrapper(*args: Any, server: str | None, data: Path, token_file: Path | None, **kwargs: Any) -> Any:
        tls = tls_of(kwargs.pop("ca"), kwargs.pop("cert"), kwargs.pop("key"))
        with Analyst.reach(server, data, token=token_file, tls=tls) as analyst:
            return command(analyst, *args, **kwargs)

    for option in reversed(_OPTIONS):
        wrapper = option(wrapper)
    return wrapper  # type: ignore[return-value]  # the options change what click sees, not what the caller wrote


def tls_of(ca: Path | None, cert: Path | None, key: Path | None) -> Tls | None:
    """Return the TLS settings of these options."""
    if (cert is None) != (key is None):
        raise InvalidSpec("give both --cert and --key")
    texts = [None if path is None else str(path) for path in (ca, cert, key)]
    return Tls(*texts) if any(texts) else None


class _Collection(click.ParamType):  # type: ignore[type-arg]  # generic in newer versions of click only
    """A collection's id, the first digits of it, or its file."""

    name = "collection"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Which:
        del param, ctx
        return Collection.load(value) if Path(value).suffix in {".ldp", ".toml", ".json"} else value


COLLECTION = _Collection()
which_argument = click.argument("which", metavar="COLLECTION", type=COLLECTION)
"""COLLECTION is an id, its first digits (at least four), or the collection's file."""
