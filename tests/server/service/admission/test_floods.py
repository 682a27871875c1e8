"""One address floods a server: the others are served, and the memory stays bounded.

Each test runs an attack of `python -m benchmarks attacks` in small, against a server process of its own in which calls
from this machine have no privileges. The attacker calls from 127.0.0.2, everybody else from 127.0.0.1.
"""

import time
from contextlib import closing

import pytest

from benchmarks.attacks import memory, streams, stuffing
from benchmarks.attacks.http2 import RawConnection
from benchmarks.attacks.target import PATIENCE, asked, attacked
from ldp_client.sending.gateway import Gateway
from ldp_client.sending.transport import Accepted, Batch
from tests.server.helpers import payload, wait_until

FEW = "[limits]\ncalls = 40\ncalls_by_address = 10\n"


def test_idle_streams_of_one_address_keep_nobody_else_out():
    with attacked(FEW) as target, streams.idle_streams(target.port, 60, 2) as made:
        assert streams.still_open(made) == 10
        assert target.health() < PATIENCE
        assert target.submit() < PATIENCE
        assert target.question() < PATIENCE


@pytest.mark.long
def test_calls_of_many_addresses_keep_neither_health_checks_nor_operators_out():
    with (
        attacked("[limits]\ncalls = 20\ncalls_by_address = 20\n") as target,
        streams.idle_streams(target.port, 30, 1) as made,
        streams.idle_streams(target.port, 30, 1, "127.0.0.3"),
    ):
        assert streams.still_open(made) == 20
        assert target.health() < PATIENCE
        assert target.question() < PATIENCE


@pytest.mark.long
def test_streams_on_which_nothing_moves_end():
    with attacked("[limits]\nidle_seconds = 1\n") as target, streams.idle_streams(target.port, 20, 1) as made:
        wait_until(lambda: made[0].opened == 20 and streams.still_open(made) == 0)


@pytest.mark.long
def test_a_gateway_that_is_silent_for_long_loses_nothing():
    with attacked("[limits]\nidle_seconds = 1\n") as target:
        sent = [
            Batch(target.collection.id, bytes([number]) * 16, payload(target.collection, 3), None)
            for number in range(2)
        ]

        def source():
            for batch in sent:
                yield batch
                time.sleep(2.5)

        gateway = Gateway(target.server.target, tls=False)
        answered = list(gateway.send(source(), timeout=PATIENCE * 10))
        gateway.close()
        assert [outcome.batch_id for outcome in answered if isinstance(outcome, Accepted)] == [
            one.batch_id for one in sent
        ]
        assert gateway.retries > 0
        with target.server.analyst() as analyst:
            assert analyst.show(target.collection).reports == 1 + 2 * 3  # one was sent when the server was new


@pytest.mark.long
def test_connections_of_one_address_are_limited():
    with (
        attacked("[limits]\nconnections = 60\nconnections_by_address = 10\n") as target,
        streams.idle_connections(target.port, 100),
    ):
        assert target.submit() < PATIENCE
        assert target.health() < PATIENCE


@pytest.mark.long
def test_connections_age_and_a_call_under_way_may_end():
    with attacked("[limits]\nconnection_seconds = 1\n") as target:
        with closing(RawConnection(target.port)) as one:
            one.open(streams.STREAM)
            wait_until(lambda: one.listen(0.1) or one.closed)
        assert target.submit() < PATIENCE


@pytest.mark.parametrize(
    "path", ["/ldp.v1.Collector/Submit", "/ldp.v1.Collector/SubmitStream", "/ldp.v1.Analyst/Estimate"]
)
@pytest.mark.thinned(1)
def test_unfinished_messages_take_bounded_memory(path):
    """200 messages of 1 MB without their ends. Before places were taken first, all of them were held."""
    with attacked("[limits]\ncalls_by_address = 20\n") as target:
        assert memory.unfinished_messages(target, 200, 1_000_000, 1.5, path) < 100
        assert target.submit() < PATIENCE


@pytest.mark.long
def test_a_message_that_never_ends_is_given_up():
    with attacked("[limits]\nidle_seconds = 1\n") as target, closing(RawConnection(target.port)) as one:
        number = one.open("/ldp.v1.Collector/Submit", b"\x00\x00\x00\x01\x00begun")
        wait_until(lambda: one.listen(0.1) or number in one.ended)


@pytest.mark.long
def test_answers_that_nobody_reads_take_bounded_memory_and_the_connection_ends():
    with attacked("[limits]\nidle_seconds = 2\nanswer_bytes = 8000000\n") as target:
        target.create([asked(f"{number} " + "x" * 4000) for number in range(250)])
        target.mark()
        assert memory.unread_answers(target, 100, 1.0, "/ldp.v1.Collector/ListCollections") < 60
        with closing(RawConnection(target.port, window=0)) as one:
            one.open("/ldp.v1.Collector/ListCollections", bytes(5), end=True)
            wait_until(lambda: one.listen(0.1) or one.closed)


@pytest.mark.long
def test_acknowledgements_that_nobody_reads_take_bounded_memory():
    """40 streams that send as much as they may. Before places were taken first, it was more than 400 MB in this time.

    The limit is what docs/robustness.md promises of all these attacks: what the batches themselves take while they
    are written depends on how fast the disk is.
    """
    with attacked("reports_per_second = 0\n[limits]\ncalls_by_address = 40\n") as target:
        assert memory.unread_acknowledgements(target, 40, 4.0) < 300


def test_one_address_gets_in_its_burst_and_its_rate():
    with attacked("reports_per_second = 10\nburst = 5000\n") as target:
        assert stuffing.stuff(target, 3.0) == 5000
