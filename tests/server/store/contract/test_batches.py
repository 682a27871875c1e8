"""The contract of every store: batches are kept exactly once, and read back."""

import hashlib
import os
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ldp_server.store import AppendOutcome, StoredBatch, blocks
from ldp_server.store.errors import StorageError
from tests.server.store.contract.batches import a_batch, add, count, draw, finish, held, of

STORED, DUPLICATE, CONFLICT = AppendOutcome.STORED, AppendOutcome.DUPLICATE, AppendOutcome.CONFLICT
USED = AppendOutcome.TOKEN_USED


def test_what_is_appended_is_read_back_in_blocks_and_then_the_rest(log, reader, one_database):
    collection, other = add(log), add(log)
    first = [a_batch(collection, bytes([i]) * (1 + i % 3)) for i in range(50)]
    assert log.append([*first, a_batch(other)]) == [STORED] * 51
    number = of(log, collection)
    assert (log.last(number), log.count(number)) == (0, 50)
    log.finish(number)
    assert log.append([a_batch(collection, b"last")]) == [STORED]
    for one in (log, reader):
        found = held(one, number)
        assert [batch.sequence for batch in found] == [*range(1, 51), 0]
        assert [batch.batch_id for batch in found[:50]] == sorted(batch.batch_id for batch in first)
        assert {(b.batch_id, b.payload) for b in found[:50]} == {(b.batch_id, b.payload) for b in first}
        assert found[-1].payload == b"last"
        assert [batch.sequence for batch in held(one, number, after=40)] == [*range(41, 51), 0]
        assert one.recent(number, 49) is None
        assert one.recent(number, 50) == found[50:]
        assert (one.last(number), one.count(number)) == (50, 51)
        assert one.held_bytes(number) == sum(len(batch.payload) for batch in found)
        assert len(held(one, other)) == 1


def test_blocks_are_cut_into_lists_and_go_on_after_any_number(log, one_database):
    collection = add(log)
    for _ in range(3):
        log.append([a_batch(collection, os.urandom(10)) for _ in range(7)])
        number = of(log, collection)
        log.finish(number)
    assert [batch.sequence for found in log.read(number, 0, max_bytes=25) for batch in found] == list(range(1, 22))
    assert [batch.sequence for found in log.read(number, 10) for batch in found] == list(range(11, 22))
    assert [len(found) for found in log.read(number, 0, max_bytes=1)] == [1] * 21
    assert len({log.tie(number, last) for last in (7, 14, 21)}) == 3
    assert log.tie(number, 8) is None


def test_an_id_comes_back_with_the_same_payload_or_another_or_elsewhere(log):
    number, other, name = add(log), add(log), os.urandom(16)
    assert log.append([a_batch(number, b"one", name)]) == [STORED]
    for _ in range(2):
        again = [a_batch(number, b"one", name), a_batch(number, b"two", name)]
        assert log.append(again) == [DUPLICATE, CONFLICT]
        assert log.append([a_batch(number, b"one", name, period=4)]) == [CONFLICT]
        finish(log, number)
    assert log.append([a_batch(other, b"two", name)]) == [STORED]
    assert [batch.payload for batch in held(log, number)] == [b"one"]


def test_a_duplicate_inside_one_group_is_counted_once_and_disturbs_nobody(log):
    number = add(log)
    twice = a_batch(number, b"xyz")
    group = [a_batch(number, bytes([i, i, i])) for i in range(30)]
    outcomes = log.append([*group[:10], twice, *group[10:], twice, twice._replace(payload=b"other", digest=b"d" * 16)])
    assert outcomes.count(STORED) == 31
    assert sorted(outcomes[place] for place in (10, 31, 32)) == [STORED, DUPLICATE, CONFLICT]
    assert len(held(log, number)) == 31


def test_a_group_partly_new_keeps_the_new_payloads_only(log):
    """Payloads of several lengths: what is cut out of the group must fit its ids."""
    number = add(log)
    old = [a_batch(number, bytes([i]) * (1 + i % 5)) for i in range(20)]
    log.append(old)
    new = [a_batch(number, bytes([50 + i]) * (1 + i % 7)) for i in range(20)]
    mixed = [batch for pair in zip(old, new, strict=True) for batch in pair]
    assert log.append(mixed) == [DUPLICATE, STORED] * 20
    assert {b.batch_id: b.payload for b in held(log, number)} == {b.batch_id: b.payload for b in [*old, *new]}


def test_a_group_of_several_collections_periods_and_kinds(log):
    first, second = add(log), add(log, "linkable-token")
    group = [
        a_batch(second, b"a", token=b"t" * 16),
        a_batch(first, b"b", period=3),
        a_batch(second, b"c", token=b"t" * 16),
        a_batch(first, b"d"),
        a_batch(second, b"e"),
    ]
    outcomes = log.append(group)
    assert sorted(outcomes[place] for place in (0, 2)) == [STORED, USED]
    assert [outcomes[place] for place in (1, 3, 4)] == [STORED] * 3
    assert [period.period for period in log.periods(first)] == [0, 3]
    assert len(held(log, of(log, first, 3))) == len(held(log, of(log, first))) == 1


def test_a_large_group(log):
    number = add(log)
    group = [a_batch(number, i.to_bytes(3, "big")) for i in range(5000)]
    assert set(log.append(group)) == {STORED}
    assert len(held(log, number)) == 5000


def test_a_token_admits_one_batch_and_its_retries(log):
    number = add(log, "linkable-token")
    token, other = os.urandom(16), os.urandom(16)
    first = a_batch(number, b"one", token=token)
    assert log.append([first]) == [STORED]
    assert log.append([first]) == [DUPLICATE]
    assert log.append([a_batch(number, b"two", token=token), a_batch(number, b"six", token=other)]) == [USED, STORED]
    third, fourth = a_batch(number, b"333", token=b"t" * 16), a_batch(number, b"444", token=b"t" * 16)
    assert sorted(log.append([third, fourth])) == [STORED, USED]
    finish(log, number)
    assert log.append([first]) == [DUPLICATE]
    assert log.append([a_batch(number, b"two", token=token)]) == [USED]
    late = [a_batch(number, b"two", token=one) for one in (token, b"n" * 16)]
    assert log.append(late) == [USED, STORED]


def test_a_token_of_a_batch_that_was_not_taken_can_still_be_used(log, one_database):
    """Both tokens belong to one database. Who sends an id again with the token of another one has spent two tokens."""
    number, name, one, other = add(log, "linkable-token"), os.urandom(16), draw(), draw()
    log.append([a_batch(number, b"one", name, token=one)])
    assert log.append([a_batch(number, b"two", name, token=other)]) == [CONFLICT]
    assert log.append([a_batch(number, b"three", token=other)]) == [STORED]


def test_sealed_units_are_known_once_their_batch_is_stored(log, reader):
    number, other = add(log), add(log)
    units = [os.urandom(16) for _ in range(6)]
    first = a_batch(number, b"abcd", units=b"".join(units[:4]))
    assert log.append([first, a_batch(number, b"ef", units=b"".join(units[4:]))]) == [STORED, STORED]
    assert reader.counted_units(number, [*units, os.urandom(16)]) == set(units)
    assert reader.counted_units(other, units) == set()
    assert log.append([first]) == [DUPLICATE]
    before = count(log, number)
    with pytest.raises(StorageError):
        log.append([a_batch(number, b"x", units=units[0])])
    assert count(log, number) == before
    if log.record(number).shards == 1:  # several databases have a transaction each
        with pytest.raises(StorageError):
            log.append([a_batch(number, b"xy", units=units[0] + os.urandom(16)), a_batch(other)])
        assert (count(log, number), count(log, other)) == (2, 0)
    assert sorted(b"".join(batch.payload for batch in held(log, number))) == sorted(b"abcdef")


def test_a_batch_is_known_in_its_own_period_only(log, one_database):
    number = add(log)
    one, two = a_batch(number), a_batch(number, period=9)
    log.append([one, two])
    first, second = log.periods(number)
    for _ in range(2):
        assert log.known(first, [one.batch_id])
        assert log.known(first, [])
        assert not log.known(first, [one.batch_id, two.batch_id])
        assert log.known(second, [two.batch_id])
        log.finish(first.number)


def test_what_is_not_there(log, reader):
    for one in (log, reader):
        assert one.record(999_999) is None
        assert one.record_of(b"?" * 32) is None
        assert one.period(999_999) is None
        assert (one.periods(999_999), held(one, 999_999), one.recent(999_999, 0)) == ([], [], [])
        assert (one.last(999_999), one.count(999_999), one.held_bytes(999_999), one.tie(999_999, 1)) == (0, 0, 0, None)
    assert log.append([]) == []


def test_writers_at_the_same_time_store_each_batch_once(store, log):
    """Two connections send the same batches in other orders and groups. On SQLite there is one writer: threads of
    readers take the second one's place.
    """
    number = add(log)
    batches = [a_batch(number, os.urandom(8)) for _ in range(300)]
    if not store.shared:
        assert log.append(batches) == [STORED] * 300
        return

    def send(seed):
        other = store.writer()
        mixed = sorted(batches, key=lambda one: hashlib.sha256(one.batch_id + bytes([seed])).digest())
        found = {}
        for start in range(0, 300, 20):
            group = mixed[start : start + 20]
            found.update(zip([one.batch_id for one in group], other.append(group), strict=True))
        other.close()
        return found

    with ThreadPoolExecutor(4) as pool:
        answers = list(pool.map(send, range(4)))
    for one in batches:
        assert sorted(answer[one.batch_id] for answer in answers) == [STORED, DUPLICATE, DUPLICATE, DUPLICATE]
    assert {b.batch_id: b.payload for b in held(log, number)} == {b.batch_id: b.payload for b in batches}


GROUPS = st.lists(
    st.lists(
        st.tuples(
            st.integers(0, 1),  # collection
            st.integers(0, 6),  # batch id
            st.sampled_from([b"a", b"b", b"aa", b"bb"]),
            st.one_of(st.none(), st.integers(0, 3)),  # token
            st.integers(0, 1),  # period
        ),
        max_size=8,
    ),
    max_size=6,
)


@settings(max_examples=12, deadline=None, suppress_health_check=list(HealthCheck))
@given(GROUPS, st.sampled_from(["never", "finish", "gather", "anew"]))
def test_it_does_what_a_dictionary_would(log, groups, between):
    """Any mix of new, repeated, conflicting and token-bearing batches, in any groups: exactly once, as in a model. One
    submission a group where the order inside it would matter.
    """
    numbers = add(log), add(log)
    kept, used, shown = {}, set(), {}
    several = log.record(numbers[0]).shards > 1
    for group in groups:
        batches = [
            a_batch(numbers[c], data, bytes([i]) * 16, None if t is None else bytes([t]) * 16, period=p)
            for c, i, data, t, p in group
        ]
        if several:  # a device shows the same token with the same batch, or none
            batches = [one._replace(token_id=shown.setdefault(one[:2], one.token_id)) for one in batches]
        for batch in batches:
            key, token = (batch.collection, batch.batch_id), (batch.collection, batch.token_id)
            if key in kept:
                expected = DUPLICATE if kept[key] == (batch.payload, batch.period) else CONFLICT
            elif batch.token_id is not None and token in used:
                expected = USED
            else:
                expected = STORED
                kept[key] = batch.payload, batch.period
                used.add(token)
            assert log.append([batch]) == [expected]
        tend(log, numbers, between)
        before = {key: value for key, value in kept.items() if key[0] in numbers}
        again = [
            a_batch(number, data, name, shown.get((number, name)), period=period)
            for (number, name), (data, period) in before.items()
        ]
        assert set(log.append(again)) <= {DUPLICATE}
    for number in numbers:
        found = [batch for one in log.periods(number) for group in log.read_all(one.number, 0) for batch in group]
        assert len(found) == len({b.batch_id for b in found})
        assert {b.batch_id: b.payload for b in found} == {k[1]: v[0] for k, v in kept.items() if k[0] == number}
        log.check_recent(number)
    log.check()


def tend(log, numbers, how):
    before, blocks.BLOCK = blocks.BLOCK, 3
    try:
        if how == "finish":
            for number in numbers:
                for period in log.periods(number):
                    log.finish(period.number)
        elif how == "gather":
            while log.gather():
                pass
        elif how == "anew":
            while log.lay_anew():
                pass
    finally:
        blocks.BLOCK = before


def test_recent_batches_that_are_laid_anew_stay_what_they_are(log):
    number = add(log)
    batches = [a_batch(number, os.urandom(1 + i % 3)) for i in range(12)]
    for batch in batches:
        log.append([batch])
    while log.lay_anew():
        pass
    assert log.purge()
    assert sorted(held(log, number), key=lambda b: b[1]) == sorted(
        [StoredBatch(0, b.batch_id, b.payload) for b in batches], key=lambda b: b[1]
    )
    assert log.append(batches) == [DUPLICATE] * 12
