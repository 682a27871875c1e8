"""Reed-Solomon codes over GF(2^c), c <= 16, as a client needs them: encoding, one symbol at a time.

A message is k symbols of c bits. It is read as the polynomial f of degree < k with f(j) = symbol j for j < k, and its
codeword is f(0), f(1), ... f(M-1), where the position m stands for the field element whose bits are those of m. So the
code is systematic (the first k symbols are the message), and any k symbols give the message back: every two codewords
differ in at least M - k + 1 places.

Position m >= k is a fixed linear combination of the message, f(m) = sum over j of L_j(m) symbol_j with Lagrange's
coefficients L_j(m) = prod over i != j of (m - i)/(j - i); minus is exclusive or. Multiplying by a constant is linear
over bits, so each coefficient is two tables of at most 256 products, made when a position is first used. No tables of
logarithms are needed, and a client makes the tables of its own team only. ldp_server/arrays/reed_solomon.py is the same
code on arrays, with decoding.
"""

from __future__ import annotations

from collections.abc import Sequence

from ldp_client.errors import InvalidSpec

__all__ = ["MODULUS", "ReedSolomon", "inverse", "multiply"]

MODULUS = (
    0,
    0b11,
    0b111,
    0b1011,
    0b10011,
    0b100101,
    0b1000011,
    0b10001001,
    0x11D,
    0x211,
    0x409,
    0x805,
    0x1053,
    0x201B,
    0x4443,
    0x8003,
    0x1100B,
)
"""MODULUS[c]: the primitive polynomial of degree c that defines GF(2^c); bit i is the coefficient of x^i."""


def multiply(a: int, b: int, bits: int) -> int:
    """Multiply two elements of GF(2^bits), by shifting and adding. For public values only: the time depends on b."""
    product, modulus, top = 0, MODULUS[bits], 1 << bits
    while b:
        if b & 1:
            product ^= a
        b >>= 1
        a <<= 1
        if a & top:
            a ^= modulus
    return product


def inverse(a: int, bits: int) -> int:
    """The inverse of a != 0 in GF(2^bits): a^(2^bits - 2)."""
    if a == 0:
        raise ZeroDivisionError("0 has no inverse")
    result = 1
    for _ in range(bits - 1):  # the exponent is 11...10 in binary
        a = multiply(a, a, bits)
        result = multiply(result, a, bits)
    return result


def _products(constant: int, bits: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The products of `constant` with every low byte and with every high byte of a symbol."""
    powers = [multiply(constant, 1 << i, bits) for i in range(bits)]
    low, high = [0], [0]
    for i, power in enumerate(powers):
        table = low if i < 8 else high
        table += [power ^ entry for entry in table]
    return tuple(low), tuple(high)


class ReedSolomon:
    """The code of `length` symbols of `bits` bits, `data` of which carry the message."""

    def __init__(self, bits: int, data: int, length: int) -> None:
        if not 1 <= bits <= 16:
            raise InvalidSpec(f"Reed-Solomon symbols have 1 to 16 bits, not {bits}")
        if not 1 <= data <= length <= 1 << bits:
            raise InvalidSpec(f"Reed-Solomon over {bits} bits has 1 <= data <= length <= {1 << bits} symbols")
        self.bits = bits
        self.data = data
        self.length = length
        self._tables: dict[int, tuple[tuple[tuple[int, ...], tuple[int, ...]], ...]] = {}

    def coefficients(self, position: int) -> tuple[int, ...]:
        """Lagrange's coefficients of a position: f(position) = sum of coefficient_j * symbol_j."""
        result = []
        for j in range(self.data):
            top = bottom = 1
            for i in range(self.data):
                if i != j:
                    top = multiply(top, position ^ i, self.bits)
                    bottom = multiply(bottom, j ^ i, self.bits)
            result.append(multiply(top, inverse(bottom, self.bits), self.bits))
        return tuple(result)

    def symbol(self, message: Sequence[int], position: int) -> int:
        """The codeword's symbol at `position`, for a message of `data` symbols."""
        if position < self.data:
            return message[position]
        tables = self._tables.get(position)
        if tables is None:
            tables = tuple(_products(c, self.bits) for c in self.coefficients(position))
            self._tables[position] = tables
        value = 0
        for symbol, (low, high) in zip(message, tables, strict=True):
            value ^= low[symbol & 0xFF] ^ high[symbol >> 8]
        return value

    def encode(self, message: Sequence[int]) -> tuple[int, ...]:
        """The whole codeword."""
        return tuple(self.symbol(message, position) for position in range(self.length))
