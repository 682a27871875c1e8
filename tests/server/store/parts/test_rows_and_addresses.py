"""The store's pure parts, without a file or a server: rows and their checks, arrays, addresses, errors, tokens."""

from __future__ import annotations

import hashlib
import uuid
from types import SimpleNamespace

import pytest

from ldp_client.errors import InvalidSpec
from ldp_client.protocol import tags
from ldp_server.store import Admission
from ldp_server.store.catalog import _record, period_check
from ldp_server.store.damage import check_payloads, check_recent, check_rows, check_spec
from ldp_server.store.engines import addresses_of, check_address, needing_postgres, open_store
from ldp_server.store.errors import FINAL, Corrupt, DiskFull, InUse, ReadOnly, Removed, StorageError, WrongVersion
from ldp_server.store.interface.tokens import LIFETIME, LONGEST_LIFETIME, ROLES, AnalystToken

psycopg = pytest.importorskip("psycopg")

from psycopg import errors  # noqa: E402 - after psycopg is known to be there
from psycopg.adapt import PyFormat, Transformer  # noqa: E402
from psycopg.conninfo import conninfo_to_dict  # noqa: E402
from psycopg_pool import PoolTimeout  # noqa: E402

from ldp_server.store.postgres.arrays import Uuids, uuids, uuids_of  # noqa: E402
from ldp_server.store.postgres.connecting import Destination, Family, ShardPlace  # noqa: E402
from ldp_server.store.postgres.failures import Again, Lost, failure, translated  # noqa: E402
from ldp_server.store.postgres.rows import collection_record, period_record, together  # noqa: E402


def digest(payload):
    return hashlib.sha256(payload).digest()[:16]


def name(number):
    return bytes([number]) * 16


# -- rows


ROW = (7, b"i" * 32, b"spec", 1, "open", 0, 100, None, None, 0, 0, 2)


def test_a_collection_s_row():
    found = _record(ROW)
    assert (found.number, found.id, found.spec, found.public, found.admission) == (
        7, b"i" * 32, b"spec", True, Admission("open", 0),
    )  # fmt: skip
    assert (found.created, found.closed, found.deleted, found.compacted, found.oldest, found.periods) == (
        100, None, None, False, 0, 2,
    )  # fmt: skip
    later = _record((*ROW[:3], 0, "linkable-token", 3, 100, 200, 300, 1, 5, 9))
    assert (later.public, later.admission, later.closed, later.deleted) == (
        False,
        Admission("linkable-token", 3),
        200,
        300,
    )
    assert (later.compacted, later.oldest, later.periods) == (True, 5, 9)


@pytest.mark.parametrize(
    ("place", "wrong"),
    [(place, "x") for place in (0, 1, 2, 3, 5, 6, 7, 8, 9, 10, 11)]
    + [(0, 1.5), (1, 7), (2, None), (4, "nobody"), (4, None), (4, 7), (6, b"1"), (9, True)],
)
def test_a_row_with_one_flipped_type_is_damage(place, wrong):
    """Each field by itself: one wrong type is enough."""
    with pytest.raises(Corrupt):
        _record((*ROW[:place], wrong, *ROW[place + 1 :]))


def test_a_postgres_row_is_the_same_record():
    found = collection_record(
        (7, memoryview(b"i" * 32), memoryview(b"spec"), True, "open", 0, 100, None, 5, False, 3, 2, 4)
    )
    assert (found.id, found.spec, found.public, found.created, found.closed, found.deleted) == (
        b"i" * 32, b"spec", True, 100, None, 5,
    )  # fmt: skip
    assert (found.compacted, found.oldest, found.periods, found.shards) == (False, 3, 2, 4)
    with pytest.raises(Corrupt, match="the row of a collection is damaged"):
        collection_record((7, b"i" * 32, b"spec", True, "nobody", 0, 100, None, None, False, 0, 0, 1))


def test_a_period_s_row_has_a_check_sum_of_its_place():
    tag = period_check(4, 7, 20)
    assert tag == hashlib.sha256(b"4 7 20").digest()[:8]
    found = period_record((4, 7, 20, None, 0, 0, 1, False, False, memoryview(tag)))
    assert (found.number, found.collection, found.period) == (4, 7, 20)
    for moved in ((5, 7, 20), (4, 6, 20), (4, 7, 21)):
        with pytest.raises(Corrupt, match="damaged"):
            period_record((*moved, None, 0, 0, 1, False, False, tag))


ROWS = [(3, name(1), b"abc", digest(b"abc")), (4, name(2), b"", digest(b"")), (5, name(3), b"x", digest(b"x"))]


def test_rows_follow_each_other_and_fit_their_digests():
    check_rows(ROWS, 2)
    check_rows([], 9)
    check_payloads(ROWS)
    for after in (1, 3):
        with pytest.raises(Corrupt, match="have a gap"):
            check_rows(ROWS, after)
    for wrong in ([ROWS[0], ROWS[2]], [ROWS[1], ROWS[0]], [ROWS[0], ROWS[0]]):
        with pytest.raises(Corrupt, match="have a gap"):
            check_rows(wrong, wrong[0][0] - 1)
    for place in range(3):
        number, id_, payload, checked = ROWS[place]
        for bad, text in (
            ((number, id_, payload + b"y", checked), "does not fit its digest"),
            ((number, id_, payload, bytes(16)), "does not fit its digest"),
            ((number, id_, "abc", checked), "not of the right type"),
            ((number, "id", payload, checked), "not of the right type"),
            ((number, id_, payload, None), "not of the right type"),
        ):
            rows = [*ROWS[:place], bad, *ROWS[place + 1 :]]
            for check in (lambda rows=rows: check_rows(rows, 2), lambda rows=rows: check_payloads(rows)):
                with pytest.raises(Corrupt, match=text):
                    check()


def test_recent_batches_fit_their_index():
    index = [(row[0], row[1]) for row in ROWS]
    check_recent(ROWS, index)
    check_recent(ROWS, index[::-1])
    check_recent([], [])
    for wrong in (
        index[:2],
        [*index, (9, name(9))],
        [*index[:2], (5, name(9))],
        [*index[:2], (6, name(3))],
        [*index, index[0]],
    ):
        with pytest.raises(Corrupt, match="do not fit their index"):
            check_recent(ROWS, wrong)
    with pytest.raises(Corrupt, match="does not fit its digest"):
        check_recent([(3, name(1), b"abd", digest(b"abc"))], [(3, name(1))])


def test_a_spec_is_the_one_that_its_id_names():
    id_ = hashlib.sha256(tags.COLLECTION + b"spec").digest()
    check_spec(SimpleNamespace(spec=b"spec", id=id_))
    with pytest.raises(Corrupt, match="does not hash to its id"):
        check_spec(SimpleNamespace(spec=b"spek", id=id_))


# -- arrays of uuids


@pytest.mark.parametrize("ids", [[], [name(1)], [name(3), name(1), name(2)], [bytes(16)], [name(255)] * 40])
def test_arrays_go_there_and_back(ids):
    packed = uuids(ids)
    assert isinstance(packed, Uuids) and uuids_of(packed) == ids
    if ids:
        assert len(packed) == 20 + 20 * len(ids)
        assert packed[20:40] == (16).to_bytes(4, "big") + ids[0]


@pytest.mark.parametrize("ids", [[b""], [b"", name(1)], [name(1), b"", b"", name(2)], [name(1), b""]])
def test_empty_names_are_null(ids):
    packed = uuids(ids)
    assert uuids_of(packed) == ids
    assert packed[4:8] == (1).to_bytes(4, "big")  # the array says that it has NULLs
    assert len(packed) == 20 + sum(20 if one else 4 for one in ids)


def test_arrays_are_postgres_s_binary_form():
    """As psycopg's own dumper writes them."""
    values = [uuid.UUID(bytes=name(one)) for one in (1, 7)]
    made = Transformer().get_dumper(values, PyFormat.BINARY).dump(values)
    assert bytes(made) == bytes(uuids([name(1), name(7)]))


@pytest.mark.parametrize("payloads", [[b"abc"], [b"ab", b"cd", b"ef"], [b"", b"xyz", b"q"]])
def test_batches_that_lie_together(payloads):
    ids = [name(one + 1) for one in range(len(payloads))]
    given = bytes(uuids(ids)), bytes(uuids([digest(one) for one in payloads]))
    whole = b"".join(payloads)
    found = together(*given, [len(one) for one in payloads], whole)
    assert (found.ids, found.payloads, found.digests) == (ids, payloads, [digest(one) for one in payloads])
    if len({len(one) for one in payloads}) == 1:
        assert together(*given, None, whole) == found
        assert together(*given, [], whole) == found


def test_batches_that_do_not_fit_their_row():
    ids, sums = bytes(uuids([name(1), name(2)])), bytes(uuids([digest(b"ab"), digest(b"cd")]))
    for wrong in (
        (ids, sums, [2, 1], b"abcd"), (ids, sums, [2, 3], b"abcd"), (ids, sums, [4], b"abcd"),
        (ids, sums, None, b"abcde"),
        (ids, bytes(uuids([digest(b"ab")])), [2, 2], b"abcd"), (bytes(uuids([])), bytes(uuids([])), None, b""),
        (bytes(uuids([name(1)])), sums, [4], b"abcd"),
    ):  # fmt: skip
        with pytest.raises(Corrupt, match="a row of batches does not fit itself"):
            together(*wrong)
    with pytest.raises(Corrupt, match="does not fit its digest"):
        together(ids, sums, [2, 2], b"abce")


# -- errors


@pytest.mark.parametrize(
    ("raised", "kind", "text"),
    [
        (errors.DiskFull, DiskFull, "no space left for it: free some, nothing acknowledged was lost"),
        (errors.ReadOnlySqlTransaction, ReadOnly, "it takes no writes, as a standby does: name the primary"),
        (errors.UndefinedTable, WrongVersion, "it has no complete Hearsay schema: run `ldp-server store prepare`"),
        (errors.UndefinedFunction, WrongVersion, "no complete Hearsay schema"),
        (errors.InvalidSchemaName, WrongVersion, "no complete Hearsay schema"),
        (errors.InsufficientPrivilege, ReadOnly, "it: said so; grant this user hearsay_collector or hearsay_keeper"),
        (errors.DeadlockDetected, Again, "^it: said so$"), (errors.SerializationFailure, Again, "^it: said so$"),
        (errors.DataCorrupted, Corrupt, r"it is damaged \(said so\): restore a backup"),
        (errors.IndexCorrupted, Corrupt, "it is damaged"),
        (errors.LockNotAvailable, InUse, "it is busy: said so"), (errors.UniqueViolation, InUse, "it is busy"),
        (errors.TooManyConnections, InUse, "it is busy"), (PoolTimeout, InUse, "all connections to it are in use"),
        (errors.AdminShutdown, Lost, "the connection to it was lost: said so"),
        (psycopg.OperationalError, Lost, "the connection to it was lost"),
        (psycopg.InterfaceError, Lost, "the connection to it was lost"),
        (errors.SyntaxError, StorageError, "^it: said so$"),
    ],
)  # fmt: skip
def test_what_postgres_says(raised, kind, text):
    """Its first line alone: the others quote statements and values."""
    said = raised("said so\nLINE 1: SELECT 'secret'")
    found = failure(said, "it")
    assert type(found) is kind
    assert "secret" not in str(found)
    with pytest.raises(kind, match=text), translated("it"):
        raise said


def test_an_interruption_that_could_not_be_undone_is_an_interruption():
    """As psycopg ends a pipeline and a transaction when the server is busy with it."""
    with pytest.raises(KeyboardInterrupt), translated("it"):
        try:
            raise KeyboardInterrupt
        except KeyboardInterrupt:
            try:
                raise errors.QueryCanceled("canceling statement due to user request")
            except psycopg.Error:
                raise psycopg.OperationalError("cannot exit pipeline mode while busy") from None


def test_an_error_without_words_has_its_name():
    assert str(failure(errors.SyntaxError("  "), "it")) == "it: SyntaxError"
    with pytest.raises(KeyError), translated("it"):
        raise KeyError("x")


def test_what_trying_again_does_not_mend():
    assert set(FINAL) == {Corrupt, WrongVersion, Removed}
    assert all(issubclass(one, StorageError) for one in (*FINAL, DiskFull, ReadOnly, InUse, Again, Lost))
    assert not issubclass(Again, FINAL) and not issubclass(Lost, FINAL)


# -- addresses


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("", []), ("  ", []), ("postgresql://a/b", ["postgresql://a/b"]), (" postgres://a ", ["postgres://a"]),
        ("postgresql://a  postgres://b\npostgresql://c", ["postgresql://a", "postgres://b", "postgresql://c"]),
        ("postgresql://a?options=-c x=y postgresql://b", ["postgresql://a?options=-c x=y", "postgresql://b"]),
    ],
)  # fmt: skip
def test_the_addresses_of_a_store(text, found):
    assert addresses_of(text) == found
    check_address(text.strip())


@pytest.mark.parametrize("text", ["sqlite://x", "/var/lib", "mysql://a", "a postgresql://b", "postgresql:/a"])
def test_what_is_no_address(text, tmp_path):
    for ask in (lambda: check_address(text), lambda: open_store(text, tmp_path)):
        with pytest.raises(InvalidSpec, match=r'^store is "" .SQLite in the data directory. or an address such as'):
            ask()


def test_a_missing_library_is_named():
    for missing in ("psycopg", "psycopg_pool", "psycopg_binary.pq"):
        with (
            pytest.raises(InvalidSpec, match=rf"needs {missing}, .*pip install 'hearsay\[postgres\]'"),
            needing_postgres(),
        ):
            raise ModuleNotFoundError(name=missing)
    with pytest.raises(ModuleNotFoundError), needing_postgres():
        raise ModuleNotFoundError(name="numpy")


@pytest.mark.parametrize(
    ("address", "shown"),
    [
        ("postgresql://u:secret@db:5433/x", "postgresql://db:5433/x"), ("postgresql://u@db/x", "postgresql://db/x"),
        ("postgresql:///x", "postgresql://localhost/x"), ("postgresql://db", "postgresql://db/"),
        ("postgresql://u@/x?host=/run/pg", "postgresql:///run/pg/x"),
    ],
)  # fmt: skip
def test_a_database_is_shown_without_user_and_password(address, shown):
    found = Destination(address)
    assert found.name == shown and found.address == address
    known = conninfo_to_dict(found.conninfo)
    assert (known["application_name"], known["connect_timeout"], known["tcp_user_timeout"]) == ("hearsay", "5", "20000")
    assert [known[f"keepalives_{one}"] for one in ("idle", "interval", "count")] == ["10", "5", "3"]


def test_an_address_s_own_settings_stand():
    known = conninfo_to_dict(Destination("postgresql://db/x?application_name=mine&connect_timeout=9").conninfo)
    assert (known["application_name"], known["connect_timeout"], known["keepalives_count"]) == ("mine", "9", "3")
    with pytest.raises(InvalidSpec, match=r"^store is not an address of PostgreSQL: "):
        Destination("postgresql://db/x?nonsense=1")


class Answers:
    """In the place of a connection to a server that could not be started here."""

    def __init__(self, row):
        self.row, self.said = row, []

    def execute(self, statement):
        self.said.append(statement)
        return self

    def fetchone(self):
        return self.row


GOOD = (150_000, False, "on", "on", "on", "UTF8")


@pytest.mark.parametrize(
    ("change", "kind", "text"),
    [
        ({0: 149_999}, WrongVersion, "is a server of version 149999, and 15 is the oldest that is supported"),
        ({0: "x"}, WrongVersion, "is a server of version x"),
        ({5: "LATIN1"}, WrongVersion, "has the encoding LATIN1: make the database with ENCODING 'UTF8'"),
        ({1: True}, ReadOnly, "is a standby: name the primary"),
        ({2: "off"}, StorageError, "has fsync or full_page_writes off, and could lose what it acknowledged"),
        ({3: "off"}, StorageError, "has fsync or full_page_writes off"),
    ],
)  # fmt: skip
def test_a_server_that_is_not_relied_on(change, kind, text):
    there = Answers(tuple(change.get(place, value) for place, value in enumerate(GOOD)))
    with pytest.raises(kind, match=text):
        Destination("postgresql://db/x").check_server(there, writes=True)
    if kind in (ReadOnly, StorageError):  # who only reads may use it
        Destination("postgresql://db/x").check_server(there, writes=False)


@pytest.mark.parametrize("commit", ["on", "off", "local", "remote_write", "remote_apply"])
def test_what_is_acknowledged_is_on_the_disk(commit):
    for writes in (False, True):
        there = Answers((*GOOD[:4], commit, "UTF8"))
        Destination("postgresql://db/x").check_server(there, writes=writes)
        wanted = writes and commit in {"off", "local", "remote_write"}
        assert ("SET synchronous_commit = on" in there.said) == wanted
    with pytest.raises(StorageError, match="gives no answer about itself"):
        Destination("postgresql://db/x").check_server(Answers(None), writes=False)


def test_which_of_several_databases_one_is():
    only, second = ShardPlace(), ShardPlace(1, 3, Family())
    only.check(None, "it")
    only.check((0, 1, b"f"), "it")
    with pytest.raises(WrongVersion, match="it is not one of several databases yet: run `ldp-server store prepare`"):
        second.check(None, "it")
    second.check((1, 3, b"f"), "it")
    for row, said in (
        ((0, 3, b"f"), "number 1 of 3"),
        ((1, 2, b"f"), "number 2 of 2"),
        ((2, 4, b"f"), "number 3 of 4"),
    ):
        with pytest.raises(
            WrongVersion, match=f"it is {said} databases, and store names it as number 2 of 3: name all"
        ):
            second.check(row, "it")
    with pytest.raises(WrongVersion, match="it is number 1 of 2 databases, and store names it as the only one"):
        only.check((0, 2, b"f"), "it")


def test_databases_of_two_stores_are_told_apart():
    family = Family()
    ShardPlace(0, 2, family).check((0, 2, b"one"), "first")
    ShardPlace(1, 2, family).check((1, 2, b"one"), "second")
    with pytest.raises(WrongVersion, match=r"^second and first belong to different stores: correct store$"):
        ShardPlace(1, 2, family).check((1, 2, b"other"), "second")


# -- tokens


def a_token(role="ask", expires=200, revoked=None):
    return AnalystToken("00", "maria", role, 100, expires, revoked, local=False)


@pytest.mark.parametrize(
    ("now", "revoked", "state"),
    [
        (199.9, None, "active"), (200.0, None, "expired"), (150.0, 120, "revoked"), (300.0, 199, "revoked"),
        (300.0, 200, "expired"), (150.0, 200, "expired"), (50.0, None, "active"),
    ],
)  # fmt: skip
def test_the_state_of_a_token(now, revoked, state):
    assert a_token(revoked=revoked).state(now) == state


def test_a_role_includes_those_before_it():
    assert ROLES == ("ask", "create", "manage")
    for place, role in enumerate(ROLES):
        assert [a_token(role).may(other) for other in ROLES] == [other <= place for other in range(3)]
    assert not a_token("unknown").may("ask")
    assert (LIFETIME, LONGEST_LIFETIME) == (90 * 86_400, 3_650 * 86_400)
