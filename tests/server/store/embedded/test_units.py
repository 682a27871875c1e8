"""Sealed units in the writer thread: a unit that a relay sends again is counted once, whatever it comes with."""

from __future__ import annotations

import hashlib
import os
import queue

import pytest

from ldp_server.store import AppendOutcome, GroupCommit, SqliteLog, Ticket
from ldp_server.store import insert as inserting
from ldp_server.store.insert import counted_units, enter_units
from tests.server.store.contract.batches import a_batch, add, held

STORED, DUPLICATE, OUT_OF_RANGE = AppendOutcome.STORED, AppendOutcome.DUPLICATE, AppendOutcome.OUT_OF_RANGE
SECONDS = 60


class Commit:
    """A writer thread. What is submitted before `run` is one group."""

    def __init__(self, log):
        self.log, self.groups = log, queue.Queue()
        self.thread = GroupCommit(
            log,
            lambda _, payloads: [b"?" not in payload for payload in payloads],
            lambda group, _: self.groups.put(group),
            log.counted_units,
            linger=0.0,
        )

    def run(self, *submissions, reports=None):
        """The tickets of one group, settled."""
        tickets = [Ticket(one, len(one.payload) if reports is None else reports, lambda _: None) for one in submissions]
        for ticket in tickets:
            self.thread.submit(ticket)
        self.thread.start()
        self.thread.stop()
        return tickets

    def sizes(self):
        return [len(self.groups.get_nowait()) for _ in range(self.groups.qsize())]


@pytest.fixture
def log(tmp_path):
    log = SqliteLog(tmp_path / "log.db")
    yield log
    log.close()


def names(count):
    """Digests in an order that is not the alphabet's."""
    return [hashlib.sha256(b"%d" % one).digest()[:16] for one in range(count)]


def in_log(log, number):
    return sorted(b"".join(one.payload for one in held(log, number)))


def a_group(number, payload, digests, **fields):
    return a_batch(number, payload, units=b"".join(digests), **fields)


def test_a_batch_of_new_units_is_stored_in_the_order_of_its_reports(log):
    number, digests = add(log), names(4)
    (ticket,) = Commit(log).run(a_group(number, b"dbca", digests))
    assert (ticket.outcome, ticket.reports, ticket.replayed) == (STORED, 4, 0)
    (batch,) = held(log, number)
    assert batch.payload == b"abcd", "the order in which the units came is kept nowhere"
    assert log.counted_units(number, digests) == set(digests)
    assert log.db.execute("SELECT digest FROM recent").fetchone() == (hashlib.sha256(b"abcd").digest()[:16],)


def test_wide_reports_stay_whole(log):
    number = add(log)
    Commit(log).run(a_group(number, b"ccaabb", names(3)), reports=3)
    assert held(log, number)[0].payload == b"aabbcc"


def test_units_that_were_counted_are_left_out_and_the_rest_is_stored(log):
    number, digests = add(log), names(5)
    Commit(log).run(a_group(number, b"ab", digests[:2]))
    (ticket,) = Commit(log).run(a_group(number, b"acebd", [digests[0], *digests[2:4], digests[1], digests[4]]))
    assert (ticket.outcome, ticket.reports, ticket.replayed) == (STORED, 3, 2)
    assert in_log(log, number) == sorted(b"ab" + b"ced")
    assert log.counted_units(number, digests) == set(digests)


def test_a_batch_whose_units_were_all_counted_is_a_duplicate(log):
    number, digests = add(log), names(3)
    Commit(log).run(a_group(number, b"abc", digests))
    before = held(log, number)
    (ticket,) = Commit(log).run(a_group(number, b"abc", digests[::-1]))
    assert (ticket.outcome, ticket.reports, ticket.replayed) == (DUPLICATE, 0, 3)
    assert held(log, number) == before


def test_a_unit_that_comes_twice_in_a_group_waits_until_its_first_batch_is_on_the_disk(log):
    number, digests = add(log), names(4)
    commit = Commit(log)
    first, second, third, apart = commit.run(
        a_group(number, b"ab", digests[:2]),
        a_group(number, b"bc", digests[1:3]),
        a_group(number, b"abc", digests[:3]),
        a_group(number, b"d", digests[3:]),
    )
    assert [one.outcome for one in (first, second, third, apart)] == [STORED, STORED, DUPLICATE, STORED]
    assert [(one.reports, one.replayed) for one in (first, second, third, apart)] == [(2, 0), (1, 1), (0, 3), (1, 0)]
    assert in_log(log, number) == sorted(b"abcd")
    assert commit.sizes() == [2, 1, 1], "the second and the third wait, each for the one before it"


def test_the_same_digest_of_two_collections_is_two_units(log):
    one, two, digests = add(log), add(log), names(2)
    commit = Commit(log)
    tickets = commit.run(a_group(one, b"ab", digests), a_group(two, b"cd", digests))
    assert [ticket.outcome for ticket in tickets] == [STORED, STORED]
    assert commit.sizes() == [2]
    assert (in_log(log, one), in_log(log, two)) == (sorted(b"ab"), sorted(b"cd"))


def test_batches_without_units_go_along_unchanged(log):
    number, plain = add(log), a_batch(add(log), b"zya")
    tickets = Commit(log).run(plain, a_group(number, b"ba", names(2)), plain)
    assert [ticket.outcome for ticket in tickets] == [STORED, STORED, DUPLICATE]
    assert [one.payload for one in held(log, plain.collection)] == [b"zya"]
    assert [ticket.reports for ticket in tickets] == [3, 2, 3]


def test_units_of_a_batch_that_is_out_of_range_are_not_counted(log):
    number, digests = add(log), names(2)
    (ticket,) = Commit(log).run(a_group(number, b"a?", digests))
    assert ticket.outcome is OUT_OF_RANGE
    assert log.counted_units(number, digests) == set()
    (ticket,) = Commit(log).run(a_group(number, b"ab", digests))
    assert ticket.outcome is STORED


def test_the_sender_s_names_stay_with_the_ticket(log):
    """The log knows the batch by its new bytes, the sender by the id that it gave."""
    number, digests, name = add(log), names(2), os.urandom(16)
    Commit(log).run(a_group(number, b"a", digests[:1]))
    (ticket,) = Commit(log).run(a_group(number, b"ab", digests, batch_id=name))
    assert (ticket.batch_id, ticket.size, ticket.reports) == (name, 2, 1)
    assert ticket.submission.units == digests[1]


# -- the table of units


def test_many_units_are_entered_and_looked_up_in_pieces(log, monkeypatch):
    """A statement takes as many as `counter` has rows."""
    monkeypatch.setattr(inserting, "COUNTER", 4)
    number, other, digests = add(log), add(log), names(11)
    for count in (1, 3, 4, 5, 8, 9):
        log.db.execute("DELETE FROM counted_units")
        enter_units(log.db, [a_group(number, bytes(count), digests[:count])])
        assert counted_units(log.db, number, digests) == set(digests[:count])
        assert counted_units(log.db, number, digests[count:]) == set()
        assert counted_units(log.db, other, digests) == set()
    assert counted_units(log.db, number, []) == set()


def test_units_of_several_collections_are_entered_each_for_its_own(log):
    one, two, digests = add(log), add(log), names(5)
    group = [
        a_group(one, b"ab", digests[:2]),
        a_batch(one),
        a_group(two, b"c", digests[2:3]),
        a_group(one, b"d", digests[3:4]),
    ]
    pages = enter_units(log.db, group)
    assert counted_units(log.db, one, digests) == {*digests[:2], digests[3]}
    assert counted_units(log.db, two, digests) == {digests[2]}
    assert 0 < pages <= 4
    assert enter_units(log.db, [a_batch(one)]) == 0
    assert enter_units(log.db, []) == 0


def test_units_touch_no_more_pages_than_the_file_has(log):
    number = add(log)
    digests = [os.urandom(16) for _ in range(3000)]
    pages = enter_units(log.db, [a_group(number, bytes(3000), digests)])
    assert pages == log.db.execute("PRAGMA page_count").fetchone()[0] < 3000


def test_a_unit_cannot_be_entered_twice(log):
    number, digests = add(log), names(1)
    enter_units(log.db, [a_group(number, b"a", digests)])
    with pytest.raises(Exception, match="UNIQUE"):
        enter_units(log.db, [a_group(number, b"a", digests)])
