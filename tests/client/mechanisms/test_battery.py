"""The battery on every mechanism; and on broken ones, which it must catch."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ldp_client.mechanisms import MECHANISMS, REPRODUCTIONS
from ldp_client.mechanisms.expander_sketch import ExpanderSketch
from ldp_client.mechanisms.hashtogram import Hashtogram
from ldp_client.mechanisms.linear_hash import LinearHash
from ldp_client.mechanisms.randomized_response import RandomizedResponse
from ldp_client.mechanisms.shared.axis import Axis
from ldp_client.mechanisms.tree_sketch import TreeSketch
from ldp_client.protocol.epsilon import Epsilon
from tests.client.mechanisms import broken
from tests.client.mechanisms.battery import check_declared, check_law, check_marginals
from tests.examples import ENUMERABLE, FULL, LISTABLE, label

SEED = bytes(range(32))
ONE, TWO = Epsilon("1"), Epsilon("2")

BAD_SEEDS = [bytes(32), b"\xff" * 32, b"\x01" * 32, bytes(range(31, -1, -1))]


def _lines(randomizer):
    """How many lines of words there are for all items together: what the enumeration costs."""
    return randomizer.size << randomizer.word_bits * randomizer.words


def _with_fewer_words(randomizer):
    """Two bits a word. At this epsilon two responses at half of it have the ratio 9 of the 9.025 that are allowed."""
    return replace(randomizer, word_bits=2, epsilon=Epsilon("2.2"))


LONG = [one for one in ENUMERABLE if _lines(one) > 1 << 19]
SHORT = [_with_fewer_words(one) if one in LONG else one for one in ENUMERABLE]
SLOW = [pytest.param(one, marks=pytest.mark.slow) for one in LONG]


@pytest.mark.parametrize("randomizer", [*SHORT, *SLOW], ids=label)
@pytest.mark.thinned(24)
def test_law(randomizer):
    check_law(randomizer)


def test_the_small_form_of_a_long_instance_has_nothing_to_spare():
    """So a second report with more than half of epsilon would show in it."""
    assert [one.name for one in LONG] == ["expander-sketch"]
    for one in map(_with_fewer_words, LONG):
        assert one.oracle is not None
        assert one.ratio <= one.epsilon.e_low < one.ratio * 1.003


@pytest.mark.parametrize("randomizer", FULL, ids=label)
def test_epsilon_is_kept_and_not_wasted(randomizer):
    # A reproduction with few draws shows a theorem; it need not spend all of its epsilon.
    check_declared(randomizer, 1 if randomizer.name in REPRODUCTIONS else 1e-9)


@pytest.mark.parametrize("randomizer", LISTABLE, ids=label)
@pytest.mark.thinned(22)
def test_marginals(randomizer):
    check_marginals(randomizer)


def test_every_mechanism_is_in_the_battery():
    for examples in (ENUMERABLE, FULL, LISTABLE):
        assert {r.name for r in examples} == set(MECHANISMS)


def test_both_forms_of_the_response_are_in_the_battery():
    spares = [r.response.spare for r in ENUMERABLE if isinstance(r, RandomizedResponse)]
    assert any(spares) and not all(spares)


@pytest.mark.parametrize("seed", BAD_SEEDS, ids=lambda s: s[:2].hex())
def test_no_seed_changes_epsilon(seed):
    hostile = Hashtogram(ONE, 5, seed, 2, 2, 2, 4)
    check_law(hostile)
    assert hostile.ratio == LinearHash(ONE, 4, 2, 2, 4).ratio


def test_a_hash_that_merges_everything_keeps_epsilon():
    """The worst public randomness there is: every item in one cell of every row."""

    class OneCell(Hashtogram):
        def cell(self, index, team):
            return 0

    check_law(OneCell(ONE, 5, SEED, 2, 2, 2, 4))


@pytest.mark.parametrize("seed", BAD_SEEDS, ids=lambda s: s[:2].hex())
@pytest.mark.thinned(2)
def test_no_seed_changes_a_sketchs_epsilon(seed):
    hostile = ExpanderSketch(ONE, 8, seed, 3, 2, 1, 2, 0, 2, 5, word_bits=4)
    check_law(hostile)
    assert hostile.ratio == LinearHash(ONE, 32, 2, 5, 4).ratio


def test_a_sketch_that_merges_everything_keeps_epsilon():
    class OneCell(ExpanderSketch):
        def cell(self, index, team):
            return 0

    check_law(OneCell(ONE, 8, SEED, 3, 2, 1, 2, 0, 2, 5, word_bits=4))


def test_a_sketch_whose_second_report_has_the_whole_budget_is_caught():
    """Two reports at epsilon/2 keep epsilon; were one of them not halved, the battery would say so."""
    sketch = ExpanderSketch(ONE, 4, SEED, 4, 2, 1, 3, 2, 2, 6, 0, 1, 2, 1)
    check_declared(sketch)
    object.__setattr__(sketch, "oracle", Hashtogram(ONE, 4, SEED, 1, 2, 1))
    with pytest.raises(AssertionError, match="exceeded"):
        check_declared(sketch)


EPSILONS = ["0.01", "0.0125", "0.1", "0.5", "1", "2", "3.3", "5.5", "10", "15", "20"]


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("k", [2, 3, 4, 100, 1024, 65_536, 65_537, 1 << 18, (1 << 20) - 1, 1 << 20])
def test_declared_randomized_response(epsilon, k):
    check_declared(RandomizedResponse(Epsilon(epsilon), k))


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize(("q", "t"), [(2, 1), (2, 16), (3, 11), (4, 8), (5, 7), (7, 2), (8, 6), (257, 2), (4093, 2)])
def test_declared_linear_hash(epsilon, q, t):
    check_declared(LinearHash(Epsilon(epsilon), min(q**t, 1000), q, t))
    check_declared(Hashtogram(Epsilon(epsilon), 1 << 200, SEED, 4, q, t))
    if q**t >= 1 << 10:
        check_declared(ExpanderSketch(Epsilon(epsilon), 1 << 20, SEED, 6, 4, 2, 2, 0, q, t))
        check_declared(TreeSketch(Epsilon(epsilon), 1 << 20, SEED, 8, 4, 10, q, t, 1))
        if epsilon not in ("0.01", "0.0125"):  # half of them is below the least epsilon
            two = ExpanderSketch(Epsilon(epsilon), 1 << 20, SEED, 6, 4, 1, 3, 4, q, t, 0, 2, 3, 4)
            check_declared(two)


LINE = (
    Axis(
        False,
        1,
        (24 << 58, 16 << 58),
        tuple(weight << 58 for weight in (19, 12, 16, 8, 9)),
        tuple(weight << 58 for weight in (22, 20, 22)),
    ),
)


@pytest.mark.parametrize(
    "randomizer",
    [
        broken.CoordinateNeverRandomized(ONE, 4, 2, 2, 6),
        broken.CoordinateNeverRandomized(TWO, 9, 3, 2, 7),
        broken.CoordinateNeverRandomized(ONE, 16, 4, 2, 6),
        broken.ReusedWord(ONE, 4, 2, 2, 6),
        broken.RoundedAwayResponse(ONE, 3, 10),
        broken.RoundedAwayResponse(ONE, 2, 12),
        broken.LieCanBeTruth(ONE, 3, 10),
        broken.LieCanBeTruth(TWO, 7, 12),
        broken.SkippedAnswer(ONE, 3, 10),
        broken.RemembersTheItem(ONE, 3, 10),
        broken.TurnedTheWrongWay(ONE, 5, 2, 4),
        broken.OneWordForTheRank(ONE, 5, 2, 4),
        broken.HoldsTheItemTooOften(ONE, 5, 2, 4),
        broken.FillersLeftOut(ONE, 8, 2, 2, 3),
        broken.CutIsNotTold(ONE, 8, 2, 2, 3),
        broken.KeptWhole(ONE, 8, 2, 1, 3),
        broken.RunFromTheRanksWord(ONE, 8, 2, 2, 3),
        broken.HitsFromTheFirstRank(ONE, 8, 2, 2, 3),
        broken.HitsTooOften(ONE, 8, 2, 2, 3),
        broken.OverstatedRatio(ONE, 3, 10),
        broken.LimitOnTheWrongSide(ONE, 2, tuple(w << 58 for w in (46, 18, 18, 46)), (), 6),
        broken.ReadsTheTableAcross(ONE, 3, tuple(w << 58 for w in (30, 18, 16, 14, 36, 14, 20, 14, 30)), (), 6),
        broken.StopsShort(Epsilon("1.5"), ("",), LINE, 6),
        broken.NoneStaysPut(Epsilon("1.5"), ("",), LINE, 6),
        broken.MovesUnproved(Epsilon("1.2"), ("",), LINE, 6),
        broken.NeverProved(ONE, 2, tuple(w << 58 for w in (47, 17, 17, 47)), (), 6),
    ],
    ids=lambda r: f"{type(r).__name__}-{r.size}",
)
@pytest.mark.thinned(13)
def test_broken_mechanisms_are_caught(randomizer):
    with pytest.raises(AssertionError):
        check_law(randomizer)


def test_a_wrong_threshold_is_caught_at_64_bits():
    with pytest.raises(AssertionError, match="exceeded"):
        check_declared(broken.RoundedAwayResponse(ONE, 3))


def test_needless_noise_is_caught():
    class Timid(RandomizedResponse):
        @property
        def ratio(self):
            return super().ratio * (1 - 3 * 10**-9)

    check_declared(RandomizedResponse(ONE, 3))
    with pytest.raises(AssertionError, match="more noise"):
        check_declared(Timid(ONE, 3))
