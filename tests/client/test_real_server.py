"""The client against the real server in a process of its own: restarts, kill -9, admission, the signed list."""

import os
import time
from contextlib import contextmanager

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from ldp_client import Categories, Client, Policy, PolicyRefused, Schedule, Sending, Sources, Unavailable
from ldp_client.sending.gateway import Gateway
from ldp_client.sending.transport import Accepted, Batch
from ldp_client.testing import ManualClock
from ldp_server.testing import ServerProcess
from tests.client.conftest import live

WIDE = {"max_epsilon": "1", "budget": "100000", "period": "30 days", "lifetime": "200000"}


class RealServer:
    def __init__(self, home):
        self.config = home / "server.toml"
        self.config.write_text("")
        self.process = ServerProcess(home / "data", "--config", str(self.config), environment={"OMP_NUM_THREADS": "1"})

    @property
    def listen(self):
        return self.process.target or "127.0.0.1:1"

    def start(self):
        self.process.start()

    def stop(self):
        self.process.stop()

    def kill(self):
        self.process.kill()

    def enter(self, collection):
        with self.process.analyst() as analyst:
            analyst.create(collection)

    def close(self, collection):
        with self.process.analyst() as analyst:
            analyst.close_collection(collection)

    def reports(self, collection):
        with self.process.analyst() as analyst:
            return analyst.show(collection).reports


@pytest.fixture
def server(tmp_path):
    home = tmp_path / "server"
    home.mkdir()
    server = RealServer(home)
    yield server
    server.stop()


@pytest.fixture(scope="module")
def running(tmp_path_factory):
    """One server for tests with questions of their own, which runs at their beginning and at their end."""
    server = RealServer(tmp_path_factory.mktemp("server"))
    server.start()
    yield server
    server.stop()


@contextmanager
def open_client(server, storage, **more):
    sources = Sources(clock=more.pop("clock")) if "clock" in more else None
    options = {"policy": Policy(**WIDE), "tls": False, "delay": 0, "sending": Sending(background=False)} | more
    target = server.listen.replace(":0", ":1")  # before the server has started, nobody is there
    client = Client(target, storage=storage, sources=sources, **options)
    yield client
    client.close(1.0)


@pytest.mark.long
def test_reports_arrive_once_through_restarts_and_kills(running, tmp_path):
    collections = [live(number) for number in range(4)]
    for collection in collections:
        running.enter(collection)
    with open_client(running, tmp_path / "ldp") as client:
        client.report(collections[0], "a")
        assert client.flush(20).accepted == 1
        client.report(collections[1], "a")
        running.stop()
        assert isinstance(client.flush(0.5).error, Unavailable)
        running.start()
        assert client.flush(20).accepted == 1
        client.report(collections[2], "a")
        running.kill()
        client.report(collections[3], "a")
        assert client.flush(0.5).waiting == 2
        running.start()
        assert client.flush(20).accepted == 2
        assert client.outbox().counters["accepted"] == 4
    assert [running.reports(collection) for collection in collections] == [1, 1, 1, 1]


@pytest.mark.long
def test_a_long_offline_spell_ends_with_exactly_the_reports_kept(server, tmp_path, request):
    """Many periods pass without a network. A question may have 10,000 periods."""
    kept = 9_000 if request.config.getoption("--slow") else 1_100  # 512 are sent at once
    now = int(time.time())
    opens = now - (kept + 500) * 60
    often = live(text="Every minute?", schedule=Schedule(60, kept), opens=opens, closes=opens + 9_990 * 60)
    clock = ManualClock(now - kept * 60)
    with open_client(server, tmp_path / "ldp", clock=clock, lease=str(kept)) as client:
        for _ in range(kept):
            assert client.report(often, "a").made
            clock.advance(60)
        assert client.flush(0.0, everything=True).waiting == kept
    server.start()
    server.enter(often)
    with open_client(server, tmp_path / "ldp") as client:
        assert client.flush(60).accepted == kept
    assert server.reports(often) == kept


def test_the_servers_refusals_have_their_reasons(running, tmp_path):
    known, closed, unknown = live(11), live(12), live(13)
    running.enter(known)
    running.enter(closed)
    running.close(closed)
    with open_client(running, tmp_path / "ldp") as client:
        for collection in (known, closed, unknown):
            client.report(collection, "a")
        client.flush(20)
        assert client.outbox().counters == {
            "accepted": 1, "refused COLLECTION_CLOSED": 1, "later UNKNOWN_COLLECTION": 1,
        }  # fmt: skip
        running.enter(unknown)  # it was not there yet
        assert client.flush(20, everything=True).accepted == 1
    assert running.reports(unknown) == 1


def test_a_device_whose_clock_is_fast_loses_nothing_at_the_opening(running, tmp_path):
    """4 s are within the server's slack; 10 minutes are not, and the report waits. It was deleted, and stayed paid."""
    now = time.time()
    soon, later = live(1, opens=int(now) + 10), live(2, opens=int(now) + 600)
    for collection in (soon, later):
        running.enter(collection)
    with open_client(running, tmp_path / "ldp", clock=ManualClock(now + 601)) as client:
        for collection in (soon, later):
            client.report(collection, "a")
        assert client.flush(20)[:4] == (1, 0, 1, 1)
        assert client.outbox().counters == {"accepted": 1, "later NOT_YET_OPEN": 1}
    assert running.reports(soon) == 1


def write_key(path, key):
    path.write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
    return path


@pytest.mark.long
def test_the_servers_signed_list_is_believed(server, tmp_path):
    key = Ed25519PrivateKey.generate()
    public = key.public_key().public_bytes(serialization.Encoding.Raw, serialization.PublicFormat.Raw)
    file = write_key(tmp_path / "list-key.pem", key)
    file.chmod(0o600)
    server.config.write_text(server.config.read_text() + f'\n[publish]\nsigning_key = "{file}"\n')
    server.start()
    first, second = live(1), live(2)
    server.enter(first)
    policy = Policy(**WIDE, list_keys=[public])
    with open_client(server, tmp_path / "ldp", policy=policy) as client:
        serial = client.refresh()
        assert client.listed() == (first.id,)
        assert client.fetch(first.id) == first
        assert set(client.collections()) == {first.id}
        client.report(first, "a")
        with pytest.raises(PolicyRefused):
            client.report(second, "a")
        server.enter(second)
        assert client.refresh() > serial
        client.report(second, "a")
        assert client.flush(20).accepted == 2
    other = Policy(**WIDE, list_keys=[bytes(32)])
    with open_client(server, tmp_path / "other", policy=other) as client, pytest.raises(PolicyRefused):
        client.refresh()


@pytest.mark.long
def test_a_gateway_feeds_it(running):
    collection = live(domain=Categories(("a", "b", "c")), mechanism="randomized-response")
    running.enter(collection)
    batches = [Batch(collection.id, os.urandom(16), bytes(1000)) for _ in range(300)]
    gateway = Gateway(running.listen, tls=False)
    stream = gateway.send(batches, 60)
    outcomes = [next(stream) for _ in range(50)]
    running.kill()
    running.start()
    outcomes += list(stream)
    gateway.close()
    assert [outcome.batch_id for outcome in outcomes] == [batch.batch_id for batch in batches]
    assert all(isinstance(outcome, Accepted) and outcome.reports == 1000 for outcome in outcomes)
    assert running.reports(collection) == 300_000
