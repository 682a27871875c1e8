"""Volunteers' records when a store is moved: what was given there can be withdrawn here, and only here."""

import json
import os

import pytest

from ldp_client.errors import InvalidSpec, StorageError
from ldp_server.store import Admission, NewCollection
from ldp_server.store.engines import open_store
from ldp_server.volunteers.interface import Given
from ldp_server.volunteers.moving import records_moved
from ldp_server.volunteers.opening import curated_records, served_records
from tests.server.helpers import NOW, cli

COLLECTION = os.urandom(32)
NAMES = [bytes([i]) * 32 for i in range(5)]


def filled(address, data):
    """A store with a collection and five records, of which two were used."""
    store = open_store(address, data)
    with store.serving():
        store.prepare()
        log = store.writer()
        log.add(NewCollection(COLLECTION, b"spec", True, Admission(), 1))
        log.close()
    records = served_records(address, data)
    assert {records.give(COLLECTION, name, name[:7], NOW) for name in NAMES} == {Given.KEPT}
    records.take(COLLECTION, 7)
    records.give_back(COLLECTION, NAMES[2:])
    records.close()


def check_new(records):
    assert sorted(records.fresh(COLLECTION)) == NAMES[2:]
    assert records.withdraw(COLLECTION, NAMES[4])
    assert not records.withdraw(COLLECTION, NAMES[0])
    assert records.take(COLLECTION, 9) == [(name, name[:7]) for name in NAMES[:4]]
    records.close()


def test_there_and_back_with_the_command(postgres, tmp_path):
    address, there, back = postgres.database(), tmp_path / "there", tmp_path / "back"
    filled("", there)
    done = cli("migrate", "--from", str(there), "--to", address, "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["held"]["collections"] == 1
    with pytest.raises(StorageError, match="was moved to"):
        curated_records(str(there))
    assert NAMES[2][:7] not in (there / "volunteers.db").read_bytes()
    done = cli("migrate", "--from", address, "--to", str(back))
    assert done.returncode == 0, done.stderr
    with pytest.raises(StorageError, match="was moved to"):
        curated_records(address)
    check_new(curated_records(str(back)))


@pytest.mark.parametrize("way", ["to postgres", "to sqlite"])
def test_if_the_move_does_not_end_the_old_store_has_them(postgres, tmp_path, way):
    address, data = postgres.database(), tmp_path / "d"
    old, new = (str(data), address) if way == "to postgres" else (address, str(data))
    filled("" if way == "to postgres" else address, data)
    if way == "to postgres":
        open_store(address, tmp_path).prepare()
    else:
        data.mkdir()
    for _ in range(2):
        with pytest.raises(ZeroDivisionError), records_moved(old, new):
            raise ZeroDivisionError
    records = served_records(address if old == address else "", data)
    assert records.withdraw(COLLECTION, NAMES[3])
    records.close()
    with pytest.raises(InvalidSpec, match="of its own"), records_moved(old, new):
        pass


def test_a_store_without_any_is_no_trouble(postgres, tmp_path):
    address = postgres.database()
    with records_moved(str(tmp_path / "none"), str(tmp_path / "nowhere")):
        pass
    with records_moved(address, str(tmp_path)):  # an older schema, or none
        pass
    assert not list(tmp_path.iterdir())
