"""Favoured sets: the chance of one is the largest that epsilon allows, and the bound covers every pair of sets."""

from collections import Counter
from fractions import Fraction
from itertools import product

import pytest

from ldp_client.mechanisms.shared.favoured import favoured_ratio, favoured_words

CASES = [
    (Fraction(e), holding, others, bits)
    for e, holding, others, bits in product(("1.1", "2.7", "7.3"), (1, 2, 3, 5), (1, 3, 4, 7), (2, 3))
]


def lines(truth, holding, others, bits):
    """How many lines of the words give each set: favoured ones have the ranks 0 ..., the others come behind them."""
    total, numbers = 1 << bits, 1 << 2 * bits
    found = Counter()
    for word in range(total):
        count, first = (holding, 0) if word < truth else (others, holding)
        found.update(first + (number * count >> 2 * bits) for number in range(numbers))
    return found


@pytest.mark.parametrize(("e_low", "holding", "others", "bits"), CASES)
def test_the_bound_covers_every_line_of_the_words(e_low, holding, others, bits):
    truth, total, numbers = favoured_words(e_low, holding, others, bits), 1 << bits, 1 << 2 * bits
    # the largest number of words that the rule allows: one more would not be allowed
    allowed = [t for t in range(total + 1) if t * -(-numbers // holding) <= e_low * (total - t) * (numbers // others)]
    assert truth == max(allowed)
    if not 0 < truth < total:
        return
    found = lines(truth, holding, others, bits)
    favoured, rest = [found[k] for k in range(holding)], [found[holding + k] for k in range(others)]
    every = max(Fraction(a, b) for a, b in product([*favoured, *rest], repeat=2))
    bound = favoured_ratio(truth, holding, others, bits)
    assert every <= bound
    same = max(Fraction(max(part), min(part)) for part in (favoured, rest))
    apart = max(Fraction(max(a), min(b)) for a, b in ((favoured, rest), (rest, favoured)))
    assert bound == max(same, apart)  # reached, where the remainders are
    assert Fraction(max(favoured), min(rest)) <= e_low


def test_nothing_is_favoured_where_the_words_are_too_few():
    assert favoured_words(Fraction(3), 2, 300, 4) == 0  # a set would have no line at all
    assert favoured_words(Fraction(10**6), 1, 1, 3) == 7
    assert favoured_ratio(3, 1, 1, 3) == Fraction(5, 3)
    assert favoured_ratio(6, 1, 1, 3) == 3
