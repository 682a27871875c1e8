"""Arrays of indexes: numbers in, the same numbers out."""

from __future__ import annotations

import numpy as np
import pytest

from ldp_client.protocol.domain import Integers, Strings
from ldp_server.arrays.hashing import limb
from ldp_server.arrays.items import from_ints, index_items, to_ints


@pytest.mark.parametrize("bits", [1, 32, 33, 64, 65, 96, 97, 257, 8193])
def test_round_trip(bits: int) -> None:
    numbers = [0, 1, (1 << bits) - 1, 1 << (bits - 1), (1 << bits) // 3]
    array = from_ints(numbers, bits)
    assert array.shape == ((5,) if bits <= 64 else (5, (bits + 31) // 32))
    assert array.dtype == (np.uint64 if bits <= 64 else np.uint32)
    assert to_ints(array) == numbers
    assert to_ints(array[::-1]) == numbers[::-1]
    assert to_ints(from_ints([], bits)) == []
    for place in range((bits + 31) // 32):
        assert limb(array, place).tolist() == [number >> 32 * place & 0xFFFFFFFF for number in numbers]


def test_items_of_a_domain() -> None:
    for domain, items in (
        (Strings(20), ["", "x" * 20, None, "x" * 21, b"\xff"]),
        (Strings(3), ["a", None, "abcd"]),
        (Integers(-5, 10), [-5, 4, 5, None]),
    ):
        assert to_ints(index_items(domain, items)) == [domain.index(item) for item in items]
