"""What becomes of a batch that the server refuses: for each reason, dropped for good or kept and sent again later."""

import re
from pathlib import Path

import pytest

import ldp_client
from ldp_client.ledger.budget import utc
from ldp_client.protocol.reasons import NEW_TOKEN, REASONS, WINDOW_SLACK_SECONDS, is_final
from ldp_client.protocol.v1 import collector_pb2
from ldp_client.sending.pauses import LATER_SECONDS
from tests.client.conftest import NOW, make

LATER = sorted(reason for reason, final in REASONS.items() if not final)
FINAL = sorted(reason for reason, final in REASONS.items() if final)


def test_every_reason_of_the_wire_is_decided():
    assert sorted(REASONS) == sorted(collector_pb2.Reason.keys())
    assert set(LATER) >= NEW_TOKEN
    assert not is_final("REASON_99")


def test_the_wires_comments_say_the_same():
    text = (Path(ldp_client.__file__).parents[1] / "proto/ldp/v1/collector.proto").read_text()
    said = dict(re.findall(r"^  ([A-Z_]+) = \d+; +// (later|final)", text, re.MULTILINE))
    assert said == {reason: "final" if final else "later" for reason, final in REASONS.items() if reason != "BAD_STATE"}


@pytest.mark.parametrize("reason", [*LATER, "REASON_99"])
def test_not_now_is_not_never(open_client, collector, clock, reason):
    """The report is paid for. It is kept, and the same bytes are sent again after a long pause."""
    client = open_client(delay=0)
    client.report(make(), "a")
    collector.refuses = reason
    delivery = client.flush()
    assert (delivery.accepted, delivery.refused, delivery.later, delivery.waiting) == (0, 0, 1, 1)
    assert delivery.error is None and client.outbox().counters == {f"later {reason}": 1}
    pause = client.outbox().next_due - NOW
    assert LATER_SECONDS / 2 <= pause <= LATER_SECONDS * 1.5
    clock.advance(pause - 1)
    assert client.flush().later == 0 and len(collector.calls) == 1
    collector.refuses = None
    clock.advance(1)
    assert client.flush().accepted == 1
    first, second = (batch._replace(token=None) for call in collector.calls for batch in call)
    assert first == second


@pytest.mark.parametrize("reason", FINAL)
def test_never_is_never(open_client, collector, reason):
    client = open_client(delay=0)
    client.report(make(), "a")
    collector.refuses = reason
    assert client.flush()[:4] == (0, 1, 0, 0)
    assert client.outbox().counters == {f"refused {reason}": 1}


@pytest.mark.parametrize("reason", LATER)
def test_later_ends_with_the_window_by_the_devices_own_clock(open_client, collector, clock, reason):
    client = open_client(delay=0)
    collection = make(closes=NOW + 86_400)
    client.report(collection, "a")
    collector.refuses, tries = reason, 0
    while client.outbox().waiting:
        assert tries < 200, "the pauses shrink without end"
        clock.jump(max(client.outbox().next_due, clock.now))
        delivery = client.flush()
        assert delivery.later + delivery.refused == 1
        tries += 1
    assert client.outbox().counters[f"refused {reason}"] == 1
    end = collection.closes + WINDOW_SLACK_SECONDS
    assert end <= clock.now <= end + 30, utc(clock.now)
    assert tries > 12


def test_a_flush_of_everything_asks_once(open_client, collector, wide):
    """A batch that the server wants later is not sent again by the same call, due or not."""
    client = open_client(policy=wide)
    for number in range(3):
        client.report(make(number), "a")
    collector.refuses = "NOT_YET_OPEN"
    assert client.flush(everything=True).later == 3
    assert len(collector.calls) == 1


@pytest.mark.parametrize(
    ("reason", "asks"), [("NOT_ADMITTED", 2), ("TOKEN_USED", 2), ("TOKEN_FOR_ANOTHER", 2), ("NOT_YET_OPEN", 1)]
)
def test_a_token_that_was_not_good_enough_is_not_shown_again(open_client, collector, clock, reason, asks):
    asked = []

    def tokens(collection_id):
        asked.append(collection_id)
        return bytes([len(asked)])

    client = open_client(delay=0, linkable_tokens=tokens)
    client.report(make(), "a")
    collector.refuses = reason
    client.flush()
    collector.refuses = None
    clock.advance(2 * LATER_SECONDS)
    assert client.flush().accepted == 1
    assert len(asked) == asks and collector.calls[-1][0].token == bytes([asks])


def test_a_standing_answer_of_another_batch_is_not_held_up(open_client, collector, wide):
    """One collection that is not open yet by the server's clock does not keep the others from leaving."""
    client = open_client(policy=wide, delay=0)
    complaint = collector._complaint
    collector._complaint = lambda batch: "NOT_YET_OPEN" if batch.collection_id == make(1).id else complaint(batch)
    for number in range(3):
        client.report(make(number), "a")
    delivery = client.flush()
    assert (delivery.accepted, delivery.later, delivery.waiting) == (2, 1, 1)
