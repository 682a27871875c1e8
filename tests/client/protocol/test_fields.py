"""Inner products over the fields with 2^k elements, against polynomials multiplied and divided one bit at a time."""

from __future__ import annotations

import itertools

import pytest

from ldp_client.protocol.fields import BINARY, BinaryVectors, is_field

MODULI = {1: 0b10, 2: 0b111, 3: 0b1011}


def slow_product(a, b, k):
    whole = 0
    for i in range(k):
        whole ^= (a << i) * (b >> i & 1)
    for i in range(2 * k, k - 1, -1):
        whole ^= (MODULI[k] << i - k) * (whole >> i & 1)
    return whole


@pytest.mark.parametrize("k", [2, 3])
def test_it_is_a_field(k):
    product, elements = BinaryVectors(k, 1).product, range(1 << k)
    for a, b, c in itertools.product(elements, repeat=3):
        assert product(a, b) == product(b, a) == slow_product(a, b, k)
        assert product(a, product(b, c)) == product(product(a, b), c)
        assert product(a, b ^ c) == product(a, b) ^ product(a, c)
    for a in elements:
        assert product(a, 1) == a
        assert not a or any(product(a, b) == 1 for b in elements)


@pytest.mark.parametrize(("k", "t"), [(1, 4), (2, 1), (2, 3), (3, 1), (3, 2)])
def test_inner_products_by_digits(k, t):
    vectors, q = BinaryVectors(k, t), 1 << k
    for a, x in itertools.product(range(q**t), repeat=2):
        sums = 0
        for i in range(t):
            sums ^= slow_product(a >> k * i & q - 1, x >> k * i & q - 1, k)
        assert vectors.product(a, x) == (sums & 1 if k == 1 else sums)


def test_numbers_stay_in_one_digit_of_an_integer():
    """CPython's integers have digits of 30 bits: as many steps whatever the vectors are."""
    for q, k in BINARY.items():
        assert is_field(q)
        vectors = BinaryVectors(k, 24 // k)
        assert max(vectors.lowest, vectors.first, vectors.lower) << k < 1 << 30
