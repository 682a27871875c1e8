"""The budget ledger: data sets, their budgets, and every release with what it cost.

One SQLite file. A charge and its release are one row, written in one transaction which is on the disk before the
release leaves the process. So nothing leaves uncharged, and what fails charges nothing. Rows are never changed or
deleted: triggers refuse it, and each release holds the hash of the one before.

The ledger fails closed. A damaged file, a broken chain, a wrong version, or a file older than the last release that
left (a small file `head` beside it remembers that one) opens with an error, and nothing is released.

The same content under a second name would have a second budget, so it is refused: the ledger keeps a keyed digest of
each file that a data set was read from. Nobody can stop the operator of the curator from changing a file a little, or
from starting a second ledger; docs/curator.md says whom a volunteer trusts.
"""

from __future__ import annotations

import hashlib
import json
import os
import secrets
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from types import TracebackType
from typing import Any

from ldp_client.errors import BudgetExceeded, InvalidSpec
from ldp_server.answers.merging.signed import SignedRelease
from ldp_server.curator.prices import CentralPrice, DataSetBudget
from ldp_server.store.errors import Corrupt, StorageError, WrongVersion, translated
from ldp_server.store.schema import transaction

__all__ = ["Charging", "CuratorLedger", "DataSet", "LedgerRow"]

_VERSION = 1
_SCHEMA = """
CREATE TABLE facts (name TEXT PRIMARY KEY, value BLOB NOT NULL) STRICT;
CREATE TABLE data_sets (
    name TEXT PRIMARY KEY, budget TEXT NOT NULL, created INTEGER NOT NULL
) STRICT;
CREATE TABLE contents (digest BLOB PRIMARY KEY, data_set TEXT NOT NULL REFERENCES data_sets) STRICT;
CREATE TABLE releases (
    number INTEGER PRIMARY KEY, data_set TEXT NOT NULL REFERENCES data_sets, made INTEGER NOT NULL, kind TEXT NOT NULL,
    columns TEXT NOT NULL, price TEXT NOT NULL, amount TEXT NOT NULL, delta TEXT NOT NULL,
    body BLOB NOT NULL, signature BLOB NOT NULL
) STRICT;
"""
_FIXED = """
CREATE TRIGGER {table}_never_{verb}d BEFORE {verb} ON {table}
BEGIN SELECT RAISE(ABORT, 'the ledger only grows'); END;
"""
_START = hashlib.sha256(b"").digest()


@dataclass(frozen=True)
class DataSet:
    """A data set with its budget, and what its releases have cost."""

    name: str
    budget: DataSetBudget
    created: int
    releases: int
    amount: Fraction
    delta: Fraction

    @property
    def left(self) -> Fraction:
        return self.budget.amount - self.amount


@dataclass(frozen=True)
class LedgerRow:
    """One release in the ledger."""

    number: int
    data_set: str
    made: int
    kind: str
    columns: tuple[str, ...]
    price: CentralPrice
    amount: Fraction
    delta: Fraction
    signed: SignedRelease


class CuratorLedger:
    """The ledger in a curator's directory."""

    def __init__(self, home: Path, *, create: bool = False) -> None:
        self.home = home
        self._file = home / "ledger.db"
        self._head = home / "head"
        if create:
            with translated(home):
                home.mkdir(mode=0o700, parents=True, exist_ok=True)
        elif not self._file.exists():
            raise InvalidSpec(f"{home} is no curator's directory: `ldp-server curator create` makes one")
        with translated(self._file):
            if create and not self._file.exists():
                os.close(os.open(self._file, os.O_CREAT | os.O_WRONLY, 0o600))
            self._db = sqlite3.connect(self._file, isolation_level=None, timeout=30.0)
        try:
            with translated(self._file):
                self._open(create=create)
        except BaseException:
            self._db.close()
            raise

    def _open(self, *, create: bool) -> None:
        for pragma in ("journal_mode = DELETE", "synchronous = EXTRA", "foreign_keys = ON", "trusted_schema = OFF"):
            self._db.execute(f"PRAGMA {pragma}")
        if create:
            with transaction(self._db):  # two may create it at once
                if self._version() == 0:
                    self._make()
        if (version := self._version()) != _VERSION:
            raise WrongVersion(f"{self._file} has version {version} of the ledger, and this program reads {_VERSION}")
        if self._db.execute("PRAGMA quick_check").fetchone()[0] != "ok":
            raise Corrupt(f"{self._file} is damaged: restore a copy that is as new as the last release")
        self._check_chain()

    def _version(self) -> int:
        return int(self._db.execute("PRAGMA user_version").fetchone()[0])

    def _make(self) -> None:
        for statement in _SCHEMA.split(";\n"):
            self._db.execute(statement)
        for table in ("data_sets", "contents", "releases"):
            for verb in ("update", "delete"):
                self._db.execute(_FIXED.format(table=table, verb=verb))
        self._db.execute("INSERT INTO facts VALUES ('fingerprint_key', ?)", (secrets.token_bytes(32),))
        self._db.execute(f"PRAGMA user_version = {_VERSION}")

    def _check_chain(self) -> None:
        """Check that the releases are whole and in order, and at least as many as had left.

        Another process may make a release meanwhile. So the head is read before the releases, which then have it, and
        these are read by one statement.
        """
        head = _read_head(self._head)
        before = _START
        rows = self._db.execute(
            "SELECT number, body, data_set, amount, delta, budget FROM releases LEFT JOIN data_sets ON name = data_set "
            "ORDER BY number"
        )
        for number, row in enumerate(rows, 1):
            if row[-1] is None:
                raise Corrupt(f"{self._file}: a release belongs to no data set. Nothing is released from it")
            if row[0] != number or _told(row[1]) != (before.hex(), number, *map(_plain, row[2:])):
                raise Corrupt(
                    f"{self._file}: the releases do not follow on each other, or do not say what was charged for them. "
                    "Nothing is released from it"
                )
            before = hashlib.sha256(row[1]).digest()
        if head is None and self._db.execute("SELECT 1 FROM data_sets").fetchone() and not self._head.exists():
            raise StorageError(f"{self._head} is missing: without it an old copy of the ledger could not be told")
        if head is not None and not self._knows(*head):
            raise StorageError(
                f"{self._file} is older than the last release that left: restore the newest copy. "
                "Nothing is released meanwhile"
            )

    def _knows(self, number: int, digest: bytes) -> bool:
        row = self._db.execute("SELECT body FROM releases WHERE number = ?", (number,)).fetchone()
        return (number, digest) == (0, _START) or (row is not None and hashlib.sha256(row[0]).digest() == digest)

    def close(self) -> None:
        self._db.close()

    def __enter__(self) -> CuratorLedger:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def fingerprint_key(self) -> bytes:
        """The key of the digests of files."""
        return bytes(self._db.execute("SELECT value FROM facts WHERE name = 'fingerprint_key'").fetchone()[0])

    def add(self, name: str, budget: DataSetBudget, now: int) -> DataSet:
        """Enter a data set. Its budget is never changed."""
        if not name or len(name) > 100 or not name.isprintable():
            raise InvalidSpec("a data set has a name of 1 to 100 printable characters")
        with translated(self._file), transaction(self._db):
            if not self._head.exists() and not self.data_sets():
                self._remember(0, _START)
            if self._db.execute("SELECT 1 FROM data_sets WHERE name = ?", (name,)).fetchone():
                raise InvalidSpec(f"the data set {name!r} exists: its budget is never changed")
            self._db.execute("INSERT INTO data_sets VALUES (?, ?, ?)", (name, json.dumps(budget.as_dict()), now))
        return self.data_set(name)

    def data_set(self, name: str) -> DataSet:
        """Return a data set by its name."""
        for found in self.data_sets():
            if found.name == name:
                return found
        names = ", ".join(repr(found.name) for found in self.data_sets()) or "none"
        raise InvalidSpec(f"no data set {name!r} in {self.home}: there are {names} (`ldp-server curator create`)")

    def data_sets(self) -> list[DataSet]:
        """Return all data sets, oldest first."""
        with translated(self._file):
            rows = self._db.execute("SELECT name, budget, created FROM data_sets ORDER BY rowid").fetchall()
            spent = self._db.execute("SELECT data_set, amount, delta FROM releases").fetchall()
        found = []
        for name, budget, created in rows:
            of = [(Fraction(amount), Fraction(delta)) for data_set, amount, delta in spent if data_set == name]
            total = sum((amount for amount, _ in of), Fraction(0))
            lost = sum((delta for _, delta in of), Fraction(0))
            found.append(DataSet(name, DataSetBudget.from_dict(json.loads(budget)), created, len(of), total, lost))
        return found

    def releases(self, name: str | None = None) -> list[LedgerRow]:
        """Return all releases, or those of one data set, oldest first."""
        with translated(self._file):
            rows = self._db.execute(
                "SELECT number, data_set, made, kind, columns, price, amount, delta, body, signature FROM releases "
                "WHERE ?1 IS NULL OR data_set = ?1 ORDER BY number",
                (name,),
            ).fetchall()
        return [_row(row) for row in rows]

    def last_release(self) -> LedgerRow | None:
        """Return the newest release."""
        number, _ = self._last()
        return self.release(number) if number else None

    def release(self, number: int) -> LedgerRow:
        """Return a release by its number."""
        for row in self.releases():
            if row.number == number:
                return row
        raise InvalidSpec(f"there is no release {number}: see `ldp-server curator ledger`")

    @contextmanager
    def charging(self, name: str, cost: tuple[Fraction, Fraction], digest: bytes) -> Iterator[Charging]:
        """Hold the ledger while a release is made. It is charged and kept if the block calls `keep`, else nothing is.

        Raises BudgetExceeded before the block looks at any record.
        """
        with translated(self._file):
            with transaction(self._db):
                data_set = self.data_set(name)
                self._check_content(name, digest)
                _check_budget(data_set, cost)
                number, before = self._last()
                charging = Charging(self, number + 1, before, name, cost)
                yield charging
                if charging.kept is None:
                    raise InvalidSpec("nothing was released")
                self._db.execute("INSERT OR IGNORE INTO contents VALUES (?, ?)", (digest, name))
            with transaction(self._db):  # one process after the other, and the last release is the one that is noted
                self._remember(*self._last())

    def _check_content(self, name: str, digest: bytes) -> None:
        row = self._db.execute("SELECT data_set FROM contents WHERE digest = ?", (digest,)).fetchone()
        if row is not None and row[0] != name:
            raise InvalidSpec(
                f"this file is the data set {row[0]!r} already: a second name would give the same people a second "
                f"budget. Release it as --data-set {row[0]}"
            )

    def _last(self) -> tuple[int, bytes]:
        row = self._db.execute("SELECT number, body FROM releases ORDER BY number DESC LIMIT 1").fetchone()
        return (0, _START) if row is None else (row[0], hashlib.sha256(row[1]).digest())

    def _insert(self, row: tuple[Any, ...]) -> None:
        self._db.execute("INSERT INTO releases VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", row)

    def _remember(self, number: int, digest: bytes) -> None:
        """Note which release leaves. It leaves after this."""
        draft = self._head.with_name("head.draft")
        with translated(self._head):
            with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
                file.write(f"{number} {digest.hex()}\n")
                file.flush()
                os.fsync(file.fileno())
            draft.replace(self._head)
            with _directory(self.home) as handle:
                os.fsync(handle)


@contextmanager
def _directory(path: Path) -> Iterator[int]:
    """A directory, to be made durable."""
    handle = os.open(path, os.O_RDONLY)
    try:
        yield handle
    finally:
        os.close(handle)


class Charging:
    """A release that is being made: its number, and the hash of the one before."""

    def __init__(
        self, ledger: CuratorLedger, number: int, before: bytes, name: str, cost: tuple[Fraction, Fraction]
    ) -> None:
        self._ledger, self._name, self._cost = ledger, name, cost
        self.number, self.before = number, before
        self.kept: SignedRelease | None = None

    def keep(self, signed: SignedRelease, kind: str, columns: list[str], price: CentralPrice, made: int) -> None:
        """Store the release and its charge, in the transaction that the block ends."""
        amount, delta = (str(part) for part in self._cost)
        columns_text, price_text = json.dumps(columns), json.dumps(price.as_dict())
        self._ledger._insert(
            (
                self.number,
                self._name,
                made,
                kind,
                columns_text,
                price_text,
                amount,
                delta,
                signed.body,
                signed.signature,
            )
        )
        self.kept = signed


def _told(body: bytes) -> tuple[str, int, str, str, str, str] | None:
    """What a release says of itself: the one before, its number, data set, charge and the budget; None: nothing."""
    try:
        found = json.loads(body)
        (amount,) = (str(value) for name, value in found["charged"].items() if name != "delta")
        parts = (found["data_set"], amount, found["charged"]["delta"], json.dumps(found["budget"], sort_keys=True))
        return str(found["previous"]), int(found["number"]), *(str(part) for part in parts)  # type: ignore[return-value]
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None


def _plain(value: str) -> str:
    """A column as a release says it: a budget with its parts in order."""
    return json.dumps(json.loads(value), sort_keys=True) if value.startswith("{") else value


def _check_budget(data_set: DataSet, cost: tuple[Fraction, Fraction]) -> None:
    amount, delta = cost
    unit = data_set.budget.unit
    if amount > data_set.left:
        raise BudgetExceeded(
            f"the budget of {data_set.name!r} does not cover this release: {unit} = {float(amount):.6g} is needed, and "
            f"{float(max(data_set.left, Fraction(0))):.6g} of {float(data_set.budget.amount):.6g} is left"
        )
    if delta > data_set.budget.delta - data_set.delta:
        left = float(max(data_set.budget.delta - data_set.delta, Fraction(0)))
        raise BudgetExceeded(
            f"the budget of {data_set.name!r} does not cover this release: delta = {float(delta):.3g} is needed, and "
            f"{left:.3g} of {float(data_set.budget.delta):.3g} is left"
        )


def _read_head(path: Path) -> tuple[int, bytes] | None:
    try:
        number, digest = path.read_text().split()
        return int(number), bytes.fromhex(digest)
    except FileNotFoundError:
        return None
    except (OSError, ValueError):
        raise StorageError(f"{path} cannot be read or is damaged: restore it together with the ledger") from None


def _row(row: tuple[Any, ...]) -> LedgerRow:
    number, data_set, made, kind, columns, price, amount, delta, body, signature = row
    found = CentralPrice.from_dict(json.loads(price))
    signed = SignedRelease(body, signature)
    return LedgerRow(
        number, data_set, made, kind, tuple(json.loads(columns)), found, Fraction(amount), Fraction(delta), signed
    )
