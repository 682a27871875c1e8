"""Which database a batch goes to: always the same, and what may be used once meets itself there."""

import hashlib
import os

import pytest

from ldp_server.store import AppendOutcome
from ldp_server.store.sharded.routing import combined, inner_number, outer_number, shard_of, split
from tests.server.store.contract.batches import a_batch

STORED, DUPLICATE, SEALED = AppendOutcome.STORED, AppendOutcome.DUPLICATE, AppendOutcome.SEALED


def test_places_never_change():
    """Known answers: another hash would send what is sent again to another database."""
    names = [bytes([one]) * 16 for one in range(12)]
    assert [shard_of(name, 2) for name in names] == [place(name) % 2 for name in names]
    assert [shard_of(name, 5) for name in names] == [place(name) % 5 for name in names]
    assert [shard_of(name, 3) for name in names] == [0, 2, 1, 0, 1, 0, 1, 2, 0, 1, 1, 2]
    assert {shard_of(name, 1) for name in names} == {0}


def place(name):
    return int.from_bytes(hashlib.sha256(b"hearsay/shard/v1" + name).digest()[:8], "big")


def test_each_database_gets_its_share():
    """10,000 ids that are counted up, so that nothing is drawn: each of 4 databases gets 2,500 of them, give or take 5
    standard deviations of what random places would give.
    """
    found = [0] * 4
    for one in range(10_000):
        found[shard_of(one.to_bytes(16, "big"), 4)] += 1
    assert all(abs(count - 2500) < 5 * (10_000 * 3 / 16) ** 0.5 for count in found)


def test_a_token_decides_and_else_the_id():
    name, token = os.urandom(16), os.urandom(16)
    plain, shown = a_batch(1, b"x", name), a_batch(1, b"x", name, token)
    for shards in (1, 2, 7):
        assert split(plain, shards) == [(shard_of(name, shards), plain)]
        assert split(shown, shards) == [(shard_of(token, shards), shown)]
        others = [a_batch(2, b"other", os.urandom(16), token, period=4) for _ in range(20)]
        assert {split(one, shards)[0][0] for one in others} == {shard_of(token, shards)}


@pytest.mark.parametrize("width", [1, 3])
def test_units_go_with_their_reports_and_meet_themselves(width):
    units = [os.urandom(16) for _ in range(40)]
    reports = [os.urandom(width) for _ in units]
    whole = a_batch(1, b"".join(reports), units=b"".join(units), period=6)
    parts = split(whole, 3)
    assert [shard for shard, _ in parts] == [0, 1, 2]
    found = {}
    for shard, part in parts:
        digests = [part.units[start : start + 16] for start in range(0, len(part.units), 16)]
        assert {shard_of(one, 3) for one in digests} == {shard}
        assert part.digest == hashlib.sha256(part.payload).digest()[:16]
        assert (part.collection, part.period, part.token_id, len(part.payload)) == (1, 6, None, width * len(digests))
        found.update((one, part.payload[place * width : (place + 1) * width]) for place, one in enumerate(digests))
    assert found == dict(zip(units, reports, strict=True))
    names = [part.batch_id for _, part in parts]
    assert len({*names, whole.batch_id}) == 4
    assert {len(name) for name in names} == {16}
    assert split(whole, 3) == parts  # sent again it has the same parts under the same ids
    assert split(whole, 1) == [(0, whole)]
    again = a_batch(1, b"".join(reversed(reports)), units=b"".join(reversed(units)))  # as a relay may mix them
    for shard, part in split(again, 3):
        assert {part.units[start : start + 16] for start in range(0, len(part.units), 16)} == {
            one for one in units if shard_of(one, 3) == shard
        }


def test_units_of_one_database_stay_one_batch():
    unit = os.urandom(16)
    whole = a_batch(1, b"x", units=unit)
    assert split(whole, 3) == [(shard_of(unit, 3), whole)]


def test_what_became_of_the_parts():
    assert combined([STORED]) is STORED
    assert combined([DUPLICATE, STORED]) is STORED
    assert combined([SEALED, STORED]) is STORED
    assert combined([DUPLICATE, DUPLICATE]) is DUPLICATE
    assert combined([DUPLICATE, SEALED]) is SEALED


def test_numbers_of_records_say_where_they_are():
    assert inner_number(5) == (0, 5)
    for number in (1, 4_194_304, (1 << 23) - 1):
        for shard in (0, 1, 6):
            assert inner_number(outer_number(number, shard)) == (shard, number)
    assert outer_number(7, 2) == 7 + 2 * (1 << 23)
