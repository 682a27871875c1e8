"""What goes wrong around a release, on purpose or not: nothing is released twice for one charge, or for a withdrawn
record, or signed by another key. Each of these tests names one way.
"""

import os
import shutil
import sqlite3
from contextlib import closing
from fractions import Fraction

import pytest

from ldp_client.errors import InvalidSpec, StorageError, Unavailable
from ldp_client.volunteering.records import VolunteerRecord, consent_digest, seal_record
from ldp_server.curator.draws import gaussian_scale, laplace_scale, selection_scale
from ldp_server.curator.engine import KEY_FILE, ReleaseRequest, create_data_set, release
from ldp_server.curator.ledger import CuratorLedger
from ldp_server.curator.noise import ExactDraws
from ldp_server.curator.openers import KeyHolder
from ldp_server.curator.people import PeopleFile, read_people
from ldp_server.curator.prices import DataSetBudget
from ldp_server.curator.releases.histogram import LaplaceHistogram
from ldp_server.curator.vault import ANSWER, opened
from ldp_server.sealing.keys import load_keys, new_key
from ldp_server.store.errors import Corrupt
from ldp_server.volunteers import interface
from ldp_server.volunteers.kept import KeptRecords
from tests.server.helpers import NOW, make_collection

COLLECTION = make_collection()
BUDGET = DataSetBudget("pure", Fraction(2))
TENTH = LaplaceHistogram(("rome", "oslo"), Fraction(1, 10))
PEOPLE = PeopleFile(10, {"city": ["rome"] * 6 + ["oslo"] * 4}, b"p" * 32)
NAMES = [bytes([number]) * 32 for number in range(3)]


@pytest.fixture
def home(tmp_path):
    create_data_set(tmp_path / "home", "panel", BUDGET, NOW)
    return tmp_path / "home"


def make(home, now=NOW, data=PEOPLE, column="city", data_set="panel"):
    return release(home, ReleaseRequest(data_set, column, TENTH), data, ExactDraws(), now, "opendp")


def releases(home):
    with CuratorLedger(home) as ledger:
        found = ledger.data_set("panel")
    return found.releases, found.amount


# -- the ledger was changed, column by column


def changed(home, statement):
    """Change the ledger as somebody does who may write the file: without its triggers."""
    with closing(sqlite3.connect(home / "ledger.db")) as db:
        for (name,) in db.execute("SELECT name FROM sqlite_schema WHERE type = 'trigger'").fetchall():
            db.execute(f"DROP TRIGGER {name}")
        db.execute(statement)
        db.commit()


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE releases SET amount = '0' WHERE number = 1",
        "UPDATE releases SET amount = '-5' WHERE number = 2",
        "UPDATE releases SET delta = '-1' WHERE number = 2",
        "UPDATE releases SET data_set = 'other' WHERE number = 2",
        'UPDATE data_sets SET budget = replace(budget, \'"amount": "2"\', \'"amount": "200"\') WHERE name = \'panel\'',
        "UPDATE releases SET body = CAST('not json' AS BLOB) WHERE number = 1",
        "UPDATE releases SET body = CAST('[]' AS BLOB) WHERE number = 2",
        "UPDATE releases SET body = CAST(replace(CAST(body AS TEXT), '1/10', '1/99') AS BLOB), amount = '1/99' "
        "WHERE number = 1",
        "DELETE FROM releases WHERE number = 2",
        "DELETE FROM data_sets WHERE name = 'panel'",
    ],
)
def test_a_ledger_whose_charges_were_changed_releases_nothing(home, statement):
    create_data_set(home, "other", BUDGET, NOW)
    make(home)
    make(home)
    changed(home, statement)
    with pytest.raises(StorageError):
        make(home)


def test_the_last_release_is_checked_by_its_signature(home):
    """It may be newer than what `head` says, so only its signature tells that it was changed."""
    make(home)
    head = (home / "head").read_bytes()
    make(home)
    (home / "head").write_bytes(head)
    changed(
        home,
        "UPDATE releases SET body = CAST(replace(CAST(body AS TEXT), '1/10', '1/99') AS BLOB), amount = '1/99' "
        "WHERE number = 2",
    )
    with pytest.raises(InvalidSpec, match="has not signed release 2"):
        make(home)


# -- keys


def test_another_key_signs_nothing(home, tmp_path):
    make(home)
    create_data_set(tmp_path / "other", "panel", BUDGET, NOW)
    shutil.copy(tmp_path / "other" / KEY_FILE, home / KEY_FILE)
    with pytest.raises(InvalidSpec, match="has not signed release 1"):
        make(home)
    assert releases(home) == (1, Fraction(1, 10))


def test_a_key_that_is_lost_is_not_replaced_by_a_new_one(home):
    """Readers have the old public half, and a second data set must not overwrite it."""
    make(home)
    public = (home / f"{KEY_FILE}.pub").read_bytes()
    (home / KEY_FILE).unlink()
    with pytest.raises(InvalidSpec, match="cannot read the curator's key"):
        create_data_set(home, "more", BUDGET, NOW)
    assert (home / f"{KEY_FILE}.pub").read_bytes() == public
    assert not (home / KEY_FILE).exists()


# -- clocks and prices


@pytest.mark.parametrize("now", [NOW - 10**8, 0, -5])
def test_a_clock_that_goes_back_gives_no_budget_back(home, now):
    make(home)
    assert make(home, now).content["spent"] == "1/5"
    assert releases(home) == (2, Fraction(1, 5))


def test_noise_that_is_larger_than_any_number_of_people_is_refused():
    """Otherwise its quantiles would be looked for endlessly, while the ledger is held."""
    for make_scale in (laplace_scale, lambda one, epsilon: selection_scale(epsilon, one), gaussian_scale):
        assert make_scale(1, Fraction(1, 10**6)) > 0
        with pytest.raises(InvalidSpec, match="larger than any number of people"):
            make_scale(1, Fraction(1, 10**40))
    assert laplace_scale(1, Fraction(1, 1 << 56)) == 1 << 56
    with pytest.raises(InvalidSpec):
        laplace_scale(1, Fraction(1, (1 << 56) + (1 << 10)))


# -- files of people


def test_a_file_that_changes_while_it_is_read_is_refused(tmp_path, monkeypatch):
    """The ledger would know another content than the one that is released."""
    file = tmp_path / "people.csv"
    file.write_text("id,city\n1,rome\n")
    real = read_people.__globals__["_csv"]

    def slow(path, wanted):
        found = real(path, wanted)
        path.write_text("id,city\n1,rome\n2,oslo\n")
        return found

    monkeypatch.setitem(read_people.__globals__, "_csv", slow)
    with pytest.raises(InvalidSpec, match="was changed while it was read"):
        read_people(file, ["city"], "id", b"k")
    monkeypatch.undo()
    assert read_people(file, ["city"], "id", b"k").people == 2


# -- volunteers' records


@pytest.fixture(scope="module")
def keys(tmp_path_factory):
    folder = tmp_path_factory.mktemp("hostile") / "keys"
    new_key(folder, 90 * 86_400, NOW)
    return folder


@pytest.fixture
def kept(tmp_path, keys):
    found = KeptRecords(tmp_path / "volunteers.db")
    for number, name in enumerate(NAMES):
        found.give(COLLECTION.id, name, sealed(keys, number + 1), NOW)
    yield found
    found.close()


def sealed(keys, index):
    record = VolunteerRecord(index, consent_digest("words"), 4 * 10**12)
    return seal_record(record, COLLECTION.id, COLLECTION.domain, load_keys(keys)[-1].public.public_key)


def opening(folder, keys, budget=BUDGET):
    return opened(folder, COLLECTION, KeyHolder.of_files(keys), budget, b"k", NOW)


class StopError(Exception):
    """Whatever goes wrong in a curator."""


def test_a_curator_that_fails_gives_nothing_back_that_another_one_has_used(tmp_path, keys, kept, home, monkeypatch):
    """One at a time: the second one waits, and then says who is there."""
    monkeypatch.setattr(interface, "CURATOR_SECONDS", 0.0)
    with pytest.raises(StopError), opening(tmp_path, keys):
        with pytest.raises(Unavailable, match="another curator"), opening(tmp_path, keys):
            raise AssertionError("two at once")
        raise StopError
    assert sorted(kept.fresh(COLLECTION.id)) == NAMES
    with opening(tmp_path, keys) as found:
        make(home, data=found.data, column=ANSWER)
    with pytest.raises(StopError), opening(tmp_path, keys):
        raise StopError
    assert kept.fresh(COLLECTION.id) == []
    assert not kept.withdraw(COLLECTION.id, NAMES[0])


def test_a_failure_after_the_charge_leaves_the_records_used(tmp_path, keys, kept, home, monkeypatch):
    """The release is in the ledger, and anybody may print it: a withdrawal would be untrue."""

    def full(*_):
        raise StorageError("no space left")

    monkeypatch.setattr(CuratorLedger, "_remember", full)
    with pytest.raises(StorageError, match="no space"), opening(tmp_path, keys) as found:
        make(home, data=found.data, column=ANSWER)
    monkeypatch.undo()
    assert releases(home)[0] == 1
    assert kept.fresh(COLLECTION.id) == []
    assert not kept.withdraw(COLLECTION.id, NAMES[0])


def test_a_failure_before_the_charge_leaves_them_unused(tmp_path, keys, kept, home):
    with pytest.raises(InvalidSpec, match="no data set"), opening(tmp_path, keys) as found:
        make(home, data=found.data, column=ANSWER, data_set="nobody's")
    assert sorted(kept.fresh(COLLECTION.id)) == NAMES


def test_a_record_that_comes_while_others_are_taken_can_be_withdrawn_if_nothing_is_released(
    tmp_path, keys, kept, monkeypatch
):
    late = b"l" * 32
    real = KeptRecords.take

    def take(self, collection_id, now):
        self.give(collection_id, late, sealed(keys, 4), now)
        return real(self, collection_id, now)

    monkeypatch.setattr(KeptRecords, "take", take)
    with pytest.raises(StopError), opening(tmp_path, keys) as found:
        assert found.data.people == 4
        raise StopError
    assert late in kept.fresh(COLLECTION.id)
    assert kept.withdraw(COLLECTION.id, late)


def test_what_was_used_before_stays_used_whatever_fails(tmp_path, keys, kept, home):
    with opening(tmp_path, keys) as found:
        make(home, data=found.data, column=ANSWER)
    kept.give(COLLECTION.id, b"n" * 32, sealed(keys, 2), NOW)
    with pytest.raises(StopError), opening(tmp_path, keys):
        raise StopError
    assert kept.fresh(COLLECTION.id) == [b"n" * 32]


@pytest.mark.parametrize("left", [0, 4096, 9000])
def test_a_vault_that_was_truncated_is_said_to_be(tmp_path, keys, kept, left):
    for number in range(200):
        kept.give(COLLECTION.id, os.urandom(32), sealed(keys, number % 5), NOW)
    kept.close()
    with closing(sqlite3.connect(tmp_path / "volunteers.db")) as db:
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        db.execute("PRAGMA journal_mode = DELETE")
    os.truncate(tmp_path / "volunteers.db", left)
    with pytest.raises(Corrupt), opening(tmp_path, keys):
        raise AssertionError("something was opened")


def test_the_consent_of_volunteers_has_no_place_for_a_large_delta(tmp_path, keys, kept):
    large = DataSetBudget("pure", Fraction(2), Fraction(1, 1000))
    with pytest.raises(InvalidSpec, match="at most 1e-06"), opening(tmp_path, keys, large):
        raise AssertionError("something was opened")
    with opening(tmp_path, keys, DataSetBudget("pure", Fraction(2), Fraction(1, 10**6))) as found:
        assert found.data.people == 3
