"""The same quantities a second way: decimals of 60 digits, brute force, no code of the package."""

from __future__ import annotations

import itertools
from decimal import Decimal, getcontext
from fractions import Fraction

getcontext().prec = 60


def dec(value: Fraction | int | float | str) -> Decimal:
    fraction = Fraction(value)
    return Decimal(fraction.numerator) / Decimal(fraction.denominator)


def response_law(epsilon: Fraction | str, k: int) -> list[list[Decimal]]:
    """k-ary randomized response."""
    e = dec(epsilon).exp()
    total = e + k - 1
    return [[(e if x == y else Decimal(1)) / total for y in range(k)] for x in range(k)]


def delta(p: list[Decimal], q: list[Decimal], epsilon: Fraction | float | str) -> Decimal:
    grown = dec(epsilon).exp()
    return sum((max(Decimal(0), a - grown * b) for a, b in zip(p, q, strict=True)), Decimal(0))


def renyi(p: list[Decimal], q: list[Decimal], order: Fraction | float | str) -> Decimal:
    a = dec(order)
    total = sum((x * ((a - 1) * (x / y).ln()).exp() for x, y in zip(p, q, strict=True) if x), Decimal(0))
    return total.ln() / (a - 1)


def product(laws: list[list[Decimal]]) -> list[Decimal]:
    """The law of several independent outputs, listed in one order."""
    out = []
    for combination in itertools.product(*laws):
        weight = Decimal(1)
        for part in combination:
            weight *= part
        out.append(weight)
    return out


def composed_delta(epsilons: list[Fraction | str], epsilon: float) -> Decimal:
    """Binary responses used one after another: delta by listing all outcomes."""
    rows = [response_law(e, 2) for e in epsilons]
    return delta(product([row[0] for row in rows]), product([row[1] for row in rows]), epsilon)


def many_delta(epsilon: Fraction | str, count: int, asked: float) -> Decimal:
    """T equal binary responses: the binomial sum."""
    e, grown = dec(epsilon).exp(), dec(asked).exp()
    p, q = e / (1 + e), 1 / (1 + e)
    total, above, below = Decimal(0), p**count, q**count
    for lies in range(count + 1):
        if above <= grown * below:
            break
        total += above - grown * below
        step = Decimal(count - lies) / (lies + 1)
        above, below = above * step * q / p, below * step * p / q
    return total
