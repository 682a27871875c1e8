"""A writer thread for each database: tickets come back once, and a database that fails keeps its own waiting alone."""

import os
import queue
import threading
from dataclasses import dataclass, field

import pytest

from ldp_client.errors import StorageError
from ldp_server.store import AppendOutcome, Ticket
from ldp_server.store.errors import Corrupt
from ldp_server.store.sharded.commit import ShardedCommit
from ldp_server.store.sharded.routing import shard_of, split
from tests.server.helpers import tries
from tests.server.store.contract.batches import a_batch, add, count, held

STORED, DUPLICATE, SEALED = AppendOutcome.STORED, AppendOutcome.DUPLICATE, AppendOutcome.SEALED
PATIENCE = 120


class Commit(ShardedCommit):
    """With the tickets that were delivered."""

    def __init__(self, logs, check=lambda _, payloads: [True] * len(payloads), shards=None):
        self.found = queue.Queue()
        super().__init__(logs, check, self._take, lambda _: shards or len(logs), linger=0.0)

    def _take(self, tickets, seconds):
        assert tickets
        assert seconds >= 0
        for one in tickets:
            self.found.put(one)

    def sent(self, submission, reports=1):
        ticket = Ticket(submission, reports, lambda _: None)
        self.submit(ticket)
        return ticket

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_):
        self.stop()


@dataclass
class Pretended:
    """A log that answers as it is told; used where a real one would have to be broken at one moment."""

    answers: list = field(default_factory=list)
    taken: list = field(default_factory=list)
    gate: threading.Event = field(default_factory=threading.Event)

    def append(self, submissions):
        assert self.gate.wait(PATIENCE)
        found = []
        for one in submissions:
            answer = self.answers.pop(0) if self.answers else STORED
            if isinstance(answer, Exception):
                raise answer
            self.taken.append(one)
            found.append(answer)
        return found

    def counted_units(self, _, digests):
        return {one for one in digests if one in self.known}

    known = frozenset()

    def tend(self):
        pass

    def recover(self):
        pass


@pytest.fixture
def logs(store):
    logs = store.writers()
    yield logs
    for one in logs:
        one.close()


def units_for(*shards, of=3):
    """Digests that go to these databases, in this order."""
    found = []
    for shard in shards:
        while shard_of(one := os.urandom(16), of) != shard:
            pass
        found.append(one)
    return found


def test_batches_reach_their_databases_once(log, logs):
    number = add(log)
    batches = [a_batch(number) for _ in range(60)]
    with Commit(logs) as commit:
        tickets = [commit.sent(one) for one in [*batches, *batches]]
        found = [commit.found.get(timeout=PATIENCE) for _ in tickets]
    assert {id(one) for one in found} == {id(one) for one in tickets}
    assert sorted(one.outcome for one in found) == [STORED] * 60 + [DUPLICATE] * 60
    for one in log.periods(number):
        names = {batch.batch_id for group in log.read_all(one.number, 0) for batch in group}
        assert names == {batch.batch_id for batch in batches if shard_of(batch.batch_id, 3) == one.shard}


def test_units_are_counted_once_however_a_relay_mixes_them(log, logs):
    number = add(log)
    units = [os.urandom(16) for _ in range(30)]
    reports = [bytes([place]) for place in range(30)]

    def a_release(places):
        payload = b"".join(reports[one] for one in places)
        return a_batch(number, payload, units=b"".join(units[one] for one in places))

    with Commit(logs) as commit:
        commit.sent(a_release(range(20)), 20)
        first = commit.found.get(timeout=PATIENCE)
        assert (first.outcome, first.reports, first.replayed) == (STORED, 20, 0)
        commit.sent(a_release([*range(29, 9, -1)]), 20)
        second = commit.found.get(timeout=PATIENCE)
        assert (second.outcome, second.reports, second.replayed) == (STORED, 10, 10)
        commit.sent(a_release(range(30)), 30)
        third = commit.found.get(timeout=PATIENCE)
        assert (third.outcome, third.reports, third.replayed) == (DUPLICATE, 0, 30)
    assert sorted(b"".join(batch.payload for batch in held(log, number))) == list(range(30))
    assert log.counted_units(number, [*units, os.urandom(16)]) == set(units)


def test_a_token_with_units_is_never_taken_to_several_databases():
    """Each would take the token once."""
    batch = a_batch(1, b"a", token=os.urandom(16), units=os.urandom(16))
    with pytest.raises(StorageError, match="token and sealed units"):
        split(batch, 3)
    assert split(batch, 1) == [(0, batch)]


def test_a_part_that_fails_is_an_error_and_the_rest_comes_with_the_next_try(log, logs):
    number = add(log)
    units, payload = units_for(0, 1, 2, 1), b"abcd"
    whole = a_batch(number, payload, units=b"".join(units))
    logs[1].close()
    address = logs[1]._destination._conninfo
    logs[1]._destination._conninfo = "host=/nowhere"
    with Commit(logs) as commit:
        commit.sent(whole, 4)
        failed = commit.found.get(timeout=PATIENCE)
        assert failed.outcome is None
        assert "cannot reach" in str(failed.error)
        assert count(log, number) == 2
        logs[1]._destination._conninfo = address
        for _ in tries():  # until the writer opens the database anew
            commit.sent(whole, 4)
            again = commit.found.get(timeout=PATIENCE)
            if again.error is None:
                break
        assert (again.outcome, again.reports, again.replayed) == (STORED, 2, 2)
    assert sorted(b"".join(batch.payload for batch in held(log, number))) == sorted(payload)


def test_the_whole_waits_for_its_last_part():
    first, second = Pretended(), Pretended()
    first.gate.set()
    whole = a_batch(1, b"ab", units=b"".join(units_for(0, 1, of=2)))
    with Commit([first, second]) as commit:
        ticket = commit.sent(whole, 2)
        alone = commit.sent(a_batch(1, batch_id=units_for(0, of=2)[0]))
        assert commit.found.get(timeout=PATIENCE) is alone  # the first database is not kept waiting
        assert not ticket.settled
        second.gate.set()
        assert commit.found.get(timeout=PATIENCE) is ticket
        assert (ticket.outcome, ticket.reports, ticket.dropped) == (STORED, 2, 0)
    assert first.taken[0].payload + second.taken[0].payload == b"ab"


@pytest.mark.parametrize(
    ("answers", "outcome", "reports", "dropped"),
    [
        ([STORED, STORED], STORED, 3, 0),
        ([STORED, SEALED], STORED, 1, 2),
        ([SEALED, STORED], STORED, 2, 1),
        ([STORED, DUPLICATE], STORED, 1, 0),
        ([DUPLICATE, DUPLICATE], DUPLICATE, 0, 0),
        ([DUPLICATE, SEALED], SEALED, 0, 0),
    ],
)
def test_what_is_said_of_parts_with_different_ends(answers, outcome, reports, dropped):
    logs = [Pretended([answer]) for answer in answers]
    for one in logs:
        one.gate.set()
    with Commit(logs) as commit:
        commit.sent(a_batch(1, b"abb", units=b"".join(units_for(0, 1, 1, of=2))), 3)
        found = commit.found.get(timeout=PATIENCE)
    assert (found.outcome, found.error) == (outcome, None)
    assert (found.reports, found.dropped) == (reports, dropped)


def test_one_part_with_an_error_is_an_error():
    logs = [Pretended([STORED]), Pretended([StorageError("away")])]
    for one in logs:
        one.gate.set()
    with Commit(logs) as commit:
        commit.sent(a_batch(1, b"ab", units=b"".join(units_for(0, 1, of=2))), 2)
        found = commit.found.get(timeout=PATIENCE)
        assert (found.outcome, str(found.error)) == (None, "away")
        assert commit.failure is None


def test_a_writer_that_ended_is_the_failure_of_all():
    logs = [Pretended(), Pretended([Corrupt("damaged")])]
    for one in logs:
        one.gate.set()
    with Commit(logs) as commit:
        commit.sent(a_batch(1, batch_id=units_for(1, of=2)[0]))
        assert isinstance(commit.found.get(timeout=PATIENCE).error, Corrupt)
        commit.stop()
        assert str(commit.failure) == "damaged"


def test_a_server_that_knows_fewer_databases_tells_its_senders_to_come_later():
    """Databases were added while it ran. What goes to those that it knows is taken."""
    logs = [Pretended(), Pretended()]
    for one in logs:
        one.gate.set()
    with Commit(logs, shards=3) as commit:
        units = units_for(0, 2)
        for lost in (a_batch(1, batch_id=units[1]), a_batch(1, b"ab", units=b"".join(units))):
            commit.sent(lost)
            found = commit.found.get(timeout=PATIENCE)
            assert found.outcome is None
            assert "more databases than this server knows" in str(found.error)
        commit.sent(a_batch(1, batch_id=units[0]))
        assert commit.found.get(timeout=PATIENCE).outcome is STORED
    assert [len(one.taken) for one in logs] == [1, 0]


def test_reports_out_of_range_are_refused_whichever_database_they_go_to():
    logs = [Pretended(), Pretended()]
    for one in logs:
        one.gate.set()
    with Commit(logs, lambda _, payloads: [payload != b"x" for payload in payloads]) as commit:
        commit.sent(a_batch(1, b"xy", units=b"".join(units_for(0, 1, of=2))), 2)
        found = commit.found.get(timeout=PATIENCE)
        assert (found.outcome, found.reports, found.dropped) == (STORED, 1, 1)
        commit.sent(a_batch(1, b"x"))
        assert commit.found.get(timeout=PATIENCE).outcome is AppendOutcome.OUT_OF_RANGE
