"""Attributes and numbers a second time: written from docs/protocol.md, beside tests/independent.py, for its vectors."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

from tests.independent import N, ceiling, e_low, linear_hash_report, points, response


def attributes_index(names: list[str], held: set[str] | None) -> int:
    if held is None or not held <= set(names):
        return 0
    return sum(2 ** names.index(name) for name in held)


def integers_index(lowest: int, count: int, item: int | None) -> int:
    return item - lowest + 1 if item is not None and lowest <= item < lowest + count else 0


def composed_response(k: int, low: int, high: int, flip: int, index: int, u: int) -> int:
    kept = 2**48 - flip
    m = {d: N * kept ** (k - d) * flip**d // 2 ** (48 * k) for d in range(low, high + 1)}
    inside = sum(math.comb(k, d) for d in m)
    if inside < 2**k:
        rest = (N - sum(math.comb(k, d) * m[d] for d in m)) // (2**k - inside)
        m |= {d: rest for d in range(k + 1) if d not in m}
    start = 0
    for d in range(k + 1):
        after = start + math.comb(k, d) * m[d]
        if u < after:
            # The combinatorial number system orders subsets by their largest element, then the next, and so on.
            subsets = sorted(itertools.combinations(range(k - 1, -1, -1), d))
            return index ^ sum(2**place for place in subsets[(u - start) // m[d]])
        start = after
    return (u - start) % 2**k


def sampled_attribute(epsilon: str, k: int, index: int, u: list[int]) -> int:
    j = u[0] * k // N
    return 2 * j + response(epsilon, 2, index // 2**j % 2, u[1])


def window_weights(epsilon: str, m: int, w: int) -> tuple[int, int]:
    e = e_low(epsilon)
    x = N / (w * e + m - w)
    down, up = x // 1, ceiling(x)
    pairs = [(e * down // 1, down), ((N - (m - w) * up) // w, up)]

    def gives(pair):
        t, lie = pair
        s = (N - w * t - (m - w) * lie) // m
        return Fraction(t + s, lie + s)

    first, second = pairs
    return second if gives(second) > gives(first) else first


def bounded_number(epsilon: str, count: int, m: int, w: int, presence: int, index: int, u: list[int]) -> int:
    if 256 * u[0] // N < presence:
        return m + response(epsilon, 2, int(index > 0), u[2])
    a, b = ((index - 1) * (m - w), count - 1) if index else (m - w, 2)
    place = a // b + (u[1] * b < a % b * N)
    t, lie = window_weights(epsilon, m, w)
    if u[2] < w * t:
        return place + u[2] % w
    if u[2] < w * t + (m - w) * lie:
        j = (u[2] - w * t) % (m - w)
        return j if j < place else j + w
    return (u[2] - w * t - (m - w) * lie) % m


def hierarchy(epsilon: str, count: int, b: int, q: int, index: int, u: list[int]) -> int:
    cells = [count]
    while cells[0] > b:
        cells.insert(0, ceiling(Fraction(cells[0], b)))
    level = u[0] * len(cells) // N
    places = [next(t for t in range(1, 100) if q**t >= c + 1) for c in cells]
    before = sum(points(q, t) * q for t in places[:level])
    cell = 1 + (index - 1) // b ** (len(cells) - 1 - level) if index else 0
    return before + linear_hash_report(epsilon, q, places[level], cell, u[1], u[2])
