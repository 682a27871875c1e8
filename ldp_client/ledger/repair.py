"""A reset: make a ledger usable again and keep everything in it that can still be read."""

from __future__ import annotations

import contextlib
import sqlite3
from pathlib import Path

from ldp_client.errors import StorageError
from ldp_client.ledger import schema
from ldp_client.ledger.schema import Damaged
from ldp_client.ledger.witness import LedgerProgress, Witness, WitnessDamaged

__all__ = ["mend", "set_aside"]


def mend(path: Path, witness: Witness, reason: str, now: int, found: str) -> bool:
    """Give the ledger a new name and a generation above its witness's, and note why; False if it cannot be read.

    Answers stand and charges count as before. Charges from after `now` (a clock had run ahead) are dated `now`, so they
    count for a whole period from now.
    """
    if not path.exists() or not path.stat().st_size:
        return False
    try:
        progress = witness.read()
    except WitnessDamaged:
        progress = None
    with contextlib.closing(sqlite3.connect(path, timeout=10.0, isolation_level=None)) as db:
        try:
            after = _mend(db, progress, reason, now, found)
        except (Damaged, UnicodeDecodeError):
            return False
        except sqlite3.Error as error:
            if schema.is_damage(error):
                return False
            raise StorageError(f"{path}: {error}; nothing was reset") from None
    witness.replace(after)
    return True


def _mend(db: sqlite3.Connection, progress: LedgerProgress | None, reason: str, now: int, found: str) -> LedgerProgress:
    if db.execute("PRAGMA user_version").fetchone()[0] not in {0, schema.SCHEMA_VERSION - 1, schema.SCHEMA_VERSION}:
        raise StorageError("the ledger was made by another version of this library; use that version")
    db.execute("PRAGMA synchronous = FULL")
    db.execute("BEGIN IMMEDIATE")
    schema.verify(db)
    state = schema.read_state(db)
    state.generation = max(state.generation, progress.generation if progress else 0) + 1
    state.seen, state.instance = now, schema.new_instance()
    schema.redate(db, now)
    schema.write_state(db, state)
    db.execute("INSERT INTO resets (at, reason, found) VALUES (?, ?, ?)", (now, reason, found))
    db.execute("COMMIT")
    return LedgerProgress(state.instance, state.generation)


def set_aside(path: Path, now: int) -> None:
    """Rename an unreadable ledger, so that a new one can be made and the old one can still be examined."""
    number = 0
    while (kept := path.with_name(f"{path.name}.unusable-{now}-{number}")).exists():
        number += 1
    for ending in ("", "-wal", "-shm"):
        old = path.with_name(path.name + ending)
        if old.exists():
            old.replace(kept.with_name(kept.name + ending))
