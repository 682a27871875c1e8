"""Every release, run over all outcomes of its draws on all small data sets; and what the papers print, caught."""

import itertools
import math
from fractions import Fraction

import pytest

from benchmarks.curator import wrong
from benchmarks.curator.outcomes import every_law, law_of, smallest_delta, worst_delta, worst_divergence
from ldp_server.curator.laws import exponential_law, laplace_tail
from ldp_server.curator.releases.base import ReleasedRow
from ldp_server.curator.releases.choosing import Choosing
from ldp_server.curator.releases.gap_max import GapMax, GaussianGapMax, ObviousAnswer
from ldp_server.curator.releases.histogram import GaussianHistogram, LaplaceHistogram
from ldp_server.curator.releases.mode import Mode
from ldp_server.curator.releases.quantile import ExponentialQuantile
from ldp_server.curator.releases.stability import StabilityHistogram
from ldp_server.curator.releases.thresholds import GaussianThresholds, LaplaceThresholds
from ldp_server.curator.releases.top import GaussianTop, LaplaceTop
from tests.server.curator.seeded import Noted

TWO, THREE = ("a", "b"), ("a", "b", "c")
NEARLY = 1e-7
ONE, FOUR, DELTA = Fraction(1), Fraction(4), Fraction(1, 50)


@pytest.mark.parametrize(
    ("mechanism", "items", "people"),
    [
        (LaplaceHistogram(TWO, FOUR), TWO, 2),
        (LaplaceHistogram(("a",), ONE), TWO, 2),
        (StabilityHistogram(FOUR, DELTA), TWO, 4),
        (StabilityHistogram(Fraction(2), Fraction(1, 3)), TWO, 3),
        (LaplaceTop(TWO, 1, FOUR), TWO, 3),
        (LaplaceTop(TWO, 2, Fraction(12)), TWO, 2),
        (GapMax(TWO, FOUR), TWO, 4),
        (ObviousAnswer(THREE, ONE), THREE, 6),
        (ObviousAnswer(tuple("abcde"), Fraction(1, 2)), TWO, 6),
        (ObviousAnswer(TWO, Fraction(1, 10)), TWO, 6),
        (Mode(FOUR, DELTA), TWO, 5),
        (Mode(FOUR, Fraction(1, 5)), THREE, 3),
    ],
    ids=lambda value: type(value).__name__ if hasattr(value, "price") else None,
)
@pytest.mark.thinned(6)
def test_the_realised_loss_is_at_most_the_price(mechanism, items, people):
    """Also: the claim is nearly used up, so that this test would see a little less noise."""
    epsilon, delta = float(mechanism.price.epsilon), float(mechanism.price.delta)
    laws = every_law(mechanism, items, people)
    assert worst_delta(laws, items, epsilon) <= delta + NEARLY
    assert worst_delta(laws, items, 0.4 * epsilon) > delta + 1e-4


@pytest.mark.parametrize(
    ("mechanism", "items", "people"),
    [
        (GaussianHistogram(TWO, ONE), TWO, 2),
        (GaussianHistogram(("a",), ONE), TWO, 2),
        (GaussianTop(TWO, 1, Fraction(2)), TWO, 2),
        (GaussianGapMax(TWO, ONE), TWO, 4),
    ],
    ids=lambda value: type(value).__name__ if hasattr(value, "price") else None,
)
def test_the_realised_divergence_is_at_most_rho(mechanism, items, people):
    laws, rho = every_law(mechanism, items, people, 1e-9), float(mechanism.price.rho)
    for order in (1.1, 2.0, 4.0):
        worst = worst_divergence(laws, items, order)
        assert worst <= rho * order * (1 + 1e-6)
    assert worst_divergence(laws, items, 2.0) > 0.15 * rho * 2


def choosing_law(made, counts, people):
    """The law of the choosing mechanism in closed form: nothing, and each item."""
    found = laplace_tail(made.scale, math.ceil(made.share * people / 2) - max(counts))
    return 1 - found, [found * chance for chance in exponential_law(counts, made.scale)]


def choosing_delta(made, people):
    """The largest delta where one of many items that one person alone holds becomes one more of a frequent item."""
    worst, factor = 0.0, math.exp(float(made.epsilon))
    for held in range(1, people, max(1, people // 120)):
        none, one = choosing_law(made, [held] + [1] * (people - held), people)
        none_too, other = choosing_law(made, [held + 1] + [1] * (people - held - 1), people)
        pairs = [(none, none_too), *zip(one[:-1], other, strict=True)]
        there = sum(max(0.0, p - factor * q) for p, q in pairs) + one[-1]
        back = sum(max(0.0, q - factor * p) for p, q in pairs)
        worst = max(worst, there, back)
    return worst


def test_the_choosing_mechanism_is_private_from_the_size_on_below_which_it_refuses():
    """At 900 people, where it refuses, it would not be private at its delta; at its smallest size it is."""
    made = Choosing(Fraction(1, 10), ONE, Fraction(1, 10**6))
    assert choosing_delta(made, 900) > 5e-6
    assert choosing_delta(made, made.smallest) <= 1e-6
    coarse = Choosing(Fraction(1, 2), Fraction(8), Fraction(1, 100))
    assert coarse.smallest == 27
    assert choosing_delta(coarse, 27) <= 0.01 < choosing_delta(coarse, 9)


def test_the_closed_form_is_the_law_of_the_code():
    made = Choosing(Fraction(1, 2), Fraction(8), Fraction(1, 100))
    law = law_of(lambda draws: made.run(["a"] * 9 + ["b"] * 8 + ["c"], draws).rows).chances
    none, items = choosing_law(made, [9, 8, 1], 18)
    assert law[()] == pytest.approx(none, abs=1e-6)
    assert [law[(ReleasedRow(item),)] for item in "abc"] == pytest.approx(items, abs=2e-5)  # a rounding


@pytest.mark.parametrize("at", [Fraction(1, 2), Fraction(1, 10)])
def test_a_quantile_s_realised_loss_is_at_most_its_price(at):
    """All data sets of three numbers out of -3 ... 3: pure epsilon, and the range that its rho is made from."""
    made = ExponentialQuantile(at, 2, ONE)
    numbers = range(-3, 4)
    laws = {
        data: law_of(lambda draws, data=data: made.run(data, draws).rows[0].item)
        for data in itertools.combinations_with_replacement(numbers, 3)
    }
    largest = 0.0
    for data, one in laws.items():
        for place, other in itertools.product(range(3), numbers):
            moved = tuple(sorted((*data[:place], other, *data[place + 1 :])))
            losses = [math.log(chance / laws[moved].chances[value]) for value, chance in one.chances.items()]
            largest = max(largest, max(losses) - min(losses))
    assert 0.5 < largest <= 1 + 1e-9


@pytest.mark.parametrize("cuts", [1, 2, 9, 40])
def test_thresholds_move_by_twice_the_levels(cuts):
    """The counts that get noise move by 2 L in L1 and in squared L2, for the worst pair of numbers."""
    laplace = LaplaceThresholds(tuple(range(cuts)), ONE)
    gaussian = GaussianThresholds(tuple(range(cuts)), ONE)
    worst = 0
    for one, other in [(-1, cuts), (0, 1), (cuts - 1, cuts), (cuts // 2, cuts)]:
        seen = Noted()
        for number in (one, other):
            laplace.run([str(number), "7"], seen)
        moved = [abs(a - b) for a, b in zip(*seen.values, strict=True)]
        assert sum(x * x for x in moved) == sum(moved)
        worst = max(worst, sum(moved))
        assert seen.scales[0] == 2 * laplace.levels
        gaussian.run(["1"], seen)
        assert Fraction(seen.scales[-1]) ** 2 >= gaussian.levels
    assert worst == 2 * laplace.levels


@pytest.mark.parametrize(
    ("mechanism", "items", "people", "least"),
    [
        (wrong.AddRemoveHistogram(TWO, FOUR), TWO, 2, 0.1),
        (wrong.AddRemoveStability(FOUR, DELTA), TWO, 8, 0.05),
        (wrong.PrintedObviousAnswer(THREE, ONE), THREE, 6, 0.01),
    ],
    ids=lambda value: type(value).__name__ if hasattr(value, "price") else None,
)
def test_what_is_printed_is_caught(mechanism, items, people, least):
    epsilon, delta = float(mechanism.price.epsilon), float(mechanism.price.delta)
    assert worst_delta(every_law(mechanism, items, people), items, epsilon) > delta + least


def test_the_printed_mode_passes_with_58_and_8_percent():
    """Counts (14, 0) and (13, 1), epsilon = 1, delta = 1e-6: the printed mechanism needs a delta of at least .363."""
    mechanism = wrong.PrintedMode(ONE, Fraction(1, 10**6))
    lead, less = (
        law_of(lambda draws, data=data: bool(mechanism.run(data, draws).rows))
        for data in (["a"] * 14, [*["a"] * 13, "b"])
    )
    assert lead.chances[True] == pytest.approx(0.584, abs=0.02)
    assert less.chances[True] == pytest.approx(0.081, abs=0.006)
    assert smallest_delta(lead, less, 1.0) > 0.35
    right = Mode(ONE, Fraction(1, 10**6))
    lead, less = (
        law_of(lambda draws, data=data: bool(right.run(data, draws).rows)) for data in (["a"] * 14, [*["a"] * 13, "b"])
    )
    assert smallest_delta(lead, less, 1.0) <= NEARLY
