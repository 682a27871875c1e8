"""The deployment on this machine: real processes with its configurations, on a real PostgreSQL with its users."""

from __future__ import annotations

import json
import signal
import threading
import time
import urllib.error
import urllib.request

import grpc
import psycopg
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc

from ldp_client.protocol.v1 import collector_pb2_grpc
from ldp_client.sending.target import Tls
from ldp_server.analyst import Analyst
from ldp_server.config import load_config
from ldp_server.store import Admission, NewCollection
from ldp_server.store.engines import open_store
from tests.deploy import rehearsal
from tests.deploy.manifests import container, pods
from tests.server.commands import Started, run_command
from tests.server.helpers import batch, make_collection, taken, wait_until

pytestmark = pytest.mark.long

BATCHES = 3000


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    with rehearsal.place(tmp_path_factory.mktemp("deploy")) as found:
        done = prepare(found, "owner")
        assert done.returncode == 0, done.stderr
        yield found


def prepare(place, user, environment=None):
    """The job `prepare`, with this place's address."""
    words = [*container(pods()["prepare"])["args"][:-1], place.address(user)]
    return run(words, environment or place.environment(user))


def run(words, environment):
    return run_command(words, {**environment, "COLUMNS": "200"}, None, 120)


def serving(target: str) -> bool:
    """What the probe of a container asks."""
    with grpc.insecure_channel(target) as channel:
        asked = health_pb2_grpc.HealthStub(channel).Check(health_pb2.HealthCheckRequest(), timeout=30)
    return asked.status == health_pb2.HealthCheckResponse.SERVING


def healthy(port: int) -> int:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/healthz", timeout=30) as answer:
            return answer.status
    except urllib.error.HTTPError as error:
        return error.code


def test_preparing_again_changes_nothing(place):
    assert prepare(place, "owner").returncode == 0


def test_users_may_no_more_than_their_part(place):
    refused = prepare(place, "collect")
    assert refused.returncode == 3
    assert len(refused.stderr.strip().splitlines()) == 1
    assert "Traceback" not in refused.stderr
    password = (place.secrets / "collect.password").read_text().strip()
    where = place.as_superuser.replace("//hearsay@", "//collect@")
    with psycopg.connect(where, password=password, autocommit=True) as connection:
        assert connection.execute("SELECT count(*) FROM hearsay.collections").fetchone() is not None
        for statement in (
            "SELECT * FROM hearsay.segments",
            "SELECT * FROM hearsay.used_tokens",
            "DELETE FROM hearsay.collections",
            "CREATE TABLE mine (a int)",
            "CREATE TABLE hearsay.mine (a int)",
        ):
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                connection.execute(statement)


def test_a_wrong_password_is_one_line(place):
    environment = {**place.environment("owner"), "PGSERVICEFILE": str(place.secrets / "keep.conf")}
    refused = prepare(place, "owner", environment)
    assert refused.returncode == 3
    (line,) = refused.stderr.strip().splitlines()
    assert "password authentication failed" in line
    assert (place.secrets / "keep.password").read_text().strip() not in line


def test_the_roles_work_together_as_deployed(place):
    """A collection is made through an answerer with a token, taken by a collector, and kept by upkeep."""
    token = run(
        ["token", "create", "deployer", "--role", "manage", "--out", str(place.folder / "deployer.token"), "--store",
         place.address("keep")],
        place.environment("keep"),
    )  # fmt: skip
    assert token.returncode == 0, token.stderr
    collection = make_collection("As deployed?")
    config, metrics = place.config("upkeep")
    with place.collector() as (collector, collector_metrics), place.answerer() as (answerer, answerer_metrics):
        words = ["upkeep", "--config", str(config), "--until-stdin-closes"]
        with (place.folder / "upkeep.log").open("wb") as said:
            upkeep = Started(words, place.environment("keep"), said)
        try:
            assert upkeep.stdout.readline() == "ready\n"
            assert serving(collector.target)
            for port in (metrics, collector_metrics, answerer_metrics):
                wait_until(lambda port=port: healthy(port) == 200)
            tls = Tls(ca=str(place.secrets / "ca.crt"))
            target = f"localhost:{answerer.target.rpartition(':')[2]}"
            with Analyst(target, tls=tls, token=place.folder / "deployer.token") as analyst:
                analyst.create(collection)
                wait_until(lambda: submitted(collector.target, collection))
                wait_until(lambda: analyst.show(collection).reports == 7)
                assert analyst.estimate(collection, top=3).reports == 7
        finally:
            upkeep.send_signal(signal.SIGTERM)
            assert upkeep.wait(60) == 0
            upkeep.stdin.close()
            upkeep.stdout.close()
    assert not (place.folder / "collect").exists()


def submitted(target, collection):
    """Whether a batch was taken: a collection that was just made may be known in a moment."""
    with grpc.insecure_channel(target) as channel:
        try:
            return bool(taken(collector_pb2_grpc.CollectorStub(channel).Submit(batch(collection, 7))))
        except grpc.RpcError as error:
            assert error.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
            return False


class Watcher(threading.Thread):
    """Follows the health of a server, and notes what it says."""

    def __init__(self, target):
        super().__init__(daemon=True)
        self.target, self.said = target, []

    def run(self):
        with grpc.insecure_channel(self.target) as channel:
            stub = health_pb2_grpc.HealthStub(channel)
            for one in stub.Watch(health_pb2.HealthCheckRequest()):
                self.said.append(health_pb2.HealthCheckResponse.ServingStatus.Name(one.status))
                if one.status == health_pb2.HealthCheckResponse.NOT_SERVING:
                    return  # a call that stays open is waited for


class Streamer(threading.Thread):
    """Sends batches on one stream as fast as they are taken, and notes what was acknowledged."""

    def __init__(self, target, requests, events):
        super().__init__(daemon=True)
        self.target, self.requests, self.events = target, requests, events
        self.acknowledged = set()

    def run(self):
        with grpc.insecure_channel(self.target) as channel:
            try:
                for answer in collector_pb2_grpc.CollectorStub(channel).SubmitStream(iter(self.requests)):
                    taken(answer)
                    self.acknowledged.add(answer.batch_id)
                self.events.append("all were taken")
            except grpc.RpcError:
                self.events.append("the stream ended")


def stored(place, collection):
    log = open_store(place.as_superuser, place.folder).reader()
    try:
        number = log.record_of(collection.id).number
        return [one.batch_id for batches in log.read_all(number, 0) for one in batches]
    finally:
        log.close()


def added(place, collection):
    log = open_store(place.as_superuser, place.folder).writer()
    log.add(NewCollection(collection.id, collection.spec_bytes, False, Admission(), 1))
    log.close()


def test_a_collector_that_is_told_to_stop_while_batches_stream_loses_nothing(place):
    """What a rollout does: SIGTERM. It says NOT_SERVING, keeps what it acknowledged, ends with 0 in time.

    Which of several connections is told first is open: each is written to by itself.
    """
    collection, events = make_collection("Drained?", nonce=7), []
    added(place, collection)
    requests = [batch(collection, 1) for _ in range(BATCHES)]
    with place.collector("-drained") as (collector, _):
        senders = [Streamer(collector.target, requests[part::3], events) for part in range(3)]
        watcher = Watcher(collector.target)
        watcher.start()
        wait_until(lambda: watcher.said == ["SERVING"])
        for one in senders:
            one.start()
        wait_until(lambda: sum(len(one.acknowledged) for one in senders) > BATCHES // 30)
        began = time.monotonic()
        code = collector.stop(60)
        took = time.monotonic() - began
        for one in (*senders, watcher):
            one.join(60)
        said = collector.log.read_text()
    assert code == 0
    grace = pods()["collect"]["terminationGracePeriodSeconds"]
    assert load_config(place.folder / "collect-drained.toml").limits.drain_seconds < grace
    assert took < grace, "longer than Kubernetes would wait"
    assert watcher.said == ["SERVING", "NOT_SERVING"]
    assert "the stream ended" in events, "it was told too late: nothing was under way"
    assert [json.loads(line)["event"] for line in said.splitlines()][-2:] == ["draining", "stopped"]
    acknowledged = set().union(*(one.acknowledged for one in senders))
    kept = stored(place, collection)
    assert acknowledged <= set(kept)
    with place.collector("-next") as (collector, _):
        again = [Streamer(collector.target, requests[part::3], events) for part in range(3)]
        for one in again:
            one.start()
        for one in again:
            one.join(120)
    kept = stored(place, collection)
    assert sorted(kept) == sorted(request.batch_id for request in requests)
