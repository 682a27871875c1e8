"""Learners: their exact laws on small data sets, the errors they state, and what they refuse."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

from benchmarks.curator.outcomes import law_of, smallest_delta
from ldp_client.errors import InvalidSpec
from ldp_server.curator.draws import laplace_scale
from ldp_server.curator.noise import ExactDraws
from ldp_server.curator.prices import DataSetBudget
from ldp_server.curator.releases.learning.counted import CountedCutLearner
from ldp_server.curator.releases.learning.cuts import CutLearner, ListedCutLearner, agreements
from ldp_server.curator.releases.learning.labelled import labels_of
from ldp_server.curator.releases.learning.labels import LabelCutLearner
from ldp_server.curator.releases.learning.points import PointLearner
from ldp_server.curator.releases.learning.rectangles import RectangleLearner
from tests.server.curator.seeded import Noted, Seeded
from tests.server.curator.test_releases import Fixed

DRAWS = ExactDraws()
ONE, DELTA = Fraction(1), Fraction(1, 10**6)
RNG = np.random.default_rng(8)
TRIPLES = list(itertools.combinations_with_replacement(itertools.product((-1, 0, 2), (0, 1)), 3))


def learned_law(made, people, thresholds=None):
    """The law of what is released about people, each with a number and a label."""
    columns = [[number for number, _ in people], [label for _, label in people]]
    return law_of(lambda draws: tuple(r.item for r in made.run_columns(columns, draws).rows), 1e-9, thresholds)


def pairs(laws):
    """Data sets in which one person's record differs."""
    for one, other in itertools.permutations(laws, 2):
        rest = list(other)
        shared = sum(1 for record in one if record in rest and (rest.remove(record) or True))
        if shared == len(one) - 1:
            yield one, other


@pytest.mark.parametrize(
    ("made", "least"),
    [(CutLearner(2, ONE), 0.5), (ListedCutLearner((-1, 0, 1, 3), ONE), 0.5), (ListedCutLearner((0,), ONE), 0.0)],
)
def test_the_realised_loss_of_a_threshold_is_at_most_its_price(made, least):
    """All data sets of three people: pure epsilon, and the range that its rho is made from."""
    laws = {data: learned_law(made, data).chances for data in TRIPLES}
    largest = 0.0
    for one, other in pairs(laws):
        losses = [math.log(chance / laws[other][cut]) for cut, chance in laws[one].items()]
        largest = max(largest, max(losses) - min(losses))
    assert least <= largest <= 1 + 1e-9
    assert made.price.rho == Fraction(1, 8)


def test_the_realised_loss_of_labels_is_at_most_its_price_and_that_of_numbers_is_not():
    """It is about two data sets that differ in a label. Where a number differs, other thresholds are possible."""
    made = LabelCutLearner(ONE)
    laws = {data: learned_law(made, data) for data in TRIPLES}
    inside = outside = 0.0
    for one, other in pairs(laws):
        delta = smallest_delta(laws[one], laws[other], 1.0)
        if sorted(number for number, _ in one) == sorted(number for number, _ in other):
            inside = max(inside, delta)
        else:
            outside = max(outside, delta)
    assert inside <= 1e-9
    assert outside > 0.1


def test_a_budget_for_whole_records_refuses_a_release_about_labels():
    price = LabelCutLearner(ONE).price
    for accounting in ("pure", "zcdp", "attribute"):
        with pytest.raises(InvalidSpec, match="protects the label alone"):
            DataSetBudget(accounting, Fraction(9)).cost(price)
    assert DataSetBudget("label", Fraction(9)).cost(price) == (1, 0)
    assert DataSetBudget("label", Fraction(9)).cost(ListedCutLearner((1,), Fraction(2)).price) == (2, 0)
    assert "for the label alone" in str(DataSetBudget("label", Fraction(9)))


def test_the_realised_loss_of_an_item_is_at_most_its_price():
    made = PointLearner(Fraction(4), Fraction(1, 50))
    people = list(itertools.combinations_with_replacement([("a", 1), ("b", 1), ("b", 0)], 4))
    laws = {data: learned_law(made, data) for data in people}
    worst = max(smallest_delta(laws[a], laws[b], 4.0) for a, b in pairs(laws))
    assert worst <= 1 / 50 + 1e-7
    assert max(smallest_delta(laws[a], laws[b], 1.0) for a, b in pairs(laws)) > 1 / 50


def test_the_realised_loss_of_a_box_is_at_most_its_price():
    made = RectangleLearner(1, 2, Fraction(12))
    side = made.side()
    thresholds = {laplace_scale(1, made.epsilon / 3): side.error + 1 + made.margin}
    count = side.error + made.margin
    base = [(1, 1)] * count
    sets = [[*base, extra] for extra in ((1, 1), (1, 0), (-3, 1), (3, 1))]
    laws = [learned_law(made, data, thresholds) for data in sets]
    worst = max(smallest_delta(a, b, 12.0) for a, b in itertools.permutations(laws, 2))
    assert worst <= 1e-7
    assert max(smallest_delta(a, b, 2.5) for a, b in itertools.permutations(laws, 2)) > 1e-3


@pytest.mark.parametrize("cuts", [1, 3, 20])
def test_counts_of_bins_and_labels_move_by_two(cuts):
    made, seen = CountedCutLearner(tuple(range(cuts)), ONE), Noted()
    for number, label in ((-5, 0), (cuts + 5, 1), (-5, 1)):
        made.run_columns([[number, 0], [label, 1]], seen)
    moved = [sum(abs(a - b) for a, b in zip(one, seen.values[0], strict=True)) for one in seen.values[1:]]
    assert moved == [2, 2]
    assert set(seen.scales) == {2.0}


def test_agreements_are_those_of_the_definition():
    for numbers in ([3, -2, 3, 7, 0], [1 << 70, -(1 << 80), 3, 3, 1 << 70]):
        labels = [True, False, False, True, True]
        values, scores = agreements(numbers, labels)
        assert values == sorted(set(numbers))
        for cut, score in zip([values[0], *(value + 1 for value in values)], scores, strict=True):
            assert score == sum((number < cut) == label for number, label in zip(numbers, labels, strict=True))


def right_cuts(made, bits, people, runs):
    """How often the error is as stated, with the right threshold in a gap of every size and labels that agree."""
    draws = Seeded(1)
    kept = 0
    for run in range(runs):
        gap = 1 << (1 + (run * 97) % (bits - 2))
        numbers = [-gap - int(RNG.integers(3)) for _ in range(people // 2)]
        numbers += [gap + int(RNG.integers(3)) for _ in range(people - people // 2)]
        labels = [number < 0 for number in numbers]
        rows = made.run_columns([numbers, [int(label) for label in labels]], draws).rows
        wrong = [sum((n < row.item) != label for n, label in zip(numbers, labels, strict=True)) for row in rows]
        kept += bool(rows) and wrong[0] <= made.search().error
    return kept


@pytest.mark.parametrize(("bits", "delta"), [(48, None), (700, DELTA)])
def test_a_threshold_is_as_good_as_stated(bits, delta):
    made = CutLearner(bits, Fraction(2), delta)
    assert (made.search().depth > 1) is (delta is not None)
    assert right_cuts(made, bits, made.smallest, 12) >= 8  # of 12 with 95% or more each: fewer below 1e-3


def test_the_smaller_error_is_taken():
    """RecConcave for long numbers only, and then without a delta that it does not need."""
    short, long = CutLearner(32, ONE, DELTA), CutLearner(2000, ONE, DELTA)
    assert (short.price.delta, long.price.delta) == (0, DELTA)
    assert long.search().error < CutLearner(2000, ONE).search().error
    assert CutLearner(32, ONE).search().error == short.search().error


def test_thresholds_of_a_list_and_from_counts():
    draws = Seeded(1)
    numbers = [str(k % 100) for k in range(4000)]
    labels = ["yes" if k % 100 < 40 and k % 9 else "no" for k in range(4000)]
    cuts = tuple(range(0, 101, 10))
    listed = ListedCutLearner(cuts, ONE).run_columns([numbers, labels], draws)
    assert listed.rows[0].item == 40
    labels_only = LabelCutLearner(ONE).run_columns([numbers, labels], draws).rows[0].item
    assert abs(labels_only - 40) <= 2
    counted, right = CountedCutLearner(cuts, ONE), 0
    errors = sum(label == "no" and int(number) < 40 for number, label in zip(numbers, labels, strict=True))
    for _ in range(20):
        (row,) = counted.run_columns([numbers, labels], draws).rows
        right += row.item == 40 and row.low <= errors <= row.high
    assert right >= 16  # of 20 with 95% or more each: fewer with a probability under 0.3%


def test_the_interval_of_a_chosen_cut_holds_where_all_cuts_are_alike():
    """Labels by a coin: the cut with the smallest noisy count is chosen for its noise."""
    draws = Seeded(1)
    cuts, held = tuple(range(1, 200)), 0
    made = CountedCutLearner(cuts, ONE)
    for _ in range(10):
        numbers, labels = RNG.integers(0, 200, 400).tolist(), RNG.integers(0, 2, 400).tolist()
        (row,) = made.run_columns([numbers, labels], draws).rows
        truth = sum((number < row.item) != label for number, label in zip(numbers, labels, strict=True))
        held += row.low <= truth <= row.high
    assert held >= 7


def box(people):
    numbers = RNG.integers(0, 1000, (2, people))
    labels = (numbers[0] > 200) & (numbers[0] < 700) & (numbers[1] > 100)
    return [numbers[0].tolist(), numbers[1].tolist(), labels.astype(int).tolist()]


def test_a_box_is_as_good_as_stated():
    draws = Seeded(1)
    made, right = RectangleLearner(2, 10, Fraction(4), DELTA), 0
    for _ in range(10):
        x, y, labels = box(made.smallest)
        rows = made.run_columns([x, y, labels], draws).rows
        left, end, low, high = (row.item for row in rows)
        inside = [left <= a <= end and low <= b <= high for a, b in zip(x, y, strict=True)]
        assert not any(found and not label for found, label in zip(inside, labels, strict=True))
        right += sum(a != b for a, b in zip(inside, labels, strict=True)) <= made.error
    assert right >= 7


def test_no_box_where_few_have_the_label():
    made = RectangleLearner(1, 10, Fraction(4))
    outcome = made.run_columns([[5] * made.smallest, [0] * made.smallest], DRAWS)
    assert outcome.rows == ()
    assert "always 0" in outcome.note


def test_an_item_is_learned():
    draws = Seeded(1)
    made = PointLearner(ONE, DELTA)
    items = ["secret"] * (made.smallest // 2) + ["other"] * made.smallest
    labels = [item == "secret" for item in items]
    right = [made.run_columns([items, [int(label) for label in labels]], draws).rows for _ in range(12)]
    assert sum(bool(rows) and rows[0].item == "secret" for rows in right) >= 8
    nothing = made.run_columns([items, ["0"] * len(items)], Fixed(10**6))
    assert nothing.rows == ()


def test_labels_are_checked_and_rows_named():
    assert labels_of(["0", "Yes", 1, "false"]) == [False, True, True, False]
    with pytest.raises(InvalidSpec, match="row 2: the label is not 0 or 1") as said:
        labels_of(["0", "2", "1"])
    assert "'2'" not in str(said.value)


@pytest.mark.parametrize(
    ("made", "columns", "said"),
    [
        (ListedCutLearner((1,), ONE), [["1"]], "learns from labels"),
        (ListedCutLearner((1,), ONE), [["1"], ["1"], ["1"]], "one --column beside"),
        (RectangleLearner(2, 8, ONE), [["1"], ["1"]], "made for 2 columns"),
        (CutLearner(8, ONE), [["x"], ["1"]], "not a whole number"),
    ],
)
def test_wrong_columns_are_refused(made, columns, said):
    with pytest.raises(InvalidSpec, match=said):
        made.run_columns(columns, DRAWS)


def test_parameters_that_make_no_sense():
    for wrong in (
        lambda: ListedCutLearner((2, 1), ONE),
        lambda: RectangleLearner(0, 8, ONE),
        lambda: PointLearner(ONE, Fraction(0)),
        lambda: CutLearner(0, ONE),
        lambda: CountedCutLearner((), ONE),
    ):
        with pytest.raises(InvalidSpec):
            wrong()
