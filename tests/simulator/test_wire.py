"""Over the real wire: a server process, real gRPC, faults; and a count that is wrong must show."""

from __future__ import annotations

import dataclasses
import socket

import numpy as np
import pytest

from ldp_client.errors import InvalidSpec, Unavailable
from ldp_client.sending.transport import Batch
from ldp_server import testing
from ldp_server.analyst import Analyst
from ldp_server.answers.columns import Columns
from simulator.experiments import wire
from simulator.experiments.options import SimulationOptions
from simulator.shapes import WireRun
from simulator.wire.faults import FaultPlan, Faults
from simulator.wire.sender import Unacknowledged, send

FAULTS = Faults(drop=0.1, duplicate=0.1, late=0.1)
TWO_BLOCKS = 66_000
"""Users of two blocks, which two senders share."""


@pytest.fixture
def remote(wire_server):
    return wire.Remote(wire_server.target, wire_server.data / "local.token")


def test_exactly_once_with_every_fault_and_a_killed_server():
    wanted = SimulationOptions(TWO_BLOCKS, domain="256", processes=2)
    found = wire.run(wanted, Faults(0.1, 0.1, 0.1, 0.15), batch=50)
    shape = found.shape
    assert set(shape) == set(WireRun.__annotations__)
    assert shape["exactly_once"]
    assert found.same_estimates
    assert shape["restarts"] == 1
    assert shape["duplicates"] > 66
    assert set(shape["refused"]) == {"COLLECTION_CLOSED"}
    late = shape["refused"]["COLLECTION_CLOSED"]
    assert 66 < late < 211
    assert shape["reports_sent"] == shape["reports_counted"] <= TWO_BLOCKS - 50 * (late - 2)
    assert sum(row["truth"] for row in found.top) < shape["reports_sent"]
    assert found.errors.coverage > 0.9


@pytest.mark.long
def test_tokens_count_once_through_a_relay_whatever_is_killed_and_whoever_cheats():
    wanted = SimulationOptions(90, domain="16")
    faults = Faults(0.1, 0.1, 0.0, kill_after=1.2, kill_relay_after=0.8, reuse=0.3, forge=0.3, kill_issuer_after=0.4)
    found = wire.run(wanted, faults, batch=3, relay=30, tokens=True)
    shape = found.shape
    assert shape["exactly_once"] and found.same_estimates
    assert shape["reports_counted"] == 120
    assert (shape["restarts"], shape["relay_restarts"], shape["issuer_restarts"]) == (1, 1, 1)
    for faults, more, said in [
        (Faults(reuse=0.1), {}, "give --tokens"),
        (Faults(forge=0.1), {}, "give --tokens"),
        (Faults(kill_issuer_after=1.0), {}, "give --tokens"),
        (Faults(), {"tokens": True, "where": wire.Remote("localhost:1", "none")}, "leave out --server"),
    ]:
        with pytest.raises(InvalidSpec, match=said):
            wire.run(wanted, faults, **more)


@pytest.mark.slow
def test_tokens_count_once_without_a_relay():
    faults = Faults(0.1, 0.1, 0.1, kill_after=0.5, reuse=0.3, forge=0.3, kill_issuer_after=0.3)
    found = wire.run(SimulationOptions(3000, domain="16"), faults, batch=20, tokens=True)
    assert found.shape["exactly_once"] and found.same_estimates
    assert set(found.shape["refused"]) == {"COLLECTION_CLOSED", "NOT_ADMITTED", "TOKEN_USED"}
    assert (found.shape["restarts"], found.shape["issuer_restarts"]) == (1, 1)


@pytest.mark.slow
def test_a_relay_between_counts_each_report_once_whatever_is_killed():
    wanted = SimulationOptions(300, domain="16")
    found = wire.run(wanted, Faults(0.1, 0.1, 0.0, kill_after=0.6, kill_relay_after=0.2), batch=3, relay=40)
    shape = found.shape
    assert shape["exactly_once"] and found.same_estimates
    assert shape["reports_counted"] == 340
    assert (shape["restarts"], shape["relay_restarts"]) == (1, 1)
    assert 1 <= shape["relay_batches"] <= 340 // 40


@pytest.mark.long
def test_what_does_not_go_with_a_relay_is_refused():
    wanted = SimulationOptions(300, domain="16")
    for faults, more, said in [
        (Faults(late=0.1), {"relay": 40}, "late="),
        (Faults(), {"relay": 40, "periods": 2}, "--periods"),
        (Faults(kill_relay_after=1.0), {}, "kill-relay needs"),
        (Faults(), {"relay": 1 << 20}, "at most"),
    ]:
        with pytest.raises(InvalidSpec, match=said):
            wire.run(wanted, faults, **more)


@pytest.mark.long
def test_each_period_is_counted_exactly_with_late_reports_and_faults():
    found = wire.run(
        SimulationOptions(2_000, domain="16", processes=2), Faults(0.1, 0.1, 0.1, 0.15), batch=10, periods=5
    )
    assert found.shape["exactly_once"] and found.same_estimates
    assert found.shape["periods"] == 5
    with pytest.raises(InvalidSpec, match="periods"):
        wire.run(SimulationOptions(10, domain="16"), FAULTS, periods=wire.MAX_PERIODS + 1)


def test_a_period_that_was_counted_in_another_one_shows(monkeypatch, remote):
    """The same reports in all, but some of them in the wrong period."""
    apart = wire._apart

    def mixed(analyst, collection):
        found = apart(analyst, collection)
        first, second = sorted(found)[:2]
        return {**found, first: found[second], second: found[first]}

    monkeypatch.setattr(wire, "_apart", mixed)
    found = wire.run(SimulationOptions(500, domain="16"), Faults(), batch=10, periods=2, where=remote)
    assert found.shape["exactly_once"] and not found.same_estimates


def test_devices_send_one_report_a_batch(remote):
    found = wire.run(SimulationOptions(400, domain="16"), FAULTS, batch=1, where=remote)
    assert found.shape["exactly_once"]
    assert 0 < found.shape["refused"]["COLLECTION_CLOSED"] < 100


def test_results_do_not_depend_on_senders(remote):
    options = [SimulationOptions(TWO_BLOCKS, domain="16", processes=p) for p in (1, 2)]
    runs = [wire.run(wanted, FAULTS, where=remote) for wanted in options]
    assert runs[0].top == runs[1].top
    assert runs[0].shape["reports_counted"] == runs[1].shape["reports_counted"]


def test_a_server_that_runs_already(wire_server, remote):
    with wire_server.analyst() as analyst:
        before = {info.id for info in analyst.collections()}
        found = wire.run(SimulationOptions(500, domain="16"), FAULTS, batch=10, where=remote)
        assert found.shape["exactly_once"]
        (info,) = [info for info in analyst.collections() if info.id not in before]
    assert (info.state, info.unlisted) == ("closed", True)
    with pytest.raises(InvalidSpec, match="kill-server"):
        wire.run(SimulationOptions(500, domain="16"), Faults(kill_after=1.0), where=remote)


@pytest.mark.parametrize("wrong", [1, -1])
def test_a_count_that_is_off_by_one_is_seen(monkeypatch, remote, wrong):
    real = Analyst.show

    def off(self, which):
        summary = real.__get__(self, type(self))(which)
        return dataclasses.replace(summary, reports=summary.reports + wrong)

    monkeypatch.setattr(Analyst, "show", off)
    found = wire.run(SimulationOptions(500, domain="16"), Faults(), where=remote)
    assert not found.shape["exactly_once"]


def test_an_estimate_that_is_off_is_seen(monkeypatch, remote):
    real = Analyst.estimate

    def off(self, which, **wanted):
        answer = real.__get__(self, type(self))(which, **wanted)
        estimates = np.array(answer.rows.columns["estimate"])
        estimates[3] += 1e-6
        return dataclasses.replace(
            answer, rows=Columns(answer.rows.kind, {**answer.rows.columns, "estimate": estimates})
        )

    monkeypatch.setattr(Analyst, "estimate", off)
    assert not wire.run(SimulationOptions(500, domain="16"), Faults(), where=remote).same_estimates


def test_a_server_that_does_not_start_is_said_to(monkeypatch):
    monkeypatch.setattr(testing, "safe_command", lambda *_: ["/bin/false"])
    with pytest.raises(Unavailable, match="did not start"):
        wire.run(SimulationOptions(500, domain="16"), Faults())


def test_a_sender_gives_up_in_the_end():
    batch = Batch(bytes(32), bytes(16), b"x")
    with socket.create_server(("127.0.0.1", 0)) as nobody:
        target = f"127.0.0.1:{nobody.getsockname()[1]}"
    with pytest.raises(Unavailable):
        send(target, [Unacknowledged(batch, 1)], timeout=0.5)


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
    assert Faults.parse("forge=0.2,kill-issuer=3s,reuse=0.1") == Faults(reuse=0.1, forge=0.2, kill_issuer_after=3)
    assert Faults.parse("kill-relay=1s") == Faults(kill_relay_after=1)


def test_a_plan_has_the_shares_that_were_asked_for():
    plan = Faults(0.1, 0.5, 0.0).plan(seed=1, block=0, batches=10_000)
    assert isinstance(plan, FaultPlan)
    assert 900 < plan.drop.sum() < 1100
    assert 4700 < plan.duplicate.sum() < 5300
    assert not plan.late.any()
    again = Faults(0.1, 0.5, 0.0).plan(seed=1, block=0, batches=10_000)
    assert (plan.drop == again.drop).all()


def test_too_large_domains_are_refused():
    with pytest.raises(InvalidSpec, match="--domain"):
        wire.run(SimulationOptions(500, domain="4294967296"), Faults())


@pytest.mark.parametrize("batch", [0, 250_001])
def test_batches_have_a_size(batch):
    with pytest.raises(InvalidSpec, match="a batch has"):
        wire.run(SimulationOptions(500, domain="16"), Faults(), batch=batch)


@pytest.mark.slow()
def test_ten_kills_in_a_row():
    """Kills at other moments: the first answer, the middle, the end."""
    for after in (0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.7, 0.9, 1.2, 1.5):
        faults = Faults(0.05, 0.05, 0.02, after)
        found = wire.run(SimulationOptions(200_000, domain="256", processes=2, seed=7), faults, batch=50)
        assert found.shape["exactly_once"]
        assert found.same_estimates
