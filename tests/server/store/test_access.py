"""Analyst tokens: names, revocation, expiry."""

import sqlite3

import pytest

from ldp_client.errors import InvalidSpec, StorageError
from ldp_server.store import AccessFile
from ldp_server.store import access as access_module
from ldp_server.store.errors import Corrupt, WrongVersion
from ldp_server.store.schema import connect
from tests.server.helpers import NOW, Clock


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def access(tmp_path, clock):
    access = AccessFile(tmp_path / "access.db", clock)
    yield access
    access.close()


def test_a_name_in_use_is_refused(access):
    access.create("alice")
    with pytest.raises(InvalidSpec, match="alice is in use: revoke it first"):
        access.create("alice")


def test_a_revoked_name_can_be_used_again(access, clock):
    old = access.create("alice")
    access.revoke("alice")
    clock.now += 10
    new = access.create("alice")
    assert access.verify(old) is None
    assert access.verify(new).name == "alice"
    assert [(token.created, token.revoked) for token in access.tokens()] == [(NOW, NOW), (NOW + 10, None)]
    clock.now += 10
    access.revoke("alice")
    assert access.verify(new) is None
    assert [token.revoked for token in access.tokens()] == [NOW, NOW + 20]  # the first keeps its time
    access.revoke("alice")
    assert [token.revoked for token in access.tokens()] == [NOW, NOW + 20]


def test_a_name_nobody_had_cannot_be_revoked(access):
    with pytest.raises(InvalidSpec, match="no token named bob"):
        access.revoke("bob")


def test_an_expired_token_is_refused_and_its_name_stays_in_use(access, clock):
    token = access.create("alice", 60)
    clock.now += 59
    assert access.verify(token).name == "alice"
    clock.now += 1
    assert access.verify(token) is None
    with pytest.raises(InvalidSpec, match="in use"):
        access.create("alice")


def test_only_a_token_of_this_file_is_valid(access, tmp_path, clock):
    token = access.create("alice")
    assert access.verify(token).name == "alice"
    id_, secret = token.split("_", 2)[1:]
    other = "B" if secret[0] != "B" else "C"
    for wrong in ("", "hearsay_", token[:-1], token + "A", f"hearsay_{id_}_{other}{secret[1:]}",
                  f"hearsay_{'0' * 16}_{secret}", token.upper(), "x" + token):  # fmt: skip
        assert access.verify(wrong) is None, wrong
    elsewhere = AccessFile(tmp_path / "other.db", clock)
    assert elsewhere.verify(token) is None
    # A row copied into another server's file is worthless there: the hash covers that file's salt.
    row = access._db.execute("SELECT * FROM tokens").fetchone()
    elsewhere._db.execute("INSERT INTO tokens VALUES (?, ?, ?, ?, ?, ?)", row)
    assert elsewhere.verify(token) is None
    elsewhere.close()


def test_a_file_of_tokens_is_for_its_owner_and_stays(tmp_path, clock):
    path = tmp_path / "access.db"
    first = AccessFile(path, clock)
    token = first.create("alice", 60)
    first.close()
    assert path.stat().st_mode & 0o777 == 0o600
    again = AccessFile(path, clock)
    found = again.verify(token)
    assert (found.name, found.created, found.expires, found.revoked) == ("alice", NOW, NOW + 60, None)
    assert found.id == token.split("_")[1]
    assert again.tokens() == [found]
    again.close()
    assert "alice" not in token


@pytest.mark.parametrize("name", ["", "a" * 65, "a b", "a/b", "é", "a\n"])
def test_a_name_that_cannot_be_is_refused(access, name):
    with pytest.raises(InvalidSpec, match="1 to 64 letters"):
        access.create(name)


@pytest.mark.parametrize("name", ["a", "a" * 64, "A.b_c@d-9"])
def test_a_name_that_can_be(access, name):
    assert access.verify(access.create(name)).name == name


def test_a_file_of_another_kind_or_version_is_refused(tmp_path, clock):
    path = tmp_path / "access.db"
    AccessFile(path, clock).close()
    db = sqlite3.connect(path)
    db.execute("PRAGMA user_version = 2")
    db.close()
    with pytest.raises(WrongVersion, match="version 2, this program knows 1"):
        AccessFile(path, clock)
    db = sqlite3.connect(path)
    db.execute("PRAGMA user_version = 1")
    db.execute("PRAGMA application_id = 7")
    db.close()
    with pytest.raises(Corrupt, match="not a file of analyst tokens"):
        AccessFile(path, clock)


def test_nobody_else_writes_between_the_look_at_a_new_file_and_its_tables(tmp_path, clock, monkeypatch):
    path = tmp_path / "access.db"
    refused = []

    def watched(file):
        db, other = connect(file), sqlite3.connect(file, timeout=0)

        def try_to_write(statement):
            if statement.startswith(("PRAGMA user_version", "CREATE")):
                with pytest.raises(sqlite3.OperationalError, match="locked"):
                    other.execute("CREATE TABLE mine (a)")
                refused.append(statement)

        db.set_trace_callback(try_to_write)
        return db

    monkeypatch.setattr("ldp_server.store.access.connect", watched)
    AccessFile(path, clock).close()
    assert len(refused) == 5  # the version read, three tables and an index, the version written


def test_a_file_that_cannot_be_read_admits_nobody(access):
    token = access.create("alice")
    access._db.execute("DROP TABLE tokens")
    assert access.verify(token) is None


def test_a_file_that_was_half_made_is_made_anew(tmp_path, monkeypatch):
    """A failure between two tables leaves none of them: the next opening starts again."""
    tables = access_module._TABLES
    monkeypatch.setattr(access_module, "_TABLES", (tables[0], "CREATE TABLE"))
    with pytest.raises(StorageError):
        AccessFile(tmp_path / "access.db", int)
    monkeypatch.setattr(access_module, "_TABLES", tables)
    AccessFile(tmp_path / "access.db", int).close()
