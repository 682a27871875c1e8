"""`create` takes a collection of every mechanism that this server answers, and refuses what it could not answer."""

from dataclasses import replace

import grpc
import pytest

from ldp_client.collection import Collection
from ldp_client.mechanisms import MECHANISMS, REPRODUCTIONS
from ldp_server.config import Config
from ldp_server.heavy_hitters import DECODERS
from ldp_server.oracles import ORACLES, oracle_for
from ldp_server.oracles.base import AttributesOracle, FrequencyOracle, NumbersOracle
from ldp_server.oracles.records.sampled_table import SampledTableOracle
from ldp_server.oracles.set_selection import SetSelectionOracle
from ldp_server.service import lifecycle
from tests.examples import EXAMPLES
from tests.server.helpers import live

OFFERED = sorted(set(MECHANISMS) - REPRODUCTIONS)
ANSWERING = FrequencyOracle | AttributesOracle | NumbersOracle | SampledTableOracle | SetSelectionOracle


def example(name):
    (one, *_) = [one for mechanism, one in EXAMPLES if mechanism == name and one.word_bits == 64]
    return Collection.create("Q?", one.domain, name, one.epsilon, parameters=one.parameters, opens=0, closes=1 << 33)


async def refusal(server, collection):
    with pytest.raises(grpc.aio.AioRpcError) as refused:
        await server.create(collection)
    return refused.value.code(), refused.value.details()


async def test_every_mechanism_is_taken_and_has_something_that_answers(tmp_path):
    async with live(tmp_path / "d") as server:
        for name in OFFERED:
            collection = example(name)
            assert (await server.create(collection)).collection_id == collection.id
            oracle = oracle_for(collection)
            assert isinstance(oracle, ANSWERING) or name in DECODERS


@pytest.mark.parametrize("name", OFFERED)
async def test_a_mechanism_that_the_server_cannot_count_is_refused(name, tmp_path, monkeypatch):
    others = {other: ORACLES[other] for other in OFFERED if other != name}
    monkeypatch.setattr(lifecycle, "ORACLES", others)
    async with live(tmp_path / "d") as server:
        code, text = await refusal(server, example(name))
        assert code is grpc.StatusCode.FAILED_PRECONDITION
        assert f"cannot count reports of {name}: choose one of" in text
        await server.create(example(next(iter(others))))


async def test_a_collection_with_a_relay_is_refused_without_a_key(tmp_path):
    async with live(tmp_path / "d") as server:
        plain = example(OFFERED[0])
        data = plain.to_dict() | {"id": None, "relay": {"smallest_batch": 100}}
        code, text = await refusal(server, Collection.from_dict(data))
        assert code is grpc.StatusCode.FAILED_PRECONDITION
        assert "needs a key that reports are sealed to" in text


@pytest.mark.parametrize("name", OFFERED)
async def test_counts_that_do_not_fit_are_refused(name, tmp_path, monkeypatch):
    monkeypatch.setattr(lifecycle, "_megabytes", lambda collection: 3000 if collection.randomizer.name == name else 1)
    limits = replace(Config().limits, worker_memory_mb=2999)
    async with live(tmp_path / "d", limits=limits) as server:
        code, text = await refusal(server, example(name))
        assert code is grpc.StatusCode.INVALID_ARGUMENT
        assert "takes 3000 MB" in text
        assert "limits.worker_memory_mb" in text
        await server.create(example(next(other for other in OFFERED if other != name)))
