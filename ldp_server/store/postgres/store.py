"""PostgreSQL as a store: any number of servers, on any number of machines."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

from ldp_client.errors import InvalidSpec
from ldp_server.store.interface.store import Changed, CosignedList, Store, StoreUsage
from ldp_server.store.postgres import schema
from ldp_server.store.postgres.access import PostgresAccess
from ldp_server.store.postgres.connecting import Destination
from ldp_server.store.postgres.failures import translated
from ldp_server.store.postgres.log import PostgresLog
from ldp_server.store.postgres.reader import PostgresReader
from ldp_server.store.postgres.rights import require_rights
from ldp_server.store.postgres.watching import CatalogueWatch

__all__ = ["PostgresStore"]

_SIZE = (
    "SELECT coalesce(sum(pg_total_relation_size(c.oid)), 0) FROM pg_class c "
    "WHERE c.relnamespace = 'hearsay'::regnamespace AND c.relkind = 'r'"
)


class PostgresStore(Store):
    """The schema `hearsay` of one database."""

    shared = True

    def __init__(self, address: str, destination: Destination | None = None) -> None:
        """`destination` is the address as one of several databases."""
        self._destination = destination or Destination(address)
        self.name = self._destination.name

    def serving(self) -> AbstractContextManager[object]:
        return nullcontext()

    def prepare(self, *, roles: bool = False) -> None:
        with self._destination.open() as connection, translated(self.name):
            self._destination.check_server(connection, writes=True)
            schema.migrate(connection, self.name)
            if roles:
                schema.grant(connection)

    def require_rights(self, *, keeps: bool) -> None:
        with self._destination.connect(writes=True) as connection, translated(self.name):
            require_rights(connection, self.name, keeps=keeps)

    def writer(self) -> PostgresLog:
        return PostgresLog(self._destination)

    def reader(self) -> PostgresReader:
        return PostgresReader(self._destination)

    def access(self, clock: Callable[[], float]) -> PostgresAccess:
        return PostgresAccess(self._destination, clock)

    def watch(self, changed: Changed) -> AbstractContextManager[object]:
        return CatalogueWatch(self._destination, changed)

    def keep_cosignatures(self, signatures: Sequence[CosignedList]) -> None:
        with self._destination.connect(writes=True) as connection, translated(self.name):
            for one in signatures:
                connection.execute(b"SELECT hearsay.cosign_1(%s, %s, %s, %s)", one, binary=True)

    def usage(self) -> StoreUsage:
        with self._destination.connect(writes=False) as connection, translated(self.name):
            row = connection.execute(_SIZE.encode()).fetchone()
        return StoreUsage(int(str(row[0])) if row else 0, None)

    def backup(self, target: Path) -> None:
        raise InvalidSpec(
            f"{self.name} is backed up with PostgreSQL's own tools (pg_dump, pg_basebackup; docs/scale-out.md), "
            f"not to {target}"
        )

    def environment(self) -> Mapping[str, str]:
        return {"LDP_SERVER_STORE": self._destination.address}
