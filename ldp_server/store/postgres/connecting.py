"""Connections to PostgreSQL, and what a server must be like for the store to rely on it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from ldp_client.errors import InvalidSpec
from ldp_server.store.errors import Corrupt, ReadOnly, StorageError, WrongVersion
from ldp_server.store.postgres.arrays import register
from ldp_server.store.postgres.failures import failure, translated
from ldp_server.store.postgres.schema import VERSION

__all__ = ["Connection", "Destination", "Family", "ShardPlace"]

Connection = psycopg.Connection[tuple[object, ...]]

OLDEST_SERVER = 150_000
"""PostgreSQL 15."""
_DEFAULTS = {
    "application_name": "hearsay",
    "connect_timeout": "5",
    "keepalives_idle": "10",
    "keepalives_interval": "5",
    "keepalives_count": "3",
    "tcp_user_timeout": "20000",
}
_SESSION = (
    # A statement that waits for a standby must not be cancelled: it would return as if it had succeeded.
    "SET statement_timeout = 0",
    "SET idle_in_transaction_session_timeout = '60s'",
    "SET client_connection_check_interval = '2s'",
    "SET lock_timeout = '30s'",
    # Plans are made once, and look ids up by index even if they were made when a table was empty.
    "SET plan_cache_mode = force_generic_plan",
    "SET enable_seqscan = off",
    "SET enable_partition_pruning = on",
    "SET jit = off",
    "SET client_encoding = 'UTF8'",
    "SET bytea_output = 'hex'",
)
_ABOUT = (
    "SELECT current_setting('server_version_num')::integer, pg_is_in_recovery(), current_setting('fsync'), "
    "current_setting('full_page_writes'), current_setting('synchronous_commit'), "
    "current_setting('server_encoding'), to_regnamespace('hearsay') IS NOT NULL, "
    "to_regclass('hearsay.version') IS NOT NULL, to_regclass('hearsay.moving') IS NOT NULL, "
    "to_regclass('hearsay.moved') IS NOT NULL"
)


class Family:
    """Databases that belong together: one of another store must not be taken for one of these."""

    def __init__(self) -> None:
        self._found: tuple[object, str] | None = None

    def check(self, family: object, name: str) -> None:
        """Take the first one that is seen; refuse another one."""
        known = self._found = self._found or (family, name)
        if known[0] != family:
            raise WrongVersion(f"{name} and {known[1]} belong to different stores: correct store")


class ShardPlace(NamedTuple):
    """Which one of several databases an address is said to be."""

    place: int = 0
    shards: int = 1
    family: Family | None = None

    def check(self, row: Sequence[object] | None, name: str) -> None:
        """Compare it with what the database says of itself: place, number of databases, family."""
        if row is None:
            if self.shards > 1:
                raise WrongVersion(f"{name} is not one of several databases yet: run `ldp-server store prepare`")
            return
        if (row[0], row[1]) != (self.place, self.shards):
            place, shards = int(str(row[0])) + 1, row[1]
            said = f"number {self.place + 1} of {self.shards}" if self.shards > 1 else "the only one"
            raise WrongVersion(
                f"{name} is number {place} of {shards} databases, and store names it as {said}: name all in their order"
            )
        if self.family is not None:
            self.family.check(row[2], name)


class Destination:
    """A database by its address. Nothing is opened before `connect`."""

    def __init__(self, address: str, place: ShardPlace = ShardPlace()) -> None:  # noqa: B008 - it never changes
        self._place = place
        try:
            parts = conninfo_to_dict(address)
        except psycopg.ProgrammingError as error:
            raise InvalidSpec(f"store is not an address of PostgreSQL: {str(error).splitlines()[0]}") from None
        self.address = address
        self._conninfo = make_conninfo("", **{**_DEFAULTS, **parts})
        host, port = str(parts.get("host") or "localhost"), parts.get("port")
        self.name = f"postgresql://{host}{f':{port}' if port else ''}/{parts.get('dbname') or ''}"
        """For people: without user and password."""

    @property
    def conninfo(self) -> str:
        """The address with our settings for what it leaves open."""
        return self._conninfo

    def open(self) -> Connection:
        """Open a connection, whatever is at its other end."""
        try:
            connection = psycopg.connect(self._conninfo, autocommit=True)
        except psycopg.OperationalError as error:
            reason = next((line for line in str(error).splitlines() if line.strip()), "no answer")
            raise StorageError(f"cannot reach {self.name}: {_reason(reason)}") from None
        except psycopg.Error as error:
            raise failure(error, self.name) from error
        register(connection)
        return connection

    def connect(self, *, writes: bool) -> Connection:
        """Open a connection to a server that is fit to be relied on."""
        connection = self.open()
        try:
            with translated(self.name):
                for statement in _SESSION:
                    connection.execute(statement.encode())
                self._check(connection, writes=writes)
        except BaseException:
            connection.close()
            raise
        return connection

    def _check(self, connection: Connection, *, writes: bool) -> None:
        self.check_server(connection, writes=writes)
        row = connection.execute(_ABOUT).fetchone()
        if row is None or not row[7]:
            other = "holds a schema named hearsay that is not ours" if row and row[6] else "has no Hearsay schema"
            raise WrongVersion(f"{self.name} {other}: run `ldp-server store prepare`, or name another database")
        if row[8]:
            raise StorageError(f"{self.name} is being filled by `ldp-server migrate`: run that to its end first")
        if row[9]:
            raise StorageError(
                f"everything in {self.name} was moved to another store: serve that one. To serve this one all the "
                "same, without what came there since, drop the table hearsay.moved"
            )
        found = connection.execute("SELECT number FROM hearsay.version").fetchone()
        if found is None or not isinstance(found[0], int):
            raise Corrupt(f"{self.name} does not say which version its schema has: restore a backup")
        if found[0] > VERSION:
            raise WrongVersion(
                f"{self.name} has schema version {found[0]}, this program knows up to {VERSION}: use a newer one"
            )
        if found[0] < VERSION:
            raise WrongVersion(
                f"{self.name} has schema version {found[0]}, this program needs {VERSION}: "
                "run `ldp-server store prepare`"
            )
        self._place.check(connection.execute("SELECT place, shards, family FROM hearsay.shard").fetchone(), self.name)

    def check_server(self, connection: Connection, *, writes: bool) -> None:
        """Refuse a server that would not keep what it acknowledges, or that this program was not written for."""
        row = connection.execute(_ABOUT).fetchone()
        if row is None:
            raise StorageError(f"{self.name} gives no answer about itself")
        version, standby, fsync, whole_pages, commit, encoding = row[:6]
        if not isinstance(version, int) or version < OLDEST_SERVER:
            raise WrongVersion(f"{self.name} is a server of version {version}, and 15 is the oldest that is supported")
        if encoding != "UTF8":
            raise WrongVersion(f"{self.name} has the encoding {encoding}: make the database with ENCODING 'UTF8'")
        if not writes:
            return
        if standby:
            raise ReadOnly(f"{self.name} is a standby: name the primary (target_session_attrs=read-write)")
        if fsync != "on" or whole_pages != "on":
            raise StorageError(f"{self.name} has fsync or full_page_writes off, and could lose what it acknowledged")
        if commit in {"off", "local", "remote_write"}:
            connection.execute("SET synchronous_commit = on")


def _reason(line: str) -> str:
    """What libpq says, without the list of addresses it tried."""
    return line.rpartition("failed: ")[2].strip() or line.strip()
