r"""From counts of (point, answer) to the support of every element of F_q^t, by fast Fourier sums over F_q.

Let C[j, y] be how many reports named point j and answer y (ldp_client/mechanisms/linear_hash.py). Wanted: for every x
of F_q^t,

    S(x) = sum over points j of C[j, <a_j, x>].

Take the points whose leading digit, a 1, stands at place s: a = (low, 1, 0, ...) with low in F_q^s, so
<a, x> = x_s + <low, x_low>. Their part of S depends on x_low and x_s alone: it is D_s(x_low, x_s) with

    D_s(u, z) = sum over low of C_s[low, z + <low, u>].

Write C_s[low, .] as a Fourier sum over the answers, w = exp(2 pi i/q):

    Chat[low, c] = sum over y of C_s[low, y] w^(-c y)
    E_c(u)       = sum over low of Chat[low, c] w^(c <low, u>)          a Fourier sum over F_q^s, digit by digit
    D_s(u, z)    = (1/q) sum over c of w^(c z) E_c(u).

E_0 is the number of reports of the level, and E_(q-c) is the conjugate of E_c, so only c = 1 .. (q-1)/2 are worked out.
Then S is built up level by level, each a tile of the one before.

For q = 2^k the characters of F_q are c -> (-1)^Tr(c y), with the trace Tr(y) = y + y^2 + ... + y^(2^(k-1)), which is 0
or 1. They take the place of w^(c y) above, and <low, u> and z + <low, u> are those of F_q. For c other than 0 the sum
of a character over F_q is 0, so the third line holds as it is. All numbers are real, and each c is one Walsh-Hadamard
transform of q^s numbers, its places in another order. y = -y, so signs do not matter.

Work: O(q^t (t + q)) for the digits, memory a few arrays of q^t numbers. The digit sums are products with the matrix of
the characters of c <l, u>, for a few digits at a time; for large q an FFT. Levels of more than 2^15 elements are summed
in single precision: the mean (c = 0) is exact in either, and the rounding that is left stays below a hundredth of the
noise (2^28 reports or more are summed in double precision throughout).
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from ldp_client.protocol.fields import BINARY, BinaryVectors

__all__ = ["drawn", "few_is_faster", "support", "support_of_few", "weights_of_reports"]

_GROUP = 64
"""Digits are taken together while their matrix has at most this many rows."""
_ONE = 64
"""A single digit's matrix has at most this many rows; with more answers an FFT is faster."""
_SINGLE = 1 << 15
_MANY = 1 << 28
_BLOCK = 32
"""How many c are worked out at a time."""

_PIECE = 1 << 20
"""So many products with single elements are worked out at a time."""
_DIRECT = 20
"""Products with single elements are made while there are at most so many for each element of F_q^t."""
_COLUMNS = 16
"""So many answers to a point, and more, are summed line by line."""

Values = npt.NDArray[Any]
"""Complex numbers, or real ones for q = 2^k; in single or double precision."""


@lru_cache(maxsize=8)
def _signs(q: int) -> npt.NDArray[np.float64]:
    """The characters of F_q, q = 2^k: (-1)^Tr(c y), a line for every y and a column for every c."""
    product, elements = BinaryVectors(BINARY[q], 1).product, range(q)
    signs = np.ones((q, q))
    for c in elements:
        for y in elements:
            trace = power = product(c, y)
            for _ in range(BINARY[q] - 1):
                power = product(power, power)
                trace ^= power
            signs[y, c] = 1 - 2 * trace
    return signs


def _sign_matrix(q: int, digits: int, c: int, single: bool) -> Values:
    """The matrix (-1)^Tr(c <l, u>) over all l, u in F_q^digits: a product over the digits."""
    product = BinaryVectors(BINARY[q], 1).product
    one: Values = _signs(q)[[product(c, u) for u in range(q)]]
    matrix: Values = np.ones((1, 1))
    for _ in range(digits):
        matrix = np.kron(one, matrix)
    return matrix.astype(np.float32 if single else np.float64)


@lru_cache(maxsize=64)
def _matrix(q: int, digits: int, c: int, single: bool) -> Values:
    """The matrix of the characters of c <l, u> over all l, u in F_q^digits."""
    if q in BINARY:
        return _sign_matrix(q, digits, c, single)
    exponents = np.zeros((1, 1), np.int64)
    one = np.outer(np.arange(q), np.arange(q))
    for _ in range(digits):
        size = len(exponents)
        exponents = (one[:, None, :, None] + exponents[None, :, None, :]).reshape(q * size, q * size)
    roots = np.exp(2j * np.pi * np.arange(q) / q).astype(np.complex64 if single else np.complex128)
    matrix: Values = roots[c * exponents % q]
    return matrix


def _by_matrix(values: Values, q: int, places: int, c: int) -> Values:
    """Each step transforms the next digits, from the lowest on. The matrices are symmetric."""
    group, low = 1, 1
    while q ** (group + 1) <= _GROUP:
        group += 1
    single = values.dtype in (np.complex64, np.float32)
    while places > 0:
        digits = min(group, places)
        matrix = _matrix(q, digits, c, single)
        count = len(matrix)
        values = values.reshape(-1, count) @ matrix if low == 1 else matrix @ values.reshape(-1, count, low)
        low, places = low * count, places - digits
    return values.ravel()


def _by_fft(values: Values, q: int, places: int, c: int) -> Values:
    """For c = 1 it is an inverse FFT over `places` axes. Any other c reads its values at c u."""
    axes = np.fft.ifftn(values.reshape((q,) * places), norm="forward")
    scaled = np.arange(q) * c % q
    for axis in range(places):
        axes = np.take(axes, scaled, axis)
    return axes.ravel()


def _digit_sums(values: Values, q: int, places: int, c: int) -> Values:
    """Return the sum over l of values[l] times the character of c <l, u>, for every u in F_q^places."""
    if places == 0:
        return values
    return _by_matrix(values, q, places, c) if q <= _ONE else _by_fft(values, q, places, c)


def _turns(q: int, c: range) -> npt.NDArray[np.float64]:
    """Real and imaginary part of w^(-c y): a line for every y, two columns for every c.

    Answers times this matrix are Chat. The same matrix times the parts of E is the real part of w^(c z) E.
    """
    turns = np.exp(-2j * np.pi * np.outer(np.arange(q), np.array(c)) / q)
    return np.ascontiguousarray(turns).view(np.float64)


def _from_sums(counts: npt.NDArray[Any], q: int, place: int, single: bool) -> npt.NDArray[np.floating]:
    """Return D_s without its mean, q odd. Arrays are dropped once they are used: they have millions of elements."""
    out: Values = np.zeros(())
    for first in range(1, (q + 1) // 2, _BLOCK):
        c = range(first, min(first + _BLOCK, (q + 1) // 2))
        turns: Values = _turns(q, c).astype(np.float32 if single else np.float64)
        hats = np.ascontiguousarray(turns.T) @ counts.astype(turns.dtype).T
        one = np.empty(hats.shape[1], np.complex64 if single else np.complex128)
        for k, value in enumerate(c):  # two lines for each c: the numbers of one c lie together
            one.real, one.imag = hats[2 * k], hats[2 * k + 1]
            sums = _digit_sums(one, q, place, value)
            hats[2 * k], hats[2 * k + 1] = sums.real, sums.imag
        part: Values = (turns * turns.dtype.type(2 / q)) @ hats
        out = out + part if out.ndim else part
    return out


def _from_signs(counts: npt.NDArray[Any], q: int, place: int, single: bool) -> npt.NDArray[np.floating]:
    """Return D_s without its mean, q = 2^k."""
    if q == 2:  # the two lines differ in sign alone
        real = np.float32 if single else np.float64
        half = _digit_sums(counts[:, 0].astype(real) - counts[:, 1].astype(real), 2, place, 1) / 2
        return np.stack((half, -half)).astype(real, copy=False)
    signs: Values = _signs(q)[:, 1:].astype(np.float32 if single else np.float64)
    hats = np.ascontiguousarray(signs.T) @ counts.astype(signs.dtype).T
    for c in range(1, q):
        hats[c - 1] = _digit_sums(hats[c - 1], q, place, c)
    part: Values = (signs / signs.dtype.type(q)) @ hats
    return part


def _level(counts: npt.NDArray[Any], q: int, place: int) -> npt.NDArray[np.floating]:
    """Return D_s as an array of shape (q, q^s): the level's part of S by x_s and x_low."""
    size = q**place
    if not place:  # the point 1 has no lower digits: its part of S(x) is the count of the answer x_0
        return counts.T.astype(np.float64)
    reports = float(counts.sum(dtype=np.float64))
    single = size > _SINGLE and reports < _MANY
    real: type[np.floating] = np.float32 if single else np.float64
    out = (_from_signs if q in BINARY else _from_sums)(counts, q, place, single)
    out += real(reports / q)
    return out


def support(counts: npt.NDArray[np.unsignedinteger], q: int, t: int) -> npt.NDArray[np.floating]:
    """Return S(x) for every x in F_q^t, from counts of the P q reports in the order of their numbers."""
    table = counts.reshape(-1, q)
    total: npt.NDArray[np.floating] = np.zeros(1)
    for place in range(t):
        start, end = (q**place - 1) // (q - 1), (q ** (place + 1) - 1) // (q - 1)
        level = _level(table[start:end], q, place)
        level += total.astype(level.dtype, copy=False)
        total = level.ravel()
    return total


def _points(q: int, t: int, piece: int) -> Iterator[tuple[int, int, npt.NDArray[np.int64]]]:
    """Yield the points (low, 1, 0, ...) in pieces: the first one's number, the place of the 1, the digits of low."""
    for place in range(t):
        start, size = (q**place - 1) // (q - 1), q**place
        for first in range(0, size, piece):
            low = np.arange(first, min(first + piece, size))
            yield start + first, place, low[:, None] // q ** np.arange(place) % q


def _answers_of_few(elements: npt.NDArray[np.integer], q: int, t: int) -> Iterator[npt.NDArray[np.int64]]:
    """Yield the reports that support these elements of F_q^t, q a prime: a line for every point, a column for each."""
    digits = elements.astype(np.int64)[:, None] // q ** np.arange(t) % q
    for number, place, low in _points(q, t, max(1, _PIECE // max(1, len(elements)))):
        products = low.astype(np.float64) @ digits[:, :place].T.astype(np.float64)
        answers = (products.astype(np.int64) + digits[:, place]) % q
        yield (number + np.arange(len(low)))[:, None] * q + answers


def few_is_faster(q: int) -> bool:
    """Whether single elements are looked at one by one, where there are few of them: the digits are too large."""
    return q > _ONE


def support_of_few(table: npt.NDArray[Any], elements: npt.NDArray[np.integer], q: int, t: int) -> npt.NDArray[Any]:
    """Return S(x) of these elements alone, q a prime. With many answers this is faster than a transform."""
    total = np.zeros(len(elements))
    for reports in _answers_of_few(elements, q, t):
        total += table[reports].sum(axis=0)
    return total


def _weights_of_few(weights: npt.NDArray[Any], few: npt.NDArray[np.intp], q: int, t: int) -> npt.NDArray[np.floating]:
    out = np.zeros((q**t - 1) // (q - 1) * q)
    for reports in _answers_of_few(few, q, t):
        first, last = int(reports[0, 0]) // q * q, (int(reports[-1, 0]) // q + 1) * q
        own = np.broadcast_to(weights[few], reports.shape).ravel()
        out[first:last] = np.bincount(reports.ravel() - first, own, last - first)
    return out


def weights_of_reports(weights: npt.NDArray[Any], q: int, t: int) -> npt.NDArray[np.floating]:
    """Return for every report (j, y) the sum of the weights of the elements x with <a_j, x> = y, which it supports.

    This is the transpose of `support`. For a point a = (low, 1, 0, ...) with leading place s it is the sum over u of
    W_s[u, y - <low, u>], W_s[u, z] being the weight of all x with x_low = u and x_s = z: a level's sum at -low.
    """
    few = np.flatnonzero(weights)
    if few_is_faster(q) and len(few) * (q**t - 1) // (q - 1) < _DIRECT * q**t:
        return _weights_of_few(weights, few, q, t)
    parts, minus = [], np.zeros(1, np.intp)
    if q in BINARY:  # -low = low
        tables = (weights.reshape(-1, q, q**place).sum(axis=0).T for place in range(t))
        return np.concatenate([_level(table, q, place).T.ravel() for place, table in enumerate(tables)])
    for place in range(t):
        size = q**place
        table = weights.reshape(-1, q, size).sum(axis=0).T
        parts.append(_level(np.ascontiguousarray(table), q, place)[:, minus].T.ravel())
        minus = ((-np.arange(q)[:, None]) % q * size + minus).ravel()
    return np.concatenate(parts)


def drawn(counts: npt.NDArray[np.unsignedinteger], q: int) -> npt.NDArray[np.int64]:
    """Return how many reports named each point, with any answer."""
    table = counts.reshape(-1, q)
    if q >= _COLUMNS:
        return np.asarray(table.sum(axis=1, dtype=np.int64))
    total = table[:, 0].astype(np.int64)
    for answer in range(1, q):
        total += table[:, answer].astype(np.int64)
    return total
