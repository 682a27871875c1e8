"""The report log: exactly once, in order, in one transaction."""

import hashlib
import os
import sqlite3

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ldp_server.store import (
    Admission,
    AppendOutcome,
    NewCollection,
    SqliteLog,
    SqliteReader,
    StoredBatch,
    Submission,
    blocks,
    fold_parts,
)
from ldp_server.store.errors import Corrupt, DiskFull, ReadOnly, StorageError, WrongVersion, translated
from ldp_server.store.insert import runs
from ldp_server.store.schema import APPLICATION_ID, MIGRATIONS, VERSION, connect, migrate
from ldp_server.store.sqlite import _pages


@pytest.fixture
def log(tmp_path):
    log = SqliteLog(tmp_path / "log.db")
    yield log
    log.close()


def add(log, name=b"a"):
    return log.add(NewCollection(name * 32, b"spec", True, Admission(), 1)).number


def a_batch(number, payload=b"abc", batch_id=None, token=None):
    digest = hashlib.sha256(payload).digest()[:16]
    return Submission(number, batch_id or os.urandom(16), digest, payload, token)


def held(log, number, after=0):
    return [batch for found in log.read_all(number, after) for batch in found]


def test_what_is_appended_is_read_back_in_blocks_and_then_the_rest(log):
    number, other = add(log), add(log, b"b")
    first = [a_batch(number, bytes([i]) * (1 + i % 3)) for i in range(50)]
    assert log.append([*first, a_batch(other)]) == [AppendOutcome.STORED] * 51
    log.finish(number)
    assert log.append([a_batch(number, b"last")]) == [AppendOutcome.STORED]
    found = held(log, number)
    assert [batch.sequence for batch in found] == [*range(1, 51), 0]
    assert [batch.batch_id for batch in found[:50]] == sorted(b.batch_id for b in first)
    assert sorted(batch.payload for batch in found[:50]) == sorted(b.payload for b in first)
    assert found[-1].payload == b"last"
    assert [batch.sequence for batch in held(log, number, after=40)] == [*range(41, 51), 0]
    assert log.recent(number, 49) is None
    assert log.recent(number, 50) == found[50:]
    assert (log.last(number), log.count(number)) == (50, 51)
    assert len(held(log, other)) == 1


def test_an_id_comes_back_with_the_same_payload_or_another(log):
    number, other = add(log), add(log, b"b")
    name = os.urandom(16)
    assert log.append([a_batch(number, b"one", name)]) == [AppendOutcome.STORED]
    assert log.append([a_batch(number, b"one", name), a_batch(number, b"two", name)]) == [
        AppendOutcome.DUPLICATE,
        AppendOutcome.CONFLICT,
    ]
    assert log.append([a_batch(other, b"two", name)]) == [AppendOutcome.STORED]
    assert [batch.payload for batch in held(log, number)] == [b"one"]


def test_a_duplicate_inside_one_group_is_counted_once_and_disturbs_nobody(log):
    number = add(log)
    twice = a_batch(number, b"xyz")
    group = [a_batch(number, bytes([i, i, i])) for i in range(30)]
    outcomes = log.append([*group[:10], twice, *group[10:], twice])
    assert outcomes.count(AppendOutcome.STORED) == 31
    assert outcomes.count(AppendOutcome.DUPLICATE) == 1
    assert sorted(b.payload for b in held(log, number)) == sorted([*(b.payload for b in group), b"xyz"])
    log.finish(number)
    assert [b.sequence for b in held(log, number)] == list(range(1, 32))


def test_a_group_larger_than_one_statement(log):
    number = add(log)
    group = [a_batch(number, i.to_bytes(3, "big")) for i in range(5000)]
    assert set(log.append(group)) == {AppendOutcome.STORED}
    assert len(held(log, number)) == 5000


def test_a_token_admits_one_batch_and_its_retries(log):
    number = add(log)
    token, other = os.urandom(16), os.urandom(16)
    first = a_batch(number, b"one", token=token)
    assert log.append([first]) == [AppendOutcome.STORED]
    assert log.append([first]) == [AppendOutcome.DUPLICATE]
    assert log.append([a_batch(number, b"two", token=token), a_batch(number, b"six", token=other)]) == [
        AppendOutcome.TOKEN_USED,
        AppendOutcome.STORED,
    ]
    third, fourth = a_batch(number, b"333", token=b"t" * 16), a_batch(number, b"444", token=b"t" * 16)
    assert sorted(log.append([third, fourth])) == [AppendOutcome.STORED, AppendOutcome.TOKEN_USED]
    log.finish(number)
    assert log.append([first]) == [AppendOutcome.DUPLICATE]
    assert log.append([a_batch(number, b"two", token=token)]) == [AppendOutcome.TOKEN_USED]
    late = [a_batch(number, b"two", token=one) for one in (token, b"n" * 16)]
    assert log.append(late) == [AppendOutcome.TOKEN_USED, AppendOutcome.STORED]


def test_a_sealed_collection_takes_nothing_even_from_the_queue(log):
    number, other = add(log), add(log, b"b")
    log.seal(number)
    assert log.append([a_batch(number), a_batch(other)]) == [AppendOutcome.SEALED, AppendOutcome.STORED]
    assert held(log, number) == []


def test_a_failed_transaction_leaves_nothing_and_the_sequence_goes_on(log):
    number = add(log)
    log.append([a_batch(number)])
    log.db.execute(
        "CREATE TRIGGER stop BEFORE INSERT ON recent WHEN new.payload = x'00' BEGIN SELECT raise(ABORT, 'no'); END"
    )
    with pytest.raises(Exception, match="database"):
        log.append([a_batch(number, b"good"), a_batch(number, b"\x00")])
    assert len(held(log, number)) == 1
    log.db.execute("DROP TRIGGER stop")
    log.append([a_batch(number, b"good")])
    log.finish(number)
    assert [b.sequence for b in held(log, number)] == [1, 2]


def test_a_block_that_cannot_be_finished_refuses_the_group_and_is_finished_later(log, monkeypatch):
    monkeypatch.setattr(blocks, "BLOCK", 5)
    number = add(log)
    log.append([a_batch(number) for _ in range(3)])
    log.db.execute("CREATE TRIGGER stop BEFORE INSERT ON blocks BEGIN SELECT raise(ABORT, 'no'); END")
    group = [a_batch(number) for _ in range(3)]
    with pytest.raises(StorageError):
        log.append(group)
    assert (log.last(number), log.count(number)) == (0, 3)
    log.db.execute("DROP TRIGGER stop")
    assert log.append(group) == [AppendOutcome.STORED] * 3
    assert (log.last(number), log.count(number)) == (6, 6)


def test_a_full_disk_is_said_and_what_was_there_stays(log):
    number = add(log)
    log.append([a_batch(number, bytes(1000))])
    pages = log.db.execute("PRAGMA page_count").fetchone()[0]
    log.db.execute(f"PRAGMA max_page_count = {pages + 2}")
    with pytest.raises(DiskFull, match="no space"):
        log.append([a_batch(number, os.urandom(8000)) for _ in range(10)])
    assert len(held(log, number)) == 1
    log.db.execute("PRAGMA max_page_count = 1000000")
    assert log.append([a_batch(number, bytes(1000))]) == [AppendOutcome.STORED]


def test_it_survives_being_reopened(tmp_path):
    log = SqliteLog(tmp_path / "log.db")
    number = add(log)
    batches = [a_batch(number) for _ in range(3)]
    log.append(batches)
    log.close()
    again = SqliteLog(tmp_path / "log.db")
    assert again.count(number) == 3
    assert again.append(batches) == [AppendOutcome.DUPLICATE] * 3
    assert again.append([a_batch(number, b"new")]) == [AppendOutcome.STORED]
    again.finish(number)
    assert [b.sequence for b in held(again, number)] == [1, 2, 3, 4]
    assert again.append(batches) == [AppendOutcome.DUPLICATE] * 3
    again.close()


def test_it_is_as_durable_as_it_says(log):
    assert log.db.execute("PRAGMA journal_mode").fetchone()[0] == "wal"
    assert log.db.execute("PRAGMA synchronous").fetchone()[0] == 2


def test_a_newer_schema_is_refused_and_left_alone(tmp_path):
    path = tmp_path / "log.db"
    SqliteLog(path).close()
    db = sqlite3.connect(path)
    db.execute(f"PRAGMA user_version = {VERSION + 7}")
    db.close()
    with pytest.raises(WrongVersion, match="newer"):
        SqliteLog(path)
    with pytest.raises(WrongVersion):
        SqliteReader(path)


def test_a_reader_migrates_nothing(tmp_path):
    """A file of an older schema (an empty one is of version 0) is for the writer to bring up to date."""
    path = tmp_path / "log.db"
    path.touch()
    with pytest.raises(WrongVersion, match=f"has schema version 0, this program reads {VERSION}"):
        SqliteReader(path)
    assert path.read_bytes() == b""


def test_outcomes_differ():
    assert len(set(AppendOutcome)) == len(AppendOutcome.__members__) == 7


def test_another_program_s_database_is_refused_and_left_alone(tmp_path):
    path = tmp_path / "log.db"
    db = sqlite3.connect(path)
    db.execute("CREATE TABLE cats (name TEXT)")
    db.close()
    before = path.read_bytes()
    with pytest.raises(Corrupt, match="not a Hearsay"):
        SqliteLog(path)
    assert path.read_bytes() == before


@pytest.mark.parametrize("content", [b"", b"this is no database at all" * 50, os.urandom(9000)])
def test_a_file_of_garbage_is_refused(tmp_path, content):
    path = tmp_path / "log.db"
    path.write_bytes(content)
    if not content:
        SqliteLog(path).close()  # an empty file is a new database
        return
    with pytest.raises(Corrupt):
        SqliteLog(path)
    assert path.read_bytes() == content


def test_damage_in_the_middle_is_found(tmp_path):
    path = tmp_path / "log.db"
    log = SqliteLog(path)
    number = add(log)
    log.append([a_batch(number, os.urandom(5000)) for _ in range(100)])
    log.finish(number)
    log.db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    log.close()
    data = bytearray(path.read_bytes())
    for place in range(5 * 8192, len(data), 8192):
        data[place : place + 100] = os.urandom(100)
    path.write_bytes(data)
    again = SqliteLog(path)
    with pytest.raises(Corrupt):
        again.check()
    again.close()


def test_an_older_schema_is_migrated_step_by_step(tmp_path):
    path = tmp_path / "log.db"
    SqliteLog(path).close()
    steps = {
        **MIGRATIONS,
        VERSION: lambda db: db.execute("ALTER TABLE collections ADD COLUMN colour TEXT"),
        VERSION + 1: lambda db: db.execute("UPDATE collections SET colour = 'blue'"),
    }
    db = connect(path)
    assert migrate(db, path, steps) == VERSION
    assert db.execute("PRAGMA user_version").fetchone()[0] == VERSION + 2
    assert migrate(db, path, steps) == VERSION + 2
    db.close()


@pytest.mark.parametrize("version", [1, 2])
def test_a_log_in_the_order_of_arrival_is_refused_in_one_line_and_left_alone(tmp_path, version):
    path = tmp_path / "log.db"
    db = sqlite3.connect(path)
    db.execute("CREATE TABLE batches (position INTEGER PRIMARY KEY)")
    db.execute(f"PRAGMA application_id = {APPLICATION_ID}")
    db.execute(f"PRAGMA user_version = {version}")
    db.close()
    with pytest.raises(WrongVersion, match="order of arrival: export its counts") as refused:
        SqliteLog(path)
    assert "\n" not in str(refused.value)
    db = sqlite3.connect(path)
    assert db.execute("PRAGMA user_version").fetchone() == (version,)
    db.close()


def test_a_migration_that_fails_leaves_the_old_version(tmp_path):
    path = tmp_path / "log.db"
    SqliteLog(path).close()

    def broken(db):
        db.execute("ALTER TABLE collections ADD COLUMN colour TEXT")
        raise RuntimeError("power cut")

    db = connect(path)
    with pytest.raises(RuntimeError):
        migrate(db, path, {**MIGRATIONS, VERSION: broken})
    assert db.execute("PRAGMA user_version").fetchone()[0] == VERSION
    assert "colour" not in str(db.execute("SELECT sql FROM sqlite_schema").fetchall())
    db.close()


def test_a_read_only_log_cannot_be_written(tmp_path, log):
    add(log)
    reader = SqliteReader(log.path)
    assert not hasattr(reader, "append")
    with pytest.raises(ReadOnly), translated(log.path):
        reader.db.execute("DELETE FROM collections")
    reader.close()


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    st.lists(
        st.lists(
            st.tuples(
                st.integers(1, 2),  # collection
                st.integers(0, 6),  # batch id
                st.sampled_from([b"a", b"b", b"aa", b"bb"]),
                st.one_of(st.none(), st.integers(0, 3)),  # token
            ),
            max_size=12,
        ),
        max_size=6,
    ),
    st.sampled_from([1, 2, 5, 1024]),
)
def test_it_does_what_a_dictionary_would(tmp_path_factory, groups, block):
    """Any mix of new, repeated, conflicting and token-bearing batches, in any groups: exactly once, as in a model."""
    log = SqliteLog(tmp_path_factory.mktemp("model") / "log.db")
    for name in (b"a", b"b"):
        add(log, name)
    held_by, used = {}, {}
    before, blocks.BLOCK = blocks.BLOCK, block
    try:
        follow(log, groups, held_by, used)
    finally:
        blocks.BLOCK = before
    for number in (1, 2):
        found = held(log, number)
        assert {b.batch_id: b.payload for b in found} == {k[1]: v for k, v in held_by.items() if k[0] == number}
        assert [b.sequence for b in found if b.sequence] == list(range(1, log.last(number) + 1))
        assert log.count(number) == len(found) < log.last(number) + block
    log.close()


def follow(log, groups, held_by, used):
    for group in groups:
        batches = [
            a_batch(c, data, bytes([i]) * 16, None if token is None else bytes([token]) * 16)
            for c, i, data, token in group
        ]
        outcomes = log.append(batches)
        # Within a group the order among runs is the store's own: follow it.
        for place in [place for run in runs(batches) for place in run]:
            batch, outcome = batches[place], outcomes[place]
            key, token = (batch.collection, batch.batch_id), (batch.collection, batch.token_id)
            if key in held_by:
                expected = AppendOutcome.DUPLICATE if held_by[key] == batch.payload else AppendOutcome.CONFLICT
            elif batch.token_id is not None and token in used:
                expected = AppendOutcome.TOKEN_USED
            else:
                expected = AppendOutcome.STORED
                held_by[key] = batch.payload
                if batch.token_id is not None:
                    used[token] = batch.batch_id
            assert outcome is expected


def test_names_of_collections_and_what_is_not_there(log):
    assert log.records() == []
    assert log.record(1) is None and log.record_of(b"a" * 32) is None
    first = log.add(NewCollection(b"a" * 32, b"one", True, Admission(), 10))
    second = log.add(NewCollection(b"b" * 32, b"two", False, Admission("linkable-token", 3), 20))
    assert log.records() == [first, second]
    assert log.record(2) == log.record_of(b"b" * 32) == second
    assert (second.spec, second.public, second.admission, second.created) == (b"two", False, ("linkable-token", 3), 20)
    assert (second.closed, second.deleted, second.compacted, second.sealed) == (None, None, False, False)
    with pytest.raises(StorageError, match="row of collection 3 is not in"):
        log._catalog.existing(3)


def test_closing_and_deleting_keep_their_first_time(log):
    number = add(log)
    assert log.close_collection(number, 100).closed == 100
    assert log.close_collection(number, 200).closed == 100
    assert log.delete_collection(number, 300).deleted == 300
    assert log.delete_collection(number, 400).deleted == 300
    assert log.record(number).sealed
    log.unseal(number)
    assert log.append([a_batch(number)]) == [AppendOutcome.SEALED]


def test_unseal_takes_a_seal_back_and_nothing_else(log):
    number = add(log)
    log.seal(number)
    assert log.append([a_batch(number)]) == [AppendOutcome.SEALED]
    log.unseal(number)
    assert log.append([a_batch(number)]) == [AppendOutcome.STORED]
    log.unseal(99)


def test_a_sealed_collection_stays_sealed_when_the_log_is_opened_again(tmp_path):
    log = SqliteLog(tmp_path / "log.db")
    numbers = [add(log, name) for name in (b"a", b"b", b"c")]
    log.close_collection(numbers[0], 5)
    log.delete_collection(numbers[1], 5)
    log.close()
    again = SqliteLog(tmp_path / "log.db")
    outcomes = again.append([a_batch(number) for number in numbers])
    assert [outcome.name for outcome in outcomes] == ["SEALED", "SEALED", "STORED"]
    again.close()


def test_lists_of_about_so_many_bytes(log):
    number = add(log)
    log.append([a_batch(number, bytes([i]) * 100) for i in range(10)])
    log.finish(number)
    lists = list(log.read(number, 0, max_bytes=1))
    assert [len(found) for found in lists] == [1] * 10
    assert [len(found) for found in log.read(number, 0, max_bytes=10**6)] == [10]
    assert [len(found) for found in log.read_all(number, 0, max_bytes=1)] == [1] * 10
    assert [batch.sequence for batch in held(log, number, after=9)] == [10]
    assert held(log, number, after=10) == []


def test_a_collection_s_batches_are_its_own(log):
    first, second = add(log), add(log, b"b")
    log.append([a_batch(first, b"1"), a_batch(second, b"2"), a_batch(first, b"3")])
    assert (log.count(first), log.count(second), log.count(99)) == (2, 1, 0)
    log.finish(first)
    log.finish(second)
    assert (log.last(first), log.last(second), log.last(99)) == (2, 1, 0)
    assert (log.count(first), log.count(second), log.count(99)) == (2, 1, 0)
    one = held(log, second)[0]
    assert len({log.tie(first, 2), log.tie(second, 1)}) == 2
    assert [log.tie(first, 1), log.tie(second, 2), log.tie(99, 1)] == [None] * 3
    periods = [log.period(number) for number in (first, second)]
    assert log.known(periods[1], [one.batch_id]) and log.known(periods[1], [])
    assert not log.known(periods[0], [one.batch_id])
    assert not log.known(periods[1], [one.batch_id, b"x" * 16])
    assert sorted(batch.payload for batch in held(log, first)) == [b"1", b"3"]
    assert log.folded_state(periods[0]) is None


def test_reprs_hold_no_payload():
    one = a_batch(7, b"secret")
    assert repr(one) == "Submission(collection=7, 6 bytes)"
    assert repr(StoredBatch(3, b"i" * 16, b"secret")) == "StoredBatch(sequence=3, 6 bytes)"


def test_runs_are_of_one_period_length_and_kind():
    group = [a_batch(1, b"aa"), a_batch(2, b"aa"), a_batch(1, b"bb"), a_batch(1, b"ccc"), a_batch(1, b"dd", token=b"t")]
    group.append(a_batch(1, b"ee")._replace(period=7))
    assert sorted(sorted(run) for run in runs(group)) == [[0, 2], [1], [3], [4], [5]]
    for run in runs([a_batch(1, b"aa") for _ in range(50)]):
        assert sorted(run) == list(range(50)) != run
    ids = [group[place].batch_id for place in next(run for run in runs(group) if len(run) == 2)]
    assert ids == sorted(ids)
    many = [a_batch(1, b"x")] * 9000
    assert [len(run) for run in runs(many)] == [4096, 4096, 808]
    assert runs([]) == []


def test_folded_counts_are_cut_into_parts():
    assert [part.data for part in fold_parts(1, 2, b"abcdefgh", 3)] == [b"abc", b"def", b"gh"]
    assert [part[:3] for part in fold_parts(1, 2, b"abcdefgh", 3)] == [(1, 2, 0), (1, 2, 1), (1, 2, 2)]
    assert [part.data for part in fold_parts(1, 2, b"", 3)] == [b""]
    assert [len(part.data) for part in fold_parts(1, 2, bytes(4_000_001))] == [4_000_000, 1]


def test_about_how_many_pages_a_group_touches():
    assert _pages(1, {1: (1, 3)}) == 2 + 2 + 1
    assert _pages(1000, {1: (399, 9)}) == 4 + 2 + 1
    assert _pages(1000, {1: (400, 9), 2: (0, 0)}) == 8 + 4 + 1
    assert _pages(0, {}) == 1


def test_a_list_ends_once_it_has_its_bytes(log):
    """Rows are fetched by 256: the first 256 hold more than 10,000 bytes."""
    number = add(log)
    log.append([a_batch(number, i.to_bytes(100, "big")) for i in range(600)])
    log.finish(number)
    assert [len(found) for found in log.read(number, 0, max_bytes=10_000)] == [256, 256, 88]
    assert [len(found) for found in log.read(number, 0, max_bytes=25_600)] == [256, 256, 88]
    assert [len(found) for found in log.read(number, 0, max_bytes=25_601)] == [512, 88]
