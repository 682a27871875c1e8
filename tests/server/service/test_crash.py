"""kill -9 at random moments under load: nothing acknowledged is lost, nothing is counted twice."""

import os
import random
import signal
import threading
import time
from pathlib import Path

import grpc
import pytest

from ldp_client.protocol.v1 import analyst_pb2, analyst_pb2_grpc, collector_pb2, collector_pb2_grpc
from ldp_server.oracles import oracle_for, restore
from tests.server.helpers import PATIENCE, ServerProcess, batch, make_collection, taken, wait_until


class Sender(threading.Thread):
    """Streams its batches in order, again from the first unacknowledged one whenever the stream breaks."""

    def __init__(self, server, requests):
        super().__init__(daemon=True)
        self.server = server
        self.requests = requests
        self.acknowledged: set[bytes] = set()
        self.sent: set[bytes] = set()
        self.again = threading.Event()
        """While it is set the sender may open a stream."""
        self.again.set()
        self.broken = threading.Event()
        """Set once a stream has broken and everything that came through it is in."""
        self.problems: list[str] = []
        self.finished = False

    def _requests(self, left):
        for request in left:
            self.sent.add(request.batch_id)
            yield request
            time.sleep(0.0005)

    def run(self):
        while True:
            left = [r for r in self.requests if r.batch_id not in self.acknowledged]
            if not left:
                self.finished = True
                return
            self.again.wait(PATIENCE)
            try:
                with grpc.insecure_channel(self.server.target) as channel:
                    for response in collector_pb2_grpc.CollectorStub(channel).SubmitStream(self._requests(left)):
                        if response.WhichOneof("outcome") != "accepted":
                            self.problems.append(collector_pb2.Reason.Name(response.refusal.reason))
                        self.acknowledged.add(response.batch_id)
            except grpc.RpcError as error:
                if error.code() not in {grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.CANCELLED}:
                    self.problems.append(f"{error.code()}: {error.details()}")
                self.broken.set()


def export(server, collection):
    ask = analyst_pb2.ExportRequest(collection_id=collection.id, kind=analyst_pb2.COUNTS)
    with server.channel() as channel:
        pieces = analyst_pb2_grpc.AnalystStub(channel).Export(ask, metadata=server.auth, timeout=PATIENCE)
        return restore(collection, b"".join(piece.data for piece in pieces))


def crash_again_and_again(tmp_path, kills):
    coins = random.Random(os.urandom(8))
    server = ServerProcess(tmp_path / "d").start()
    collection = make_collection()
    server.create(collection)
    width = 3
    batches = [[batch(collection, width) for _ in range(400 * kills)] for _ in range(2)]
    senders = [Sender(server, requests) for requests in batches]
    for sender in senders:
        sender.start()
    for _ in range(kills):
        time.sleep(coins.uniform(0.02, 0.5))
        for sender in senders:
            sender.again.clear()  # nobody sends between the restart and the count
        server.kill()
        # An answer that is still on its way to a sender is about a batch that was sent and is durable.
        acknowledged = sum(len(sender.acknowledged) for sender in senders)
        in_flight = sum(len(sender.sent) for sender in senders) - acknowledged
        server.start()
        counted = server.reports(collection) // width
        assert acknowledged <= counted <= acknowledged + in_flight
        for sender in senders:
            sender.again.set()
    for sender in senders:
        while not sender.finished and sender.is_alive():
            sender.join(5)
        assert sender.problems == []
    expected = oracle_for(collection)
    for request in (r for requests in batches for r in requests):
        expected.accumulate(request.payload)
    found = export(server, collection)
    assert (found.counts.values == expected.counts.values).all()
    assert server.stop() == 0
    assert "Traceback" not in server.log.read_text()


@pytest.mark.timeout(600)
def test_killed_three_times(tmp_path):
    crash_again_and_again(tmp_path, 3)


@pytest.mark.slow
@pytest.mark.timeout(2400)
def test_killed_two_hundred_times(tmp_path):
    crash_again_and_again(tmp_path, 200)


def test_a_second_server_on_the_same_directory_is_refused(tmp_path):
    from tests.server.helpers import cli

    with ServerProcess(tmp_path / "d") as server:
        found = cli("serve", "--listen", "127.0.0.1:0", data=tmp_path / "d")
        assert found.returncode == 3
        assert f"process {server.process.pid}" in found.stderr
        assert "Traceback" not in found.stderr
        collection = make_collection()
        server.create(collection)  # the first one goes on
    # A lock that a dead server left behind stops nobody.
    server.start()
    server.kill()
    with ServerProcess(tmp_path / "d") as again:
        assert again.reports(collection) == 0


def test_the_child_ends_with_its_parent(tmp_path):
    server = ServerProcess(tmp_path / "d", file_limit=1 << 40).start()  # a limit: so that nothing here is a fork
    collection = make_collection()
    server.create(collection)
    server.reports(collection)
    mark = f"ldp_server.worker\0{tmp_path}"
    children = [p for p in Path("/proc").iterdir() if p.name.isdigit() and mark in _read(p / "cmdline")]
    assert len(children) == 1
    assert os.getpriority(os.PRIO_PROCESS, int(children[0].name)) >= 10
    server.kill()
    wait_until(lambda: _read(children[0] / "stat").rpartition(")")[2][:3].strip() in {"", "Z"})


def _read(path):
    try:
        return path.read_text()
    except OSError:
        return ""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
@pytest.mark.thinned(1)
def test_a_stop_under_load_counts_what_it_acknowledged_and_knows_the_rest(tmp_path, number):
    """A busy client may not see the last answers before the stream ends. It sends again, and nothing counts twice."""
    server = ServerProcess(tmp_path / "d").start()
    collection = make_collection()
    server.create(collection)
    senders = [Sender(server, [batch(collection) for _ in range(4000)]) for _ in range(3)]
    for sender in senders:
        sender.start()
    wait_until(lambda: sum(len(sender.acknowledged) for sender in senders) > 100)
    for sender in senders:
        sender.again.clear()
    server.process.send_signal(number)
    assert server.process.wait(PATIENCE) == 0
    server.stop()
    assert all(sender.broken.wait(PATIENCE) for sender in senders)
    assert [sender.problems for sender in senders] == [[], [], []]
    acknowledged = {batch_id for sender in senders for batch_id in sender.acknowledged}
    assert 100 < len(acknowledged) < 12_000
    sent = [r for sender in senders for r in sender.requests if r.batch_id in sender.sent]
    with ServerProcess(tmp_path / "d") as again:
        counted = again.reports(collection)
        assert len(acknowledged) <= counted <= len(sent)
        with again.channel() as channel:
            answers = list(collector_pb2_grpc.CollectorStub(channel).SubmitStream(iter(sent)))
        known = {answer.batch_id for answer in answers if taken(answer).duplicate}
        assert acknowledged <= known
        assert len(known) == counted
        assert again.reports(collection) == len(sent)
    assert "Traceback" not in server.log.read_text()
