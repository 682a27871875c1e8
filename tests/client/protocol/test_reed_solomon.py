"""The client's Reed-Solomon code, and the server's decoding of it, at and beyond its radius."""

from __future__ import annotations

import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ldp_client.errors import InvalidSpec
from ldp_client.protocol.reed_solomon import MODULUS, ReedSolomon, inverse, multiply
from ldp_server.arrays.reed_solomon import BulkReedSolomon, SymbolField

SHAPES = [(4, 3, 9), (8, 8, 12), (8, 4, 16), (13, 5, 6), (16, 4, 5), (16, 17, 20), (2, 2, 4), (1, 1, 2)]


@pytest.mark.parametrize("bits", range(1, 17))
def test_the_moduli_are_primitive(bits):
    """x runs through every non-zero element before it comes back to 1."""
    value, order = 1, 0
    while True:
        value = multiply(value, 2, bits) if bits > 1 else 1
        order += 1
        if value == 1:
            break
    assert order == (1 << bits) - 1
    assert MODULUS[bits].bit_length() == bits + 1


@given(st.integers(2, 16), st.data())
def test_field_laws(bits, data):
    a, b, c = (data.draw(st.integers(0, (1 << bits) - 1)) for _ in range(3))
    assert multiply(a, b ^ c, bits) == multiply(a, b, bits) ^ multiply(a, c, bits)
    assert multiply(a, multiply(b, c, bits), bits) == multiply(multiply(a, b, bits), c, bits)
    if a:
        assert multiply(a, inverse(a, bits), bits) == 1
    assert int(SymbolField(min(bits, 8)).times(a & 3, b & 3)) == multiply(a & 3, b & 3, min(bits, 8))


def evaluated(symbols, at, bits):
    """The codeword symbol another way: solve for the coefficients, then Horner."""
    k = len(symbols)
    rows = [[power(i, j, bits) for j in range(k)] + [symbols[i]] for i in range(k)]
    for column in range(k):  # Gauss and Jordan over the field
        pivot = next(r for r in range(column, k) if rows[r][column])
        rows[column], rows[pivot] = rows[pivot], rows[column]
        scale = inverse(rows[column][column], bits)
        rows[column] = [multiply(x, scale, bits) for x in rows[column]]
        for r in range(k):
            if r != column and rows[r][column]:
                factor = rows[r][column]
                rows[r] = [x ^ multiply(factor, y, bits) for x, y in zip(rows[r], rows[column], strict=True)]
    value = 0
    for row in reversed(rows):
        value = multiply(value, at, bits) ^ row[-1]
    return value


def power(base, exponent, bits):
    result = 1
    for _ in range(exponent):
        result = multiply(result, base, bits)
    return result


@pytest.mark.parametrize(("bits", "k", "m"), SHAPES)
@pytest.mark.thinned(4)
def test_encoding_is_polynomial_evaluation(bits, k, m):
    rng = random.Random(bits * 100 + m)
    code = ReedSolomon(bits, k, m)
    for _ in range(5):
        message = tuple(rng.randrange(1 << bits) for _ in range(k))
        word = code.encode(message)
        assert word[:k] == message
        assert word == tuple(evaluated(message, at, bits) for at in range(m))


@pytest.mark.parametrize(("bits", "k", "m"), SHAPES)
def test_the_arrays_agree_and_any_k_symbols_give_the_message(bits, k, m):
    rng = np.random.default_rng(bits + m)
    code = ReedSolomon(bits, k, m)
    bulk = BulkReedSolomon(code)
    messages = rng.integers(0, 1 << bits, (40, k))
    words = bulk.encode(messages)
    assert [tuple(map(int, w)) for w in words] == [code.encode(tuple(map(int, row))) for row in messages]
    for position in range(m):
        assert (bulk.symbols(messages, position) == words[:, position]).all()
    for _ in range(3):
        positions = [int(p) for p in rng.permutation(m)[:k]]
        assert (bulk.interpolate(positions, words[:, positions]) == messages).all()
        others = [p for p in range(m) if p not in positions]
        assert (bulk.through(positions, words[:, positions], others) == words[:, others]).all()


@settings(max_examples=150, deadline=None)
@given(st.sampled_from(SHAPES), st.randoms(use_true_random=False))
@pytest.mark.long
def test_errors_and_erasures_up_to_the_radius_and_beyond(shape, rng):
    bits, k, m = shape
    code = ReedSolomon(bits, k, m)
    bulk = BulkReedSolomon(code)
    message = tuple(rng.randrange(1 << bits) for _ in range(k))
    word = list(code.encode(message))
    places = rng.sample(range(m), m)
    erasures = rng.randint(0, m)
    errors = rng.randint(0, m - erasures)
    for place in places[:erasures]:
        word[place] = None
    for place in places[erasures : erasures + errors]:
        word[place] ^= rng.randrange(1, 1 << bits) if bits > 1 else 1
    decoded = bulk.decode(word)
    if 2 * errors + erasures <= m - k:
        assert decoded == message
    elif decoded is not None:  # beyond the radius: nothing, or a codeword that really is that near
        other = code.encode(decoded)
        wrong = sum(a is not None and a != b for a, b in zip(word, other, strict=True))
        assert 2 * wrong + erasures <= m - k


def test_what_is_no_code_is_refused():
    for bits, k, m in [(0, 1, 1), (17, 1, 2), (4, 3, 17), (4, 5, 4), (4, 0, 3)]:
        with pytest.raises(InvalidSpec):
            ReedSolomon(bits, k, m)
    with pytest.raises(ZeroDivisionError):
        inverse(0, 8)
    with pytest.raises(ValueError, match="every position"):
        BulkReedSolomon(ReedSolomon(4, 2, 4)).decode([1, 2, 3])


@pytest.mark.parametrize(("bits", "data", "length"), [(1, 1, 1), (1, 2, 2), (16, 1, 1), (4, 16, 16), (3, 8, 8)])
def test_the_ends_of_the_ranges_are_codes(bits, data, length):
    message = tuple(range(data)) if data <= 1 << bits else (0,) * data
    assert ReedSolomon(bits, data, length).encode(message)[:data] == message


@pytest.mark.parametrize("bits", [1, 7, 8, 9, 16])
def test_the_product_tables_hold_every_byte(bits):
    from ldp_client.protocol.reed_solomon import _products

    constant = (1 << bits) - 1
    low, high = _products(constant, bits)
    assert low == tuple(multiply(constant, byte, bits) for byte in range(1 << min(bits, 8)))
    assert high == tuple(multiply(constant, byte << 8, bits) for byte in range(1 << max(bits - 8, 0)))


def test_tables_are_made_once_for_a_position():
    code = ReedSolomon(8, 2, 4)
    first = code.symbol((1, 2), 3)
    tables = code._tables[3]
    assert code.symbol((1, 2), 3) == first
    assert code._tables[3] is tables
    assert list(code._tables) == [3]  # data positions need none
    assert code.symbol((7, 9), 1) == 9
    assert list(code._tables) == [3]


@pytest.mark.parametrize("message", [(1, 2), (1, 2, 3, 4)])
def test_a_message_of_another_length_is_no_message(message):
    with pytest.raises(ValueError, match="argument"):
        ReedSolomon(8, 3, 6).symbol(message, 4)
