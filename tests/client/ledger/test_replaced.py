"""A ledger whose file is exchanged or damaged between two uses: every file is checked in full before it is believed."""

import shutil
import sqlite3
from contextlib import closing

import pytest

from ldp_client import StorageUntrusted
from ldp_client.ledger.database import Storage
from ldp_client.ledger.opening import Opening
from ldp_client.ledger.schema import Damaged
from ldp_client.ledger.witness import Witness
from tests.client.conftest import make


def edit(path, *statements):
    """Change a ledger as no client would."""
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        for statement in statements:
            db.execute(statement)


def test_a_damaged_copy_put_under_a_living_client_is_spent(open_client, tmp_path, wide):
    """The damage is in an old entry, at which only the check of the whole file looks."""
    client = open_client(policy=wide)
    for number in range(3):
        client.report(make(number), "a")
    path, copy = client._storage.path, tmp_path / "copy"
    edit(path, "PRAGMA wal_checkpoint(TRUNCATE)")
    shutil.copy(path, copy)
    edit(copy, "UPDATE answers SET epsilon = 0 WHERE id = 1", "PRAGMA wal_checkpoint(TRUNCATE)")
    copy.replace(path)
    with pytest.raises(StorageUntrusted, match="an entry is damaged"):
        client.report(make(9), "a")


def test_a_schema_that_is_no_text_is_damage(tmp_path):
    """SQLite's message about such a table cannot be decoded, so sqlite3 raises no error of its own."""
    storage = Storage(tmp_path)
    with storage.charging():
        pass
    storage.close()
    edit(
        storage.path,
        "PRAGMA writable_schema = 1",
        "UPDATE sqlite_master SET name = CAST(x'ff' AS TEXT), sql = 'CREATE'",
    )
    with pytest.raises(Damaged, match="it is damaged"):
        Opening(storage.path, Witness(tmp_path / "ledger.witness")).connect()


def test_to_close_a_lease_is_a_change_of_the_ledger(open_client, wide):
    """Whatever changes the ledger raises its generation, so that a copy of before is known for what it is."""
    client = open_client(policy=wide, lease="5")
    client.report(make(), "a")
    client.flush()
    before = client._storage.witness.seen.generation
    client._lease.close()
    assert client._storage.witness.seen.generation == before + 1


def test_a_path_that_cannot_be_looked_at_is_not_there(tmp_path):
    """The name is longer than the system takes: what is wrong is for the next transaction to say."""
    assert Storage(tmp_path / ("x" * 300)).exists() is False
