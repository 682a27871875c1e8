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


@contextmanager
def open_client(server, storage, **more):
    sources = Sources(clock=more.pop("clock")) if "clock" in more else None
    options = {"policy": Policy(**WIDE), "tls": False, "delay": 0, "sending": Sending(background=False)} | more
    target = server.listen.replace(":0", ":1")  # before the server has started, nobody is there
    client = Client(target, storage=storage, sources=sources, **options)
    yield client
    client.close(1.0)


def test_reports_arrive_once_through_restarts_and_kills(server, tmp_path):
    collections = [live(number) for number in range(4)]
    server.start()
    for collection in collections:
        server.enter(collection)
    with open_client(server, tmp_path / "ldp") as client:
        client.report(collections[0], "a")
        assert client.flush(20).accepted == 1
        client.report(collections[1], "a")
        server.stop()
        assert isinstance(client.flush(0.5).error, Unavailable)
        server.start()
        assert client.flush(20).accepted == 1
        client.report(collections[2], "a")
        server.kill()
        client.report(collections[3], "a")
        assert client.flush(0.5).waiting == 2
        server.start()
        assert client.flush(20).accepted == 2
        assert client.outbox().counters["accepted"] == 4
    assert [server.reports(collection) for collection in collections] == [1, 1, 1, 1]


def test_a_long_offline_spell_ends_with_exactly_the_reports_kept(server, tmp_path, request):
    """Many periods pass without a network. A question may have 10,000 periods."""
    kept = 9_000 if request.config.getoption("--slow") else 1_500
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


def test_the_servers_refusals_have_their_reasons(server, tmp_path):
    server.start()
    known, closed, unknown = live(1), live(2), live(3)
    server.enter(known)
    server.enter(closed)
    server.close(closed)
    with open_client(server, tmp_path / "ldp") as client:
        for collection in (known, closed, unknown):
            client.report(collection, "a")
        client.flush(20)
        assert client.outbox().counters == {
            "accepted": 1, "refused COLLECTION_CLOSED": 1, "later UNKNOWN_COLLECTION": 1,
        }  # fmt: skip
        server.enter(unknown)  # it was not there yet
        assert client.flush(20, everything=True).accepted == 1
    assert server.reports(unknown) == 1


def test_a_device_whose_clock_is_fast_loses_nothing_at_the_opening(server, tmp_path):
    """4 s are within the server's slack; 10 minutes are not, and the report waits. It was deleted, and stayed paid."""
    server.start()
    now = time.time()
    soon, later = live(1, opens=int(now) + 10), live(2, opens=int(now) + 600)
    for collection in (soon, later):
        server.enter(collection)
    with open_client(server, tmp_path / "ldp", clock=ManualClock(now + 601)) as client:
        for collection in (soon, later):
            client.report(collection, "a")
        assert client.flush(20)[:4] == (1, 0, 1, 1)
        assert client.outbox().counters == {"accepted": 1, "later NOT_YET_OPEN": 1}
    assert server.reports(soon) == 1


def write_key(path, key):
    path.write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
    return path


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


def test_a_gateway_feeds_it(server):
    collection = live(domain=Categories(("a", "b", "c")), mechanism="randomized-response")
    server.start()
    server.enter(collection)
    batches = [Batch(collection.id, os.urandom(16), bytes(1000)) for _ in range(300)]
    gateway = Gateway(server.listen, tls=False)
    stream = gateway.send(batches, 60)
    outcomes = [next(stream) for _ in range(50)]
    server.kill()
    server.start()
    outcomes += list(stream)
    gateway.close()
    assert [outcome.batch_id for outcome in outcomes] == [batch.batch_id for batch in batches]
    assert all(isinstance(outcome, Accepted) and outcome.reports == 1000 for outcome in outcomes)
    assert server.reports(collection) == 300_000
