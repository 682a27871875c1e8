"""Reed-Solomon on arrays: the twin of ldp_client/protocol/reed_solomon.py, and decoding, which only servers do.

Symbols are arrays of shape (n, k) or (n, M). Encoding and interpolation are matrix products over GF(2^c) by tables of
logarithms. `decode` corrects errors and erasures of one word with Gao's algorithm: with e errors and s erasures it
returns the message whenever 2e + s <= M - k, and None when no codeword is that near. It is written here because the
packages with Reed-Solomon codes stop at c = 8 or need a compiler, and because our words are short (M <= 64).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from ldp_client.protocol.reed_solomon import MODULUS, ReedSolomon, inverse, multiply

__all__ = ["BulkReedSolomon", "SymbolField", "field"]

Symbols = npt.NDArray[np.int64]


class SymbolField:
    """GF(2^bits) by tables: `exp` is two periods long so that a sum of logarithms needs no remainder."""

    def __init__(self, bits: int) -> None:
        order = (1 << bits) - 1
        exp = np.zeros(4 * order + 4, np.int64)
        log = np.zeros(order + 1, np.int64)
        value = 1
        for i in range(order):
            exp[i] = value
            log[value] = i
            value <<= 1
            if value >> bits:
                value ^= MODULUS[bits]
        exp[order : 2 * order] = exp[:order]
        log[0] = 2 * order + 1  # so that a product with zero reads the part of exp that is zero
        self.bits = bits
        self._exp = exp.astype(np.int32)  # half of the processor's cache
        self._log = log.astype(np.int32)

    def times(self, a: npt.ArrayLike, b: npt.ArrayLike) -> Symbols:
        """The elementwise product."""
        result: Symbols = self._exp[self._log[np.asarray(a)] + self._log[np.asarray(b)]].astype(np.int64)
        return result

    def combine(self, symbols: Symbols, matrix: Symbols) -> Symbols:
        """The matrix product over the field: (n, k) by (k, m) gives (n, m)."""
        out = np.zeros((len(symbols), matrix.shape[1]), np.int64)
        logs = self._log[symbols]
        for j in range(matrix.shape[0]):
            for m in range(matrix.shape[1]):
                coefficient = int(matrix[j, m])
                if coefficient:
                    out[:, m] ^= self._exp[logs[:, j] + self._log[coefficient]]
        return out


@lru_cache(maxsize=16)
def field(bits: int) -> SymbolField:
    """The field, its tables made once."""
    return SymbolField(bits)


class BulkReedSolomon:
    """The array form of a client's code."""

    def __init__(self, code: ReedSolomon) -> None:
        self.code = code
        self._weights: dict[tuple[tuple[int, ...], tuple[int, ...]], Symbols] = {}
        parity = [code.coefficients(m) for m in range(code.data, code.length)]
        self._parity = np.array(parity, np.int64).reshape(code.length - code.data, code.data).T

    @property
    def field(self) -> SymbolField:
        return field(self.code.bits)

    def encode(self, messages: Symbols) -> Symbols:
        """The codewords (n, M) of messages (n, k)."""
        return np.concatenate([messages, self.field.combine(messages, self._parity)], axis=1)

    def symbols(self, messages: Symbols, position: int) -> Symbols:
        """The codewords' symbols at one position."""
        if position < self.code.data:
            return messages[:, position].copy()
        column = position - self.code.data
        return self.field.combine(messages, self._parity[:, column : column + 1])[:, 0]

    def interpolate(self, positions: Sequence[int], symbols: Symbols) -> Symbols:
        """The messages (n, k) of the codewords that have `symbols` (n, k) at k distinct positions."""
        return self.through(positions, symbols, range(self.code.data))

    def through(self, positions: Sequence[int], symbols: Symbols, wanted: Sequence[int]) -> Symbols:
        """The symbols (n, w) at the wanted positions of the codewords that have `symbols` (n, k) at k others."""
        return self.field.combine(symbols, self.weights(positions, wanted))

    def weights(self, positions: Sequence[int], wanted: Sequence[int]) -> Symbols:
        """The matrix (k, w) by which the symbols at k distinct positions give those at the wanted ones."""
        key = (tuple(positions), tuple(wanted))
        if key not in self._weights:
            self._weights[key] = self._basis(*key)
        return self._weights[key]

    def _basis(self, positions: tuple[int, ...], wanted: tuple[int, ...]) -> Symbols:
        """Column i: the weights of the symbols at `positions` in f(wanted[i]) (Lagrange)."""
        bits = self.code.bits
        matrix = np.zeros((len(positions), len(wanted)), np.int64)
        for j, here in enumerate(positions):
            for i, m in enumerate(wanted):
                top = bottom = 1
                for other in positions:
                    if other != here:
                        top = multiply(top, m ^ other, bits)
                        bottom = multiply(bottom, here ^ other, bits)
                matrix[j, i] = multiply(top, inverse(bottom, bits), bits)
        return matrix

    def decode(self, received: Sequence[int | None]) -> tuple[int, ...] | None:
        """The message of the codeword nearest to `received` (None: erased), or None beyond half the distance."""
        bits, k = self.code.bits, self.code.data
        if len(received) != self.code.length:
            raise ValueError("a received word has one symbol, or None, for every position")
        points = [m for m, symbol in enumerate(received) if symbol is not None]
        values = [symbol for symbol in received if symbol is not None]
        if len(points) < k:
            return None
        polynomial = _gao(points, values, k, bits)
        if polynomial is None:
            return None
        word = [_evaluate(polynomial, m, bits) for m in range(self.code.length)]
        errors = sum(word[m] != value for m, value in zip(points, values, strict=True))
        if 2 * errors > len(points) - k:
            return None
        return tuple(word[:k])


Polynomial = list[int]  # coefficients from the constant up, the last one not 0; [] is the zero polynomial


def _trim(p: Polynomial) -> Polynomial:
    while p and p[-1] == 0:
        p.pop()
    return p


def _add(a: Polynomial, b: Polynomial) -> Polynomial:
    longer, shorter = (a, b) if len(a) >= len(b) else (b, a)
    return _trim([x ^ (shorter[i] if i < len(shorter) else 0) for i, x in enumerate(longer)])


def _product(a: Polynomial, b: Polynomial, bits: int) -> Polynomial:
    if not a or not b:
        return []
    out = [0] * (len(a) + len(b) - 1)
    for i, x in enumerate(a):
        for j, y in enumerate(b):
            out[i + j] ^= multiply(x, y, bits)
    return _trim(out)


def _divide(a: Polynomial, b: Polynomial, bits: int) -> tuple[Polynomial, Polynomial]:
    rest, quotient = list(a), [0] * max(0, len(a) - len(b) + 1)
    lead = inverse(b[-1], bits)
    for shift in range(len(a) - len(b), -1, -1):
        factor = multiply(rest[shift + len(b) - 1], lead, bits)
        quotient[shift] = factor
        if factor:
            for i, x in enumerate(b):
                rest[shift + i] ^= multiply(factor, x, bits)
    return _trim(quotient), _trim(rest)


def _evaluate(p: Polynomial, at: int, bits: int) -> int:
    value = 0
    for coefficient in reversed(p):
        value = multiply(value, at, bits) ^ coefficient
    return value


def _gao(points: list[int], values: list[int], k: int, bits: int) -> Polynomial | None:
    """Gao (2003): run Euclid on prod(x - point) and the interpolant until the remainder's degree is < (n + k)/2."""
    locator: Polynomial = [1]
    interpolant: Polynomial = []
    for point, value in zip(points, values, strict=True):  # Newton's interpolation
        gap = value ^ _evaluate(interpolant, point, bits)
        scale = multiply(gap, inverse(_evaluate(locator, point, bits), bits), bits)
        interpolant = _add(interpolant, _product([scale] if scale else [], locator, bits))
        locator = _product(locator, [point, 1], bits)
    before, now = locator, interpolant
    multiplier_before: Polynomial = []
    multiplier: Polynomial = [1]
    while len(now) - 1 >= (len(points) + k) / 2:
        quotient, rest = _divide(before, now, bits)
        before, now = now, rest
        multiplier_before, multiplier = multiplier, _add(multiplier_before, _product(quotient, multiplier, bits))
    quotient, rest = _divide(now, multiplier, bits)
    return quotient if not rest and len(quotient) <= k else None
