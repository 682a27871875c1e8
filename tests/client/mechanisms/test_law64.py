"""The laws at 64 bits, where words cannot all be tried: the map from words to answers is piecewise constant, so it is
checked at both ends of every piece."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ldp_client.coins import draw_words
from ldp_client.mechanisms.base import scaled
from ldp_client.mechanisms.hashtogram import Hashtogram
from ldp_client.mechanisms.linear_hash import LinearHash
from ldp_client.mechanisms.randomized_response import RandomizedResponse, Response
from ldp_client.protocol.epsilon import Epsilon

N = 1 << 64
SEED = bytes(range(32))


@pytest.mark.parametrize("epsilon", ["0.01", "1", "7"])
@pytest.mark.parametrize("k", [2, 3, 10, 257])
def test_every_piece_of_the_response(epsilon, k):
    """The truth is one run of words; the lies go round and round, W times; leftover words are counted off."""
    response = Response(Epsilon(epsilon), k)
    lies_end = N - response.spare
    assert lies_end == response.truth + (k - 1) * response.lie
    for truth in {0, 1, k // 2, k - 1}:
        assert response.choose(0, truth) == response.choose(response.truth - 1, truth) == truth
        others = [answer for answer in range(k) if answer != truth]
        for start in (response.truth, response.truth + (k - 1) * (response.lie // 3), lies_end - (k - 1)):
            assert [response.choose(start + j, truth) for j in range(k - 1)] == others
        leftover = [response.choose(word, truth) for word in range(lies_end, N)]
        assert leftover == [i % k for i in range(response.spare)]
        assert sum(response.weight(truth, answer) for answer in range(k)) == N


def test_leftover_words_answer_the_same_whatever_the_truth():
    response = Response(Epsilon("0.01"), 1 << 20)
    assert response.spare > 0
    for word in (N - response.spare, N - 1):
        assert len({response.choose(word, truth) for truth in (0, 1, 12345, (1 << 20) - 1)}) == 1
    # Just below them is the last lie: the last answer, or the one before it for the last answer's own holder.
    assert response.choose(N - response.spare - 1, 0) == (1 << 20) - 1
    assert response.choose(N - response.spare - 1, (1 << 20) - 1) == (1 << 20) - 2


@given(st.integers(2, 1 << 20), st.integers(0, 1 << 20))
def test_scaled_counts_words(count, number):
    number %= count
    share = scaled(number, count, 64)
    first = -(-(number << 64) // count)
    assert first * count >> 64 == number
    assert number == 0 or (first - 1) * count >> 64 == number - 1
    assert abs(share - Fraction(1, count)) < Fraction(1, N)


@pytest.mark.parametrize(("q", "t"), [(2, 4), (3, 3), (5, 2), (31, 1), (37, 2)])
def test_points_are_one_vector_of_every_line(q, t):
    """Each non-zero vector is a multiple of exactly one point."""
    mechanism = LinearHash(Epsilon("1"), q**t, q, t)
    assert mechanism.points == (q**t - 1) // (q - 1)
    seen = set()
    for j in range(mechanism.points):
        digits = [mechanism.point(j) // q**i % q for i in range(t)]
        seen |= {sum(c * x % q * q**i for i, x in enumerate(digits)) for c in range(1, q)}
    assert seen == set(range(1, q**t))


@pytest.mark.parametrize(("q", "t"), [(2, 16), (3, 11), (5, 7), (257, 2), (4093, 2), (2, 1), (7, 1)])
@given(data=st.data())
def test_product_is_the_inner_product(q, t, data):
    mechanism = LinearHash(Epsilon("1"), min(q**t, 1000), q, t)
    a, x = (data.draw(st.integers(0, q**t - 1)) for _ in range(2))
    expected = sum((a // q**i % q) * (x // q**i % q) for i in range(t)) % q
    assert mechanism.product(a, x) == expected


@pytest.mark.parametrize(
    "randomizer",
    [
        RandomizedResponse(Epsilon("1"), 9),
        LinearHash(Epsilon("1"), 9, 3, 2),
        Hashtogram(Epsilon("1"), 1 << 70, SEED, 3, 3, 2),
    ],
    ids=lambda r: r.name,
)
def test_every_coordinate_of_a_report_is_randomized(randomizer):
    """Given anything but the answer, every answer is possible for every item: no coordinate is a plain copy."""
    for index in (0, 1, 2, 8):
        law = [randomizer.probability(index, report) for report in range(randomizer.bound)]
        assert sum(law) == 1
        assert min(law) > 0
        assert max(law) / min(law) <= randomizer.epsilon.e_low * (1 + Fraction(randomizer.bound, 1 << 60))
        answers = randomizer.bound if isinstance(randomizer, RandomizedResponse) else 3
        for first in range(0, randomizer.bound, answers):
            part = law[first : first + answers]
            assert max(part) / min(part) == randomizer.ratio


def test_words_are_fixed_and_the_function_is_pure():
    for randomizer in (
        RandomizedResponse(Epsilon("1"), 9),
        LinearHash(Epsilon("1"), 9, 3, 2),
        Hashtogram(Epsilon("1"), 1 << 70, SEED, 3, 3, 2),
    ):
        words = draw_words(randomizer.words)
        reports = {randomizer.randomize(5, words) for _ in range(10)}
        assert len(reports) == 1
        with pytest.raises(IndexError):
            randomizer.randomize(5, words[:-1])
        # A word more than needed changes nothing: none is read.
        assert randomizer.randomize(5, (*words, 123)) in reports


def test_randomizers_are_frozen_and_quiet():
    randomizer = Hashtogram(Epsilon("1"), 1 << 70, SEED, 3, 3, 2)
    with pytest.raises(AttributeError):
        randomizer.rows = 4
    assert SEED.hex() not in repr(randomizer)
    assert str(SEED) not in repr(randomizer)
