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
from ldp_server.oracles.shared.counts import Counts
from tests.examples import SEED, label
from tests.server.oracles.cases import EVERY, filled, indexes_of, population, reports_of

ids = {"ids": label}


@pytest.mark.parametrize("randomizer", EVERY, **ids)
@pytest.mark.thinned(35)
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
@pytest.mark.thinned(35)
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
@pytest.mark.thinned(24)
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


FEW = LinearHash(Epsilon("1"), 500, 3, 6)
"""1,092 different reports: below 273 reports, its state is the reports themselves."""


@pytest.mark.parametrize("sizes", [(1, 5), (100, 100), (200, 100), (300, 300), (5, 900), (900, 5)])
def test_reports_and_counts_are_two_forms_of_one_state(sizes):
    parts, everything = [], []
    for place, size in enumerate(sizes):
        reports = reports_of(FEW, population(500, size, place + 1), place + 7)
        everything.append(reports)
        parts.append(Counts(FEW))
        for piece in np.array_split(reports, 3):
            parts[-1].add(pack(piece, FEW.report_bytes))
    counted = np.bincount(np.concatenate(everything).astype(np.int64), minlength=FEW.bound)
    for looked in range(4):  # whoever reads `values` changes the form, and nothing else
        both = [Counts.from_bytes(FEW, part.to_bytes()) for part in parts]
        for place in range(2):
            if looked >> place & 1:
                assert both[place].values.sum() == sizes[place]
        both[0].merge(both[1])
        whole = Counts(FEW)
        whole.add(pack(np.concatenate(everything), FEW.report_bytes))
        assert both[0].to_bytes() == whole.to_bytes()
        assert both[0].sums(FEW.bound // 2).tolist() == counted.reshape(2, -1).sum(axis=1).tolist()
        assert both[0].line(3, 500).tolist() == counted[3:500].tolist()
        assert both[0].values.tolist() == counted.tolist()
        assert both[0].sums(FEW.bound // 2).tolist() == counted.reshape(2, -1).sum(axis=1).tolist()
        assert both[0].total == whole.total == sum(sizes)


def test_few_reports_take_little_memory_and_many_no_more_than_their_counts():
    counts = Counts(FEW)
    for size in (10, 100, 1000, 1000):
        counts.add(pack(reports_of(FEW, population(500, size, size), 3), FEW.report_bytes))
        assert counts.nbytes <= min(4 * counts.total, counts.most_bytes)
    assert counts.nbytes == counts.most_bytes == 4 * FEW.bound


def test_state_of_the_first_version_is_read():
    """Saved before there were sorted reports: counts, however few reports there are."""
    import zlib

    from ldp_server.oracles.shared import counts as module

    counts = Counts(FEW)
    counts.add(pack(np.arange(50, dtype=np.uint64), FEW.report_bytes))
    body = zlib.compress(counts.values.astype("<u4").tobytes(), 1)
    head = (b"LDPCNT01", module._fingerprint(FEW), 50, 4, zlib.crc32(body))
    again = Counts.from_bytes(FEW, module._HEADER.pack(*head) + body)
    assert again.to_bytes() == counts.to_bytes()
    assert again.values.tolist() == counts.values.tolist()


def test_saved_reports_beyond_the_last_one_are_refused():
    import zlib

    from ldp_server.oracles.shared import counts as module

    for distances in ([0, FEW.bound], [5, 2**32 - 1], [FEW.bound - 1, 1]):
        body = zlib.compress(np.array(distances, "<u4").tobytes(), 1)
        head = (b"LDPCNT02", module._fingerprint(FEW), len(distances), 4, zlib.crc32(body))
        with pytest.raises(ServerRefused) as caught:
            Counts.from_bytes(FEW, module._HEADER.pack(*head) + body)
        assert caught.value.reason == "BAD_STATE"
    body = zlib.compress(np.array([0, FEW.bound - 1], "<u4").tobytes(), 1)
    head = (b"LDPCNT02", module._fingerprint(FEW), 2, 4, zlib.crc32(body))
    assert Counts.from_bytes(FEW, module._HEADER.pack(*head) + body).values.sum() == 2


@pytest.mark.parametrize("reports", [200, 300])
@given(data=st.data())
@settings(max_examples=60, deadline=None)
def test_damaged_state_is_refused(reports, data):
    randomizer = FEW
    saved = filled(randomizer, population(500, reports, 1), 2).to_bytes()
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

    from ldp_server.oracles.shared import counts as module

    randomizer = RandomizedResponse(Epsilon("1"), 2)
    body = zlib.compress(bytes(50_000_000), 9)
    good = Counts(randomizer).to_bytes()
    magic, fingerprint, total, width, _ = module._HEADER.unpack_from(good)
    bomb = module._HEADER.pack(magic, fingerprint, total, width, zlib.crc32(body)) + body
    with pytest.raises(ServerRefused):
        Counts.from_bytes(randomizer, bomb)
