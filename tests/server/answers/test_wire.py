"""Answers travel as messages and come out as they went in; `--json` has the keys that scripts rely on."""

from __future__ import annotations

import json
from dataclasses import fields

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ldp_client.collection import Collection
from ldp_client.errors import InvalidSpec
from ldp_client.protocol.domain import DOMAINS, Attributes, Categories, Field, Integers, Record, Sets, Strings, YesNo
from ldp_client.protocol.v1 import analyst_pb2 as pb
from ldp_server.answers import estimates
from ldp_server.answers.estimates import Coverage, Estimate, Estimates, Rest, Verdict
from ldp_server.answers.to_json import dump, item_json, to_json
from ldp_server.answers.wire import from_wire, item_from_wire, item_to_wire, to_wire
from ldp_server.heavy_hitters.results import HeavyHitter, HeavyHitters, UsedDictionary
from ldp_server.oracles import oracle_for
from tests.examples import COLLECTIONS, label
from tests.server.oracles.cases import filled

COLORS = Collection.create(
    "?", Categories(("cat", "dog", "owl")), "randomized-response", "2", opens=1_790_000_000, closes=1_800_000_000
)
HITTER = HeavyHitter("köln", 900.5, 30.0, 800.0, 1000.0, 700.0, 1100.0, 12.5, 5.25, True)
FOUND = HeavyHitters(
    reports=5000,
    items=(HITTER, HeavyHitter(b"\xff\xfe", 800.0, 31.0, 1.0, 2.0, 3.0, 4.0, 11.0)),
    none=HeavyHitter(None, 700.0, 32.0, 1.0, 2.0, 3.0, 4.0, 10.0),
    decoder="soft",
    threshold=412.25,
    probability=0.95,
    threshold_all=515.5,
    beta=0.1,
    dictionary=UsedDictionary(1000, 3, 222.5, "period 3"),
    began_with=17,
    exploratory=True,
    false_items=0.05,
    guarantee=("Every item.", "Honest reports."),
    too_few_reports=False,
    users_needed=None,
)
NOTHING = HeavyHitters(12, (), None, "paths", None, 0.95, None, 0.2, 0.1, ("Not enough users.",), True, 90_000)


def sent(answer, kind):
    return kind.FromString(to_wire(answer, kind).SerializeToString())


@pytest.mark.parametrize("answer", [FOUND, NOTHING])
def test_heavy_hitters_come_back(answer):
    assert from_wire(HeavyHitters, sent(answer, pb.HeavyHittersResult)) == answer


def test_every_number_of_a_heavy_hitter_has_its_own_field():
    """Each field of the message is that field of the dataclass and no other, written out by hand once, here."""
    message = sent(FOUND, pb.HeavyHittersResult)
    assert message.reports == 5000
    assert message.threshold == 412.25
    assert message.probability == 0.95
    assert (message.threshold_all, message.beta) == (515.5, 0.1)
    assert (message.false_items, message.began_with) == (0.05, 17)
    assert message.exploratory
    tested = message.dictionary
    assert (tested.candidates, tested.outside, tested.each, tested.earlier) == (1000, 3, 222.5, "period 3")
    assert list(message.guarantee) == ["Every item.", "Honest reports."]
    assert message.none.item.none
    row = message.items[0]
    assert (row.item.text, row.estimate, row.standard_error) == ("köln", 900.5, 30.0)
    assert (row.low, row.high, row.surest_low, row.surest_high, row.score) == (800.0, 1000.0, 700.0, 1100.0, 12.5)
    assert message.items[1].item.raw == b"\xff\xfe"


def test_no_field_of_a_message_is_left_over():
    """What the dataclass does not have is about the collection and its periods, which the service adds."""
    for kind, message in ((HeavyHitters, pb.HeavyHittersResult), (HeavyHitter, pb.HeavyHitter), (Rest, pb.Rest)):
        missing = {field.name for field in message.DESCRIPTOR.fields} - {field.name for field in fields(kind)}
        assert missing <= {"collection", "periods"}
    names = {field.name.removesuffix("s") for field in pb.EstimateResponse.DESCRIPTOR.fields}
    known = {field.name.removesuffix("s") for kind in (Estimates, Estimate) for field in fields(kind)}
    assert names - known <= {"collection", "period"}


def test_the_json_of_heavy_hitters_is_what_it_was():
    assert list(to_json(FOUND)) == [
        "reports", "items", "none", "decoder", "threshold", "probability", "threshold_all", "beta", "false_items",
        "guarantee", "too_few_reports", "users_needed", "dictionary", "independence", "began_with", "exploratory",
    ]  # fmt: skip
    assert to_json(HITTER) == {
        "item": {"text": "köln"},
        "estimate": 900.5,
        "standard_error": 30.0,
        "low": 800.0,
        "high": 1000.0,
        "surest_low": 700.0,
        "surest_high": 1100.0,
        "score": 12.5,
        "bar": 5.25,
        "candidate": True,
    }
    assert to_json(FOUND)["dictionary"] == {"candidates": 1000, "outside": 3, "each": 222.5, "earlier": "period 3"}
    assert json.loads(dump(to_json(FOUND)))["none"]["item"] == {"none": True}
    nothing = json.loads(dump(to_json(NOTHING)))
    assert nothing["threshold"] is nothing["none"] is None
    assert nothing["users_needed"] == 90_000


@pytest.fixture(scope="module")
def oracle():
    users = np.array([1] * 600 + [2] * 300 + [0] * 100, np.uint64)
    return filled(COLORS.randomizer, users, 1)


@pytest.mark.parametrize("threshold", [None, 250.0])
def test_estimates_come_back(oracle, threshold):
    answers = [
        estimates.given_items(COLORS, oracle, ["dog", None], coverage=Coverage.TOGETHER, threshold=threshold),
        estimates.top(COLORS, oracle, 2, threshold=threshold, confidence=0.9),
        estimates.every_item(COLORS, oracle, threshold=threshold),
    ]
    for answer in answers:
        message = sent(answer, pb.EstimateResponse)
        assert from_wire(Estimates, message, domain=COLORS.domain) == answer
        assert [row.verdict is None for row in answer.rows] == [threshold is None] * len(answer.rows)
    assert not message.items  # a whole domain is known to whoever has the collection
    assert [row.item for row in answers[2].rows] == [None, "cat", "dog", "owl"]
    assert answers[0].everything_else is not None
    assert answers[2].everything_else is None


def test_the_json_of_estimates_is_what_it_was(oracle):
    plain = to_json(estimates.given_items(COLORS, oracle, ["dog"], threshold=150.0))
    first = ["reports", "confidence", "coverage", "rows", "everything_else"]
    assert list(plain) == [*first, "every_look", "more_for_half", "independence"]
    assert plain["coverage"] == "each"
    assert list(plain["rows"][0]) == ["item", "estimate", "standard_error", "low", "high", "verdict"]
    assert plain["rows"][0]["verdict"] == "yes"
    assert list(plain["everything_else"]) == ["estimate", "standard_error", "low", "high"]
    (row, *_) = to_json(estimates.top(COLORS, oracle, 1))["rows"]
    assert list(row) == ["item", "estimate", "standard_error", "low", "high", "consistent"]
    assert to_json(estimates.every_item(COLORS, oracle))["everything_else"] is None


def test_an_answer_that_makes_no_sense_is_refused(oracle):
    message = to_wire(estimates.every_item(COLORS, oracle, threshold=1.0), pb.EstimateResponse)
    with pytest.raises(InvalidSpec, match="which items"):
        from_wire(Estimates, message)
    with pytest.raises(InvalidSpec, match="which items"):
        from_wire(Estimates, message, domain=Strings(1000))
    del message.lows[-1]
    with pytest.raises(InvalidSpec, match="lengths"):
        from_wire(Estimates, message, domain=COLORS.domain)
    message.lows.append(1.0)
    message.verdicts[0] = 0
    with pytest.raises(InvalidSpec, match="verdicts"):
        from_wire(Estimates, message, domain=COLORS.domain)
    message.verdicts[0] = pb.CANNOT_TELL
    assert from_wire(Estimates, message, domain=COLORS.domain).rows[0].verdict is Verdict.CANNOT_TELL
    message.coverage = "another"
    with pytest.raises(InvalidSpec, match="coverage"):
        from_wire(Estimates, message, domain=COLORS.domain)


def test_rows_are_a_sequence(oracle):
    rows = estimates.every_item(COLORS, oracle).rows
    assert len(rows) == 4
    assert rows[1:3][0] == rows[1]
    assert rows[-1].item == "owl"
    assert type(rows[0].estimate) is float
    with pytest.raises(IndexError):
        rows[4]


@given(st.one_of(st.none(), st.text(), st.binary(), st.integers(-(1 << 63), 1 << 64)))
def test_items_come_back(item):
    found = item_from_wire(pb.Item.FromString(item_to_wire(item).SerializeToString()))
    assert type(found) is type(item)
    assert found == item


def test_items_that_are_no_text_and_sets():
    assert item_to_wire("\ud800").raw == b"\xed\xa0\x80"
    assert item_json(frozenset({"b", "a"})) == {"attributes": ["a", "b"]}
    assert item_json(b"\xff") == {"hex": "ff"}
    assert list(item_to_wire(frozenset({"b", "a"})).attributes.names) == ["a", "b"]
    assert Integers(0, 5).item(1) == 0
    assert item_json(0) == {"integer": 0}


EVERY_KIND = {
    "categories": Categories(("cat", "none", "köln")),
    "strings": Strings(2),
    "integers": Integers(-(1 << 63), 5),
    "sets": Sets(("smoke", "drive", "a + b"), 2),
    "attributes": Attributes(("smoke", "drive", "a + b")),
    "record": Record((Field("age", Integers(-3, 5)), Field("köln", YesNo()), Field("page", Categories(("1", "none"))))),
}


@pytest.mark.parametrize("kind", DOMAINS)
def test_items_of_every_kind_of_domain_go_both_ways(kind):
    """An item that is asked for comes back from the wire as the domain names it, and stands for the same people."""
    domain = EVERY_KIND[kind]
    for index in range(min(domain.size, 700)):
        item = domain.item(index)
        found = item_from_wire(pb.Item.FromString(item_to_wire(item).SerializeToString()))
        assert (type(found), found) == (type(item), item)
        assert domain.index(found) == index


@pytest.mark.parametrize("collection", COLLECTIONS, ids=lambda one: label(one.randomizer))
@pytest.mark.thinned(36)
def test_answers_of_every_mechanism_come_back(collection):
    """Whatever is estimated for the example instances survives the wire, and JSON has a name for every value."""
    oracle = oracle_for(collection)
    for word in range(40):
        seeds = (word * 0x9E3779B97F4A7C15 + i * 0xBF58476D1CE4E5B9 for i in range(collection.randomizer.words))
        words = [seed % (1 << 64) for seed in seeds]
        oracle.accumulate(collection.randomize(None, words))
    asked = [
        lambda: estimates.given_items(collection, oracle, [None], threshold=5.0),
        lambda: estimates.every_item(collection, oracle),
    ]
    for ask in asked:
        try:
            answer = ask()
        except InvalidSpec:  # not a question for this mechanism, or a domain that cannot be listed
            continue
        assert from_wire(Estimates, sent(answer, pb.EstimateResponse), domain=collection.domain.counted) == answer
        assert len(json.loads(dump(to_json(answer)))["rows"]) == len(answer.rows)
