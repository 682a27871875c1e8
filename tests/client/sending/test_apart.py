"""What a device that was offline sends when it is back: one batch at a time, at independent moments."""

import itertools
import statistics

import pytest

from ldp_client.coins import draw_words
from ldp_client.sending.pauses import moment_apart
from ldp_client.sending.sender import ASIDE_SECONDS
from ldp_client.sending.transport import Garbled
from tests.client.conftest import NOW, make

HOUR = 3600
OFFLINE = 5 * HOUR


def arrivals(client, collector, clock):
    """Let the client send whenever it has something due; return when each batch left."""
    moments = []
    while client.outbox().waiting:
        clock.jump(max(client.outbox().next_due, clock.now))
        before = len(collector.received)
        client.flush()
        moments += [clock.now] * (len(collector.received) - before)
    return moments


def test_what_is_overdue_leaves_one_by_one(open_client, wide, collector, clock):
    client = open_client(policy=wide, coins=draw_words)
    for number in range(40):
        client.report(make(number), "a")
    collector.down = True
    clock.advance(OFFLINE)
    assert client._sender.deliver(1.0).error is not None
    collector.down = False
    delivery = client.flush()
    assert (delivery.accepted, delivery.waiting) == (1, 39)
    moments = arrivals(client, collector, clock)
    assert all(len(call) == 1 for call in collector.calls)
    assert len(collector.received) == 40
    waits = [moment - NOW - OFFLINE for moment in moments]
    assert all(0 <= wait <= HOUR for wait in waits) and len(set(waits)) == 39
    # uniform: mean 1800, deviation 3600 / sqrt(12 * 39) = 166; six of them leave a chance of 2e-9 either way
    assert abs(statistics.fmean(waits) - HOUR / 2) < 1000
    # their order is not the one of making or of the ids: independent draws sort 39 batches by chance with 1/39!
    sent = [call[0].batch_id for call in collector.calls[2:]]
    assert sent != sorted(sent)


def test_two_answers_of_a_device_are_independent(open_client, wide, collector, clock, tmp_path):
    """Over many devices, the second leaves long after the first, uniformly; it left in the same call before."""
    pauses = []
    for number in range(60):
        client = open_client(policy=wide, coins=draw_words, storage=tmp_path / str(number))
        client.report(make(0), "a")
        client.report(make(1), "a")
        clock.advance(OFFLINE)
        back = clock.now
        assert client.flush().accepted == 1
        pauses += [moment - back for moment in arrivals(client, collector, clock)]
        client.close(0)
    assert len(pauses) == 60
    # uniform on an hour: at most 1/60 of it is below a minute; 12 of 60 has a chance below 1e-9
    assert sum(pause < 60 for pause in pauses) < 12
    assert abs(statistics.fmean(pauses) - HOUR / 2) < 6 * HOUR / (12 * 60) ** 0.5


def test_a_pause_never_reaches_past_the_window(open_client, wide, collector, clock):
    client = open_client(policy=wide, delay="30 days", coins=draw_words)
    for number in range(20):
        client.report(make(number, closes=NOW + 10 * HOUR), "a")
    clock.advance(6 * HOUR)
    moments = arrivals(client, collector, clock)
    assert len(moments) == 20 and max(moments) < NOW + 10 * HOUR


@pytest.mark.parametrize(
    ("closes", "latest"), [(NOW + 100, NOW + 50), (NOW, NOW), (NOW - 5, NOW), (NOW + 10**6, NOW + 60)]
)
def test_the_bounds_of_a_pause(closes, latest):
    assert moment_apart(NOW, closes, 60.0, lambda: 0.0) == NOW
    assert moment_apart(NOW, closes, 60.0, lambda: 1.0) == latest


def test_without_a_delay_everything_leaves_at_once(open_client, wide, collector):
    """`delay=0` says that nothing is to be hidden."""
    client = open_client(policy=wide, delay=0)
    for number in range(9):
        client.report(make(number), "a")
    assert client.flush().accepted == 9 and len(collector.calls) == 1


def test_a_failed_attempt_draws_nothing_anew(open_client, wide, collector, clock):
    """Otherwise days offline would be a write each attempt."""
    client = open_client(policy=wide)
    for number in range(3):
        client.report(make(number), "a")
    clock.advance(OFFLINE)
    collector.down = True
    with client._storage.reading() as (db, _):
        before = db.execute("SELECT * FROM outbox").fetchall()
    client._sender.deliver(1.0)
    with client._storage.reading() as (db, _):
        assert db.execute("SELECT * FROM outbox").fetchall() == before
    assert [len(call) for call in collector.calls] == [1]


def test_a_batch_that_chokes_the_server_does_not_hold_up_the_others(open_client, wide, collector, clock):
    client = open_client(policy=wide)
    for number in range(4):
        client.report(make(number), "a")
    clock.advance(OFFLINE)
    with client._storage.reading() as (db, _):
        poison = db.execute("SELECT min(batch_id) FROM outbox").fetchone()[0]  # the first to be sent
    take = collector._take

    def choke(batch):
        if batch.batch_id == poison:
            raise Garbled("choked")
        return take(batch)

    collector._take = choke
    for _ in range(8):
        client._sender.deliver(1.0)
        clock.advance(ASIDE_SECONDS + HOUR)  # all are due again, and nothing is left aside any more
    assert len(collector.received) == 3 and client.outbox().waiting == 1
    collector._take = take
    clock.advance(ASIDE_SECONDS + HOUR)
    assert client.flush().accepted == 1


def test_a_clock_set_back_moves_drawn_moments_and_not_by_the_time_offline(open_client, wide, collector, clock):
    client = open_client(policy=wide)
    for number in range(3):
        client.report(make(number), "a")
    clock.advance(40 * 86_400)
    assert client.flush().accepted == 1
    clock.jump(NOW)
    client.flush()
    assert client.outbox().next_due <= NOW + HOUR
    assert len(list(itertools.chain(*collector.calls))) <= 2
