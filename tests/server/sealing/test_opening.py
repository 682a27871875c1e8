"""What the server does with a payload of sealed units: in this process, and in the children."""

import os

import pytest

from ldp_client.errors import ServerRefused, Unavailable
from ldp_client.protocol import sealing
from ldp_server.sealing.frames import read_job, read_opened, write_job, write_opened
from ldp_server.sealing.keys import SealingKey
from ldp_server.sealing.opening import DROPPED, OpeningJob, open_units
from ldp_server.sealing.pool import OpeningPool
from ldp_server.service.collector.unsealing import count_units
from tests.server.helpers import make_collection

COLLECTION, OTHER = make_collection(count=2000, t=7), make_collection("Another?", count=2000, t=7)
OLD, NEW, UNKNOWN = (SealingKey(bytes([number]) * 32, 1000) for number in (1, 2, 3))
NOW = 500


def sealed(value=0, key=NEW, collection=COLLECTION, width=None):
    width = width or collection.randomizer.report_bytes
    return sealing.seal(value.to_bytes(width, "little"), collection.id, key.public.public_key)


def job(*units, keys=(OLD, NEW), now=NOW, opens_after=100):
    randomizer = COLLECTION.randomizer
    ring = tuple((key.private_key, key.not_after + opens_after) for key in keys)
    return OpeningJob(COLLECTION.id, randomizer.report_bytes, randomizer.bound, ring, now, b"".join(units))


def test_both_live_keys_open_and_each_unit_has_its_own_digest():
    units = [sealed(5, OLD), sealed(6, NEW), sealed(6, NEW)]
    opened = open_units(job(*units))
    assert opened.reports == b"".join(v.to_bytes(2, "little") for v in (5, 6, 6))
    assert opened.digests == b"".join(map(sealing.unit_digest, units))
    assert not opened.dropped


def test_every_flipped_byte_is_dropped_and_counted_and_the_rest_is_taken():
    whole, good = sealed(7), sealed(8)
    seen = set()
    for place in range(len(whole)):
        spoiled = bytearray(whole)
        spoiled[place] ^= 1 << place % 8
        opened = open_units(job(good, bytes(spoiled)))
        assert opened.reports == (8).to_bytes(2, "little"), place
        assert sum(opened.dropped.values()) == 1, place
        seen |= set(opened.dropped)
    assert seen == {"NOT_SEALED", "UNKNOWN_SEALING_KEY", "BAD_SEAL"}


@pytest.mark.parametrize(
    ("unit", "reason"),
    [
        (sealed(1, UNKNOWN), "UNKNOWN_SEALING_KEY"),
        (sealed(1, collection=OTHER), "BAD_SEAL"),
        (sealed(COLLECTION.randomizer.bound), "REPORT_OUT_OF_RANGE"),
        (b"\x00" + sealed(1)[1:], "NOT_SEALED"),
        (b"\x01" + NEW.id + bytes(len(sealed(1)) - 9), "BAD_SEAL"),
    ],
    ids=lambda value: value if isinstance(value, str) else "unit",
)
def test_what_is_dropped(unit, reason):
    opened = open_units(job(unit, sealed(1)))
    assert (opened.reports, opened.dropped) == ((1).to_bytes(2, "little"), {reason: 1})


def test_a_key_opens_until_its_time_and_the_time_for_relays_are_over():
    unit = sealed(1, OLD)
    for now, reports in ((999, 1), (1000, 1), (1099, 1), (1100, 0)):
        opened = open_units(job(unit, now=now))
        assert len(opened.reports) == 2 * reports
        assert opened.dropped == ({} if reports else {"SEAL_EXPIRED": 1})


def test_a_unit_twice_in_a_payload_counts_once():
    unit = sealed(1)
    opened = open_units(job(unit, sealed(2), unit))
    assert (len(opened.reports), len(opened.digests), opened.dropped) == (4, 32, {"REPLAYED": 1})


def test_lengths_of_payloads():
    width = COLLECTION.randomizer.report_bytes
    unit = sealed(1)
    assert (len(unit), count_units(unit * 3, width)) == (width + 57, 3)
    for payload, reason in (
        (b"", "EMPTY_BATCH"),
        (bytes(2), "NOT_SEALED"),
        (b"\x01" + bytes(7), "NOT_SEALED"),
        (bytes(len(unit)), "NOT_SEALED"),
        (unit[:57], "NOT_SEALED"),
        (unit[:-1], "SEALED_WRONG_LENGTH"),
        (unit + unit[:-1], "SEALED_WRONG_LENGTH"),
        (unit + b"\x01", "SEALED_WRONG_LENGTH"),
        (unit * 4300, "BATCH_TOO_LARGE"),
    ):
        with pytest.raises(ServerRefused) as refused:
            count_units(payload, width)
        assert refused.value.reason == reason, len(payload)


def test_frames_keep_everything():
    asked = job(sealed(1), sealed(2))
    assert read_job(write_job(asked)[4:]) == asked
    opened = open_units(job(sealed(1), sealed(2, UNKNOWN)))
    assert read_opened(write_opened(opened)[4:]) == opened
    assert set(opened.dropped) <= set(DROPPED)
    for secret in (asked, opened, OLD):
        assert len(repr(secret)) < 60


async def test_children_open_and_one_that_dies_is_replaced():
    pool = OpeningPool(1)
    try:
        assert (await pool.open(job(sealed(5)))).reports == (5).to_bytes(2, "little")
        (child,) = pool.pids
        os.kill(child, 9)
        while pool.pids:
            try:
                await pool.open(job(sealed(5)))
            except Unavailable:
                break
        assert (await pool.open(job(sealed(6)))).reports == (6).to_bytes(2, "little")
        assert pool.pids != [child]
    finally:
        await pool.close()
    assert pool.pids == []
    with pytest.raises(Unavailable, match="stopping"):
        await pool.open(job(sealed(5)))
