"""The stores there are, by their addresses.

"" is SQLite in the data directory, `postgresql://...` is PostgreSQL, and several such addresses with spaces between are
one store on several databases. Only what is asked for is imported, because
psycopg is an extra.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ldp_client.errors import InvalidSpec
from ldp_server.store.engines.embedded import EmbeddedStore
from ldp_server.store.interface import Store

__all__ = ["VARIABLE", "addresses_of", "check_address", "inherited", "needing_postgres", "open_store"]

SCHEMES = ("postgresql://", "postgres://")
_BETWEEN = re.compile(r"\s+(?=postgres(?:ql)?://)")
VARIABLE = "LDP_SERVER_STORE"
"""Names a store to a child process. An address may have a password in it, and every user can read arguments."""


def addresses_of(text: str) -> list[str]:
    """The addresses of a store's databases, in their order."""
    return _BETWEEN.split(text.strip()) if text.strip() else []


def check_address(address: str) -> None:
    """Refuse what is no address of a store."""
    if address and not all(one.startswith(SCHEMES) for one in addresses_of(address)):
        raise InvalidSpec(
            'store is "" (SQLite in the data directory) or an address such as postgresql://hearsay@db/hearsay'
        )


def open_store(address: str, data: Path) -> Store:
    """Return the store with this address. Nothing is opened yet."""
    check_address(address)
    if not address:
        return EmbeddedStore(data)
    with needing_postgres():
        from ldp_server.store.postgres import PostgresStore  # noqa: PLC0415 - an extra
        from ldp_server.store.sharded.store import ShardedStore  # noqa: PLC0415
    found = addresses_of(address)
    return PostgresStore(found[0]) if len(found) == 1 else ShardedStore(found)


@contextmanager
def needing_postgres() -> Iterator[None]:
    """Say what to install, if an import in the block finds it missing."""
    try:
        yield
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in {"psycopg", "psycopg_pool", "psycopg_binary"}:
            raise
        raise InvalidSpec(
            f"a store on PostgreSQL needs {error.name}, which is not installed here: pip install 'hearsay[postgres]'"
        ) from None


def inherited(data: Path) -> Store:
    """Return the store of the process that started this one."""
    return open_store(os.environ.get(VARIABLE, ""), data)
