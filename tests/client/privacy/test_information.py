from __future__ import annotations

import math
import random
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ldp_client.errors import InvalidSpec
from ldp_client.privacy.curves import pure_rho
from ldp_client.privacy.information import best_guess, mutual_information, odds_factor
from tests.client.accounting import (
    block_information,
    block_total_variation,
    information_of_response,
    max_information,
    max_information_rules,
)
from tests.client.privacy.reference import dec, response_law

epsilons = st.fractions(min_value="1/100", max_value=20, max_denominator=1000)


def information(prior: list[Decimal], rows: list[list[Decimal]]) -> Decimal:
    out = [sum(w * row[y] for w, row in zip(prior, rows, strict=True)) for y in range(len(rows[0]))]
    return sum(
        w * p * (p / q).ln()
        for w, row in zip(prior, rows, strict=True)
        for p, q in zip(row, out, strict=True)
        if w and p
    )


@given(epsilons, st.integers(2, 12))
def test_capacity_of_randomized_response(epsilon, k):
    truth = information([Decimal(1) / k] * k, response_law(epsilon, k))
    value = dec(information_of_response(epsilon, k))
    assert truth <= value <= truth * (1 + dec("1e-8"))
    assert value <= dec(mutual_information(epsilon))


def test_reference_values():
    assert information_of_response(1) == pytest.approx(0.1109, abs=5e-5)
    assert mutual_information(1) == pytest.approx(0.1233, abs=5e-5)
    assert mutual_information(1, 365) == pytest.approx(365 * mutual_information(1))


@given(epsilons)
def test_the_closed_form_is_rounded_up(epsilon):
    e = dec(epsilon)
    c = e * e.exp() / (e.exp() - 1)
    truth = c - 1 - c.ln()
    assert truth <= dec(mutual_information(epsilon)) <= truth * (1 + dec("1e-9"))
    assert mutual_information(epsilon) <= pure_rho(epsilon)


def test_no_mechanism_says_more():
    """Random mechanisms whose columns lie within e^eps, with random priors, never pass the bound."""
    coins = random.Random(7)
    largest = 0.0
    for _ in range(300):
        epsilon = coins.choice([0.3, 1.0, 2.5])
        columns = []
        inputs = coins.randrange(2, 7)
        for _ in range(coins.randrange(2, 6)):
            base = coins.random()
            columns.append([base * math.exp(epsilon * coins.choice([0, 1, coins.random()])) for _ in range(inputs)])
        # Complete every row to a law with two complementary columns that stay within e^eps of each other.
        scale = 1 / max(sum(column[x] for column in columns) for x in range(inputs)) / 2
        rows = [[dec(scale * column[x]) for column in columns] for x in range(inputs)]
        rest = [1 - sum(row) for row in rows]
        if max(rest) > dec(math.exp(epsilon)) * min(rest):
            continue
        rows = [[*row, left] for row, left in zip(rows, rest, strict=True)]
        weights = [dec(coins.random()) for _ in range(inputs)]
        value = information([w / sum(weights) for w in weights], rows)
        assert value <= dec(mutual_information(epsilon))
        largest = max(largest, float(value) / mutual_information(epsilon))
    assert largest > 0.3  # the search came somewhere near


@given(epsilons, st.floats(0.001, 0.999))
def test_guesses_and_odds(epsilon, prior):
    after = best_guess(epsilon, prior)
    assert prior <= after <= 1
    if after < 1 - 1e-4:
        odds = (after / (1 - after)) / (prior / (1 - prior))
        assert odds == pytest.approx(math.exp(epsilon), rel=1e-5)
    assert dec(odds_factor(epsilon)) >= dec(epsilon).exp()


def test_an_even_guess_at_one_is_seventy_three_percent():
    assert best_guess(1, 0.5) == pytest.approx(math.e / (1 + math.e))
    assert best_guess(10, 0.5) == pytest.approx(0.99995, abs=1e-5)


def test_max_information():
    rules = {total.rule: total.epsilon for total in max_information_rules(10_000, "0.1", 1e-6)}
    assert rules["grouposition"] == pytest.approx(50 + 0.1 * math.sqrt(20_000 * math.log(1e6)))
    assert rules["n eps"] == pytest.approx(1000)
    assert rules["grouposition, exact mean"] < rules["grouposition"]
    assert max_information(1, "0.1", 1e-6).rule == "n eps"
    assert max_information(10_000, 3, 1e-6).rule == "grouposition, exact mean"


@pytest.mark.parametrize("n", [1, 3])
def test_max_information_by_listing_everything(n):
    """Uniform items, binary responses: the loss exceeds the statement with probability at most beta, exactly."""
    epsilon, beta = 1.0, 0.2
    p = math.e / (1 + math.e)
    bound = max_information(n, epsilon, beta).epsilon
    tail = 0.0
    for truths in range(n + 1):  # how many of the n responses are true
        loss = truths * math.log(2 * p) + (n - truths) * math.log(2 * (1 - p))
        tail += (math.comb(n, truths) * p**truths * (1 - p) ** (n - truths)) * (loss > bound)
    assert tail <= beta


def test_blocks_of_attributes():
    assert block_information(1, 1) == pytest.approx(0.5)
    assert information_of_response(1) < block_information(1, 1)
    assert block_total_variation(1, "0.1") == pytest.approx(math.expm1(0.2))
    assert block_total_variation(1, math.log(2) / 2 + 1e-9) == 1.0
    for call in (
        lambda: block_information(0, 1),
        lambda: block_total_variation(0, 1),
        lambda: best_guess(1, 0.0),
        lambda: mutual_information(1, -1),
        lambda: information_of_response(1, 1),
        lambda: max_information(0, 1, 0.1),
        lambda: mutual_information(0),
    ):
        with pytest.raises(InvalidSpec):
            call()


def test_a_guess_is_never_more_than_certain():
    """The margin for rounding would exceed 1."""
    assert best_guess("1", 1 - 2.0**-53) == 1.0
