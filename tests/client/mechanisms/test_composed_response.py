"""Yes/no attributes: composed response and one sampled attribute, by enumeration and against the theorem."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ldp_client.collection import Collection
from ldp_client.errors import InvalidSpec
from ldp_client.mechanisms.composed_response import (
    FLIP_BITS,
    ComposedResponse,
    design,
    krawtchouk,
    shell_weights,
)
from ldp_client.mechanisms.records.sampled_attribute import SampledAttribute
from ldp_client.privacy.curves import LawCurve
from ldp_client.protocol.domain import Attributes, Categories
from ldp_client.protocol.epsilon import Epsilon
from ldp_client.protocol.subsets import subset
from tests.client.mechanisms.battery import check_declared

ONE, TWO, FOUR = Epsilon("1"), Epsilon("2"), Epsilon("4")
HALF = 1 << FLIP_BITS - 1


def flip(share):
    return int(share * (1 << FLIP_BITS))


@pytest.mark.parametrize("epsilon", ["0.1", "1", "3.3", "8"])
@pytest.mark.parametrize("k", [1, 2, 5, 12, 20])
@pytest.mark.thinned(10)
def test_designed_parameters_spend_all_of_epsilon_and_no_more(epsilon, k):
    if k == 20 and epsilon != "1":
        return
    check_declared(ComposedResponse(Epsilon(epsilon), 1 << k, **design(epsilon, k)))
    check_declared(SampledAttribute(Epsilon(epsilon), 1 << k))


@pytest.mark.parametrize(("k", "chosen"), [(5, 0), (5, 2), (7, 3), (6, 6)])
def test_subsets_are_counted_once_each(k, chosen):
    found = [subset(k, chosen, rank) for rank in range(math.comb(k, chosen))]
    assert sorted(found) == sorted(sum(1 << i for i in some) for some in itertools.combinations(range(k), chosen))


@given(st.integers(1, 8), st.data())
def test_krawtchouk_is_a_sum_over_a_shell(k, data):
    w, d = data.draw(st.integers(0, k)), data.draw(st.integers(0, k))
    s = (1 << w) - 1
    assert krawtchouk(k, d, w) == sum((-1) ** (y & s).bit_count() for y in range(1 << k) if y.bit_count() == d)


def test_every_piece_at_64_bits():
    """At both ends of every distance's words, and of the leftover ones."""
    randomizer = ComposedResponse(TWO, 1 << 6, **design("2", 6))
    starts = randomizer._starts
    for item in (0, 1, 0b101101, 63):
        for d in range(7):
            for word in (starts[d], starts[d + 1] - 1):
                assert (randomizer.randomize(item, (word,)) ^ item).bit_count() == d
        for word in range(starts[-1], min(1 << 64, starts[-1] + 70)):
            assert randomizer.randomize(item, (word,)) == (word - starts[-1]) % 64
    assert randomizer.spare < 64
    ranks = {randomizer.randomize(0, (starts[3] + rank * randomizer.weights[3],)) for rank in range(20)}
    assert len(ranks) == 20


def test_the_marginal_of_every_attribute():
    randomizer = ComposedResponse(TWO, 1 << 5, **design("2", 5))
    keep = (1 + randomizer.eigenvalue(1)) / 2
    for item, i in itertools.product((0, 7, 31), range(5)):
        honest = sum(randomizer.probability(item, y) for y in range(32) if (y >> i & 1) == (item >> i & 1))
        assert abs(honest - keep) < Fraction(32, 1 << 64)
        assert Fraction(1, 2) < honest < 1


def plain_shell(k, epsilon0, beta):
    """The shell of Theorem 5.1."""
    centre, width = k / (math.exp(epsilon0) + 1), math.sqrt(k * math.log(2 / beta) / 2)
    return max(0, math.ceil(centre - width)), min(k, math.floor(centre + width))


def exact_epsilon(k, epsilon0, beta):
    low, high = plain_shell(k, epsilon0, beta)
    weights = shell_weights(k, low, high, flip(1 / (math.exp(epsilon0) + 1)), 2 * k)
    return math.log(Fraction(max(weights), min(weights))), (low, high)


@pytest.mark.parametrize(("k", "epsilon0"), [(100, 0.005), (400, 0.003), (900, 0.002), (400, 0.001)])
def test_the_theorem_and_by_how_much_it_is_too_large(k, epsilon0):
    beta = 0.99 * (epsilon0 * math.sqrt(k) / (2 * (k + 1))) ** (2 / 3)
    bound = 6 * epsilon0 * math.sqrt(k * math.log(1 / beta))
    exact, (low, high) = exact_epsilon(k, epsilon0, beta)
    assert bound <= 1.0
    assert 3 < bound / exact < 6
    # And it is what composition promises: below the sum of the epsilons for many attributes.
    assert exact < k * epsilon0
    # Identical to plain responses with probability 1 - beta, at least.
    f = 1 / (math.exp(epsilon0) + 1)
    inside = sum(math.comb(k, d) * f**d * (1 - f) ** (k - d) for d in range(low, high + 1))
    assert inside >= 1 - beta


@pytest.mark.parametrize(("k", "epsilon"), [(4, "1"), (6, "2"), (5, "4")])
def test_the_whole_curve(k, epsilon):
    randomizer = ComposedResponse(Epsilon(epsilon), 1 << k, **design(epsilon, k))
    laws = [
        [randomizer.probability(x, y) for y in range(1 << k)] for x in (0, *(((1 << d) - 1) for d in range(1, k + 1)))
    ]
    curve = LawCurve(laws)
    assert curve.ratio <= randomizer.ratio <= randomizer.epsilon.e_low
    assert curve.pure == pytest.approx(float(epsilon), rel=1e-9)
    assert curve.delta(epsilon) == 0.0


def test_beta_is_the_probability_of_leaving_the_shell():
    randomizer = ComposedResponse(TWO, 8, 0, 1, flip(0.42), 12)
    outside = sum(randomizer.probability(0, y) for y in range(8) if y.bit_count() > 1)
    assert abs(outside - randomizer.beta) <= Fraction(8, 1 << 12)


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: ComposedResponse(ONE, 6, 0, 1, HALF), "attributes"),
        (lambda: ComposedResponse(ONE, 1 << 21, 0, 1, HALF), "attributes"),
        (lambda: ComposedResponse(ONE, 8, 2, 1, HALF), "low"),
        (lambda: ComposedResponse(ONE, 8, 0, 4, HALF), "low"),
        (lambda: ComposedResponse(ONE, 8, 0, 1, 0), "flip"),
        (lambda: ComposedResponse(ONE, 8, 0, 1, HALF + 1), "flip"),
        (lambda: ComposedResponse(ONE, 8, 0, 3, flip(0.1)), "more than its epsilon"),
        (lambda: SampledAttribute(ONE, 6), "attributes"),
        (lambda: design("1", 0), "attributes"),
        (lambda: design("1", 21), "attributes"),
        (lambda: Attributes(()), "lists"),
        (lambda: Attributes(("a", "a")), "twice"),
        (lambda: Attributes(("",)), "not empty"),
        (lambda: Attributes(("a" * 257,)), "bytes"),
        (lambda: Attributes(tuple(map(str, range(21)))), "lists"),
    ],
)
def test_what_does_not_fit_is_refused_with_the_reason(make, text):
    with pytest.raises(InvalidSpec, match=text):
        make()


def test_the_domain():
    domain = Attributes(("smokes", "drives", "votes"))
    assert domain.size == 8
    for index in range(8):
        assert domain.index(domain.item(index)) == index
    assert domain.item(0) is None
    assert domain.index(frozenset()) == domain.index(None) == 0
    assert domain.index({"votes", "smokes"}) == 5
    assert domain.index({"votes", "sings"}) == 0
    for wrong in ("votes", ["votes"], 3, {1}):
        with pytest.raises(TypeError, match="a set of str") as caught:
            domain.index(wrong)
        assert "votes" not in str(caught.value)


@pytest.mark.parametrize("mechanism", ["composed-response", "sampled-attribute"])
def test_in_a_collection(mechanism):
    domain = Attributes(("smokes", "drives", "votes"))
    parameters = design("1", 3) if mechanism == "composed-response" else {}
    collection = Collection.create("Which?", domain, mechanism, "1", opens=1, closes=2, parameters=parameters)
    assert Collection.from_toml(collection.to_toml()) == collection
    assert Collection.from_json(collection.to_json()).id == collection.id
    assert Collection.from_bytes(collection.spec_bytes).randomizer == collection.randomizer
    words = tuple(range(collection.randomizer.words))
    assert len(collection.randomize({"drives"}, words)) == len(collection.randomize(None, words)) == 1
    with pytest.raises(InvalidSpec, match="attributes domain"):
        Collection.create("?", Categories(("a", "b", "c")), mechanism, "1", opens=1, closes=2, parameters=parameters)
