"""Epsilon as an exact decimal, and the rational lower bound of e^epsilon that every probability is built from.

No float is used: "0.1" is the fraction 1/10, and

    e_low = floor(2^64 e^epsilon) / 2^64

is found by integer arithmetic with a proved error, so that every implementation gets the same integer. As
e_low <= e^epsilon, a ratio of probabilities that is at most e_low is at most e^epsilon.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from fractions import Fraction
from functools import cached_property, lru_cache

from ldp_client.errors import InvalidSpec

__all__ = ["EXP_BITS", "MAX_EPSILON", "MIN_EPSILON", "Epsilon", "floor_exp"]

MIN_EPSILON = Fraction(1, 100)
MAX_EPSILON = Fraction(20)
EXP_BITS = 64
_SHORTEST = re.compile(r"(0|[1-9][0-9]?)(\.[0-9]{0,8}[1-9])?")


@dataclass(frozen=True)
class Epsilon:
    """A privacy parameter from 0.01 to 20, written as the shortest decimal: "1", "0.5", "2.25"."""

    text: str

    def __post_init__(self) -> None:
        if not isinstance(self.text, str) or not _SHORTEST.fullmatch(self.text):
            raise InvalidSpec(
                'epsilon must be a decimal in its shortest form with at most 9 digits after the point, such as "1" '
                'or "0.5" (Epsilon.parse makes it so)'
            )
        if not MIN_EPSILON <= self.value <= MAX_EPSILON:
            raise InvalidSpec(f"epsilon must lie between 0.01 and 20, not {self.text}")

    @classmethod
    def parse(cls, text: str | int) -> Epsilon:
        """Read what a person wrote ("1.0", "0.50", 2) into its shortest form. A float is refused: it is not exact."""
        if isinstance(text, bool) or not isinstance(text, str | int):
            raise InvalidSpec('epsilon must be given as text ("0.5") or as an int; a float is not exact')
        if (len(text) if isinstance(text, str) else text.bit_length()) > 32:
            raise InvalidSpec("epsilon is written with too many digits")
        try:
            number = Decimal(text)
        except InvalidOperation:
            raise InvalidSpec('epsilon must be a decimal number such as "1" or "0.5"') from None
        if not number.is_finite() or not MIN_EPSILON <= number <= MAX_EPSILON:
            raise InvalidSpec(f"epsilon must lie between 0.01 and 20, not {text}")
        plain = format(number, "f")
        return cls(plain.rstrip("0").rstrip(".") if "." in plain else plain)

    @cached_property
    def value(self) -> Fraction:
        """The exact number."""
        return Fraction(self.text)

    @cached_property
    def e_low(self) -> Fraction:
        """The largest multiple of 2^-64 that is at most e^epsilon."""
        return Fraction(floor_exp(self.value, EXP_BITS), 1 << EXP_BITS)

    def __float__(self) -> float:
        return float(self.value)

    def __str__(self) -> str:
        return self.text


@lru_cache(maxsize=256)
def floor_exp(value: Fraction, bits: int) -> int:
    """Return floor(2^bits e^value) for a fraction 0 <= value <= 20.

    The series is summed in integers scaled by 2^(bits + guard). Each division drops less than one unit, and the
    dropped units of J terms grow to at most J e^value, plus a tail below 2 (J + 1) e^value after the first term that
    is zero: below 2^48 in all for value <= 20. If that slack could change the floor, more guard bits are taken
    (e^value is irrational for value != 0, and for 0 the sum is exact, so this ends).
    """
    guard = 64
    while True:
        term = 1 << (bits + guard)
        total, j = 0, 0
        while term:
            total += term
            j += 1
            term = term * value.numerator // (value.denominator * j)
        if total >> guard == (total + (1 << 48)) >> guard:
            return total >> guard
        guard *= 2
