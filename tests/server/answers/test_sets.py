"""Answers about the items of sets: what is counted, how large sets are, what the cut of large ones hides."""

from __future__ import annotations

import numpy as np
import pytest

from ldp_client.collection import Collection
from ldp_client.errors import InvalidSpec
from ldp_client.mechanisms.set_selection import design
from ldp_client.protocol.domain import Sets
from ldp_client.protocol.v1 import analyst_pb2 as pb
from ldp_server.answers import estimates
from ldp_server.answers.estimates import Coverage, Estimates, Verdict
from ldp_server.answers.sets import SetSizes, SizeCount, set_sizes, single_items
from ldp_server.answers.to_json import to_json
from ldp_server.answers.wire import from_wire, to_wire
from ldp_server.oracles import oracle_for
from ldp_server.oracles.base import TooFewReports
from tests.server.oracles.cases import filled

NAMES = tuple("abcdefgh")


def asked(most=3, epsilon="4", names=NAMES):
    parameters = design(epsilon, len(names), most)
    return Collection.create(
        "Which?", Sets(names, most), "set-selection", epsilon, opens=0, closes=1, parameters=parameters
    )


@pytest.fixture(scope="module")
def counted():
    """6,000 users: a third hold nothing, a third a and b, a sixth all eight items, a sixth c to e."""
    collection = asked()
    sets = np.array([0, 0, 0b11, 0b11, 0xFF, 0b11100], np.uint64)
    return collection, filled(collection.randomizer, np.tile(sets, 1000), 11)


def test_items_are_counted_for_every_user_who_holds_them(counted):
    """a and b: 2,000 users, and a quarter (two of eight) of the 1,000 who are cut. Six errors of room."""
    found = estimates.every_item(*counted)
    rows = {row.item: row for row in found.rows}
    assert list(rows) == [None, *NAMES]
    truth = {None: 2000, "a": 2250, "b": 2250, "c": 1250, "d": 1250, "e": 1250, "f": 250, "g": 250, "h": 250}
    for item, wanted in truth.items():
        error = np.hypot(rows[item].standard_error, np.sqrt(1000 * 3 / 16))
        assert abs(rows[item].estimate - wanted) < 6 * error
        assert rows[item].low <= rows[item].estimate <= rows[item].high
    assert found.everything_else is None


def test_given_items_and_the_largest(counted):
    collection, oracle = counted
    every = {row.item: row for row in estimates.every_item(collection, oracle).rows}
    given = estimates.given_items(collection, oracle, ["h", None, "a"], threshold=1000)
    assert [row.item for row in given.rows] == ["h", None, "a"]
    assert [row.verdict for row in given.rows] == [Verdict.NO, Verdict.YES, Verdict.YES]
    assert [row.estimate for row in given.rows] == [every[item].estimate for item in ("h", None, "a")]
    assert given.everything_else is None
    largest = estimates.top(collection, oracle, 2)
    assert {row.item for row in largest.rows} == {"a", "b"}
    assert (largest.coverage, largest.everything_else) == (Coverage.SELECTED, None)
    for row in largest.rows:  # allows for a choice among nine, and not among all 2^8 sets
        (alone,) = estimates.given_items(collection, oracle, [row.item], confidence=1 - 0.05 / 9).rows
        assert (row.low, row.high) == (alone.low, alone.high)


@pytest.mark.parametrize("item", ["z", "", "a + b"])
def test_what_is_no_item_is_refused(counted, item):
    with pytest.raises(InvalidSpec, match="outside the collection's domain"):
        estimates.given_items(*counted, [item])


def test_a_whole_set_cannot_be_asked_for(counted):
    with pytest.raises(TypeError, match="a str or None, not frozenset"):
        estimates.given_items(*counted, [frozenset("ab")])


def test_the_sizes_of_the_sets(counted):
    """None: 2,000; at most one: the same; at most two: 4,000; more than three: 1,000."""
    sets = estimates.given_items(*counted, ["a"]).sets
    assert (sets.most, [one.items for one in sets.at_most], sets.cut.items) == (3, [0, 1, 2], 3)
    for one, wanted in zip((*sets.at_most, sets.cut), (2000, 2000, 4000, 1000), strict=True):
        assert abs(one.estimate - wanted) < 5 * one.standard_error
        assert 0 < one.standard_error < 150
        assert one.low < one.estimate < one.high
    assert sets.average == pytest.approx((0 * 2 + 2 * 2 + 2 + 3) / 6, abs=0.15)  # two stay of eight
    assert sets.average_low < sets.average < sets.average_high


def test_sizes_keep_the_confidence_whatever_is_asked(counted):
    """The intervals of sizes hold alone, also where those of items hold together."""
    given = estimates.given_items(*counted, ["a"], confidence=0.9).sets
    assert given == estimates.top(*counted, 3, confidence=0.9).sets
    assert given == estimates.every_item(*counted, confidence=0.9, coverage=Coverage.TOGETHER).sets
    sure = estimates.given_items(*counted, ["a"], confidence=0.999).sets
    assert sure.cut.low < given.cut.low < given.cut.high < sure.cut.high
    assert sure.average_low < given.average_low < given.average_high < sure.average_high
    looked = estimates.given_items(*counted, ["a"], confidence=0.9, every_look=True).sets
    assert looked.cut.low < given.cut.low < given.cut.high < looked.cut.high
    assert looked.cut.estimate == given.cut.estimate


def test_where_all_items_are_reported_no_set_is_cut():
    collection = asked(most=3, names=NAMES[:3])
    oracle = filled(collection.randomizer, np.full(200, 7, np.uint64), 2)
    sets = set_sizes(single_items(oracle), 0.025, every_look=False)
    assert sets.cut == SizeCount(3, 0.0, 0.0, 0.0, 0.0)
    assert sets.in_words(200)[-1] == "No set was cut."


def test_the_words():
    """Every number of the answer, and what the cut may hide."""
    few = (SizeCount(0, 10.4, 2.0, 6.0, 14.0), SizeCount(1, 1230.0, 9.0, 1200.0, 1260.0))
    cut = SizeCount(2, 50.0, 5.0, 40.0, 60.0)
    assert SetSizes(2, few, cut, 1.5, 1.25, 1.756).in_words(2000) == [
        "Sizes of sets: 1.50 items a user (1.25 to 1.76); no item: 10 (6 to 14); at most 1: 1,230 (1,200 to 1,260).",
        "Sets of more than 2 items were cut: those of 50 (40 to 60) users, 2.5% of all. An item's estimate is short of "
        "its holders by at most 60 users.",
    ]


def test_no_reports_yet():
    collection = asked()
    empty = oracle_for(collection.randomizer)
    try:
        found = estimates.every_item(collection, empty)
    except TooFewReports:
        return
    assert found.reports == 0
    assert {row.estimate for row in found.rows} == {0.0}
    assert found.sets.average == 0.0


def test_one_report():
    collection = asked()
    oracle = filled(collection.randomizer, np.array([5], np.uint64), 1)
    found = estimates.every_item(collection, oracle)
    assert all(0 <= row.low <= row.high <= 1 for row in found.rows)
    assert 0 <= found.sets.average_low <= found.sets.average_high <= 3


def test_other_oracles_are_asked_themselves(counted):
    view = single_items(counted[1])
    assert single_items(view) is view
    assert view.judgement[0] is view


def test_the_answer_on_the_wire_and_as_json(counted):
    collection, _ = counted
    found = estimates.every_item(*counted)
    message = pb.EstimateResponse.FromString(to_wire(found, pb.EstimateResponse).SerializeToString())
    read = from_wire(Estimates, message, domain=collection.domain.counted)
    assert read.sets == found.sets
    assert to_json(read) == to_json(found)
    assert to_json(found)["sets"]["cut"]["items"] == 3
    plain = Estimates(0, 0.95, Coverage.EACH, found.rows, None)
    assert "sets" not in to_json(plain)
    assert not to_wire(plain, pb.EstimateResponse).HasField("sets")
