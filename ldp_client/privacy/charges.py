"""Charges: the pure epsilons of reports, as a list or, for very many, as a count of each amount."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from fractions import Fraction

from ldp_client.errors import InvalidSpec
from ldp_client.privacy.rounding import Number, exact

__all__ = ["Charges", "basic", "tally"]

Charges = Iterable[Number] | Mapping[Fraction, int]


def tally(charges: Charges) -> Counter[Fraction]:
    """Return how many charges of each amount there are; amounts of 0 are left out."""
    if isinstance(charges, Mapping):
        counts = Counter({exact(amount): count for amount, count in charges.items() if count})
    else:
        counts = Counter(exact(charge) for charge in charges)
    if any(amount < 0 or count < 0 for amount, count in counts.items()):
        raise InvalidSpec("a charge must not be negative")
    counts.pop(Fraction(0), None)
    return counts


def basic(charges: Charges) -> Fraction:
    """Return the exact sum of the charges: basic composition, valid always."""
    return sum((amount * count for amount, count in tally(charges).items()), Fraction(0))
