"""A relay whose disk is full: nothing acknowledged is lost, nothing is half kept, and it goes on when there is room."""

import sys

import grpc
import pytest

from ldp_client.protocol.v1 import relay_pb2_grpc
from ldp_server.relay.checks import look
from ldp_server.testing import RelayProcess
from tests.server.helpers import LIMITED, PATIENCE, taken
from tests.server.relay.helpers import relayed, request, unit
from tests.server.relay.test_kills import serving

MOST = 4_000_000
"""The longest file that the relay may write."""


@pytest.fixture
def collector():
    with serving(relayed(1000)) as servicer:
        yield servicer


@pytest.mark.long
def test_a_full_disk_loses_nothing_that_was_acknowledged(tmp_path, collector):
    collection = collector.collection
    config = tmp_path / "relay.toml"
    config.write_text(
        f'data = "held"\n[forward]\ncollector = "{collector.target}"\nplaintext = true\n'
        f'collections = ["{collection.id.hex()}"]\n'
    )
    sent, refused = [], None
    limit = (sys.executable, "-c", LIMITED, str(MOST))
    with RelayProcess(config, before=limit) as relay, grpc.insecure_channel(relay.target) as channel:
        stub = relay_pb2_grpc.RelayStub(channel)
        for _ in range(60):
            refused = request(collection, *[unit(collection) for _ in range(2000)])
            try:
                taken(stub.Submit(refused, timeout=PATIENCE))
            except grpc.RpcError as error:
                assert error.code() is grpc.StatusCode.UNAVAILABLE
                break
            sent.append(refused)
        else:
            raise AssertionError("the disk never filled up")
        assert len(sent) > 5
        relay.kill()
    assert "Traceback" not in config.with_suffix(".log").read_text()
    with RelayProcess(config) as relay, grpc.insecure_channel(relay.target) as channel:
        stub = relay_pb2_grpc.RelayStub(channel)
        assert all(taken(stub.Submit(one, timeout=PATIENCE)).duplicate for one in sent)
        assert not taken(stub.Submit(refused, timeout=PATIENCE)).duplicate
    (standing,) = look(tmp_path / "held" / "relay.db")
    assert standing.held == 2000 * (len(sent) + 1)
