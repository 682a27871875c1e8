"""Collectors are replaced one by one while apps send: nothing is lost, nothing is twice, and nobody is refused."""

import threading
import time
from contextlib import ExitStack

import grpc
import pytest

from ldp_client.protocol.v1 import collector_pb2_grpc
from ldp_server.store import Admission, NewCollection
from ldp_server.store.engines import open_store
from ldp_server.testing import ServedProcess
from tests.server.commands import run_command
from tests.server.helpers import batch, make_collection, taken
from tests.server.store.contract.batches import held

NOT_NOW = {grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.RESOURCE_EXHAUSTED}


class Collector(ServedProcess):
    name = "collector"


class App(threading.Thread):
    """Sends batches, each until it is taken."""

    def __init__(self, target, collection):
        super().__init__()
        self.target, self.collection = target, collection
        self.sent, self.ends, self.refused = {}, threading.Event(), None

    def run(self):
        while not self.ends.is_set() and self.refused is None:
            request = batch(self.collection, 2)
            while not self.took(request) and self.refused is None:
                time.sleep(0.05)
            self.sent[request.batch_id] = request.payload
            self.ends.wait(0.02)

    def took(self, request):
        """Over a connection of its own, so that it meets any of those that share the port."""
        with grpc.insecure_channel(self.target, [("grpc.use_local_subchannel_pool", 1)]) as channel:
            try:
                taken(collector_pb2_grpc.CollectorStub(channel).Submit(request, timeout=20))
            except grpc.RpcError as error:
                if error.code() not in NOT_NOW:
                    self.refused = error
                return False
        return True


def wait_for_all(apps):
    """Until every app had some more batches taken."""
    before, until = [len(app.sent) for app in apps], time.monotonic() + 100
    while any(len(app.sent) < then + 5 for app, then in zip(apps, before, strict=True)):
        assert time.monotonic() < until, [app.refused for app in apps]
        time.sleep(0.01)


@pytest.mark.slow
def test_collectors_are_replaced_one_by_one(postgres, tmp_path):
    """The new program's `store prepare` runs first, under load, as the page says."""
    address, collection = postgres.database(), make_collection("Which version?")
    store = open_store(address, tmp_path)
    store.prepare()
    log = store.writer()
    number = log.add(NewCollection(collection.id, collection.spec_bytes, False, Admission(), 1)).number
    config = tmp_path / "collect.toml"
    config.write_text(f'store = "{address}"\n[collector]\nshare_port = true\n', "utf-8")
    with ExitStack() as stack:
        running, target = [], "127.0.0.1:0"
        for place in range(5):
            if place == 3:
                run_command(["store", "prepare", "--store", address, "--roles"], {}, None, 100)
            one = Collector(("collect", "--config", str(config)), tmp_path / f"{place}.log", listen=target)
            running.append(stack.enter_context(one))
            target = one.target
            if place == 1:
                apps = [App(target, collection) for _ in range(2)]
                for app in apps:
                    app.start()
            if place > 1:
                running.pop(0).stop()  # the new one is there before the old one goes
            if place:
                wait_for_all(apps)
        for app in apps:
            app.ends.set()
            app.join()
    assert [app.refused for app in apps] == [None] * 2
    sent = {name: payload for app in apps for name, payload in app.sent.items()}
    found = held(log, number)
    assert len(found) == len(sent)
    assert {one.batch_id: one.payload for one in found} == sent
    log.close()
