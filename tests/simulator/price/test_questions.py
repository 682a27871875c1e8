"""Every kind of release has a question, and both of its answers are near the truth where noise is small."""

import itertools
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest

from ldp_client.errors import InvalidSpec
from ldp_server.curator.kinds import KINDS
from ldp_server.curator.prices import CentralPrice
from ldp_server.curator.releases.base import Outcome, ReleasedRow
from ldp_server.curator.releases.partial.strings import FrequentStrings
from ldp_server.curator.workloads.kinds import WORKLOAD_KINDS
from simulator.hybrid.draws import SeededDraws
from simulator.price.every_release import QUESTIONS
from simulator.price.fields import AnyOfTwo, BothOfTwo, PairCells
from simulator.price.items import Groups, ModalItem, UnknownItems
from simulator.price.labels import LabelledBox, LabelledCut, LabelledItem, LabelledNumber, errors_of_cuts
from simulator.price.numbers import AllRanges, AllThresholds, InsidePoint, number_counts
from simulator.price.question import at_record_price, paid
from simulator.price.texts import CommonTexts, LabelledPrefix, LabelledText, RobustRules, TextDistribution

USERS, NEARLY = 6000, "30"
SLOW = (UnknownItems, ModalItem, LabelledItem, CommonTexts, TextDistribution, LabelledText)
"""Their reports are a sketch's."""
BY_DESIGN = {
    "all-items": 0.2,
    "all-thresholds": 0.03,
    "learn-text-threshold": 0.1,
    "text-shares": 0.1,
    "online": 0.05,
    "mwem": 0.01,
    "pair-table": 0.06,
    "learn-box": 0.1,
}
"""The error that a release has at any price, or nearly any."""


def test_every_kind_of_release_has_one_question():
    """A new kind needs its counterpart: reports that give the same answer."""
    kinds = Counter(kind for one in QUESTIONS for kind in one.releases)
    assert set(kinds) == {*KINDS, *WORKLOAD_KINDS}
    assert set(kinds.values()) == {1}
    for kind, release in (pair for one in QUESTIONS for pair in one.releases.items()):
        made = release(Fraction(1))
        assert made.kind == kind
        price = made.price
        if price.label is not None:
            assert price.label == 1
        elif price.epsilon is None:
            assert price.rho == Fraction(1, 2)
        else:
            assert 0.999 < price.epsilon <= 1, "the price of a whole record is that of a report"


def _asked(questions, longer=()):
    return [pytest.param(one, marks=pytest.mark.long if one in longer else (), id=one.__name__) for one in questions]


@pytest.mark.parametrize("asked", _asked(QUESTIONS, [AllRanges, PairCells]))
def test_a_release_with_little_noise_is_near_the_truth(asked):
    rng = np.random.default_rng(5)
    question = asked(USERS, NEARLY)
    people = question.people(rng)
    truth = question.truth(people)
    for kind in asked.releases:
        found = question.central(kind, people, SeededDraws(rng))
        assert question.error(found, truth) <= BY_DESIGN.get(kind, 0.004), kind


@pytest.mark.parametrize("asked", _asked([one for one in QUESTIONS if one not in SLOW], [AnyOfTwo, BothOfTwo]))
@pytest.mark.thinned(8)
def test_reports_with_little_noise_are_near_the_truth(asked):
    question = asked(USERS, "8")
    people = question.people(np.random.default_rng(6))
    assert question.error(question.reported(people, 7), question.truth(people)) < 0.05


@pytest.mark.long
@pytest.mark.parametrize("asked", [LabelledItem, CommonTexts])
def test_reports_of_sketches_are_near_the_truth(asked):
    question = asked(20_000, "4")
    people = question.people(np.random.default_rng(6))
    assert question.error(question.reported(people, 7), question.truth(people)) < 0.02


def test_the_price_of_a_record_is_as_high_as_it_may_be():
    made = at_record_price(lambda one: FrequentStrings(16, Fraction(1, 10), one), Fraction(2))
    assert 1.9999 < made.price.epsilon <= 2
    with pytest.raises(InvalidSpec, match="whole record"):
        at_record_price(lambda _: FrequentStrings(16, Fraction(1, 10), Fraction(5)), Fraction(1))


def test_prices_in_words():
    assert paid(CentralPrice.pure(Fraction(1), Fraction(1, 10**6))) == "epsilon 1, delta 1e-06"
    assert paid(CentralPrice(rho=Fraction(1, 2))) == "rho 0.5"
    assert paid(CentralPrice(label=Fraction(3))) == "epsilon 3 for a label alone"
    assert paid(CentralPrice(Fraction(1), attribute=Fraction(1, 8))) == "epsilon 1 (0.125 for an attribute)"


def test_a_tree_counts_each_number():
    held = np.repeat([1, 5, 16], [700, 200, 100])
    assert number_counts(held, 16, "12", 3) == pytest.approx(np.bincount(held, minlength=17)[1:], abs=60)


def test_cuts_are_wrong_for_zeros_below_and_ones_above():
    numbers, labels = np.array([0, 5, 5, 1023]), np.array([0, 1, 0, 1])
    found = errors_of_cuts(numbers, labels)
    assert len(found) == 1025
    for cut in (0, 1, 5, 6, 1023, 1024):
        wrong = [(number < cut) != label for number, label in zip(numbers, labels, strict=True)]
        assert found[cut] == sum(wrong) / 4, cut
    question = LabelledNumber(4, "1")
    assert question.error(1, found) == found[1] - found.min() == 0.25
    listed = LabelledCut(4, "1")
    assert listed.error(64, found) == 0


def test_nothing_named_is_the_rule_that_is_never_positive():
    nothing = Outcome((), "")
    assert LabelledNumber(9, "1").released(None, nothing, 9) == 0
    assert LabelledPrefix(9, "1").released(None, nothing, 9) == 1024
    assert InsidePoint(9, "1").released(None, nothing, 9) is None
    assert LabelledNumber(9, "1").released(None, Outcome((ReleasedRow(-7),), ""), 9) == 0
    assert LabelledNumber(9, "1").released(None, Outcome((ReleasedRow(5000),), ""), 9) == 1024
    for asked in (LabelledItem, LabelledText):
        assert asked(9, "1").released(None, nothing, 9) is None


def test_a_point_is_inside_or_not():
    question = InsidePoint(9, "1")
    assert [question.error(found, (8, 15)) for found in (8, 15, 7, 16, None)] == [0, 0, 1, 1, 1]
    people = question.people(np.random.default_rng(3))
    assert people.max() - people.min() < 8


def test_items_that_are_missing_false_or_wrong():
    truth = {"a": 0.5, "b": 0.3}
    unknown = UnknownItems(9, "1")
    assert unknown.error({"a": 0.5, "b": 0.3}, truth) == 0
    assert unknown.error({"a": 0.5}, truth) == 0.3
    assert unknown.error({"a": 0.5, "b": 0.3, "x": 0.4}, truth) == 0.4
    assert TextDistribution(9, "1").error({"a": 0.1, "b": 0.6}, truth) == pytest.approx(0.5)
    modal = ModalItem(9, "1")
    assert [modal.error(found, truth) for found in ("a", "b", "x", None)] == pytest.approx([0, 0.2, 0.5, 0.5])


def test_the_wrong_item_is_wrong_for_both():
    item = LabelledItem(9, "1")
    wanted, other = item.NAMES[2], item.NAMES[1]
    truth = {wanted: 0.1, other: 0.2}
    assert [item.error(found, truth) for found in (wanted, other, "x", None)] == pytest.approx([0, 0.3, 0.1, 0.1])
    text = LabelledText(400, "1")
    people = text.people(np.random.default_rng(4))
    truth, held = text.truth(people), people[people[:, 1] == 1][0, 0]
    assert text.error(format(held, "016b"), truth) == 0
    assert text.error(None, truth) == pytest.approx((people[:, 1] == 1).mean())
    second = sorted((share, name) for name, share in truth.items() if len(name) == 16)[-2]
    assert text.error(second[1], truth) == pytest.approx(truth[""] + second[0])


def test_groups_are_nested():
    truth = Groups(4, "1").truth(np.array([1, 9, 20, 64]))
    assert truth.tolist() == [0.25, 0.5, 0.75, 0.75]


def test_ranges_stand_in_the_order_of_the_release():
    question = AllRanges(3, "1")
    found = question.truth(np.array([0, 2, 62]))
    ends = [(first, last) for first in range(63) for last in range(first, 63)]
    expected = [sum(first <= one <= last for one in (0, 2, 62)) / 3 for first, last in ends]
    assert found == pytest.approx(expected)


def test_below_every_threshold():
    found = AllThresholds(4, "1").truth(np.array([0, 0, 5, 1023]))
    assert (found[0], found[4], found[5], found[1022], found[1023]) == (0.5, 0.5, 0.75, 0.75, 1)


def test_any_and_both_of_two_fields():
    people = np.array([0b11, 0b01, 0b10000000, 0])
    held = people[:, None] >> np.arange(8) & 1
    pairs = list(itertools.combinations(range(8), 2))
    both = BothOfTwo(4, "1").truth(people)
    assert both == pytest.approx([(held[:, a] & held[:, b]).mean() for a, b in pairs])
    found = AnyOfTwo(4, "1").truth(people)
    assert found[:8] == pytest.approx(held.mean(axis=0))
    assert found[8:] == pytest.approx([(held[:, a] | held[:, b]).mean() for a, b in pairs])


def test_a_box_is_wrong_for_those_between():
    question = LabelledBox(4, "1")
    people = np.array([[4, 3, 1], [11, 12, 1], [12, 12, 0], [4, 13, 0]])
    assert question._inside(people[:, :2], question._BOX).tolist() == [1, 1, 0, 0]
    assert question.error((4, 11, 3, 12), people) == 0
    assert question.error((4, 12, 3, 13), people) == 0.5
    assert question.error((), people) == 0.5


def test_a_rule_loses_what_a_person_near_its_edge_does():
    question = RobustRules(2000, "1")
    people = question.people(np.random.default_rng(8))
    losses = question._losses(people)
    assert set(np.unique(losses)) == {0, 1, 2}
    truth = question.truth(people)
    assert truth.argmin() == 1, "all characters that tell the label, and no other one"
    assert truth.argmax() == 9, "those that tell nothing"
    assert question.error(1, truth) == 0 < question.error(9, truth) == truth[9] - truth[1]
