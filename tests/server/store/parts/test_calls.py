"""How a group of batches is split into calls of PostgreSQL, and how the store's columns are laid out in them."""

from __future__ import annotations

import hashlib
import random
from types import SimpleNamespace

import pytest

from ldp_server.store import StoredBatch, Submission

pytest.importorskip("psycopg")

from ldp_server.store.postgres.appending import Notices, _values, calls
from ldp_server.store.postgres.arrays import uuids_of
from ldp_server.store.postgres.failures import Lost
from ldp_server.store.postgres.reader import _cut


def batch(collection=1, name=1, token=None, period=0, payload=b"abc", units=b""):
    id_ = bytes([name]) * 16
    checked = hashlib.sha256(payload).digest()[:16]
    shown = None if token is None else bytes([token]) * 16
    return Submission(collection, id_, checked, payload, shown, period, units)


def places(found):
    return [(one.collection, one.period, one.places) for one in found]


def test_a_group_of_one_kind_is_one_call_in_the_order_of_ids():
    assert calls([]) == []
    assert places(calls([batch(name=one) for one in (3, 1, 2)])) == [(1, 0, [1, 2, 0])]
    assert places(calls([batch(7, 3, period=9), batch(7, 1, period=9)])) == [(7, 9, [1, 0])]


def test_calls_go_by_collections_and_periods():
    group = [batch(2, 1), batch(1, 2, period=5), batch(1, 1, period=4), batch(2, 3), batch(1, 9, period=5)]
    assert places(calls(group)) == [(1, 4, [2]), (1, 5, [1, 4]), (2, 0, [0, 3])]


def test_an_id_that_comes_twice_is_in_a_later_call():
    assert places(calls([batch(name=1), batch(name=2), batch(name=1), batch(name=1)])) == [
        (1, 0, [0, 1]), (1, 0, [2]), (1, 0, [3]),
    ]  # fmt: skip
    # Another collection's id is another one; another period's is the same, as ids are of a collection.
    assert places(calls([batch(1, 1), batch(2, 1)])) == [(1, 0, [0]), (2, 0, [1])]
    assert places(calls([batch(1, 1), batch(1, 1, period=3)])) == [(1, 0, [0]), (1, 3, [1])]


def test_a_token_that_comes_twice_is_in_a_later_call():
    """Two batches show one token: the second one is asked about after the first, and is refused."""
    group = [batch(name=2, token=8), batch(name=1, token=8), batch(name=3, token=9)]
    assert places(calls(group)) == [(1, 0, [1, 2]), (1, 0, [0])]
    # It is a token of one collection, and no id.
    assert places(calls([batch(1, 1, token=8), batch(2, 2, token=8)])) == [(1, 0, [0]), (2, 0, [1])]
    assert places(calls([batch(name=8), batch(name=1, token=8)])) == [(1, 0, [0]), (1, 0, [1])]


def test_batches_with_tokens_are_in_calls_of_their_own():
    group = [batch(name=1), batch(name=2, token=5), batch(name=3), batch(name=4, token=6)]
    assert places(calls(group)) == [(1, 0, [0, 2]), (1, 0, [1, 3])]


@pytest.mark.parametrize("seed", range(12))
def test_no_call_has_an_id_or_token_twice_and_none_is_before_its_first_use(seed):
    rng = random.Random(seed)
    group = [
        batch(rng.randint(1, 2), rng.randint(1, 5), rng.choice([None, None, 1, 2, 3]), rng.randint(0, 1))
        for _ in range(rng.randint(1, 30))
    ]
    found = calls(group)
    assert sorted(place for one in found for place in one.places) == list(range(len(group)))
    keys = [(one.collection, one.period) for one in found]
    assert keys == sorted(keys)
    turns = {}
    for number, one in enumerate(found):
        here = [group[place] for place in one.places]
        assert {(two.collection, two.period) for two in here} == {(one.collection, one.period)}
        assert [two.batch_id for two in here] == sorted(two.batch_id for two in here)
        assert len({two.token_id is None for two in here}) == 1
        for kind in ("batch_id", "token_id"):
            names = [getattr(two, kind) for two in here if getattr(two, kind) is not None]
            assert len(names) == len(set(names))
            for name in names:
                turns.setdefault((one.collection, one.period, kind, name), []).append(number)
    assert all(times == sorted(set(times)) for times in turns.values())


def test_the_columns_of_a_call():
    group = [batch(4, 2, payload=b"xy", period=6), batch(4, 1, payload=b"ab", period=6)]
    (one,) = calls(group)
    collection, period, names, digests, tokens, lengths, units, owners, payload = _values(
        one, [group[place] for place in one.places]
    )
    assert (collection, period, payload) == (4, 6, b"abxy")
    assert uuids_of(names) == [bytes([1]) * 16, bytes([2]) * 16]
    assert uuids_of(digests) == [group[1].digest, group[0].digest]
    assert tokens is lengths is units is owners is None  # payloads of one length need no lengths
    _, _, _, _, tokens, lengths, _, _, payload = _values(one, [batch(token=7, payload=b"a"), batch(token=8)])
    assert (uuids_of(tokens), lengths, payload) == ([bytes([7]) * 16, bytes([8]) * 16], [1, 3], b"aabc")


def test_units_name_their_batch():
    digests = [bytes([one]) * 16 for one in range(5)]
    group = [
        batch(name=1, payload=b"ab", units=digests[0] + digests[1]), batch(name=2, payload=b"cd"),
        batch(name=3, payload=b"efg", units=b"".join(digests[2:])),
    ]  # fmt: skip
    (one,) = calls(group)
    found = _values(one, group)
    assert uuids_of(found[6]) == digests
    assert found[7] == [1, 1, 3, 3, 3]
    assert found[5] == [2, 2, 3]


def test_what_the_server_says_beside_its_answer_makes_it_open():
    """A cancelled wait for a standby returns as if it had succeeded, and says so in a notice."""
    heard = Notices()
    heard.check()
    heard.hear(SimpleNamespace(message_primary="waiting was cancelled"))
    heard.hear(SimpleNamespace(message_primary=None))
    with pytest.raises(Lost, match=r"answered with a notice \(waiting was cancelled\), so it is open whether"):
        heard.check()
    heard.check()  # it was said once
    heard.hear(SimpleNamespace(message_primary=None))
    with pytest.raises(Lost, match="a notice"):
        heard.check()


@pytest.mark.parametrize(
    ("sizes", "wanted"),
    [
        ([], []), ([1], [[1]]), ([4, 4, 4], [[4, 4], [4]]), ([8, 1], [[8], [1]]), ([9, 9], [[9], [9]]),
        ([3, 4, 1], [[3, 4, 1]]), ([7, 2, 1], [[7, 2], [1]]), ([0, 0], [[0, 0]]),
    ],
)  # fmt: skip
def test_lists_of_about_so_many_bytes(sizes, wanted):
    found = list(_cut([StoredBatch(0, b"", bytes(size)) for size in sizes], 8))
    assert [[len(one.payload) for one in part] for part in found] == wanted
