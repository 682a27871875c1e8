"""The additive state: merging, saving, refusing."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ldp_client.errors import InvalidSpec, ServerRefused
from ldp_client.mechanisms.hashtogram import Hashtogram
from ldp_client.mechanisms.linear_hash import LinearHash
from ldp_client.mechanisms.randomized_response import RandomizedResponse
from ldp_client.protocol.epsilon import Epsilon
from ldp_server.arrays.packing import pack
from ldp_server.oracles import ORACLES, oracle_for, restore
from ldp_server.oracles.counts import Counts
from tests.examples import SEED, label
from tests.server.oracles.cases import EVERY, filled, indexes_of, population, reports_of

ids = {"ids": label}


@pytest.mark.parametrize("randomizer", EVERY, **ids)
def test_any_partition_gives_the_same_counts(randomizer):
    users = population(randomizer.size, 3000, 1)
    reports = reports_of(randomizer, users, 2)
    whole = filled(randomizer, users, 2)
    parts = []
    for piece in np.array_split(reports, [1, 700, 701, 2999]):
        part = oracle_for(randomizer)
        part.accumulate(pack(piece, randomizer.report_bytes))
        parts.append(part)
    for order in (range(5), reversed(range(5)), (3, 1, 4, 0, 2)):
        total = oracle_for(randomizer)
        for i in order:
            total.merge(parts[i])
        assert total.to_bytes() == whole.to_bytes()
    left, right = oracle_for(randomizer), oracle_for(randomizer)
    left.merge(parts[0])
    left.merge(parts[1])
    left.merge(parts[2])
    right.merge(parts[1])
    right.merge(parts[2])
    first = oracle_for(randomizer)
    first.merge(parts[0])
    first.merge(right)
    assert first.to_bytes() == left.to_bytes()


@pytest.mark.parametrize("randomizer", EVERY, **ids)
def test_saved_state_comes_back(randomizer):
    oracle = filled(randomizer, population(randomizer.size, 2000, 3), 4)
    again = restore(randomizer, oracle.to_bytes())
    assert again.reports == 2000
    for name in ("estimate", "attributes", "average"):
        if hasattr(oracle, name):
            arguments = (indexes_of(randomizer, range(20)),) if name == "estimate" else ()
            assert repr(getattr(again, name)(*arguments)) == repr(getattr(oracle, name)(*arguments))
    assert again.to_bytes() == oracle.to_bytes()


@pytest.mark.parametrize("randomizer", EVERY, **ids)
@given(data=st.data())
@settings(max_examples=25, deadline=None)
def test_hostile_payloads_change_nothing(randomizer, data):
    oracle = oracle_for(randomizer)
    width, bound = randomizer.report_bytes, randomizer.bound
    oracle.accumulate(pack(np.arange(min(bound, 50), dtype=np.uint64), width))
    before = oracle.to_bytes()
    payload = data.draw(st.binary(max_size=40))
    numbers = [int.from_bytes(payload[i : i + width], "little") for i in range(0, len(payload), width)]
    if len(payload) % width:
        reason = "WRONG_LENGTH"
    elif any(n >= bound for n in numbers):
        reason = "REPORT_OUT_OF_RANGE"
    else:
        assert oracle.accumulate(payload) == len(numbers)
        return
    with pytest.raises(ServerRefused) as caught:
        oracle.accumulate(payload)
    assert caught.value.reason == reason
    assert oracle.to_bytes() == before


@given(data=st.data())
@settings(max_examples=60, deadline=None)
def test_damaged_state_is_refused(data):
    randomizer = LinearHash(Epsilon("1"), 500, 3, 6)
    saved = filled(randomizer, population(500, 300, 1), 2).to_bytes()
    place = data.draw(st.integers(0, len(saved) - 1))
    damaged = saved[:place] + bytes([saved[place] ^ data.draw(st.integers(1, 255))]) + saved[place + 1 :]
    for bad in (damaged, saved[:place], b""):
        with pytest.raises(ServerRefused) as caught:
            restore(randomizer, bad)
        assert caught.value.reason == "BAD_STATE"


def test_counts_of_other_mechanisms_are_not_mixed():
    one, two = Hashtogram(Epsilon("1"), 500, SEED, 4, 3, 3), Hashtogram(Epsilon("1"), 500, SEED[::-1], 4, 3, 3)
    oracle = oracle_for(one)
    with pytest.raises(InvalidSpec):
        oracle.merge(oracle_for(two))
    with pytest.raises(ServerRefused):
        restore(two, oracle.to_bytes())
    with pytest.raises(InvalidSpec):
        ORACLES["linear-hash"](RandomizedResponse(Epsilon("1"), 3))


def test_counts_grow_to_64_bits_before_they_overflow():
    randomizer = RandomizedResponse(Epsilon("1"), 2)
    counts = Counts(randomizer)
    counts.values[0] = counts.total = (1 << 32) - 2
    counts.add(b"\0")
    assert counts.values.dtype == np.uint32
    counts.add(b"\0" * 5)
    assert counts.values.dtype == np.uint64
    assert counts.values.tolist() == [(1 << 32) + 4, 0]
    again = Counts.from_bytes(randomizer, counts.to_bytes())
    assert again.values.tolist() == counts.values.tolist()
    small = Counts(randomizer)
    small.merge(counts)
    assert small.total == (1 << 32) + 4


def test_a_bomb_is_not_inflated():
    """Saved counts never grow beyond the mechanism's size, whatever the bytes claim."""
    import zlib

    from ldp_server.oracles import counts as module

    randomizer = RandomizedResponse(Epsilon("1"), 2)
    body = zlib.compress(bytes(50_000_000), 9)
    good = Counts(randomizer).to_bytes()
    magic, fingerprint, total, width, _ = module._HEADER.unpack_from(good)
    bomb = module._HEADER.pack(magic, fingerprint, total, width, zlib.crc32(body)) + body
    with pytest.raises(ServerRefused):
        Counts.from_bytes(randomizer, bomb)
