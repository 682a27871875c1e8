"""Rounding towards privacy: a stated privacy loss is never smaller than the true one.

There are two tools. Where a law is known exactly, the arithmetic is done with fractions and e^x is replaced by a
rational bound (`exp_floor`, `exp_ceil`) on the side that can only overstate the loss. Where floats are used,
every formula of this package is written without harmful cancellation (expm1, log1p, sums of terms of one
sign), so that its relative error stays below 2^-48, and the result is pushed outwards by `up` with a relative
margin of 2^-40: at least 256 times the error, and too small to be seen in twelve printed digits.
tests/client/privacy/test_rounding.py checks both against 60-digit decimals.
"""

from __future__ import annotations

import math
from decimal import ROUND_CEILING, Context
from fractions import Fraction
from typing import Protocol, runtime_checkable

from ldp_client.errors import InvalidSpec

__all__ = [
    "HasValue",
    "Number",
    "exact",
    "exp_ceil",
    "exp_floor",
    "fraction_down",
    "fraction_up",
    "log_up",
    "positive",
    "probability",
    "shown",
    "up",
]

MARGIN = 2.0**-40


@runtime_checkable
class HasValue(Protocol):
    """An object with an exact number in `value`, such as the Epsilon of protocol/epsilon.py."""

    @property
    def value(self) -> Fraction:
        """The number."""
        ...


Number = Fraction | int | float | str | HasValue


def exact(number: Number) -> Fraction:
    """Return the number as a fraction: decimal text as written, a float as the binary fraction it is."""
    if isinstance(number, HasValue):
        return number.value
    try:
        return Fraction(number)
    except (ValueError, OverflowError, ZeroDivisionError) as error:
        raise InvalidSpec("a finite number is needed here, such as 0.5") from error


def positive(number: Number, name: str) -> float:
    """Return a finite number above 0 as a float, rounded up."""
    value = exact(number)
    if value <= 0:
        raise InvalidSpec(f"{name} must be above 0")
    return fraction_up(value)


def probability(number: float, name: str) -> float:
    """Check that a number lies strictly between 0 and 1."""
    if not 0.0 < number < 1.0:
        raise InvalidSpec(f"{name} must lie strictly between 0 and 1")
    return float(number)


def up(value: float, margin: float = MARGIN) -> float:
    """Return a float above `value` by the package's margin; 0 and infinity stay what they are."""
    if value == 0.0 or math.isinf(value):
        return value
    return math.nextafter(value + abs(value) * margin, math.inf)


def fraction_up(value: Fraction) -> float:
    """Return the smallest float that is not below the fraction."""
    try:
        near = float(value)
    except OverflowError:
        return math.inf
    return near if Fraction(near) >= value else math.nextafter(near, math.inf)


def fraction_down(value: Fraction) -> float:
    """Return the largest float that is not above the fraction."""
    return -fraction_up(-value)


def log_up(value: Fraction) -> float:
    """Return ln(value), rounded up, for a fraction of any size; the excess over 1 keeps its digits."""
    if value <= 0:
        raise InvalidSpec("the logarithm of a number that is not above 0")
    if Fraction(1, 2) < value < 2:
        return up(math.log1p(float(value - 1)))
    return up(math.log(value.numerator) - math.log(value.denominator), 2.0**-38)


def shown(value: float, digits: int) -> str:
    """Return a number as text, rounded up to so many digits, after the package's own margin was taken off."""
    if value == 0 or math.isinf(value):
        return f"{value:g}"
    number = Context(prec=digits, rounding=ROUND_CEILING).create_decimal(value * (1 - 4 * MARGIN)).normalize()
    return format(number, "f") if 1e-5 <= value < 1e12 else format(number, "E")


def exp_floor(exponent: Fraction, bits: int = 192) -> Fraction:
    """Return a rational number at most e^exponent, with relative error below 2^(20 - bits)."""
    if exponent < 0:
        return 1 / exp_ceil(-exponent, bits)
    return Fraction(_exp_scaled(exponent, bits), 1 << bits)


def exp_ceil(exponent: Fraction, bits: int = 192) -> Fraction:
    """Return a rational number at least e^exponent, at most 2^(22 - bits) above `exp_floor` relatively."""
    if exponent < 0:
        return 1 / exp_floor(-exponent, bits)
    return Fraction(_exp_scaled(exponent, bits), 1 << bits) * (1 + Fraction(1, 1 << (bits - 22)))


def _exp_scaled(exponent: Fraction, bits: int) -> int:
    """Return floor-rounded 2^bits e^exponent: a Taylor series near 0, then squarings, each step rounded down.

    The series at x = exponent / 2^h <= 1/2 has terms rounded down (fewer than 64 of them, each losing less
    than one unit) and its tail cut; each squaring doubles the relative loss and adds one unit. With h
    halvings the relative error is below 2^(7 + h - bits). Exponents are at most 4,000 here, so h <= 13.
    """
    if exponent > 4000:
        raise InvalidSpec("a privacy loss above 4,000 says nothing: use fewer reports or a smaller epsilon")
    halvings = math.ceil(exponent * 2).bit_length()
    unit = 1 << bits
    x = (exponent.numerator << bits) // (exponent.denominator << halvings)
    total = term = unit
    count = 1
    while term:
        term = term * x // (count << bits)
        total += term
        count += 1
    for _ in range(halvings):
        total = total * total >> bits
    return total
