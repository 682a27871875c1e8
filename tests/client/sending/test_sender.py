"""Patience, delays, claims and admission tokens."""

import itertools
import statistics
import threading
import time

import pytest

from ldp_client import OutboxLimits, Unavailable
from ldp_client.sending.outbox import CLAIM_SECONDS
from ldp_client.sending.transport import Backoff
from ldp_client.testing import FakeCollector
from tests.client.conftest import NOW, live, make


def dues(client):
    client.outbox()
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


def test_answers_move_to_the_outbox_once(open_client, collector):
    """Even if it is forgotten how far that had come: an answer's batch goes with it."""
    client, other = open_client(), open_client()
    for number in range(2):
        client.report(make(number), "a")
    with client._storage.reading() as (db, _):
        made = db.execute("SELECT batch_id, collection_id, report, opens, made, due FROM answers").fetchall()
    assert client.outbox().waiting == other.outbox().waiting == 2
    with client._storage.working() as db:
        columns = "batch_id, collection_id, payload, opens, made, due"
        assert db.execute(f"SELECT {columns} FROM outbox ORDER BY id").fetchall() == made
        assert db.execute("SELECT count(*) FROM answers WHERE batch_id IS NULL AND due IS NULL").fetchone() == (2,)
        db.execute("DELETE FROM collected")
    assert client.outbox().waiting == 2
    assert client.flush(everything=True).accepted == 2
    assert {batch_id for batch_id, *_ in made} == set(collector.received)
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


def test_another_senders_claims_are_left_alone_until_they_run_out(open_client, collector, clock):
    from ldp_client.sending import outbox

    client = open_client(delay=0)
    client.report(make(), "a")
    with client._storage.working() as db:
        outbox.collect(db, outbox.OutboxLimits())
        assert len(outbox.claim(db, clock.time(), 10)) == 1  # somebody else, who then dies
    assert client.flush().accepted == 0
    clock.advance(CLAIM_SECONDS + 1)
    assert client.flush().accepted == 1


def test_admission_tokens_are_asked_for_once_a_batch(open_client, collector):
    tokens, asked = (bytes([n]) * 8 for n in range(100)), []

    def admission(collection_id):
        asked.append(collection_id)
        return next(tokens)

    client = open_client(delay=0, admission=admission)
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

    client = open_client(delay=0, admission=admission)
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
        self.freed.wait(30)
        yield from super().submit(batches, timeout)

    def close(self):
        self.freed.set()


def test_report_never_waits_for_the_network(open_client, wide):
    stuck = Stuck()
    client = open_client(policy=wide, transport=stuck, background=True, clock=None, delay=0)
    client.report(live(0), "a")
    assert stuck.entered.wait(10)
    start = time.monotonic()
    for number in range(1, 30):
        client.report(live(number), "a")
    assert time.monotonic() - start < 5
    start = time.monotonic()
    client.close(2.0)
    assert time.monotonic() - start < 5
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
