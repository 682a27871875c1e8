"""`kill -9` at any moment: at least the smallest batch or nothing, nothing lost, nothing twice.

A real relay process with rounds of a second stands between a sender and a recording collector, which is away or loses
an answer now and then. The relay is killed again and again. What it acknowledged must be at the collector once or still
held, and every batch that the collector was ever shown has at least the smallest batch.
"""

import random
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import grpc
import pytest

from ldp_client.protocol.v1 import collector_pb2 as pb
from ldp_client.protocol.v1 import collector_pb2_grpc, relay_pb2_grpc
from ldp_server.relay.checks import look
from ldp_server.testing import RelayProcess
from tests.server.helpers import wait_until
from tests.server.relay.helpers import relayed, request, tag_of, unit, unit_bytes

SMALLEST = 20
SHORT_KILLS, LONG_KILLS = 2, 100


class FlakyCollector(collector_pb2_grpc.CollectorServicer):
    """Takes batches, remembers all of them, and is away or loses its answer in one of four calls."""

    def __init__(self, collection):
        self.collection = collection
        self.lock = threading.Lock()
        self.shown: list[tuple[bytes, bytes]] = []
        self.taken: dict[bytes, bytes] = {}

    def GetCollection(self, asked, context):
        return pb.GetCollectionResponse(spec_bytes=self.collection.spec_bytes)

    def Submit(self, sent, context):
        away = random.random() < 0.25
        with self.lock:
            self.shown.append((sent.batch_id, sent.payload))
            if away and random.random() < 0.5:
                context.abort(grpc.StatusCode.UNAVAILABLE, "away")
            self.taken[sent.batch_id] = sent.payload
        if away:
            context.abort(grpc.StatusCode.UNAVAILABLE, "the answer is lost")
        return pb.SubmitResponse(batch_id=sent.batch_id, accepted=pb.Accepted(reports=1))


class Steady(threading.Thread):
    """Sends units one after the other, each until it is acknowledged; some twice."""

    def __init__(self, target, collection, first):
        super().__init__(daemon=True)
        self.target, self.collection = target, collection
        self.acknowledged: list[int] = []
        self.stop = threading.Event()
        self.next = first

    def run(self):
        waiting = None
        while not self.stop.is_set() or waiting is not None:
            with grpc.insecure_channel(self.target) as channel:
                stub = relay_pb2_grpc.RelayStub(channel)
                while not self.stop.is_set() or waiting is not None:
                    if waiting is None:
                        waiting = unit(self.collection, self.next)
                        self.next += 1
                    try:
                        said = stub.Submit(request(self.collection, waiting), timeout=20, wait_for_ready=True)
                        if random.random() < 0.1:
                            stub.Submit(request(self.collection, waiting), timeout=20)
                    except grpc.RpcError:
                        break
                    assert said.WhichOneof("outcome") == "accepted", said
                    self.acknowledged.append(tag_of(waiting))
                    waiting = None
                    time.sleep(0.002)


@contextmanager
def serving(collection):
    """The flaky collector, as long as the block runs."""
    servicer = FlakyCollector(collection)
    server = grpc.server(ThreadPoolExecutor(4))
    collector_pb2_grpc.add_CollectorServicer_to_server(servicer, server)
    servicer.target = f"127.0.0.1:{server.add_insecure_port('127.0.0.1:0')}"
    server.start()
    try:
        yield servicer
    finally:
        server.stop(None)


@pytest.fixture
def collector():
    with serving(relayed(SMALLEST)) as servicer:
        yield servicer


def check(collector, relay_db, acknowledged):
    collection = collector.collection
    width = unit_bytes(collection)

    def tags(payload):
        return [tag_of(payload[i : i + width]) for i in range(0, len(payload), width)]

    ids: dict[bytes, bytes] = {}
    for batch_id, payload in collector.shown:
        assert ids.setdefault(batch_id, payload) == payload, "a batch came back with other units"
        assert len(payload) // width >= SMALLEST, "fewer than the smallest batch were shown"
    arrived = [tag for payload in collector.taken.values() for tag in tags(payload)]
    assert len(arrived) == len(set(arrived)), "a report was released twice"
    (standing,) = look(relay_db)
    missing = set(acknowledged) - set(arrived)
    assert len(missing) == standing.held, "what was acknowledged is neither held nor at the collector"
    assert standing.held < SMALLEST
    assert standing.outgoing == 0
    assert set(arrived) <= set(acknowledged)


def test_kills_lose_nothing_and_release_enough_or_nothing(tmp_path, collector, kills):
    config = tmp_path / "relay.toml"
    config.write_text(
        f'data = "held"\n[forward]\ncollector = "{collector.target}"\nplaintext = true\n'
        f'collections = ["{collector.collection.id.hex()}"]\n[hold]\nround = "1 second"\nremember_rounds = 100000\n'
    )
    with RelayProcess(config) as relay:
        sender = Steady(relay.target, collector.collection, 1)
        sender.start()
        for _ in range(kills):
            time.sleep(random.random() * 1.3)
            relay.restart()
        released = len(collector.taken)
        wait_until(lambda: len(collector.taken) > released)
        sender.stop.set()
        sender.join(60)
        assert not sender.is_alive()

        def settled():
            (standing,) = look(tmp_path / "held" / "relay.db")
            return standing.held < SMALLEST and standing.outgoing == 0

        wait_until(settled)
        assert relay.restarts == kills
        assert relay.stop() == 0
    check(collector, tmp_path / "held" / "relay.db", sender.acknowledged)
    assert "Traceback" not in config.with_suffix(".log").read_text()


@pytest.fixture(params=[SHORT_KILLS, pytest.param(LONG_KILLS, marks=[pytest.mark.slow, pytest.mark.timeout(1800)])])
def kills(request):
    return request.param
