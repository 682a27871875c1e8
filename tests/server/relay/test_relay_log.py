"""The relay's store, call by call: what it counts, what a round leaves of it, and what it remembers."""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing

import pytest

from ldp_client.protocol.packing import MAX_PAYLOAD
from ldp_client.trust.signed_list import SignedHead, SignedList
from ldp_server.relay.store import RelayLog, held
from ldp_server.relay.store.relay_log import standings
from ldp_server.store.errors import StorageError
from ldp_server.store.log import AppendOutcome
from tests.server.relay.helpers import relayed
from tests.server.relay.test_store import WIDTH, digest, submission, unit

STORED, DUPLICATE = AppendOutcome.STORED, AppendOutcome.DUPLICATE


class Rounds:
    """Which round a unit belongs to: the present one, which a test sets."""

    now = 0

    def __call__(self, number, period):
        return self.now


@pytest.fixture
def rounds():
    return Rounds()


@pytest.fixture
def log(tmp_path, rounds):
    log = RelayLog(tmp_path / "relay.db", rounds, shuffle=lambda order: order.reverse())
    yield log
    log.close()


def enter(log, smallest=3, text="Sealed?"):
    collection = relayed(smallest, text)
    return log.enter(collection.id, collection.spec_bytes).number


def units(count, start=0):
    return [unit(start + tag) for tag in range(count)]


def gone(log):
    """The batches that wait to be passed on, in the order of their ids."""
    found, beyond = [], b""
    while (one := log.outgoing(beyond)) is not None:
        found.append(one)
        beyond = one.batch_id
    return found


def standing(log, number):
    return next(one for one, known in zip(log.standings(), log.collections(), strict=True) if known.number == number)


# -- collections


def test_a_collection_is_entered_once(log):
    one, two = relayed(3, "One?"), relayed(4, "Two?")
    first, second = log.enter(one.id, one.spec_bytes), log.enter(two.id, two.spec_bytes)
    assert log.enter(one.id, one.spec_bytes) == first
    assert log.collections() == [first, second]
    assert (first.number, first.id, first.spec) == (1, one.id, one.spec_bytes)
    assert [(found.id, found.smallest_batch, found.held) for found in log.standings()] == [
        (one.id, 3, 0),
        (two.id, 4, 0),
    ]


# -- what is held


def test_what_is_held_is_counted_by_collection(log):
    number, other = enter(log), enter(log, text="Other?")
    assert log.append([submission(number, *units(2)), submission(other, *units(3, 10))]) == [STORED, STORED]
    found = standing(log, number)
    assert (found.held, found.outgoing, found.short, found.bytes, found.newest) == (2, 0, 0, 2 * WIDTH, 0)
    assert (standing(log, other).held, log.bytes) == (3, 5 * WIDTH)


def test_a_unit_is_held_once_whatever_it_comes_with(log):
    number = enter(log)
    first, second, third = units(3)
    whole = submission(number, first, second)
    assert log.append([whole]) == [STORED]
    assert log.append([whole, submission(number, second), submission(number, second, third)]) == [
        DUPLICATE, DUPLICATE, STORED,
    ]  # fmt: skip
    assert (standing(log, number).held, log.bytes) == (3, 3 * WIDTH)
    other = enter(log, text="Other?")
    assert log.append([submission(other, first)]) == [STORED], "another collection's unit is another one"


def test_an_outcome_goes_back_to_its_own_submission(log):
    number, other = enter(log), enter(log, text="Other?")
    old = submission(number, *units(1))
    log.append([old])
    group = [
        submission(other, *units(1, 10)),
        old,
        submission(number, *units(1, 20), period=4),
        old,
        submission(number, *units(1, 30)),
    ]
    assert log.append(group) == [STORED, DUPLICATE, STORED, DUPLICATE, STORED]
    assert log.append([]) == []


def test_a_block_is_made_of_each_group_that_is_full(log, monkeypatch):
    monkeypatch.setattr(held, "BLOCK", 4)
    number = enter(log)
    log.append([submission(number, *units(3)), submission(number, *units(3, 10), period=7)])
    assert log.db.execute("SELECT count(*) FROM blocks").fetchone() == (0,)
    log.append([submission(number, *units(1, 20))])
    assert log.db.execute("SELECT units FROM blocks").fetchall() == [(4,)]
    assert log.db.execute("SELECT count(*) FROM recent").fetchone() == (3,)
    assert log.append([submission(number, *units(3, 30))]) == [STORED]
    assert log.db.execute("SELECT units FROM blocks").fetchall() == [(4,)], "the next block begins at nothing"
    assert (standing(log, number).held, log.bytes) == (10, 10 * WIDTH)


def test_a_unit_of_a_block_is_still_known(log, monkeypatch):
    monkeypatch.setattr(held, "BLOCK", 2)
    number, known = enter(log), units(2)
    log.append([submission(number, *known)])
    assert log.append([submission(number, known[0]), submission(number, *known, *units(1, 9))]) == [DUPLICATE, STORED]
    assert standing(log, number).held == 3


# -- rounds


def end(log, number, smallest=3, over=0, **more):
    return log.end_round(number, smallest, over, **({"final": False, "remember": 5} | more))


@pytest.mark.parametrize("count", [2, 3, 4])
def test_a_release_is_at_least_the_smallest_batch(log, count):
    number, sent = enter(log), units(count)
    log.append([submission(number, *sent)])
    ended = end(log, number)
    if count < 3:
        assert (ended.released, ended.waits, ended.short, gone(log)) == ((), 2, 1, [])
        assert (standing(log, number).held, standing(log, number).newest) == (2, 1)
    else:
        (batch,) = gone(log)
        assert (ended.released, ended.waits, ended.short) == ((count,), 0, 0)
        assert (batch.units, batch.period, len(batch.batch_id)) == (count, 0, 16)
        in_order = sorted(sent, key=digest)[::-1]  # the test's own permutation
        assert [batch.payload[start : start + WIDTH] for start in range(0, len(batch.payload), WIDTH)] == in_order
        assert (standing(log, number).held, standing(log, number).outgoing) == (0, count)
    assert log.bytes == count * WIDTH


def test_rounds_that_end_short_are_counted_until_a_release(log, rounds):
    number = enter(log)
    log.append([submission(number, *units(1))])
    assert [end(log, number, over=over).short for over in range(3)] == [1, 2, 3]
    rounds.now = 3
    log.append([submission(number, *units(2, 10))])
    ended = end(log, number, over=3)
    assert (ended.released, ended.short, standing(log, number).short) == ((3,), 0, 0)
    assert end(log, number, over=4).short == 0, "a round with nothing in it is not short"


def test_units_of_a_period_that_are_too_few_go_with_a_later_one(log):
    number = enter(log)
    for period, count in ((1, 2), (2, 2), (3, 1)):
        log.append([submission(number, *units(count, 10 * period), period=period)])
    ended = end(log, number)
    assert (ended.released, ended.merged, ended.waits) == ((4,), 2, 1)
    assert [(batch.period, batch.units) for batch in gone(log)] == [(2, 4)]


def test_after_the_last_round_what_is_too_few_is_given_up_if_it_is_sure(log):
    number = enter(log)
    log.append([submission(number, *units(2))])
    unsure = end(log, number, final=True, sure=False)
    assert (unsure.given_up, unsure.waits, standing(log, number).held) == (0, 2, 2)
    ended = end(log, number, final=True)
    assert (ended.given_up, ended.waits, ended.short) == (2, 0, 0)
    assert (standing(log, number).held, log.bytes, gone(log)) == (0, 0, [])


def test_a_round_of_one_collection_leaves_the_others_alone(log):
    number, other = enter(log), enter(log, text="Other?")
    for one in (number, other):
        log.append([submission(one, *units(4, 100 * one))])
    end(log, number)
    assert (standing(log, number).outgoing, standing(log, other).held) == (4, 4)
    end(log, other, over=-1)
    assert standing(log, other).held == 4, "its round is not over"


def test_a_large_release_is_cut_into_batches_of_one_length(log, monkeypatch):
    from ldp_server.relay.store import released

    monkeypatch.setattr(released, "MAX_PAYLOAD", 4 * WIDTH)
    number = enter(log)
    log.append([submission(number, *units(10))])
    end(log, number)
    assert sorted(batch.units for batch in gone(log)) == [3, 3, 4]
    assert MAX_PAYLOAD == 250_000


@pytest.mark.parametrize(("remember", "over", "known"), [(5, 5, True), (5, 6, False), (0, 1, False), (6, 6, True)])
def test_what_was_released_is_known_for_some_rounds(log, rounds, remember, over, known):
    """A unit of round 1 that comes again later is not passed on twice, until its digest is forgotten."""
    number, sent = enter(log), units(3)
    rounds.now = 1
    log.append([submission(number, *sent)])
    end(log, number, over=1, remember=100)
    assert log.append([submission(number, *sent)]) == [DUPLICATE]
    end(log, number, over=over, remember=remember)
    assert log.append([submission(number, *sent)]) == [DUPLICATE if known else STORED]


def test_after_the_last_round_everything_is_forgotten(log):
    number, sent = enter(log), units(3)
    log.append([submission(number, *sent)])
    end(log, number, final=True, remember=100)
    assert log.db.execute("SELECT count(*) FROM seen").fetchone() == (0,)


# -- passing on


def test_batches_are_passed_on_in_the_order_of_their_ids_and_forgotten_one_by_one(log):
    for text in ("One?", "Two?", "Three?"):
        number = enter(log, text=text)
        log.append([submission(number, *units(3, 100 * number))])
        end(log, number)
    found = gone(log)
    assert [one.batch_id for one in found] == sorted(one.batch_id for one in found)
    assert log.outgoing(found[1].batch_id) == found[2]
    assert repr(found[0]) == "Outgoing(3 units)"
    log.forget(found[1].batch_id, len(found[1].payload))
    assert gone(log) == [found[0], found[2]]
    assert log.bytes == 6 * WIDTH
    log.forget(b"?" * 16, 0)
    assert len(gone(log)) == 2


# -- opening anew


def test_everything_is_counted_again_when_it_is_opened(tmp_path, log, rounds, monkeypatch):
    monkeypatch.setattr(held, "BLOCK", 4)
    number = enter(log)
    log.append([submission(number, *units(6))])
    before = log.standings()
    log.close()
    again = RelayLog(tmp_path / "relay.db", rounds)
    assert (again.standings(), again.bytes) == (before, 6 * WIDTH)
    assert again.append([submission(number, *units(2, 50))]) == [STORED]
    assert again.db.execute("SELECT units FROM blocks ORDER BY units").fetchall() == [(6,)]
    assert again.append([submission(number, *units(2, 70))]) == [STORED]
    assert again.db.execute("SELECT units FROM blocks ORDER BY units").fetchall() == [(4,), (6,)]
    again.recover()
    assert again.bytes == 10 * WIDTH
    again.close()


def test_a_change_that_fails_leaves_everything_as_it_was(log):
    number = enter(log)
    log.append([submission(number, *units(2))])
    log.db.execute("CREATE TRIGGER stop BEFORE INSERT ON released BEGIN SELECT raise(ABORT, 'no'); END")
    log.append([submission(number, *units(2, 10))])
    with pytest.raises(StorageError):
        end(log, number)
    assert (standing(log, number).held, log.bytes, gone(log)) == (4, 4 * WIDTH, [])
    log.db.execute("DROP TRIGGER stop")
    assert end(log, number).released == (4,)


def test_how_things_stand_can_be_seen_by_another_connection(log, tmp_path):
    number = enter(log)
    log.append([submission(number, *units(2))])
    with closing(sqlite3.connect(tmp_path / "relay.db")) as db:
        assert standings(db, tmp_path / "relay.db") == log.standings()


def test_the_write_ahead_log_is_cut_off_after_what_went(log, tmp_path):
    number = enter(log)
    log.append([submission(number, *units(3))])
    log.lay_anew()
    log.purge()
    assert (tmp_path / "relay.db-wal").stat().st_size == 0
    end(log, number)
    assert (tmp_path / "relay.db-wal").stat().st_size > 0
    log.purge()
    assert (tmp_path / "relay.db-wal").stat().st_size == 0


# -- the signed list


def test_the_newest_list_is_kept_with_its_signer_and_retired_keys(log, tmp_path, rounds):
    assert log.trusted() is None and log.sealing_keys() == frozenset()
    retired = frozenset({b"r" * 32, b"s" * 32})
    for body in (b"", b"\x08\x01"):
        found = SignedList(SignedHead(body, b"k" * 32, retired), os.urandom(64))
        log.trust(found)
        kept = log.trusted()
        assert (kept.signed.list_bytes, kept.signed.signer, kept.signed.retired) == (body, b"k" * 32, retired)
        assert kept.packed == found.packed
    log.close()
    again = RelayLog(tmp_path / "relay.db", rounds)
    assert again.trusted() == kept
    again.trust(SignedList(SignedHead(b"", b"n" * 32), b""))
    assert (again.trusted().signed.retired, again.trusted().ordered) == (frozenset(), ())
    again.close()
