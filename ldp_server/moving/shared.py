"""PostgreSQL as an end of a move.

The table hearsay.moving says that a database is being filled, and which pieces it has. The table hearsay.moved says
where everything was moved from here. While one of them is there no server opens the database (postgres/connecting.py).
Of the old database every lock is held that a change would take, so a server that comes meanwhile is told "not now".
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from typing import Any

from ldp_client.errors import InvalidSpec
from ldp_server.moving.ends import CollectionRow, End, PeriodRow, RecordRow, TokenRows
from ldp_server.moving.pieces import RECORDS, SLICE, Batches, Key, Piece, PieceKind, Tally
from ldp_server.moving.shared_rows import SLICED, put
from ldp_server.store.catalog import period_check
from ldp_server.store.errors import Corrupt, InUse, ReadOnly
from ldp_server.store.postgres import schema
from ldp_server.store.postgres.appending import Notices
from ldp_server.store.postgres.arrays import uuids_of
from ldp_server.store.postgres.connecting import Connection, Destination, ShardPlace
from ldp_server.store.postgres.failures import translated
from ldp_server.store.postgres.log import PostgresLog
from ldp_server.store.postgres.rows import together

__all__ = ["SharedEnd"]

_COUNTED = {
    "collections": "SELECT count(*) FROM hearsay.collections",
    "periods": "SELECT count(*) FROM hearsay.periods",
    "blocks": "SELECT count(*) FROM hearsay.blocks",
    "batches in blocks": "SELECT count(*) FROM hearsay.batch_ids",
    "recent batches": "SELECT count(*) FROM hearsay.recent_ids",
    "bytes of reports": "SELECT coalesce((SELECT sum(length(payload)) FROM hearsay.blocks), 0) + "
    "coalesce((SELECT sum(length(payload)) FROM hearsay.segments), 0)",
    "used tokens": "SELECT count(*) FROM hearsay.used_tokens",
    "sealed units": "SELECT count(*) FROM hearsay.counted_units",
    "parts of folded counts": "SELECT count(*) FROM hearsay.folded_state f JOIN hearsay.periods p "
    "ON p.number = f.number AND p.generation = f.generation WHERE NOT p.dropped",
    "volunteers' records": "SELECT count(*) FROM hearsay.volunteers",
    "analysts' tokens": "SELECT count(*) FROM hearsay.analyst_tokens WHERE NOT local",
}
_NO_SERVERS = (
    "SELECT count(*) = 0 FROM pg_stat_activity WHERE datname = current_database() AND application_name = 'hearsay' "
    "AND pid <> pg_backend_pid()"
)
_MOVING = (
    "CREATE TABLE hearsay.moving (kind integer, owner integer, part bigint, digest bytea, origin text, "
    "PRIMARY KEY (kind, owner, part))"
)
_BUSY = "servers have {name} open: stop all collectors, answerers and upkeep of it, then run this again"
_FILES = Key(0, 0, 0)
"""The row of `moving` that names the old store."""
_FREED_WITHIN = 10.0
"""Seconds. A server's process that has lost its client takes milliseconds to end. On a busy machine it may first have
to finish a commit."""


class SharedEnd(End):
    """The schema `hearsay` of a database, by whoever owns it."""

    def __init__(self, address: str, place: ShardPlace = ShardPlace()) -> None:  # noqa: B008 - it never changes
        """`place` says which one of several databases it is."""
        self._destination = Destination(address, place)
        self._place = place
        self.name = self._destination.name
        self._connection: Connection | None = None
        self._notices = Notices()

    @property
    def _db(self) -> Connection:
        if self._connection is None:
            with translated(self.name):
                self._connection = self._destination.open()
                self._connection.execute("SET application_name = 'hearsay-migrate'")
                self._connection.execute("SET lock_timeout = '30s'")
                self._connection.execute("SET client_min_messages = warning")
                self._connection.add_notice_handler(self._notices.hear)
                self._destination.check_server(self._connection, writes=True)
        return self._connection

    def _ask(self, query: str, values: Sequence[object] = ()) -> list[tuple[Any, ...]]:
        with translated(self.name):
            return self._db.execute(query.encode(), values, binary=True).fetchall()

    def _change(self, *statements: str) -> None:
        with translated(self.name), self._db.transaction():
            for statement in statements:
                self._db.execute(statement.encode())

    def _there(self, table: str) -> bool:
        return bool(self._ask("SELECT to_regclass(%s) IS NOT NULL", (f"hearsay.{table}",))[0][0])

    def _soon(self, query: str, values: Sequence[object] = ()) -> bool:
        """Whether it is so now or soon. PostgreSQL frees the locks of a connection that has ended in its own time."""
        until = time.monotonic() + _FREED_WITHIN
        while not self._ask(query, values)[0][0]:
            if time.monotonic() > until:
                return False
            time.sleep(0.02)
        return True

    def _locked(self, kind: int, number: int) -> bool:
        return self._soon("SELECT pg_try_advisory_lock(%s, %s)", (kind, number))

    def _refuse_servers(self) -> None:
        if not self._soon(_NO_SERVERS):
            raise InUse(_BUSY.format(name=self.name))

    def _refuse_a_part(self) -> None:
        """Refuse one of several databases, unless it is named as such: it does not hold everything of its store."""
        if self._there("shard"):
            row = self._ask("SELECT place, shards, family FROM hearsay.shard")
            self._place.check(row[0] if row else None, self.name)

    def hold(self) -> None:
        if not self._there("version"):
            raise InvalidSpec(f"{self.name} has no Hearsay schema, so there is nothing to move")
        if self._there("moving"):
            raise InvalidSpec(f"{self.name} is itself being filled by `ldp-server migrate`: run that to its end first")
        self._refuse_a_part()
        if not self._ask("SELECT has_schema_privilege('hearsay', 'CREATE')")[0][0]:
            raise ReadOnly(f"{self.name} is moved by the owner of its schema: name that user")
        if self.moved_to() is None:
            self._refuse_servers()
            log = PostgresLog(self._destination)
            try:
                while log.gather() or log.sweep():
                    pass
            finally:
                log.close()
        self._lock()

    def _lock(self) -> None:
        """Every lock that whoever changes something takes, until the connection ends."""
        wanted = [(7903, 0), (7905, 0), (7907, 0)]
        wanted += [(7900, row[0]) for row in self._ask("SELECT number FROM hearsay.collections ORDER BY number")]
        for lock in wanted:
            if not self._locked(*lock):
                raise InUse(_BUSY.format(name=self.name))

    def moved_to(self) -> str | None:
        return str(self._ask("SELECT target FROM hearsay.moved")[0][0]) if self._there("moved") else None

    def leave(self, target: str) -> None:
        if self.moved_to() is not None:
            return
        with translated(self.name), self._db.transaction():
            self._db.execute("CREATE TABLE hearsay.moved (target text NOT NULL)")
            self._db.execute("INSERT INTO hearsay.moved VALUES (%s)", (target,))
        try:
            self._refuse_servers()  # from now on none comes, and this sees those that came before
        except InUse:
            self._change("DROP TABLE hearsay.moved")
            raise
        self._notices.check()

    def forget_volunteers(self) -> None:
        self._change("DELETE FROM hearsay.volunteers")

    def begin(self, origin: str) -> dict[Key, bytes]:
        self._refuse_a_part()
        if not self._there("moving"):
            schema_there = self._there("version")
            with translated(self.name):
                schema.migrate(self._db, self.name)
            if schema_there:
                self._refuse_servers()
            self._be_filled(origin)
        elif not self._locked(7906, 0):
            raise InUse(f"another `ldp-server migrate` is filling {self.name}")
        found = self._ask("SELECT kind, owner, part, digest, origin FROM hearsay.moving")
        if not any(row[4] == origin for row in found):
            raise InvalidSpec(
                f"{self.name} was begun from another store, or that one has changed since: --again begins anew"
            )
        return {Key(*row[:3]): bytes(row[3]) for row in found if row[4] is None}

    def _be_filled(self, origin: str) -> None:
        with translated(self.name), self._db.transaction():
            self._db.execute("LOCK TABLE hearsay.collections, hearsay.analyst_tokens IN EXCLUSIVE MODE")
            empty = self._ask(
                "SELECT NOT EXISTS (SELECT FROM hearsay.collections) "
                "AND NOT EXISTS (SELECT FROM hearsay.analyst_tokens WHERE NOT local) "
                "AND to_regclass('hearsay.moved') IS NULL"
            )
            if not empty[0][0]:
                raise InvalidSpec(f"{self.name} holds collections or tokens already: name an empty database")
            self._db.execute("SELECT pg_advisory_lock(7906, 0)")
            self._db.execute(_MOVING.encode())
            self._db.execute("INSERT INTO hearsay.moving VALUES (%s, %s, %s, NULL, %s)", (*_FILES, origin))
        try:
            self._refuse_servers()
        except InUse:
            self._change("DROP TABLE hearsay.moving")
            raise

    def holds_collections(self) -> bool:
        """Whether there are collections here, and not because a move has begun to fill it."""
        if not self._there("collections") or self._there("moving"):
            return False
        return bool(self._ask("SELECT EXISTS (SELECT FROM hearsay.collections)")[0][0])

    def unfinished(self) -> bool:
        return self._there("moving")

    def write(self, pieces: Sequence[Piece], digests: Sequence[bytes]) -> None:
        with translated(self.name), self._db.transaction(), self._db.pipeline():
            for piece, digest in zip(pieces, digests, strict=True):
                put(self._db, piece)
                self._db.execute("INSERT INTO hearsay.moving VALUES (%s, %s, %s, %s)", (*piece.key, digest))
        self._notices.check()

    def finish(self) -> None:
        self._change("DROP TABLE hearsay.moving")
        self._change("ANALYZE hearsay.batch_ids, hearsay.blocks, hearsay.used_tokens, hearsay.counted_units")
        self._notices.check()

    def discard(self) -> None:
        if self._there("moving"):
            if not self._locked(7906, 0):
                raise InUse(f"another `ldp-server migrate` is filling {self.name}")
            self._change("DROP SCHEMA hearsay CASCADE")

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def tally(self) -> Tally:
        return {name: int(self._ask(query)[0][0]) for name, query in _COUNTED.items()}

    def _collections(self) -> list[CollectionRow]:
        return self._ask(
            "SELECT number, id, spec, public::integer, admission, reports_per_token, created, closed, deleted, "
            "compacted::integer, oldest FROM hearsay.collections ORDER BY number"
        )

    def _periods(self) -> list[PeriodRow]:
        rows = self._ask(
            "SELECT number, collection, period, last, folded, folded_batches, folded_reports, generation, "
            "folded_digest, dropped::integer, tag FROM hearsay.periods ORDER BY number"
        )
        if any(bytes(row[10]) != period_check(*row[:3]) for row in rows):
            raise Corrupt("the row of a collection is damaged: restore a backup (docs/scale-out.md)")
        return [row[:10] for row in rows]

    def _blocks(self, number: int, after: int) -> Iterator[tuple[int, bytes, Batches]]:
        query = (
            "SELECT b.last, uuid_send(b.tie), array_send(b.ids), array_send(b.digests), b.lengths, b.payload "
            "FROM hearsay.periods p JOIN hearsay.blocks b ON b.collection = p.collection AND b.number = p.number "
            "WHERE p.number = %s AND b.last > %s ORDER BY b.last LIMIT %s"
        )
        at_once = 1
        while rows := self._ask(query, (number, after, at_once)):
            for last, tie, ids, digests, lengths, payload in rows:
                held = together(ids, digests, lengths, payload)
                after = last
                yield last, bytes(tie), Batches(held.ids, held.digests, held.payloads, [])
            at_once = max(1, min(64, 8_000_000 // (1 + len(rows[-1][5]))))

    def _recent(self, number: int) -> Batches | None:
        found: list[tuple[bytes, bytes, bytes, bytes]] = []
        for ids, digests, tokens, lengths, payload in self._ask(
            "SELECT array_send(ids), array_send(digests), array_send(tokens), lengths, payload FROM hearsay.segments "
            "WHERE number = %s",
            (number,),
        ):
            held = together(ids, digests, lengths, payload)
            names = [b""] * len(held.ids) if tokens is None else uuids_of(tokens)
            found.extend(zip(*held, names, strict=True))
        found.sort()
        return Batches(*(list(column) for column in zip(*found, strict=True))) if found else None

    def _names(self, kind: PieceKind, collection: int, after: bytes | None, skip: int) -> list[bytes]:
        table, column = SLICED[kind]
        query = (
            f"SELECT array_send(array_agg(g.i)) FROM (SELECT {column} AS i FROM hearsay.{table} WHERE collection = %s "  # noqa: S608
            f"AND {column} > encode(%s, 'hex')::uuid ORDER BY {column} LIMIT %s OFFSET %s) AS g"
        )
        if after is None:  # zeros may be a name
            query = query.replace(f"AND {column} > encode(%s, 'hex')::uuid ", "")
        first = () if after is None else (after,)
        found = self._ask(query, (collection, *first, SLICE, skip))[0][0]
        return uuids_of(found) if found else []

    def _parts(self, number: int, generation: int, after: int) -> Iterator[tuple[int, bytes]]:
        query = "SELECT data FROM hearsay.folded_state WHERE number = %s AND generation = %s AND part = %s"
        while rows := self._ask(query, (number, generation, after + 1)):
            after += 1
            yield after, bytes(rows[0][0])

    def _access(self) -> tuple[bytes, TokenRows]:
        salt = self._ask("SELECT salt FROM hearsay.salt")
        rows = self._ask(
            "SELECT id, name, role, created, expires, revoked, local::integer, hash FROM hearsay.analyst_tokens "
            'WHERE NOT local ORDER BY id COLLATE "C"'
        )
        return bytes(salt[0][0]), rows

    def _volunteers(self, after: RecordRow | None, skip: int) -> list[RecordRow]:
        condition = "" if after is None else "WHERE (collection_id, name) > (%s, %s) "
        query = (
            f"SELECT collection_id, name, sealed, used FROM hearsay.volunteers {condition}"  # noqa: S608 - ours
            "ORDER BY collection_id, name LIMIT %s OFFSET %s"
        )
        return self._ask(query, (*(after or ())[:2], RECORDS, skip))
