"""Everything that a question can be, on collectors that share a PostgreSQL: real processes, answers equal to the bit.

`tests/server/test_every_door.py` compares the same questions on SQLite with the same answers in process. So the two
stores answer alike, bit for bit.
"""

from __future__ import annotations

import asyncio
import io
import itertools
import json
import os
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from types import SimpleNamespace

import grpc
import numpy as np
import pytest

from ldp_client.collection import Schedule
from ldp_client.protocol.v1 import analyst_pb2 as pb
from ldp_client.sending.gateway import Gateway
from ldp_client.sending.transport import Accepted, Batch
from ldp_server.answers.estimates import every_item
from ldp_server.answers.over_time.trend import TrendQuestion, trend
from ldp_server.config import AdmissionConfig
from ldp_server.oracles.base import TooFewReports
from ldp_server.service.admission import LinkableSigner
from ldp_server.service.admission.key_files import make_key
from ldp_server.service.sharing import ANSWER, COLLECT
from ldp_server.store.engines import open_store
from ldp_server.testing import RoleProcess
from simulator.experiments import wire
from simulator.experiments.options import SimulationOptions
from simulator.wire.faults import Faults
from tests.effort import at_length
from tests.server.analyst.conftest import deliver
from tests.server.helpers import batch, launched, make_collection, payload, reason, taken, until
from tests.server.sharing.helpers import shared
from tests.server.test_every_door import (
    ANSWERS,
    MONTH,
    QUESTIONS,
    TOGETHER,
    added,
    ask,
    example,
    over_time,
    shell,
)
from tests.server.web.conftest import browsing

PERIODS = (600, 602, 603)
ONE = "linear-hash"


class Role(RoleProcess):
    """Forked, unless the tests take their time."""

    def _launch(self, command, log):
        return super()._launch(command, log) if at_length() else launched(self, command, log)


@pytest.fixture(
    scope="module", params=[1, pytest.param(2, marks=pytest.mark.slow)], ids=["one database", "two databases"]
)
def address(request, postgres, tmp_path_factory):
    found = " ".join(postgres.database() for _ in range(request.param))
    open_store(found, tmp_path_factory.mktemp("none")).prepare()
    return found


@pytest.fixture(scope="module")
def joined(address, tmp_path_factory):
    """Two collectors, one that answers and one for upkeep, each a process."""
    folder = tmp_path_factory.mktemp("joined")
    config = folder / "server.toml"
    config.write_text(f'store = "{address}"\n[retention]\ncheckpoint_every = "1 seconds"\n')
    with ExitStack() as stack:
        start = lambda role, name, **more: stack.enter_context(Role(role, config, folder / f"{name}.log", **more))  # noqa: E731
        collectors = [start("collect", f"collector{k}") for k in range(2)]
        answer = start("answer", "answer", data=folder / "answer")
        start("upkeep", "upkeep", data=folder / "upkeep")
        yield SimpleNamespace(collectors=collectors, answer=answer, data=folder / "answer", folder=folder)


def reported(joined, name, **details):
    """A collection with the reports of three periods, each through another collector than the one before."""
    collection = example(name, schedule=Schedule(MONTH, 10), **details)
    with joined.answer.analyst() as analyst:
        analyst.create(collection)
    users = [np.arange(500 + 200 * i) % min(collection.domain.size, 7 + i) for i in range(3)]
    oracles = [deliver(joined.collectors[i % 2], collection, users[i], seed=i, period=PERIODS[i]) for i in range(3)]
    return collection, oracles


def answers_alike(collection, name, oracles, analyst):
    """Every question about all periods, and about one."""
    for question in sorted(ANSWERS[name]):
        if question.startswith("heavy hitters") and not at_length():
            continue
        doors = QUESTIONS[question]
        for periods, parts in ((None, oracles), (602, oracles[1:2])):
            expected = ask(doors.in_process, collection, added(collection, parts))
            called = ask(lambda a, c, p=periods, d=doors: d.analyst(a, c, periods=p), analyst, collection)
            if isinstance(expected, TooFewReports):  # of one period alone, for some mechanisms
                assert (called.reason, called.detail) == ("FAILED_PRECONDITION", str(expected)), question
                continue
            assert {key: called[key] for key in expected} == expected, question
    for given, _, _ in over_time(collection, ANSWERS[name]):
        where = [(period, period * MONTH, (period + 1) * MONTH) for period in PERIODS]
        asked = TrendQuestion(**given)
        expected = ask(lambda: trend(collection, zip(where, oracles, strict=True), asked, count=3, coverage=TOGETHER))  # noqa: B023
        called = ask(lambda: analyst.trend(collection, together=True, **given))  # noqa: B023
        assert {key: called[key] for key in expected} == expected


def counted(analyst, collection):
    file = io.BytesIO()
    analyst.export(collection, file)
    return file.getvalue()


@pytest.mark.long
@pytest.mark.parametrize("name", ANSWERS)
def test_every_mechanism_answers_alike_before_and_after_its_reports_are_folded(joined, name):
    collection, oracles = reported(joined, name, nonce=21)
    with joined.answer.analyst() as analyst:
        answers_alike(collection, name, oracles, analyst)
        analyst.close_collection(collection)
        analyst.compact_collection(collection)
        summary = analyst.show(collection)
        assert (summary.info.state, summary.stored_bytes) == ("compacted", 0)
        assert counted(analyst, collection) == added(collection, oracles).to_bytes()
        if at_length():
            answers_alike(collection, name, oracles, analyst)
        with pytest.raises(AssertionError):  # nothing is taken any more, whichever collector it reaches
            deliver(joined.collectors[1], collection, np.arange(5), period=602)


def streams(target, collection, begun):
    """Stream batches until one is refused; return how many reports were acknowledged, and the reasons of refusals."""
    gateway, kept, reasons = Gateway(target, tls=False, window=16), 0, set()
    batches = (Batch(collection.id, os.urandom(16), payload(collection, 3)) for _ in itertools.count())
    for outcome in gateway.send(itertools.takewhile(lambda _: not reasons, batches), 120):
        if isinstance(outcome, Accepted):
            kept += outcome.reports
            begun.set()
        else:
            reasons.add(outcome.reason)
    gateway.close()
    return kept, reasons


@pytest.mark.long
def test_nothing_is_counted_after_a_close_under_load_has_returned(joined):
    """Four streams at two collectors. What is counted when closing returns is what was acknowledged, and stays so."""
    collection, begun = make_collection("Over soon?"), [threading.Event() for _ in range(4)]
    with joined.answer.analyst() as analyst, ThreadPoolExecutor(4) as pool:
        analyst.create(collection)
        sent = [pool.submit(streams, joined.collectors[k % 2].target, collection, one) for k, one in enumerate(begun)]
        for one in begun:
            assert one.wait(120)
        analyst.close_collection(collection)
        there = analyst.show(collection).reports
        found = [one.result() for one in sent]
        # A collector that has not heard of it yet says only that the store takes no more now.
        assert {reason for _, reasons in found for reason in reasons} <= {"COLLECTION_CLOSED", "WINDOW_CLOSED"}
        assert sum(kept for kept, _ in found) == there == analyst.show(collection).reports
        assert there >= 4 * 3


@pytest.mark.long
async def test_the_shell_and_the_pages_give_the_same(address, joined, monkeypatch, capsys):
    collection, oracles = reported(joined, ONE, nonce=22)
    expected = ask(lambda: every_item(collection, added(collection, oracles)))
    arguments = ("estimate", collection.id.hex(), "--all", "--json")
    code, out, err = await asyncio.to_thread(shell, monkeypatch, capsys, joined.data, *arguments)
    assert (code, err) == (0, "")
    found = json.loads(out)
    assert {key: found[key] for key in expected} == expected

    def token(role):
        with closing(open_store(address, joined.data).access(time.time)) as access:
            return access.create(f"pages-{os.urandom(4).hex()}", role)

    async with browsing(SimpleNamespace(server=SimpleNamespace(data=joined.data), token=token)) as browser:
        assert "Which?" in (await browser.get("/")).text
        page = await browser.get(f"/c/{collection.id.hex()[:16]}/data/every.json")
        together = ask(lambda: every_item(collection, added(collection, oracles), coverage=TOGETHER))
        assert {key: page.json()[key] for key in together} == together


@pytest.mark.long
@pytest.mark.timeout(600)
def test_sealed_reports_with_tokens_through_a_relay(address):
    """A relay, an issuer and two collectors on one port. Each token is inside a sealed report, and counts once."""
    found = wire.run(
        SimulationOptions(30, domain="16"), Faults.parse("drop=0.1,duplicate=0.1,reuse=0.3,forge=0.3"), batch=3,
        relay=10, tokens=True, where=wire.SharedStore(address, 2, one_port=True),
    )  # fmt: skip
    assert found.shape["exactly_once"] and found.same_estimates
    assert found.shape["reports_counted"] == 40
    assert found.shape["relay_batches"] >= 1


async def test_a_token_is_good_for_one_batch_at_whichever_collector(address, tmp_path):
    make_key(tmp_path / "key")
    admission = AdmissionConfig(linkable_token_keys=(tmp_path / "key.pub",), collectors=2)
    collection, signer = make_collection("One batch each?"), LinkableSigner.load(tmp_path / "key")
    async with (
        shared(tmp_path / "a", address, ANSWER, admission=admission) as answer,
        shared(tmp_path / "c", address, COLLECT, admission=admission) as first,
        shared(tmp_path / "d", address, COLLECT, admission=admission) as second,
    ):
        await answer.create(collection, admission=pb.LINKABLE_TOKEN)
        for one in (first, second):
            await until(lambda one=one: one.server.parts.lifecycle.collections.get(collection.id) is not None)
        token = signer.token(collection.id)
        request = batch(collection, admission_token=token)
        assert not taken(await first.collector.Submit(request)).duplicate
        assert taken(await second.collector.Submit(request)).duplicate
        assert reason(await second.collector.Submit(batch(collection, admission_token=token))) == "TOKEN_USED"
        other = batch(collection, admission_token=signer.token(collection.id))
        assert not taken(await second.collector.Submit(other)).duplicate
        assert (await answer.show(collection)).reports == 2


async def test_the_rates_of_all_collectors_together_are_those_that_were_set(address, tmp_path):
    """Two of four collectors take a quarter of the burst each; then both say "not now"."""
    admission = AdmissionConfig(reports_per_second=0.001, burst=40, collectors=4, limit_this_machine=True)
    collection = make_collection("How fast?")
    async with (
        shared(tmp_path / "a", address, ANSWER) as answer,
        shared(tmp_path / "c", address, COLLECT, admission=admission) as first,
        shared(tmp_path / "d", address, COLLECT, admission=admission) as second,
    ):
        await answer.create(collection)
        for one in (first, second):
            await until(lambda one=one: one.server.parts.lifecycle.collections.get(collection.id) is not None)
            for _ in range(5):
                assert taken(await one.collector.Submit(batch(collection, 2))).reports == 2
            with pytest.raises(grpc.aio.AioRpcError) as later:
                await one.collector.Submit(batch(collection, 2))
            assert later.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
        assert (await answer.show(collection)).reports == 20
