"""Analysts' tokens on PostgreSQL: the same for every server that answers analysts."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from psycopg_pool import ConnectionPool

from ldp_server.store.interface.tokens import ROLES, AccessTokens, AnalystToken, TokenRow
from ldp_server.store.postgres.connecting import Connection, Destination
from ldp_server.store.postgres.failures import translated

__all__ = ["PostgresAccess"]

CONNECTIONS = 4
"""The most at the same time."""
PATIENCE = 5.0
"""Seconds for which a look-up waits for one of them."""
_COLUMNS = "id, name, role, created, expires, revoked, local"


class PostgresAccess(AccessTokens):
    """The tokens of one database. Every call looks: a token that is revoked anywhere stops working at once."""

    def __init__(self, destination: Destination, clock: Callable[[], float]) -> None:
        self.clock = clock
        self._name = destination.name
        self._local: list[str] = []
        destination.connect(writes=False).close()  # says in one line what is wrong, which the pool would not
        self._pool: ConnectionPool[Connection] = ConnectionPool(
            destination.conninfo, min_size=1, max_size=CONNECTIONS, timeout=PATIENCE, open=True, name="hearsay-tokens",
            kwargs={"autocommit": True}, check=ConnectionPool.check_connection,
        )  # fmt: skip
        try:
            self._salt = bytes(self._ask("SELECT salt FROM hearsay.salt")[0][0])
        except BaseException:
            self._pool.close()
            raise

    def _ask(self, query: str, values: tuple[object, ...] = ()) -> list[tuple[Any, ...]]:
        with translated(self._name), self._pool.connection() as db:
            cursor = db.execute(query.encode(), values, binary=True)
            return cursor.fetchall() if cursor.description else [(cursor.rowcount,)]

    def changes(self) -> int | None:
        return None

    def create_local(self, lifetime: int) -> str:
        self._ask("DELETE FROM hearsay.analyst_tokens WHERE local AND expires <= %s", (int(self.clock()),))
        name = f"local-{os.urandom(4).hex()}"
        self._local.append(name)
        return self._add(name, ROLES[-1], lifetime, local=True)

    def drop_local(self) -> None:
        self._ask("DELETE FROM hearsay.analyst_tokens WHERE local AND name = ANY(%s)", (self._local,))

    def tokens(self) -> list[AnalystToken]:
        rows = self._ask(f"SELECT {_COLUMNS} FROM hearsay.analyst_tokens ORDER BY created, name")  # noqa: S608 - ours
        return [AnalystToken(*row) for row in rows]

    def _enter(self, row: TokenRow) -> bool:
        token = row.token
        gone = (
            "UPDATE hearsay.analyst_tokens SET revoked = expires WHERE name = %s AND revoked IS NULL AND expires <= %s"
        )
        self._ask(gone, (token.name, token.created))
        values = (token.id, token.name, token.role, token.created, token.expires, None, token.local, row.hash)
        entered = self._ask(
            "INSERT INTO hearsay.analyst_tokens VALUES (%s, %s, %s, %s, %s, %s, %s, %s) ON CONFLICT DO NOTHING", values
        )
        return bool(entered[0][0])

    def _revoke(self, name: str, now: int) -> bool:
        change = "UPDATE hearsay.analyst_tokens SET revoked = least(%s, expires) WHERE name = %s AND revoked IS NULL"
        self._ask(change, (now, name))
        return bool(self._ask("SELECT 1 FROM hearsay.analyst_tokens WHERE name = %s LIMIT 1", (name,)))

    def _row(self, id_: str) -> TokenRow | None:
        # An error says "not now". To call a token unknown because the database is away would be wrong.
        found = self._ask(f"SELECT {_COLUMNS}, hash FROM hearsay.analyst_tokens WHERE id = %s", (id_,))  # noqa: S608
        return TokenRow(AnalystToken(*found[0][:-1]), bytes(found[0][-1])) if found else None

    def close(self) -> None:
        self._pool.close()
