"""The period that travels with a batch: of the moment when the report was made, whatever happens to it later."""

import pytest

from ldp_client import Unavailable
from ldp_client.sending.grpc_transport import _request
from ldp_client.sending.transport import Accepted, Batch, Refused
from ldp_client.testing import FakeCollector
from tests.client.conftest import NOW, daily, make

DAY = 86_400
TODAY = NOW // DAY


def received(collector):
    return [batch.period for batch in collector.received.values()]


def test_a_report_carries_the_period_in_which_it_was_made_however_late_it_comes(open_client, clock, wide):
    collection = daily()
    collector = FakeCollector([collection])
    client = open_client(policy=wide, transport=collector, delay=0)
    for _ in range(3):
        client.report(collection, "a")
        clock.advance(DAY)
    collector.down = True
    assert isinstance(client.flush(0).error, Unavailable)
    clock.advance(5 * DAY)
    client.report(collection, None)
    collector.down = False
    collector.loses_answers = True
    client.flush(0)
    collector.loses_answers = False
    client.flush()
    assert sorted(received(collector)) == [TODAY, TODAY + 1, TODAY + 2, TODAY + 8]
    retried = {}
    for call in collector.calls:
        for batch in call:
            retried.setdefault(batch.batch_id, set()).add(batch)
    assert all(len(versions) == 1 for versions in retried.values())  # the same bytes and the same period on every retry


def test_a_question_without_a_schedule_sends_no_period(open_client, clock):
    collection = make()
    collector = FakeCollector([collection])
    client = open_client(transport=collector, delay=0)
    client.report(collection, "a")
    client.flush()
    (batch,) = collector.received.values()
    assert batch.period == 0
    assert _request(batch).SerializeToString() == _request(batch._replace(period=0)).SerializeToString()


@pytest.mark.parametrize("lease", [None, 50])
def test_the_period_does_not_depend_on_the_item_and_a_lease_changes_nothing(open_client, clock, wide, lease, tmp_path):
    collection = daily()
    periods = []
    for number, item in enumerate(("a", "zz", None, "much too long for the domain")):
        collector = FakeCollector([collection])
        client = open_client(storage=tmp_path / str(number), policy=wide, transport=collector, delay=0, lease=lease)
        for _ in range(2):
            client.report(collection, item)
            clock.advance(DAY)
        client.flush()
        periods.append(sorted(received(collector)))
        clock.jump(NOW)
    assert periods == [[TODAY, TODAY + 1]] * 4


def test_a_report_made_before_the_window_is_taken_in_its_first_period(open_client, clock, wide):
    collection = daily(opens=NOW + 3 * DAY + 100)
    collector = FakeCollector([collection])
    client = open_client(policy=wide, transport=collector, delay=0)
    assert client.report(collection, "a").made
    clock.advance(3 * DAY + 200)
    assert not client.report(collection, "a").made  # it stands for the first period
    client.flush()
    assert received(collector) == [collection.periods[0]]


def test_the_fake_collector_refuses_another_period():
    collection = daily()
    collector = FakeCollector([collection])
    payload = collection.randomize(None, (0,) * collection.randomizer.words)
    sent = [
        Batch(collection.id, bytes([i]) * 16, payload, period=TODAY + change) for i, change in enumerate((-1, 0, 10**6))
    ]
    outcomes = [type(outcome) for outcome in collector.submit(sent, 1)]
    assert outcomes == [Refused, Accepted, Refused]
    (again,) = collector.submit([sent[1]._replace(period=TODAY + 1)], 1)
    assert again == Refused(sent[1].batch_id, "BATCH_ID_CONFLICT")
    (again,) = collector.submit([sent[1]._replace(token=b"new")], 1)
    assert again == Accepted(sent[1].batch_id, duplicate=True)
