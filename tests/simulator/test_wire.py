"""Over the real wire: a server process, real gRPC, faults; and a count that is wrong must show."""

from __future__ import annotations

import pytest

from ldp_client.errors import InvalidSpec, Unavailable
from ldp_client.sending.transport import Batch
from ldp_server.answers.shapes import WireRun
from simulator.experiments import wire
from simulator.experiments.options import SimulationOptions
from simulator.wire import server_process
from simulator.wire.faults import Faults
from simulator.wire.sender import Entry, send
from simulator.wire.server_process import Operator, free_port

FAULTS = Faults(drop=0.1, duplicate=0.1, late=0.1)


def test_exactly_once_with_every_fault_and_a_killed_server():
    wanted = SimulationOptions(100_000, domain="256", processes=2)
    found = wire.run(wanted, Faults(0.1, 0.1, 0.1, 0.15), batch=50)
    shape = found.shape
    assert set(shape) == set(WireRun.__annotations__)
    assert shape["exactly_once"]
    assert found.same_estimates
    assert shape["restarts"] == 1
    assert shape["duplicates_refused"] > 100
    assert set(shape["rejected"]) == {"COLLECTION_CLOSED"}
    late = shape["rejected"]["COLLECTION_CLOSED"]
    assert 100 < late < 320
    assert shape["reports_sent"] == shape["reports_counted"] <= 100_000 - 50 * (late - 2)
    assert sum(row["truth"] for row in found.top) < shape["reports_sent"]
    assert found.errors.coverage > 0.9


def test_devices_send_one_report_a_batch():
    found = wire.run(SimulationOptions(400, domain="16"), FAULTS, batch=1)
    assert found.shape["exactly_once"]
    assert 0 < found.shape["rejected"]["COLLECTION_CLOSED"] < 100


def test_results_do_not_depend_on_senders():
    runs = [wire.run(SimulationOptions(140_000, domain="16", processes=p), FAULTS) for p in (1, 2)]
    assert runs[0].top == runs[1].top
    assert runs[0].shape["reports_counted"] == runs[1].shape["reports_counted"]


@pytest.mark.parametrize("wrong", [1, -1])
def test_a_count_that_is_off_by_one_is_seen(monkeypatch, wrong):
    real = Operator.counted
    monkeypatch.setattr(Operator, "counted", lambda self, collection: real(self, collection) + wrong)
    assert not wire.run(SimulationOptions(500, domain="16"), Faults()).shape["exactly_once"]


def test_an_estimate_that_is_off_is_seen(monkeypatch):
    real = Operator.estimates

    def off(self, collection):
        answer = real(self, collection)
        answer.estimates[3] += 1e-6
        return answer

    monkeypatch.setattr(Operator, "estimates", off)
    assert not wire.run(SimulationOptions(500, domain="16"), Faults()).same_estimates


def test_a_server_that_does_not_start_is_said_to(monkeypatch):
    port = free_port()
    monkeypatch.setattr(server_process.sys, "executable", "/bin/false")
    with pytest.raises(Unavailable, match="did not start"):
        wire.run(SimulationOptions(500, domain="16"), Faults())
    assert port


def test_a_sender_gives_up_in_the_end():
    batch = Batch(bytes(32), bytes(16), b"x")
    with pytest.raises(Unavailable):
        send(f"127.0.0.1:{free_port()}", [Entry(batch, 1)], timeout=0.5)


@pytest.mark.parametrize(
    "text", ["drop", "drop=x", "drop=2", "drop=-0.1", "kill-server=soon", "kill-server=", "melt=1", "late=nan"]
)
def test_wrong_faults_are_refused(text):
    with pytest.raises(InvalidSpec):
        Faults.parse(text)


def test_faults_as_people_write_them():
    assert Faults.parse("") == Faults()
    assert Faults.parse("drop=0.01, duplicate=0.02,late=0.03,kill-server=500ms") == Faults(0.01, 0.02, 0.03, 0.5)
    assert Faults.parse("kill-server=2min").kill_after == 120


def test_too_large_domains_are_refused():
    with pytest.raises(InvalidSpec, match="--domain"):
        wire.run(SimulationOptions(500, domain="4294967296"), Faults())


@pytest.mark.slow()
def test_ten_kills_in_a_row():
    """Kills at other moments: the first answer, the middle, the end."""
    for after in (0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.7, 0.9, 1.2, 1.5):
        found = wire.run(
            SimulationOptions(200_000, domain="256", processes=2, seed=7), Faults(0.05, 0.05, 0.02, after), batch=50
        )
        assert found.shape["exactly_once"]
        assert found.same_estimates
