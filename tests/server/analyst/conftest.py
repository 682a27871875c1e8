"""One server with collections of known reports, for the tests that only read."""

import numpy as np
import pytest

from ldp_client.protocol.domain import Strings
from ldp_client.sending.gateway import Gateway
from ldp_client.sending.transport import Accepted, Batch
from ldp_server.arrays.items import index_items
from ldp_server.arrays.packing import pack
from ldp_server.heavy_hitters import planner
from ldp_server.oracles import oracle_for
from simulator.crowd import simulate
from tests.server.helpers import ServerProcess, make_collection

HITTERS_USERS = 60_000


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    with ServerProcess(tmp_path_factory.mktemp("analyst") / "d") as server:
        yield server


@pytest.fixture
def analyst(server):
    with server.analyst() as analyst:
        yield analyst


def deliver(server, collection, indexes, seed=5, copies=0, period=0):
    """Send the reports of users with these indexes; return the oracle that counted the same bytes.

    So many of the first block's users send copies of other reports instead of their own.
    """
    oracle, width = oracle_for(collection), collection.randomizer.report_bytes
    gateway = Gateway(server.target, tls=False)
    for made in simulate(collection.randomizer, np.asarray(indexes, np.uint64), seed=seed):
        reports, copies = np.concatenate([made[: len(made) - copies], made[:copies]]), 0
        payloads = [pack(reports[start : start + 5000], width) for start in range(0, len(reports), 5000)]
        for payload in payloads:
            oracle.accumulate(payload)
        ids = np.random.default_rng().bytes(16 * len(payloads))
        batches = [
            Batch(collection.id, ids[16 * i : 16 * i + 16], payload, period=period)
            for i, payload in enumerate(payloads)
        ]
        assert all(isinstance(outcome, Accepted) for outcome in gateway.send(batches, 60))
    gateway.close()
    return oracle


@pytest.fixture(scope="module")
def counted(server):
    """A collection over 1 to 40 with 4,000 reports, and the oracle that counted them."""
    collection = make_collection("How many cups of tea?")
    server.create(collection)
    return collection, deliver(server, collection, np.arange(4000) % 97 % 13)


def word_collection():
    """A question about strings of up to four bytes."""
    domain = Strings(4)
    plan = planner.plan(HITTERS_USERS, domain, "4")
    return planner.create("Which word?", domain, "4", plan, opens=0, closes=1 << 33)


def word_indexes(collection):
    """A third of the users hold "tea", a quarter "mate", and the others a word each."""
    coins = np.random.default_rng(3)
    items = [b"tea"] * (HITTERS_USERS // 3) + [b"mate"] * (HITTERS_USERS // 4)
    items += [coins.bytes(4) for _ in range(HITTERS_USERS - len(items))]
    return index_items(collection.domain, items)


@pytest.fixture(scope="module")
def hitters(server):
    """The words of `word_indexes`, reported and counted."""
    collection = word_collection()
    server.create(collection)
    deliver(server, collection, word_indexes(collection), seed=11)
    return collection
