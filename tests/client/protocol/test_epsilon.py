"""Epsilon: exact, in one form only, and its exponential rounded down for certain."""

from __future__ import annotations

from decimal import Context, Decimal
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ldp_client.errors import InvalidSpec
from ldp_client.protocol.epsilon import Epsilon, floor_exp
from tests.vectors import independent

EXACT = Context(prec=120)
EPSILONS = st.integers(10_000_000, 20_000_000_000).map(lambda n: Epsilon.parse(str(Decimal(n).scaleb(-9))))
"""Every epsilon there is: 0.01 to 20 in steps of 10^-9."""


@settings(max_examples=300, deadline=None, derandomize=True)
@given(EPSILONS)
def test_e_low_is_the_floor(epsilon: Epsilon) -> None:
    e_low = epsilon.e_low
    assert e_low == independent.e_low(epsilon.text)
    # e^epsilon to 120 digits, and the slack of its last digit: e_low <= e^epsilon < e_low + 2^-64 for certain.
    power = Fraction(EXACT.exp(Decimal(epsilon.text)))
    slack = power / 10**110
    assert e_low < power - slack
    assert power + slack < e_low + Fraction(1, 1 << 64)
    assert (e_low * (1 << 64)).denominator == 1


@settings(max_examples=100, deadline=None, derandomize=True)
@given(EPSILONS, st.integers(0, 400))
def test_the_floor_is_the_same_at_every_precision(epsilon: Epsilon, bits: int) -> None:
    assert floor_exp(epsilon.value, bits + 64) >> 64 == floor_exp(epsilon.value, bits)


def test_the_floor_of_small_and_zero_exponents() -> None:
    assert floor_exp(Fraction(0), 64) == 1 << 64
    assert floor_exp(Fraction(0), 0) == 1
    assert floor_exp(Fraction(1), 0) == 2
    assert floor_exp(Fraction(20), 0) == 485_165_195
    assert floor_exp(Fraction(1, 10**40), 64) == 1 << 64


@settings(max_examples=200, deadline=None, derandomize=True)
@given(EPSILONS)
def test_text_and_number_are_one(epsilon: Epsilon) -> None:
    assert Epsilon(epsilon.text) == Epsilon.parse(epsilon.text) == epsilon
    assert epsilon.value == Fraction(epsilon.text)
    assert float(epsilon) == float(epsilon.text)
    assert str(epsilon) == epsilon.text
    for written in (epsilon.text + ("0" if "." in epsilon.text else ".0"), "0" + epsilon.text, f" {epsilon.text} "):
        assert Epsilon.parse(written) == epsilon
        with pytest.raises(InvalidSpec):
            Epsilon(written)


@pytest.mark.parametrize(
    ("written", "text"), [("1.0", "1"), ("1e1", "10"), ("0.50", "0.5"), (2, "2"), ("20", "20"), ("1e-2", "0.01")]
)
def test_what_people_write(written: str | int, text: str) -> None:
    assert Epsilon.parse(written).text == text


@pytest.mark.parametrize(
    "written",
    [
        *(
            "",
            "one",
            "nan",
            "snan",
            "inf",
            "-inf",
            "-1",
            "0",
            "0.009",
            "20.000000001",
            "1e9999999",
            "1e-9999999",
            "0x1",
        ),
        *("1.0000000001", "1" * 33, "0." + "0" * 40 + "1", 0, 21, -1, 10**5000, True, 1.0, None, b"1", Decimal(1), [1]),
    ],
    ids=lambda written: repr(written)[:20] if not isinstance(written, int) else f"int of {written.bit_length()} bits",
)
def test_what_is_no_epsilon(written: object) -> None:
    with pytest.raises(InvalidSpec):
        Epsilon.parse(written)


@pytest.mark.parametrize(
    "text",
    ["1.0", "01", "0.009", "20.5", "1e0", "nan", "\u0661", "\uff11", "0.\u0665", "1\n", " 1", "+1", "", "1_0", 1, None],
)
def test_other_forms_are_refused_in_a_spec(text: object) -> None:
    with pytest.raises(InvalidSpec):
        Epsilon(text)


def test_frozen() -> None:
    with pytest.raises(AttributeError):
        Epsilon("1").text = "20"


def test_what_a_person_may_write_is_thirty_two_characters_long() -> None:
    assert Epsilon.parse("1." + "0" * 30) == Epsilon("1")
    with pytest.raises(InvalidSpec, match="too many digits"):
        Epsilon.parse("1." + "0" * 31)
    with pytest.raises(InvalidSpec, match=r"between 0\.01 and 20"):
        Epsilon.parse((1 << 32) - 1)
    with pytest.raises(InvalidSpec, match="too many digits"):
        Epsilon.parse(1 << 32)


def test_e_to_the_zero_is_one_and_ends() -> None:
    assert floor_exp(Fraction(0), 64) == 1 << 64
    assert floor_exp(Fraction(0), 1) == 2
