"""Prepared batches through one stream: in order, each outcome once, whatever happens in between."""

import threading
import time

import grpc
import pytest

from ldp_client import Unavailable, WrongType
from ldp_client.sending.gateway import Gateway
from ldp_client.sending.transport import Accepted, Batch
from tests.client.collectors import HonestCollector, serving


def batches(count):
    return [Batch(b"c" * 32, number.to_bytes(16, "big"), b"payload%d" % number) for number in range(count)]


def test_outcomes_come_in_order():
    collector = HonestCollector()
    with serving(collector) as port:
        gateway = Gateway(f"127.0.0.1:{port}", tls=False, window=16)
        assert list(gateway.send(iter(batches(500)), 30)) == [Accepted(b.batch_id) for b in batches(500)]
        gateway.close()
    assert len(collector.requests) == 500


def test_nothing_to_send():
    with serving(HonestCollector()) as port:
        gateway = Gateway(f"127.0.0.1:{port}", tls=False)
        assert list(gateway.send([], 5)) == []
        gateway.close()


def test_the_window_bounds_what_is_under_way():
    collector = HonestCollector()
    taken, gate, held = [], threading.Event(), collector.take
    collector.take = lambda request, context: (gate.wait(20), held(request, context))[1]

    def source():
        for batch in batches(100):
            taken.append(batch)
            yield batch

    with serving(collector) as port:
        gateway = Gateway(f"127.0.0.1:{port}", tls=False, window=10)
        outcomes = gateway.send(source(), 30)
        threading.Timer(0.5, gate.set).start()
        first = next(outcomes)
        assert isinstance(first, Accepted)
        assert len(list(outcomes)) == 99
        gateway.close()
    assert len(taken) == 100


def test_a_broken_stream_is_begun_again_with_the_same_bytes():
    collector = HonestCollector()
    honest, breaks = collector.take, {30, 31, 90, 150}

    def breaking(request, context):
        answer = honest(request, context)
        if len(collector.requests) in breaks:
            context.abort(grpc.StatusCode.UNAVAILABLE, "gone")  # taken in, and the answer is lost
        return answer

    collector.take = breaking
    with serving(collector) as port:
        gateway = Gateway(f"127.0.0.1:{port}", tls=False, window=8)
        outcomes = list(gateway.send(batches(150), 60))
        gateway.close()
    assert [outcome.batch_id for outcome in outcomes] == [b.batch_id for b in batches(150)]
    assert gateway.retries == len(breaks)
    assert len(collector.counted) == 150
    assert any(outcome.duplicate for outcome in outcomes)
    for request in collector.requests:
        assert collector.counted[request.batch_id].payload == request.payload


class SourceBroke(Exception):
    """What a test's source raises."""


def test_what_the_source_raises_is_raised_after_what_it_gave_was_answered():
    """It was swallowed in gRPC's thread, and `send` ended as if all had been sent."""

    def source():
        yield from batches(20)
        raise SourceBroke

    collector = HonestCollector()
    outcomes = []
    with serving(collector) as port:
        gateway = Gateway(f"127.0.0.1:{port}", tls=False, window=8)
        with pytest.raises(SourceBroke):
            for outcome in gateway.send(source(), 30):
                outcomes.append(outcome)
        gateway.close()
    assert outcomes == [Accepted(batch.batch_id) for batch in batches(20)]


@pytest.mark.parametrize("wrong", [None, b"", ("a", "tuple")])
def test_what_is_no_batch_is_an_error_and_not_the_end(wrong):
    with serving(HonestCollector()) as port:
        gateway = Gateway(f"127.0.0.1:{port}", tls=False)
        with pytest.raises(WrongType, match="batches: give Batch"):
            list(gateway.send([*batches(3), wrong, *batches(3)], 10))
        gateway.close()


def test_a_stream_that_ends_before_its_last_answer_is_begun_again():
    """The source had ended, so the missing answers were taken for success."""
    collector = HonestCollector()
    with serving(collector) as port:
        gateway = Gateway(f"127.0.0.1:{port}", tls=False, window=8)
        stream, cut = gateway._transport.stream, []

        def cutting(requests, unanswered, timeout):
            for number, outcome in enumerate(stream(requests, unanswered, timeout)):
                if not cut and number == 4:
                    cut.append(outcome)
                    return
                yield outcome

        gateway._transport.stream = cutting
        outcomes = list(gateway.send(batches(5), 30))
        gateway.close()
    assert [outcome.batch_id for outcome in outcomes] == [batch.batch_id for batch in batches(5)]
    assert len(collector.counted) == 5 and gateway.retries == 1


def test_a_restart_in_between():
    collector = HonestCollector()
    outcomes = []
    with serving(collector) as port:
        gateway = Gateway(f"127.0.0.1:{port}", tls=False, window=4)
        stream = gateway.send(iter(batches(60)), 60)
        outcomes += [next(stream) for _ in range(20)]
    with serving(collector, port):
        outcomes += list(stream)
    gateway.close()
    assert [outcome.batch_id for outcome in outcomes] == [b.batch_id for b in batches(60)]
    assert len(collector.counted) == 60


def test_the_deadline_is_kept():
    start = time.monotonic()
    gateway = Gateway("127.0.0.1:1", tls=False)
    with pytest.raises(Unavailable):
        list(gateway.send(batches(3), 1.0))
    assert time.monotonic() - start < 20
    gateway.close()
