"""What a user sees of the ledger: every question by its id, with the charges whose question is not known."""

import dataclasses
from fractions import Fraction

from ldp_client import Policy
from ldp_client.ledger.lease import LEASE_SECONDS
from tests.client.conftest import daily, make


def test_a_question_is_named_by_its_id_and_a_lost_lease_by_nothing(open_client, clock, wide):
    crashed = open_client(policy=wide, lease="3")
    collection = daily()
    crashed.report(collection, "a")
    crashed.flush()
    crashed._lease.forked()  # as good as killed: 2 of 3 are left, and nobody knows what they were used for
    crashed._storage.close()
    clock.advance(LEASE_SECONDS)
    client = open_client(policy=wide)
    client.report(make(1, text="Another?"), "a")
    assert [dataclasses.astuple(question) for question in client.ledger().questions] == [
        (collection.question_id, collection.question, 1, 1),
        (b"", None, 1, 2),
        (make(1, text="Another?").question_id, "Another?", 1, 1),
    ]


def test_what_is_left_is_never_below_nothing(open_client, clock):
    """The policy became stricter after the charges. What is left of a lifetime bounds what is left of a period."""
    client = open_client()
    for number in range(2):
        client.report(make(number), "a")
    client.close()
    strict = open_client(policy=Policy(max_epsilon="1", budget="1", period="30 days", lifetime="1.5")).ledger()
    assert (strict.spent, strict.left, strict.left_in_period) == (2, 0, 0)
    clock.advance(31 * 86_400)
    view = open_client(policy=Policy(max_epsilon="1", budget="1.5", period="30 days", lifetime="2.5")).ledger()
    assert (view.spent_in_period, view.left, view.left_in_period) == (0, Fraction(1, 2), Fraction(1, 2))
