"""The relay's store, behind the writer thread (ldp_server/store/commit.py)."""

from __future__ import annotations

import secrets
import sqlite3
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple, TypeVar

from ldp_client.collection import Collection
from ldp_client.errors import StorageError
from ldp_client.trust.signed_list import SignedHead, SignedList
from ldp_server.relay.store import held, released
from ldp_server.relay.store.released import Ended, Outgoing, Shuffle, system_shuffle
from ldp_server.relay.store.schema import open_relay_log
from ldp_server.store.errors import InUse, Removed, refuse_empty, replaced, translated
from ldp_server.store.log import AppendOutcome, Submission
from ldp_server.store.schema import PAGE, transaction
from ldp_server.store.wal import LogFiles, WalMover, refuse_damaged

__all__ = ["LOSS", "KnownCollection", "RelayLog", "Standing", "standings"]

T = TypeVar("T")

LOSS = "the reports that were held are lost"

PlaceOf = Callable[[int, int], int]
"""The round of a unit that comes now, from its collection's number and the period that its sender names."""

_HELD = (
    "SELECT coalesce(sum(u), 0) FROM (SELECT count(*) u FROM recent WHERE collection = ?1 UNION ALL "
    "SELECT sum(units) FROM blocks WHERE held_in IN (SELECT number FROM groups WHERE collection = ?1))"
)
_WAITING = "SELECT coalesce(sum(units), 0), count(*) FROM released WHERE collection = ?"
_BYTES = (
    "SELECT coalesce(sum(b), 0) FROM (SELECT sum(length(sealed)) b FROM recent WHERE collection = ?1 UNION ALL "
    "SELECT sum(length(payload)) FROM blocks WHERE held_in IN (SELECT number FROM groups WHERE collection = ?1) "
    "UNION ALL SELECT sum(length(payload)) FROM released WHERE collection = ?1)"
)
_NEWEST = "SELECT max(round) FROM groups WHERE collection = ?"


class KnownCollection(NamedTuple):
    """A collection as the store knows it."""

    number: int
    id: bytes
    spec: bytes


class Standing(NamedTuple):
    """How a collection stands."""

    id: bytes
    spec: bytes
    smallest_batch: int
    held: int
    """Reports that wait for a release."""
    outgoing: int
    """Reports that were released and have not arrived yet."""
    short: int
    """How many rounds in a row have ended with too few reports."""
    bytes: int = 0
    """What both take."""
    newest: int | None = None
    """The newest round of which something is held."""


class RelayLog:
    """Writes relay.db. One thread uses it."""

    def __init__(self, path: Path, place: PlaceOf, shuffle: Shuffle = system_shuffle) -> None:
        self.path = path
        self._place = place
        self._shuffle = shuffle
        refuse_empty(path, LOSS)
        refuse_damaged(path)
        with replaced(path, LOSS):
            self._open()

    def _open(self) -> None:
        self.db = open_relay_log(self.path)
        self._files = LogFiles(self.path)
        self._wal = WalMover(self.db, self.path)
        with translated(self.path):
            rows = self.db.execute("SELECT collection, round, period, number FROM groups").fetchall()
            recent = self.db.execute("SELECT held_in, count(*) FROM recent GROUP BY held_in").fetchall()
            self.bytes = self._counted()
        self._groups = {tuple(row[:3]): row[3] for row in rows}
        self._recent: dict[int, int] = dict(recent)
        self._unlaid = bool(recent)
        self._purged = False

    def _counted(self) -> int:
        """How many bytes of units are held or on their way."""
        sizes = [("recent", "sealed"), ("blocks", "payload"), ("released", "payload")]
        return sum(
            self.db.execute(f"SELECT coalesce(sum(length({column})), 0) FROM {table}").fetchone()[0]  # noqa: S608 - ours
            for table, column in sizes
        )

    def close(self) -> None:
        with suppress(StorageError):  # after this the bytes of the file show no order of arrival, if it succeeds
            self.lay_anew()
        self._wal.close()
        self.db.close()

    # -- what the writer thread needs

    def append(self, submissions: Sequence[Submission]) -> list[AppendOutcome]:
        """Hold what is new, and return what became of each submission."""
        outcomes = [AppendOutcome.DUPLICATE] * len(submissions)
        runs: dict[tuple[int, int, int], list[int]] = {}
        for place, one in enumerate(submissions):
            key = one.collection, self._place(one.collection, one.period), one.period
            runs.setdefault(key, []).append(place)
        fresh: dict[tuple[int, int, int], int] = {}
        recent: dict[int, int] = {}

        def work(db: sqlite3.Connection) -> tuple[int, int]:
            size = moved = 0
            for key, places in runs.items():
                group = self._groups.get(key) or fresh.get(key) or _new_group(db, key, fresh)
                run = [submissions[place] for place in places]
                fates, new = held.add(db, group, run)
                for place, fate in zip(places, fates, strict=True):
                    outcomes[place] = fate
                size += new * (len(run[0].payload) // (len(run[0].digest) // held.DIGEST))
                recent[group] = self._recent.get(group, 0) + new
                if recent[group] >= held.BLOCK:
                    moved += held.finish(db, key[0], group, key[1])
                    recent[group] = 0
            return size, moved

        size, moved = self._transaction(work)
        self._groups.update(fresh)
        self._recent.update(recent)
        self.bytes += size
        self._unlaid = True
        self._purged = False
        self._wal.wrote(2 * size + moved + PAGE * (2 + len(submissions) // 8))
        return outcomes

    def tend(self) -> None:
        """Housekeeping between groups."""
        self._wal.tend()

    def recover(self) -> None:
        """Open the file anew and make everything durable, after an error that leaves open what the disk holds."""
        self._wal.close()
        try:
            self._files.check()
        except Removed:
            raise
        except StorageError:
            with translated(self.path):
                if self.db.in_transaction:
                    self.db.execute("ROLLBACK")
            self._move_all()
        self.db.close()
        self._open()
        self._move_all()

    def _move_all(self) -> None:
        with translated(self.path):
            busy = self.db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]
        if busy:
            raise InUse(f"{self.path} is being read by another process for long: it could not be made durable yet")

    # -- rounds

    def end_round(
        self, collection: int, smallest: int, over: int, *, final: bool, remember: int, sure: bool = True
    ) -> Ended:
        """Release, merge or give up what is held up to round `over`, and forget old digests."""

        def work(db: sqlite3.Connection) -> tuple[Ended, int]:
            ended = released.end_round(db, collection, smallest, over, final=final, sure=sure, shuffle=self._shuffle)
            forget = over if final and sure else over - remember
            db.execute("DELETE FROM seen WHERE collection = ? AND round <= ?", (collection, forget))
            return ended, self._counted()

        ended, self.bytes = self._transaction(work)
        with translated(self.path):
            rows = self.db.execute("SELECT collection, round, period, number FROM groups").fetchall()
        self._groups = {tuple(row[:3]): row[3] for row in rows}
        known = set(self._groups.values())
        self._recent = {group: count for group, count in self._recent.items() if group in known}
        self._purged = False
        return ended

    def outgoing(self, beyond: bytes = b"") -> Outgoing | None:
        """The batch with the next id that has not arrived yet, None after the last. Ids are random."""
        with translated(self.path):
            row = self.db.execute(
                "SELECT batch_id, id, period, units, payload FROM released JOIN collections ON number = collection "
                "WHERE batch_id > ? ORDER BY batch_id LIMIT 1",
                (beyond,),
            ).fetchone()
        return None if row is None else Outgoing(*row)

    def forget(self, batch_id: bytes, size: int) -> None:
        """A batch has arrived, or was given up."""
        self._transaction(lambda db: db.execute("DELETE FROM released WHERE batch_id = ?", (batch_id,)))
        self.bytes -= size
        self._purged = False

    # -- collections and the signed list

    def collections(self) -> list[KnownCollection]:
        """The collections that were ever served."""
        with translated(self.path):
            rows = self.db.execute("SELECT number, id, spec FROM collections ORDER BY number").fetchall()
        return [KnownCollection(*row) for row in rows]

    def enter(self, identity: bytes, spec: bytes) -> KnownCollection:
        """Enter a collection, or return it if it is known."""

        def work(db: sqlite3.Connection) -> KnownCollection:
            db.execute("INSERT OR IGNORE INTO collections (id, spec) VALUES (?, ?)", (identity, spec))
            row = db.execute("SELECT number, id, spec FROM collections WHERE id = ?", (identity,)).fetchone()
            return KnownCollection(*row)

        return self._transaction(work)

    def trusted(self) -> SignedList | None:
        """The newest signed list that was accepted."""
        with translated(self.path):
            row = self.db.execute("SELECT list_bytes, signer, retired, ids FROM trusted").fetchone()
        if row is None:
            return None
        retired = frozenset(row[2][start : start + 32] for start in range(0, len(row[2]), 32))
        return SignedList(SignedHead(row[0], row[1], retired), row[3])

    def trust(self, found: SignedList) -> None:
        """Keep a signed list that was accepted."""
        signed = found.signed
        row = (signed.list_bytes, signed.signer, b"".join(sorted(signed.retired)), found.packed)

        def work(db: sqlite3.Connection) -> None:
            db.execute("INSERT OR REPLACE INTO trusted VALUES (1, ?, ?, ?, ?)", row)
            keys = [(key.id,) for key in signed.collector_keys]
            db.executemany("INSERT OR IGNORE INTO sealing_keys VALUES (?)", keys)

        self._transaction(work)

    def sealing_keys(self) -> frozenset[bytes]:
        """The ids of all keys that were ever on an accepted list."""
        with translated(self.path):
            return frozenset(row[0] for row in self.db.execute("SELECT id FROM sealing_keys"))

    def standings(self) -> list[Standing]:
        """How every collection stands."""
        return standings(self.db, self.path)

    # -- nothing of the order of arrival

    def lay_anew(self) -> None:
        """Write what is recent again, in the order of the digests, if anything came since the last time."""
        if self._unlaid:
            self._transaction(held.lay_anew)
            self._unlaid = False
            self._purged = False

    def purge(self) -> None:
        """Cut off the write-ahead log, which shows in which order pages were written, if nobody else uses it."""
        self._purged = self._purged or self._wal.empty()

    def _transaction(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Run `work` in one durable transaction, or leave everything as it was."""
        with translated(self.path), transaction(self.db):
            result = work(self.db)
        self._files.check()
        return result


def _new_group(db: sqlite3.Connection, key: tuple[int, int, int], fresh: dict[tuple[int, int, int], int]) -> int:
    number = secrets.randbits(62)
    db.execute("INSERT INTO groups (collection, round, period, number) VALUES (?, ?, ?, ?)", (*key, number))
    fresh[key] = number
    return number


def standings(db: sqlite3.Connection, path: Path) -> list[Standing]:
    """How every collection stands, over any connection."""
    with translated(path):
        rows = db.execute("SELECT number, id, spec, short FROM collections ORDER BY number").fetchall()
        return [
            Standing(
                identity,
                spec,
                Collection.from_bytes(spec).smallest_batch or 0,
                db.execute(_HELD, (number,)).fetchone()[0],
                db.execute(_WAITING, (number,)).fetchone()[0],
                short,
                db.execute(_BYTES, (number,)).fetchone()[0],
                db.execute(_NEWEST, (number,)).fetchone()[0],
            )
            for number, identity, spec, short in rows
        ]
