"""Patience, delays, one sender at a time, and admission tokens."""

import itertools
import os
import statistics
import threading
import time

import pytest

from ldp_client import OutboxLimits, Unavailable
from ldp_client.sending.sender import OthersSend
from ldp_client.sending.transport import Backoff
from ldp_client.testing import FakeCollector, RepeatableCoins
from tests.client.conftest import NOW, live, make


def dues(client):
    with client._storage.reading() as (db, _):
        return [row[0] for row in db.execute("SELECT due FROM outbox ORDER BY id")]


def test_backoff_grows_with_full_jitter_up_to_its_cap():
    high = Backoff(lambda: 1.0, first=1, cap=60)
    assert [high.delay() for _ in range(8)] == [1, 2, 4, 8, 16, 32, 60, 60]
    assert Backoff(lambda: 0.0).delay() == 0
    backoff = Backoff(lambda: 0.5, first=2)
    assert backoff.delay(retry_after=30) == 31
    assert backoff.delay(retry_after=1e12) <= Backoff.LONGEST_WISH + 2
    assert backoff.delay(retry_after=-5) >= 0
    backoff.reset()
    assert backoff.delay() == 1


def test_the_delay_is_random_and_uniform_by_default(open_client, wide):
    from ldp_client.coins import draw_words

    client = open_client(policy=wide, coins=draw_words)
    for number in range(400):
        client.report(make(number), "a")
    waits = [due - NOW for due in dues(client)]
    assert all(0 <= wait <= 3600 for wait in waits)
    # mean 1800, deviation 3600/sqrt(12)/sqrt(400) = 52: six of them leave a chance of 2e-9 either way
    assert abs(statistics.fmean(waits) - 1800) < 312
    assert max(waits) > 3300 and min(waits) < 300


def test_what_is_not_due_stays(open_client, clock):
    client = open_client()
    client.report(make(), "a")
    (due,) = dues(client)
    assert client.flush().waiting == 1
    clock.jump(due - 1)
    assert client.flush().accepted == 0
    clock.jump(due)
    assert client.flush().accepted == 1


def test_a_delay_never_reaches_past_the_window(open_client):
    client = open_client(delay="30 days")
    client.report(make(closes=NOW + 1000), "a")
    assert dues(client)[0] <= NOW + 500


def test_a_clock_set_back_does_not_hold_batches_for_years(open_client, clock):
    client = open_client(delay="1 hour")
    clock.jump(NOW + 400 * 86_400)
    client.report(make(closes=NOW + 10**9), "a")
    clock.jump(NOW)
    client.flush()
    clock.advance(3600)
    assert client.flush().accepted == 1


def test_order_of_sending_is_not_order_of_making(open_client, wide, collector):
    client = open_client(policy=wide, delay=0)
    for number in range(50):
        client.report(make(number), "a")
    client.flush()
    sent = [batch.batch_id for batch in collector.calls[0]]
    assert sent == sorted(sent) and len(sent) == 50


def test_every_retry_has_the_same_bytes(open_client, wide, collector, clock):
    client = open_client(policy=wide, delay=0)
    for number in range(7):
        client.report(make(number), "a")
    collector.loses_answers = True
    for _ in range(5):
        assert client._sender.deliver(1.0).error is not None
    collector.loses_answers = False
    client.flush()
    assert len(collector.calls) == 6
    assert all(set(call) == set(collector.calls[0]) for call in collector.calls[1:-1])
    seen = {}
    for batch in itertools.chain(*collector.calls):
        assert seen.setdefault(batch.batch_id, batch) == batch
    assert len(seen) == 7 == len(collector.received)


def test_a_report_is_in_the_outbox_when_it_is_made(open_client, collector):
    """Answer, charge and batch are one transaction; the batch's bytes are the answer's."""
    client, other = open_client(), open_client()
    for number in range(2):
        client.report(make(number), "a")
    with client._storage.reading() as (db, _):
        assert db.execute("SELECT answer, collection_id FROM outbox ORDER BY id").fetchall() == [
            (1, make(0).id), (2, make(1).id),
        ]  # fmt: skip
        reports = {row[0] for row in db.execute("SELECT report FROM answers")}
    assert client.outbox().waiting == other.outbox().waiting == 2
    assert client.flush(everything=True).accepted == 2
    assert {batch.payload for batch in collector.received.values()} == reports
    assert other.flush(everything=True).accepted == 0
    assert client.outbox().waiting == 0


def test_a_standing_answer_queues_up_behind_what_was_made_before(open_client, wide):
    client = open_client(policy=wide, limits=OutboxLimits(batches=3))
    client.report(make(0), "a")
    client.report(make(1), "a")
    client.report(make(0, closes=NOW + 2 * 10**8), "a")
    client.report(make(2), "a")
    view = client.outbox()
    assert (view.waiting, view.counters) == (3, {"dropped": 1})
    with client._storage.reading() as (db, _):
        left = [row[0] for row in db.execute("SELECT collection_id FROM outbox ORDER BY id")]
    assert left == [make(1).id, make(0, closes=NOW + 2 * 10**8).id, make(2).id]


def test_one_sender_at_a_time(open_client, wide):
    """While one client sends, another client on the same storage sends nothing of it, and says so."""
    stuck = Stuck()
    one, other_collector = open_client(policy=wide, transport=stuck, delay=0), FakeCollector()
    other = open_client(policy=wide, transport=other_collector, delay=0, coins=RepeatableCoins(b"other"))
    one.report(make(0), "a")
    thread = threading.Thread(target=one.flush)
    thread.start()
    assert stuck.entered.wait(10)
    other.report(make(1), "a")
    delivery = other.flush(0.2)
    assert isinstance(delivery.error, OthersSend) and delivery.waiting == 2
    assert other_collector.calls == []
    stuck.freed.set()
    thread.join()
    assert other.flush(5.0).waiting == 0
    assert len(stuck.received) + len(other_collector.received) == 2  # the first one found the second report, too


def test_a_dead_senders_batches_are_sent_at_once(open_client, collector, wide):
    """The lock is the operating system's: no claim has to run out."""
    dead = open_client(policy=wide, delay=0)
    dead.report(make(), "a")
    lock = dead._outbox.lock
    assert lock.acquire(0.0, lambda: False)
    other = open_client(policy=wide, delay=0)
    assert isinstance(other.flush(0.0).error, OthersSend)
    os.close(lock._held)  # what the end of a process does
    lock._held = None
    assert other.flush().accepted == 1


def transactions(client):
    """Count the commits of write transactions from here on."""
    seen = []
    for link in (client._storage._front, client._storage._back):
        db = client._storage._open(link)
        db.set_trace_callback(seen.append)
    return lambda: (seen.count("BEGIN IMMEDIATE"), sum(sql.startswith(WRITES) for sql in seen))


WRITES = ("INSERT", "UPDATE", "DELETE", "REPLACE")


def test_a_delivered_report_is_two_write_transactions(open_client, wide):
    client = open_client(policy=wide, delay=0)
    client.report(make(0), "a")
    client.flush()
    count = transactions(client)
    client.report(make(1), "a")
    assert count()[0] == 1
    assert client.flush().accepted == 1
    assert count()[0] == 2


def test_a_failed_attempt_writes_nothing(open_client, wide, collector):
    client = open_client(policy=wide, delay=0)
    client.report(make(0), "a")
    count = transactions(client)
    collector.down = True
    assert client._sender.deliver(1.0).error is not None
    assert count() == (0, 0)


def test_the_bound_holds_when_a_report_is_made(open_client, wide):
    """Nobody has to look for it."""
    client = open_client(policy=wide, limits=OutboxLimits(batches=3))
    for number in range(8):
        client.report(make(number), "a")
        with client._storage.reading() as (db, _):
            assert db.execute("SELECT count(*) FROM outbox").fetchone()[0] == min(number + 1, 3)
    assert client.outbox().counters == {"dropped": 5}


@pytest.mark.parametrize("lease", [None, "100"])
def test_what_was_sent_makes_room(open_client, wide, lease):
    """Sending and storing through the same connection (a lease is flushed by the sender's) keeps the count right."""
    client = open_client(policy=wide, limits=OutboxLimits(batches=3), delay=0, lease=lease)
    for number in range(5):
        client.report(make(number), "a")
    if lease:
        client._lease.flush()
    assert client.outbox().counters == {"dropped": 2}
    assert client.flush().accepted == 3
    for number in range(10, 13):
        client.report(make(number), "a")
    if lease:
        client._lease.flush()
    view = client.outbox()
    assert (view.waiting, view.counters) == (3, {"accepted": 3, "dropped": 2})


def test_the_bound_counts_what_is_held_and_not_gaps(open_client, wide, collector):
    """Batches in the middle were settled; the first and the last are far apart and still both are kept."""
    client = open_client(policy=wide, limits=OutboxLimits(batches=4), delay=0)
    client.report(make(100, opens=NOW + 10**6), "a")  # waits long
    for number in range(10):
        client.report(make(number), "a")
        assert client.flush().accepted == 1
    for number in range(20, 23):
        client.report(make(number), "a")
    view = client.outbox()
    assert (view.waiting, view.counters) == (4, {"accepted": 10})
    client.report(make(30), "a")
    view = client.outbox()
    assert (view.waiting, view.counters["dropped"]) == (4, 1)


def test_linkable_tokens_are_asked_for_once_a_batch(open_client, collector):
    tokens, asked = (bytes([n]) * 8 for n in range(100)), []

    def admission(collection_id):
        asked.append(collection_id)
        return next(tokens)

    client = open_client(delay=0, linkable_tokens=admission)
    client.report(make(1), "a")
    client.report(make(2), "a")
    collector.down = True
    client._sender.deliver(1.0)
    client._sender.deliver(1.0)
    collector.down = False
    client.flush()
    assert len(asked) == 2 and set(asked) == {make(1).id, make(2).id}
    seen = {}
    for batch in itertools.chain(*collector.calls):
        assert seen.setdefault(batch.batch_id, batch.token) == batch.token is not None


def test_a_failing_admission_callback_keeps_the_batch_and_its_words_to_itself(open_client, collector, caplog):
    def admission(collection_id):
        raise RuntimeError("token=hunter2")

    client = open_client(delay=0, linkable_tokens=admission)
    client.report(make(), "a")
    delivery = client._sender.deliver(1.0)
    assert isinstance(delivery.error, Unavailable) and "RuntimeError" in str(delivery.error)
    assert "hunter2" not in str(delivery.error) + caplog.text
    assert delivery.waiting == 1 and collector.calls == []


class Stuck(FakeCollector):
    def __init__(self):
        super().__init__()
        self.entered, self.freed = threading.Event(), threading.Event()

    def submit(self, batches, timeout):
        self.entered.set()
        assert self.freed.wait(200)
        yield from super().submit(batches, timeout)

    def close(self):
        self.freed.set()


def test_report_never_waits_for_the_network(open_client, wide):
    stuck = Stuck()
    client = open_client(policy=wide, transport=stuck, background=True, clock=None, delay=0)
    client.report(live(0), "a")
    assert stuck.entered.wait(10)
    for number in range(1, 30):
        client.report(live(number), "a")
    assert not stuck.freed.is_set()  # all are made while the transport still hangs
    client.close(2.0)
    assert stuck.freed.is_set()
    assert not client._sender.running


def test_what_is_made_while_the_thread_is_at_work_is_not_slept_through(open_client, wide):
    class Slow(FakeCollector):
        def submit(self, batches, timeout):
            time.sleep(0.3)
            yield from super().submit(batches, timeout)

    collector = Slow()
    client = open_client(policy=wide, transport=collector, background=True, clock=None, delay=0)
    for number in range(12):
        client.report(live(number), "a")
        time.sleep(0.05)
    deadline = time.monotonic() + 15
    while len(collector.received) < 12 and time.monotonic() < deadline:
        time.sleep(0.02)
    assert len(collector.received) == 12


def test_close_twice_and_after_close(open_client):
    from ldp_client import PolicyRefused

    client = open_client()
    client.report(make(), "a")
    client.close()
    client.close()
    with pytest.raises(PolicyRefused, match="closed"):
        client.report(make(1), "a")


def test_a_thread_that_meets_a_surprise_lives_on_and_says_only_its_kind(open_client, caplog):
    class Surprising(FakeCollector):
        def submit(self, batches, timeout):
            if threading.current_thread() is not threading.main_thread():
                raise ZeroDivisionError("secret words")
            return super().submit(batches, timeout)

    collector = Surprising()
    client = open_client(transport=collector, background=True, clock=None, delay=0)
    client.report(live(), "a")
    deadline = time.monotonic() + 10
    while "ZeroDivisionError" not in caplog.text and time.monotonic() < deadline:
        time.sleep(0.01)
    assert "ZeroDivisionError" in caplog.text and "secret words" not in caplog.text
    assert client._sender.running


def test_threads_share_a_client(open_client, wide):
    client = open_client(policy=wide)
    made = []

    def run(first):
        for number in range(first, first + 25):
            made.append(client.report(make(number), "a").made)

    threads = [threading.Thread(target=run, args=(first,)) for first in (0, 25, 10, 40)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum(made) == 65 == client.ledger().spent == client.outbox().waiting
