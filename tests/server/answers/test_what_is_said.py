"""Answers from counts that are chosen: each number against the law it comes from, and every refusal in its words."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, field
from enum import Enum

import numpy as np
import pytest

from ldp_client.collection import Collection
from ldp_client.errors import InvalidSpec
from ldp_client.mechanisms import bounded_number, composed_response
from ldp_client.protocol.domain import Attributes, Categories, FieldItems, Integers, Item, Sets, Strings
from ldp_server.answers import numbers
from ldp_server.answers.attributes import attributes_answer
from ldp_server.answers.columns import WholeDomain
from ldp_server.answers.estimates import Coverage, Verdict, every_item, given_items, item_indexes, top
from ldp_server.answers.everything_else import Picked, rest_at_every_look, rest_of_fixed
from ldp_server.answers.more import more_for_half
from ldp_server.answers.numbers import share_of
from ldp_server.answers.to_json import dump, item_json, to_json
from ldp_server.answers.words import item_text, moment, number_of, signed, visible, whole
from ldp_server.arrays.packing import pack
from ldp_server.oracles import oracle_for
from ldp_server.oracles.base import TooFewReports, Unsupported, two_sided
from ldp_server.oracles.independence.result import INDEPENDENT, Independence
from ldp_server.oracles.laws.support import SupportLaw
from ldp_server.planning.expected import expected_oracle

WINDOW = {"opens": 0, "closes": 1}
DRINKS = Collection.create("?", Categories(("tea", "milk", "gin")), "randomized-response", "1", **WINDOW)
AGES = Collection.create("?", Integers(-5, 10), "hierarchy", "2", parameters={"branching": 3, "q": 5}, **WINDOW)
MINUTES = Collection.create(
    "?", Integers(100, 11), "bounded-number", "2", parameters=bounded_number.design("2"), **WINDOW
)
HABITS = Attributes(("smoke", "drive", "vote"))
ALONE = Collection.create("?", HABITS, "composed-response", "2", parameters=composed_response.design("2", 3), **WINDOW)
SAMPLED = Collection.create("?", HABITS, "sampled-attribute", "2", **WINDOW)
WHOLE = Collection.create("?", HABITS, "randomized-response", "2", **WINDOW)


def counted(collection, *counts):
    """An oracle with so many reports of each number."""
    oracle = oracle_for(collection)
    reports = np.repeat(np.arange(len(counts), dtype=np.uint64), counts)
    oracle.accumulate(pack(reports, collection.randomizer.report_bytes))
    return oracle


@pytest.fixture(scope="module")
def drinks():
    return counted(DRINKS, 400, 250, 180, 170)


LAW = SupportLaw(1000, float(DRINKS.randomizer.response.p), float(DRINKS.randomizer.response.q))


# -- frequencies


@pytest.mark.parametrize(
    ("coverage", "intervals"), [(Coverage.EACH, 1), (Coverage.TOGETHER, 2), (Coverage.SELECTED, 4)]
)
@pytest.mark.parametrize("confidence", [0.5, 0.95])
def test_intervals_of_each_coverage(drinks, coverage, intervals, confidence):
    found = given_items(DRINKS, drinks, ["milk", None], coverage=coverage, confidence=confidence)
    raw = (np.array([180.0, 400.0]) - 1000 * LAW.s) / (LAW.p - LAW.s)
    low, high = LAW.intervals(raw, (1 - confidence) / 2 / intervals)
    assert [row.estimate for row in found.rows] == pytest.approx(raw, rel=1e-9)
    assert [(row.low, row.high) for row in found.rows] == list(zip(low.tolist(), high.tolist(), strict=True))
    assert [row.standard_error for row in found.rows] == pytest.approx(LAW.spread(raw))
    assert [row.item for row in found.rows] == ["milk", None]
    assert (found.reports, found.confidence, found.coverage) == (1000, confidence, coverage)
    assert all(row.verdict is row.consistent is None for row in found.rows)
    assert (found.every_look, found.more_for_half, found.sets) == (False, 3000, None)


def test_a_verdict_is_that_of_the_interval(drinks):
    ((row,),) = [given_items(DRINKS, drinks, ["tea"]).rows]
    for threshold, verdict in (
        (row.low, Verdict.YES), (row.low + 1, Verdict.CANNOT_TELL), (row.high, Verdict.CANNOT_TELL),
        (row.high + 0.5, Verdict.NO), (0.0, Verdict.YES),
    ):  # fmt: skip
        assert given_items(DRINKS, drinks, ["tea"], threshold=threshold).rows[0].verdict is verdict


def test_the_whole_domain_and_the_largest(drinks):
    every = every_item(DRINKS, drinks)
    assert isinstance(every.rows.columns["item"], WholeDomain)
    assert [row.item for row in every.rows] == [None, "tea", "milk", "gin"]
    assert every.everything_else is None and every.coverage is Coverage.EACH
    assert sum(row.consistent for row in every.rows) == pytest.approx(1000)
    largest = top(DRINKS, drinks, 2)
    assert [row.item for row in largest.rows] == ["tea", "milk"]
    assert largest.coverage is Coverage.SELECTED
    assert largest.rows[0].estimate == every.rows[1].estimate
    for count in (0, -1):
        with pytest.raises(InvalidSpec, match="at least"):
            top(DRINKS, drinks, count)


def test_what_is_left_beside_fixed_items(drinks):
    """The two listed items are one binomial count: their sum's interval is turned around."""
    found = given_items(DRINKS, drinks, ["tea", "tea", "gin"])
    raw = found.rows[0].estimate + found.rows[2].estimate
    rest = found.everything_else
    both = SupportLaw(1000, LAW.p + LAW.s, 2 * LAW.s)
    low, high = both.intervals(np.array([raw]), 0.025)
    assert rest.estimate == pytest.approx(1000 - raw)
    assert rest.standard_error == pytest.approx(float(both.spread(raw)) * (both.p - both.s) / (LAW.p - LAW.s), rel=1e-6)
    assert (rest.low, rest.high) == (1000 - high[0], 1000 - low[0])
    nothing = given_items(DRINKS, drinks, []).everything_else
    assert (nothing.estimate, nothing.standard_error, nothing.low, nothing.high) == (1000.0, 0.0, 1000.0, 1000.0)


def test_what_is_left_where_there_are_copies(drinks):
    """Four times the variance: twice the error, and a wider interval around the same number."""
    indexes = np.array([1, 2], np.uint64)
    raw = drinks.estimate(indexes)
    plain = rest_of_fixed(drinks, indexes, raw, 0.05, INDEPENDENT)
    wide = rest_of_fixed(drinks, indexes, raw, 0.05, Independence(widened=4.0))
    assert wide.estimate == plain.estimate
    assert wide.standard_error == pytest.approx(2 * plain.standard_error)
    assert wide.high - wide.low == pytest.approx(2 * (plain.high - plain.low), rel=0.02)
    looks = rest_at_every_look(drinks, plain, np.array([100.0, 0.0]), np.array([300.0, 1200.0]))
    assert (looks.low, looks.high) == (0.0, 900.0)
    assert (looks.estimate, looks.standard_error) == (plain.estimate, plain.standard_error)
    assert Picked(indexes, raw, raw, raw).others is raw


@pytest.mark.parametrize("confidence", [0.0, 1.0, -0.1, 1.5])
def test_a_confidence_that_is_none(drinks, confidence):
    for ask in (
        lambda: given_items(DRINKS, drinks, ["tea"], confidence=confidence),
        lambda: share_of(confidence, Coverage.EACH, 1),
        lambda: attributes_answer(ALONE, counted(ALONE, *[9] * 8), confidence=confidence),
    ):
        with pytest.raises(InvalidSpec, match=r"confidence lies strictly between 0 and 1, such as 0.95"):
            ask()


def test_items_outside_of_the_domain_are_refused(drinks):
    with pytest.raises(InvalidSpec, match="an item asked for lies outside the collection's domain"):
        given_items(DRINKS, drinks, ["tea", "rum"])
    assert item_indexes(DRINKS, ["gin", None, "tea"]).tolist() == [3, 0, 1]


def test_the_share_of_each_interval():
    assert share_of(0.95, Coverage.EACH, 7) == 0.95
    assert share_of(0.95, Coverage.TOGETHER, 5) == pytest.approx(0.99)
    assert share_of(0.9, Coverage.SELECTED, 1) == pytest.approx(0.9)
    assert share_of(0.9, Coverage.TOGETHER, 0) == pytest.approx(0.9)


def test_more_reports_for_half_the_error(drinks):
    assert more_for_half(oracle_for(DRINKS)) is None
    assert more_for_half(drinks) == 3000
    hashed = Collection.create("?", Strings(9), "hashtogram", "2", parameters={"rows": 4, "q": 3, "t": 3}, **WINDOW)
    oracle = oracle_for(hashed)
    oracle.counts.total = n = 50
    share = float(oracle.variance(0.0)) / n**2
    p, s = (float(one) for one in hashed.randomizer.inner.support)
    noise = min(share, s * (1 - s) / (p - s) ** 2 / n)
    left = share / 4 - (share - noise)
    assert more_for_half(oracle) == (math.ceil(noise * n / left) - n if left > 0 else None)


# -- numbers


@pytest.fixture(scope="module")
def ages():
    shares = np.array([0.1, *[0.09] * 10])
    return expected_oracle(AGES, shares, 5000)


def test_bins_cover_the_domain_in_whole_numbers(ages):
    assert [(row.first, row.last) for row in numbers.bins_answer(AGES, ages, 3).ranges] == [(-5, -3), (-2, 0), (1, 4)]
    assert [(row.first, row.last) for row in numbers.bins_answer(AGES, ages, 10).ranges] == [
        (place, place) for place in range(-5, 5)
    ]
    for bins in (0, 11, -1):
        with pytest.raises(InvalidSpec, match="a histogram of this domain has 1 to 10 bins"):
            numbers.bins_answer(AGES, ages, bins)


def test_ranges_are_in_the_domain_s_own_numbers(ages):
    found = numbers.ranges_answer(AGES, ages, [(-5, 4), (0, 1), (4, 4)])
    assert [row.estimate for row in found.ranges] == pytest.approx([4500, 900, 450], rel=1e-3)
    assert [(row.first, row.last) for row in found.ranges] == [(-5, 4), (0, 1), (4, 4)]
    assert found.holders == pytest.approx(4500, rel=1e-3)
    assert (found.reports, found.every_look, found.more_for_half) == (5000, False, 15_000)
    for row in found.ranges:
        ends = ages.between(row.first + 5, row.last + 5).interval(0.95)
        assert (row.low, row.high) == tuple(min(max(end, 0.0), 5000.0) for end in ends)
        assert row.standard_error == ages.between(row.first + 5, row.last + 5).error > 0
    together = numbers.ranges_answer(AGES, ages, [(-5, 4), (0, 1), (4, 4)], coverage=Coverage.TOGETHER)
    assert (together.ranges[1].low, together.ranges[1].high) == ages.between(5, 6).interval(1 - (1 - 0.95) / 3)
    few = numbers.ranges_answer(AGES, expected_oracle(AGES, np.full(11, 1 / 11), 2), [(-5, 4), (1, 1)]).ranges
    assert (few[0].high, few[1].low) == (2.0, 0.0)


def test_quantiles_are_in_the_domain_s_own_numbers(ages):
    found = numbers.quantiles_answer(AGES, ages, (0.05, 0.5, 0.95))
    assert [row.share for row in found.quantiles] == [0.05, 0.5, 0.95]
    assert [row.estimate for row in found.quantiles] == [-5, -1, 4]
    assert all(-5 <= row.low <= row.estimate <= row.high <= 4 for row in found.quantiles)
    assert found.coverage is Coverage.EACH
    assert [row.estimate for row in numbers.quantiles_answer(AGES, ages).quantiles] == [-1]


@pytest.mark.parametrize("given", [[(-6, 0)], [(0, 5)], [(2, 1)], [(0, 0), (9, 9)]])
def test_ranges_outside_of_the_domain(ages, given):
    with pytest.raises(InvalidSpec, match="a range lies within -5 to 4, its ends in order"):
        numbers.ranges_answer(AGES, ages, given)


def test_how_much_may_be_asked(ages):
    most = numbers._MOST
    with pytest.raises(InvalidSpec, match=f"ask for 1 to {most} quantiles, such as 0.5"):
        numbers.quantiles_answer(AGES, ages, ())
    with pytest.raises(InvalidSpec, match=f"ask for 1 to {most} quantiles"):
        numbers.quantiles_answer(AGES, ages, [0.5] * (most + 1))
    for given in ([], [(0, 0)] * (most + 1)):
        with pytest.raises(InvalidSpec, match=f"ask for 1 to {most} ranges"):
            numbers.ranges_answer(AGES, ages, given)


def test_an_average_lies_within_the_domain():
    """From expected counts: the true average. With few reports the interval is cut at the ends."""
    shares = np.zeros(12)
    shares[[1, 11]] = 0.25, 0.75
    many = numbers.average_answer(MINUTES, expected_oracle(MINUTES, shares, 100_000))
    one = many.average
    assert one.estimate == pytest.approx(107.5, abs=1e-6)
    assert one.high - one.estimate == pytest.approx(two_sided(0.95) * one.standard_error)
    assert one.estimate - one.low == pytest.approx(two_sided(0.95) * one.standard_error)
    assert (many.reports, many.confidence, many.every_look, many.more_for_half) == (100_000, 0.95, False, 300_000)
    few = numbers.average_answer(MINUTES, expected_oracle(MINUTES, shares[::-1], 1)).average
    assert (few.low, few.high) == (100.0, 110.0)
    looks = numbers.average_answer(MINUTES, expected_oracle(MINUTES, shares, 100_000), every_look=True)
    assert looks.every_look and looks.average.low < one.low and looks.average.high > one.high


def test_what_gives_no_numbers(drinks, ages):
    for ask, text in (
        (lambda: numbers.average(DRINKS, drinks), "randomized-response gives no average: a collection with bounded"),
        (lambda: numbers.quantile(DRINKS, drinks, 0.5), "randomized-response gives no quantiles: a collection with hi"),
        (lambda: numbers.ranges_answer(DRINKS, drinks, [(0, 0)]), "randomized-response gives no ranges"),
        (lambda: numbers.bins_answer(DRINKS, drinks, 2), "randomized-response gives no ranges"),
        (lambda: numbers.average(AGES, ages), "hierarchy gives no average"),
    ):
        with pytest.raises(Unsupported, match=text):
            ask()


def test_before_the_first_report():
    for ask in (
        lambda: numbers.average_answer(MINUTES, oracle_for(MINUTES)),
        lambda: numbers.quantiles_answer(AGES, oracle_for(AGES)),
        lambda: numbers.ranges_answer(AGES, oracle_for(AGES), [(0, 0)]),
        lambda: attributes_answer(ALONE, oracle_for(ALONE)),
    ):
        with pytest.raises(TooFewReports, match=r"reports yet|no reports"):
            ask()


# -- attributes


COUNTS = (90, 40, 30, 20, 60, 10, 25, 125)


def test_attributes_one_by_one():
    oracle = counted(ALONE, *COUNTS)
    found = attributes_answer(ALONE, oracle)
    kept = float(ALONE.randomizer.eigenvalue(1))
    law = SupportLaw(400, (1 + kept) / 2, (1 - kept) / 2)
    held = [sum(count for answer, count in enumerate(COUNTS) if answer >> place & 1) for place in range(3)]
    raw = (np.array(held) - 400 * law.s) / (law.p - law.s)
    assert [row.attributes for row in found.rows] == [("smoke",), ("drive",), ("vote",)]
    assert [row.estimate for row in found.rows] == pytest.approx(raw, rel=1e-6)
    assert [row.standard_error for row in found.rows] == pytest.approx([math.sqrt(400 * (1 / kept**2 - 1) / 4)] * 3)
    low, high = law.intervals(raw, 0.025)
    assert [(row.low, row.high) for row in found.rows] == list(zip(low.tolist(), high.tolist(), strict=True))
    assert (found.coverage, found.more_for_half) == (Coverage.EACH, 1200)
    together = attributes_answer(ALONE, oracle, together=True)
    low, high = law.intervals(raw, 0.025 / 3)
    assert [(row.low, row.high) for row in together.rows] == list(zip(low.tolist(), high.tolist(), strict=True))
    assert together.coverage is Coverage.TOGETHER


def test_the_largest_attributes_hold_for_all_that_could_be_picked():
    oracle = counted(ALONE, *COUNTS)
    every = sorted(attributes_answer(ALONE, oracle, together=True).rows, key=lambda row: -row.estimate)
    found = attributes_answer(ALONE, oracle, top=2)
    assert list(found.rows) == every[:2] and found.coverage is Coverage.SELECTED
    assert len(attributes_answer(ALONE, oracle, top=99).rows) == 3
    with pytest.raises(InvalidSpec, match="ask for at least one attribute"):
        attributes_answer(ALONE, oracle, top=0)


def test_pairs_have_a_normal_interval():
    oracle = counted(ALONE, *COUNTS)
    found = attributes_answer(ALONE, oracle, pairs=True, confidence=0.9)
    assert [row.attributes for row in found.rows] == [("smoke", "drive"), ("smoke", "vote"), ("drive", "vote")]
    for row, places in zip(found.rows, [(0, 1), (0, 2), (1, 2)], strict=True):
        share = oracle.pair(*places)
        assert (row.estimate, row.standard_error) == (share.estimate, share.standard_error)
        assert (row.low, row.high) == pytest.approx(
            [min(max(end, 0.0), 400.0) for end in share.interval(0.9)]
        )  # fmt: skip


@pytest.mark.parametrize("pairs", [False, True])
def test_attributes_from_whole_sets_are_sums(pairs):
    """Randomized response over all sets: the sum of the sets that have the attributes."""
    oracle = counted(WHOLE, *COUNTS)
    every, found = oracle.estimate_all(), attributes_answer(WHOLE, oracle, pairs=pairs).rows
    masks = (0b011, 0b101, 0b110) if pairs else (0b001, 0b010, 0b100)
    for row, mask in zip(found, masks, strict=True):
        chosen = np.array([one for one in range(8) if one & mask == mask], np.uint64)
        raw = every[chosen.astype(int)]
        assert row.estimate == pytest.approx(float(raw.sum()))
        assert row.standard_error == pytest.approx(math.sqrt(oracle.sum_variance(chosen, raw)))
        assert (row.low, row.high) == oracle.sum_interval(chosen, raw, (1 - 0.95) / 2)


def test_what_counts_no_attributes(drinks):
    sets = Collection.create("?", Sets(("a", "b", "c"), 2), "set-selection", "1", parameters={"d": 1}, **WINDOW)
    single = Collection.create("?", Attributes(("a",)), "randomized-response", "1", **WINDOW)
    for ask, text in (
        (lambda: attributes_answer(DRINKS, drinks), "randomized-response counts no attributes here"),
        (lambda: attributes_answer(sets, oracle_for(sets)), "set-selection counts the items of sets: "),
        (
            lambda: attributes_answer(SAMPLED, counted(SAMPLED, *[5] * 6), pairs=True),
            "sampled-attribute gives no pairs",
        ),
        (lambda: attributes_answer(single, counted(single, 5, 5), pairs=True), "a single attribute, and no pair"),
    ):
        with pytest.raises(InvalidSpec, match=text):
            ask()


# -- words and JSON


@pytest.mark.parametrize(
    ("item", "text", "shape"),
    [
        (None, "none", {"none": True}), ("tea", "tea", {"text": "tea"}), ("none", "'none'", {"text": "none"}),
        ("", "''", {"text": ""}), ("a\nb", "'a\\nb'", {"text": "a\nb"}), (b"\xff", "b'\\xff'", {"hex": "ff"}),
        (-5, "-5", {"integer": -5}), (frozenset(), "no attribute", {"attributes": []}),
        (frozenset("ba"), "a + b", {"attributes": ["a", "b"]}),
        (FieldItems({"x\n": True, "y": False, "z": None, "n": 3}), "x\\n=yes, y=no, z=none, n=3",
         {"record": {"x\n": True, "y": False, "z": None, "n": 3}}),
    ],
)  # fmt: skip
def test_items_in_words_and_as_data(item, text, shape):
    assert item_text(item) == text
    assert item_json(item) == shape


def test_numbers_and_moments_in_words():
    assert [whole(value) for value in (0.4, -1234.6, 1e6, 2.5)] == ["0", "-1,235", "1,000,000", "2"]
    assert (moment(None), moment(0), moment(1)) == ("-", "-", "1970-01-01 00:00 UTC")
    assert moment(1_800_000_000) == "2027-01-15 08:00 UTC"
    assert moment(1 << 60) == f"{1 << 60} s"
    assert (visible("tea"), visible("a\u202eb\n")) == ("tea", "a\\u202eb\\n")


class Kind(Enum):
    ONE = "the one"


@dataclass(frozen=True)
class Inner:
    value: float
    item: Item = None


@dataclass(frozen=True)
class Shape:
    """Every kind of field."""

    item: Item
    number: float
    told: Kind
    inner: Inner
    listed: tuple[Inner, ...]
    raw: bytes
    table: dict[int, float]
    maybe: float | None = None
    gone: float | None = field(default=None, metadata={"json": "unless None"})
    empty: tuple[int, ...] = field(default=(), metadata={"json": "unless empty"})
    secret: str = field(default="x", metadata={"json": "never"})


SHAPE = Shape("tea", math.inf, Kind.ONE, Inner(1.5), (Inner(2.0, 7),), b"\xab", {3: math.inf, 4: 0.5})


def test_an_answer_as_data():
    assert to_json(SHAPE) == {
        "item": {"text": "tea"}, "number": None, "told": "the one", "inner": {"value": 1.5, "item": {"none": True}},
        "listed": [{"value": 2.0, "item": {"integer": 7}}], "raw": "ab", "table": {"3": None, "4": 0.5}, "maybe": None,
    }  # fmt: skip
    assert list(to_json(SHAPE, without=("item", "raw"))) == ["number", "told", "inner", "listed", "table", "maybe"]
    full = Shape("a", 0.0, Kind.ONE, Inner(0.0), (), b"", {}, 1.0, 0.0, (1,), "y")
    assert to_json(full)["gone"] == 0.0 and to_json(full)["empty"] == [1] and "secret" not in to_json(full)


def test_one_object_is_one_line():
    assert dump({"a": "é\n", "b": [1.5, None]}) == '{"a": "é\\n", "b": [1.5, null]}'
    assert json.loads(dump(to_json(SHAPE)))["told"] == "the one"
    for wrong in (math.nan, -math.inf):
        with pytest.raises(ValueError, match="JSON"):
            dump({"a": wrong})


def test_one_report_is_no_reports():
    assert [number_of(count, "report") for count in (0, 1, 2, 20_000)] == [
        "0 reports", "1 report", "2 reports", "20,000 reports",
    ]  # fmt: skip


def test_no_difference_has_a_sign_of_its_own():
    assert [signed(value) for value in (-0.0, -0.0004, 0.0, 0.0126, -0.25)] == [
        "+0.0%", "+0.0%", "+0.0%", "+1.3%", "-25.0%",
    ]  # fmt: skip
