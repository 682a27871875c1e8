"""SQLite in a data directory as an end of a move.

It is filled under other names (log.db.moving, access.db.moving), which are changed when everything is there. The file
`moved` says where everything was moved from here.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, suppress
from pathlib import Path
from typing import Any

from ldp_client.errors import InvalidSpec
from ldp_server.moving.embedded_rows import SLICED, owner_of, put
from ldp_server.moving.ends import CollectionRow, End, PeriodRow, RecordRow, TokenRows
from ldp_server.moving.pieces import RECORDS, SLICE, Batches, Key, Piece, PieceKind, Tally
from ldp_server.store import blocks
from ldp_server.store.access import AccessFile
from ldp_server.store.catalog import period_check
from ldp_server.store.damage import check_rows
from ldp_server.store.directory import DataDirectory, DirectoryLock
from ldp_server.store.errors import Corrupt, InUse, StorageError, translated
from ldp_server.store.schema import SEQUENCE_BITS, connect, open_log, transaction
from ldp_server.store.sqlite import SqliteLog
from ldp_server.volunteers.kept import FILE as VOLUNTEERS

__all__ = ["EmbeddedEnd"]

_COUNTED = {
    "collections": "SELECT count(*) FROM collections",
    "periods": "SELECT count(*) FROM periods",
    "blocks": "SELECT count(*) FROM blocks",
    "batches in blocks": "SELECT count(*) FROM batches",
    "recent batches": "SELECT count(*) FROM recent",
    "bytes of reports": "SELECT coalesce((SELECT sum(bytes) FROM blocks), 0) + "
    "coalesce((SELECT sum(length(payload)) FROM recent), 0)",
    "used tokens": "SELECT count(*) FROM used_tokens",
    "sealed units": "SELECT count(*) FROM counted_units",
    "parts of folded counts": "SELECT count(*) FROM folded_state f JOIN periods p ON p.number = f.number "
    "AND p.generation = f.generation WHERE NOT p.dropped",
}
_MOVING = (
    "CREATE TABLE moving (origin TEXT NOT NULL) STRICT",
    "CREATE TABLE moved_pieces (kind INTEGER, owner INTEGER, part INTEGER, digest BLOB, "
    "PRIMARY KEY (kind, owner, part)) STRICT, WITHOUT ROWID",
)


class EmbeddedEnd(End):
    """A data directory."""

    def __init__(self, data: Path) -> None:
        self.name = str(data)
        self._directory = DataDirectory(data)
        self._log, self._tokens = self._directory.log, self._directory.access
        self._draft = self._directory.moving
        self._token_draft = data / "access.db.moving"
        self._records, self._record_draft = data / VOLUNTEERS, data / f"{VOLUNTEERS}.moving"
        self._stack = ExitStack()
        self._db: sqlite3.Connection | None = None
        self._held: sqlite3.Connection | None = None
        """Volunteers' records, which nobody else changes meanwhile."""

    def hold(self) -> None:
        self._directory.require()
        self._lock()
        log = SqliteLog(self._log)
        try:
            while log.sweep():
                pass
        finally:
            log.close()
        AccessFile(self._tokens, lambda: 0.0).close()  # made if there is none
        self._open(self._log)
        if self._records.exists():  # a curator may be using it, and needs no server
            with translated(self._records):
                self._held = self._stack.enter_context(closing(connect(self._records)))
                self._held.execute("PRAGMA secure_delete = ON")
                self._held.execute("BEGIN IMMEDIATE")

    def _lock(self) -> None:
        try:
            self._stack.enter_context(DirectoryLock(self._directory))
        except InUse as error:
            raise InUse(f"{error}: stop that server, then move its data") from error

    def _open(self, path: Path) -> sqlite3.Connection:
        self._db = open_log(path)
        self._stack.callback(self._db.close)
        return self._db

    @property
    def _opened(self) -> sqlite3.Connection:
        if self._db is None:
            raise AssertionError("opened by `hold` or `begin`")
        return self._db

    def _ask(self, query: str, values: Sequence[object] = ()) -> list[Any]:
        with translated(self._log):
            return self._opened.execute(query, values).fetchall()

    def moved_to(self) -> str | None:
        return self._directory.moved_to()

    def leave(self, target: str) -> None:
        draft = self._directory.moved.with_suffix(".draft")
        with translated(draft), draft.open("w", encoding="utf-8") as file:
            file.write(f"{target}\n")
            file.flush()
            os.fsync(file.fileno())
        with translated(draft):
            draft.replace(self._directory.moved)
        self._durable()

    def forget_volunteers(self) -> None:
        if self._held is None:
            return
        with translated(self._records):
            self._held.execute("DELETE FROM records")
            self._held.execute("COMMIT")
            self._held.execute("PRAGMA wal_checkpoint(TRUNCATE)")

    def _durable(self) -> None:
        """Make the names of the directory durable."""
        with translated(self._directory.root):
            handle = os.open(self._directory.root, os.O_RDONLY)
            try:
                os.fsync(handle)
            finally:
                os.close(handle)

    def begin(self, origin: str) -> dict[Key, bytes]:
        root = self._directory.root
        with translated(root):
            root.mkdir(parents=True, exist_ok=True, mode=0o700)
            self._directory.states.mkdir(exist_ok=True, mode=0o700)
        self._lock()
        if self._log.exists():
            raise InvalidSpec(f"{root} holds a log already: name a directory that is empty or not there yet")
        with translated(self._draft):
            os.close(os.open(self._draft, os.O_WRONLY | os.O_CREAT, 0o600))
        db = self._open(self._draft)
        with translated(self._draft):
            if not db.execute("SELECT 1 FROM sqlite_schema WHERE name = 'moving'").fetchone():
                self._write(lambda: [db.execute(statement) for statement in _MOVING])
                self._write(lambda: db.execute("INSERT INTO moving VALUES (?)", (origin,)))
            found = db.execute("SELECT origin FROM moving").fetchone()
            if found is None:  # killed between the two
                self._write(lambda: db.execute("INSERT INTO moving VALUES (?)", (origin,)))
            elif found[0] != origin:
                raise InvalidSpec(
                    f"{root} was begun from another store, or that one has changed since: --again begins anew"
                )
            rows = db.execute("SELECT kind, owner, part, digest FROM moved_pieces").fetchall()
        return {Key(*row[:3]): row[3] for row in rows}

    def _write(self, work: Any) -> None:
        with translated(self._draft), transaction(self._opened):
            work()

    def unfinished(self) -> bool:
        return self._draft.exists() and not self._log.exists()

    def write(self, pieces: Sequence[Piece], digests: Sequence[bytes]) -> None:
        def work() -> None:
            for piece, digest in zip(pieces, digests, strict=True):
                put(self._opened, piece, self._token_draft, self._record_draft)
                self._opened.execute("INSERT INTO moved_pieces VALUES (?, ?, ?, ?)", (*piece.key, digest))

        self._write(work)
        with translated(self._draft):
            self._opened.execute("PRAGMA wal_checkpoint(PASSIVE)")

    def finish(self) -> None:
        with translated(self._draft):
            self._opened.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            self._opened.close()
            # In this order: no server starts in a directory with tokens and without a log.
            if self._token_draft.exists():
                self._token_draft.replace(self._tokens)
            if self._record_draft.exists():
                self._record_draft.replace(self._records)
            self._draft.replace(self._log)
        self._durable()
        self._open(self._log)
        self._write(lambda: [self._opened.execute(f"DROP TABLE {table}") for table in ("moving", "moved_pieces")])

    def discard(self) -> None:
        with translated(self._draft):
            for path in (self._draft, self._token_draft, self._record_draft):
                for suffix in ("", "-wal", "-shm", "-journal"):
                    path.with_name(path.name + suffix).unlink(missing_ok=True)

    def close(self) -> None:
        with suppress(sqlite3.Error):
            self._stack.close()

    def tally(self) -> Tally:
        found = {name: int(self._ask(query)[0][0]) for name, query in _COUNTED.items()}
        records = self._of_volunteers("SELECT count(*) FROM records", ())
        return {
            **found,
            "volunteers' records": records[0][0] if records else 0,
            "analysts' tokens": len(self._access()[1]),
        }

    def _collections(self) -> list[CollectionRow]:
        columns = "number, id, spec, public, admission, reports_per_token, created, closed, deleted, compacted, oldest"
        return self._ask(f"SELECT {columns} FROM collections ORDER BY number")  # noqa: S608 - ours

    def _periods(self) -> list[PeriodRow]:
        rows = self._ask(
            "SELECT number, collection, period, folded, folded_batches, folded_reports, generation, folded_digest, "
            "dropped, tag FROM periods ORDER BY number"
        )
        if any(row[9] != period_check(*row[:3]) for row in rows):
            raise Corrupt("the row of a collection is damaged: restore a backup (docs/operating.md)")
        with translated(self._log):
            return [(*row[:3], blocks.last(self._opened, row[0]), *row[3:9]) for row in rows]

    def _blocks(self, number: int, after: int) -> Iterator[tuple[int, bytes, Batches]]:
        start = number << SEQUENCE_BITS
        ends = "SELECT last, tie FROM blocks WHERE number = ? AND last > ? ORDER BY last"
        for last, tie in self._ask(ends, (number, after)):
            rows = self._ask(
                "SELECT position, batch_id, payload, digest FROM batches WHERE position > ? AND position <= ? "
                "ORDER BY position",
                (start + after, start + last),
            )
            check_rows(rows, start + after)
            if len(rows) != last - after:
                raise Corrupt("batches of a block are missing: restore a backup (docs/operating.md)")
            after = last
            yield last, tie, Batches([r[1] for r in rows], [r[3] for r in rows], [r[2] for r in rows], [])

    def _recent(self, number: int) -> Batches | None:
        low = number << SEQUENCE_BITS
        between = (low - 1, low + (1 << SEQUENCE_BITS))
        columns = "place, batch_id, payload, digest, token_id"
        order = "WHERE place > ? AND place < ? ORDER BY batch_id"
        rows = self._ask(f"SELECT {columns} FROM recent {order}", between)  # noqa: S608 - ours
        with translated(self._log):
            blocks.recent(self._opened, number, owner_of(self._opened, number))  # compares rows, index and digests
        found = Batches([r[1] for r in rows], [r[3] for r in rows], [r[2] for r in rows], [r[4] or b"" for r in rows])
        return found if rows else None

    def _names(self, kind: PieceKind, collection: int, after: bytes | None, skip: int) -> list[bytes]:
        table, column = SLICED[kind]
        rows = self._ask(
            f"SELECT {column} FROM {table} WHERE collection = ? AND {column} > ? ORDER BY {column} LIMIT ? OFFSET ?",  # noqa: S608
            (collection, after or b"", SLICE, skip),
        )
        return [row[0] for row in rows]

    def _parts(self, number: int, generation: int, after: int) -> Iterator[tuple[int, bytes]]:
        query = "SELECT data FROM folded_state WHERE number = ? AND generation = ? AND part = ?"
        while rows := self._ask(query, (number, generation, after + 1)):
            after += 1
            yield after, rows[0][0]

    def _access(self) -> tuple[bytes, TokenRows]:
        path = self._tokens if self._tokens.exists() else self._token_draft
        if not path.exists():
            return b"", []
        with translated(path):
            db = sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)
            try:
                salt = db.execute("SELECT salt FROM salt").fetchone()[0]
                return salt, db.execute("SELECT * FROM tokens WHERE NOT local ORDER BY id").fetchall()
            except sqlite3.OperationalError as error:
                raise StorageError(f"{path} cannot be read: {error}") from error
            finally:
                db.close()

    def _of_volunteers(self, query: str, values: Sequence[object]) -> list[Any]:
        path = self._records if self._records.exists() else self._record_draft
        if not path.exists():
            return []
        with translated(path), closing(connect(path, read_only=True)) as db:
            return db.execute(query, values).fetchall()

    def _volunteers(self, after: RecordRow | None, skip: int) -> list[RecordRow]:
        condition = "" if after is None else "WHERE (collection_id, name) > (?, ?) "
        query = (
            f"SELECT collection_id, name, sealed, used FROM records {condition}"  # noqa: S608 - ours
            "ORDER BY collection_id, name LIMIT ? OFFSET ?"
        )
        return self._of_volunteers(query, (*(after or ())[:2], RECORDS, skip))
