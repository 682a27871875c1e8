"""Analyst tokens: names, roles, revocation, expiry."""

import sqlite3

import pytest

from ldp_client.errors import InvalidSpec, StorageError
from ldp_server.store import ROLES, AccessFile, SteadyClock
from ldp_server.store import access as access_module
from ldp_server.store.access import LONGEST_LIFETIME
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


def test_an_expired_token_is_refused_and_its_name_can_be_used_again(access, clock):
    token = access.create("alice", "ask", 60)
    clock.now += 59
    assert access.verify(token).name == "alice"
    with pytest.raises(InvalidSpec, match="in use"):
        access.create("alice")
    clock.now += 1
    assert access.verify(token) is None
    assert access.find(token).state(clock()) == "expired"
    again = access.create("alice", "manage", 60)
    assert access.verify(again).role == "manage"
    clock.now -= 30  # a clock that is set back brings no replaced token back
    assert access.verify(token) is None
    assert [one.state(clock()) for one in access.tokens()] == ["expired", "active"]


def test_a_token_expires_by_itself_after_90_days(access, clock):
    token = access.create("alice")
    clock.now += 90 * 86_400 - 1
    assert access.verify(token).role == "ask"
    clock.now += 1
    assert access.verify(token) is None


@pytest.mark.parametrize("lifetime", [0, -1, LONGEST_LIFETIME + 1])
def test_a_lifetime_that_cannot_be_is_refused(access, lifetime):
    with pytest.raises(InvalidSpec, match="at most 3650 days"):
        access.create("alice", "ask", lifetime)
    assert access.verify(access.create("alice", "ask", LONGEST_LIFETIME))


def test_each_role_includes_the_ones_before_it(access):
    includes = {}
    for role in ROLES:
        token = access.verify(access.create(f"of-{role}", role))
        includes[role] = [other for other in ROLES if token.may(other)]
    assert includes == {"ask": ["ask"], "create": ["ask", "create"], "manage": ["ask", "create", "manage"]}


@pytest.mark.parametrize("role", ["", "admin", "Ask", "ask "])
def test_a_role_that_is_none_is_refused(access, role):
    with pytest.raises(InvalidSpec, match="is one of ask, create, manage"):
        access.create("alice", role)


def test_a_role_that_this_program_does_not_know_allows_nothing(access):
    token = access.create("alice", "manage")
    access._db.execute("UPDATE tokens SET role = 'all'")
    assert not any(access.verify(token).may(role) for role in ROLES)


def test_a_token_revoked_after_it_expired_stays_expired(access, clock):
    token = access.create("alice", "ask", 60)
    clock.now += 100
    access.revoke("alice")
    assert access.find(token).state(clock()) == "expired"
    early = access.create("bob", "ask", 60)
    access.revoke("bob")
    clock.now += 1000
    assert access.find(early).state(clock()) == "revoked"
    clock.now -= 5000
    assert {access.find(one).state(clock()) for one in (token, early)} == {"expired", "revoked"}


def test_local_tokens_may_do_everything_and_are_forgotten_when_they_have_expired(access, clock):
    alice = access.create("alice", "ask", 60)
    first = access.create_local(60)
    clock.now += 59
    second = access.create_local(60)
    assert access.verify(first).local
    assert access.verify(second).may("manage")
    clock.now += 1
    access.create_local(60)
    assert access.find(first) is None
    assert access.verify(second)
    assert len(access.tokens()) == 3
    access.drop_local()
    assert [one.name for one in access.tokens()] == ["alice"]
    assert access.find(second) is None
    assert access.find(alice)


def test_a_steady_clock_is_not_set_back():
    wall, steady = Clock(1000.0), Clock(50.0)
    clock = SteadyClock(wall, steady)
    assert clock() == 1000
    wall.now, steady.now = 1060.0, 110.0
    assert clock() == 1060
    wall.now = 10.0  # set back: time goes on as the machine counts it
    steady.now = 120.0
    assert clock() == 1070
    wall.now = 5000.0  # set forward: it is followed
    assert clock() == 5000
    wall.now = 1071.0  # and set right again
    steady.now = 121.0
    assert clock() == 1071


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
    elsewhere._db.execute("INSERT INTO tokens VALUES (?, ?, ?, ?, ?, ?, ?, ?)", row)
    assert elsewhere.find(token) is None
    elsewhere.close()


def test_a_file_of_tokens_is_for_its_owner_and_stays(tmp_path, clock):
    path = tmp_path / "access.db"
    first = AccessFile(path, clock)
    token = first.create("alice", "create", 60)
    first.close()
    assert path.stat().st_mode & 0o777 == 0o600
    again = AccessFile(path, clock)
    found = again.verify(token)
    assert (found.name, found.role, found.created, found.expires) == ("alice", "create", NOW, NOW + 60)
    assert (found.revoked, found.local) == (None, False)
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
    db.execute("PRAGMA user_version = 3")
    db.close()
    with pytest.raises(WrongVersion, match="version 3, this program knows 2"):
        AccessFile(path, clock)
    db = sqlite3.connect(path)
    db.execute("PRAGMA user_version = 2")
    db.execute("PRAGMA application_id = 7")
    db.close()
    with pytest.raises(Corrupt, match="not a file of analyst tokens"):
        AccessFile(path, clock)


def test_a_file_without_roles_says_what_to_do(tmp_path, clock):
    path = tmp_path / "access.db"
    db = sqlite3.connect(path)
    db.execute(f"PRAGMA application_id = {access_module._APPLICATION_ID}")
    db.execute("PRAGMA user_version = 1")
    db.execute("CREATE TABLE tokens (id TEXT PRIMARY KEY, name TEXT NOT NULL, hash BLOB NOT NULL)")
    db.close()
    before = path.read_bytes()
    with pytest.raises(WrongVersion, match=r"has version 1, .* move the file away, .* make new tokens") as error:
        AccessFile(path, clock)
    assert "\n" not in str(error.value)
    assert path.read_bytes() == before


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
    assert access.find(token) is None


def test_a_file_that_was_half_made_is_made_anew(tmp_path, monkeypatch):
    """A failure between two tables leaves none of them: the next opening starts again."""
    tables = access_module._TABLES
    monkeypatch.setattr(access_module, "_TABLES", (tables[0], "CREATE TABLE"))
    with pytest.raises(StorageError):
        AccessFile(tmp_path / "access.db", int)
    monkeypatch.setattr(access_module, "_TABLES", tables)
    AccessFile(tmp_path / "access.db", int).close()


def test_the_shortest_and_the_longest_life_of_a_token(access, clock):
    for lifetime in (1, access_module.LONGEST_LIFETIME):
        token = access.create(f"for-{lifetime}", "ask", lifetime)
        assert access.verify(token).expires == NOW + lifetime
    clock.now += 1
    assert [token.state(clock.now) for token in access.tokens()] == ["expired", "active"]


def test_a_file_of_tokens_is_marked_as_one(access):
    assert access._db.execute("PRAGMA application_id").fetchone()[0].to_bytes(4, "big") == b"HSAC"
