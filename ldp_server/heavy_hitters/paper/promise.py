"""From which frequency PrivateExpanderSketch lists all items at once (Definition 3.1), by the formulas of law.py."""

from __future__ import annotations

import math

from ldp_client.errors import InvalidSpec
from ldp_client.mechanisms.expander_sketch import ExpanderSketch
from ldp_server.heavy_hitters.paper.law import SketchLaw, median_bound

__all__ = ["LISTED", "decodable", "promised", "users_needed"]

LISTED = 0.9
"""The part of beta that the lists may take; the confirming oracle has the rest."""
_FALSE = 0.025  # half of the beta that a list has unless the analyst asks for another


def _law(sketch: ExpanderSketch) -> SketchLaw:
    """The law of a sketch as its spec has it."""
    p, s = (float(x) for x in sketch.inner.support)
    v, r = s * (1 - s) / (p - s) ** 2, p * (1 - p) / (s * (1 - s))
    code = sketch.code
    bits = code.chunk_bits + code.degree * code.hash_bits
    return SketchLaw(code.teams, code.data, code.degree, bits, code.hash_bits, code.bucket_bits, v, r)


def _confirmed(sketch: ExpanderSketch, users: int, beta: float, false_items: float) -> float:
    """The frequency from which the confirming oracle lists every item that is among the candidates."""
    oracle = sketch.oracle
    if oracle is None:
        raise InvalidSpec("a plan of the paper's form has a confirming oracle: set oracle_rows")
    p, s = (float(x) for x in oracle.inner.support)
    v, r = s * (1 - s) / (p - s) ** 2, max(1.0, p * (1 - p) / (s * (1 - s)))
    candidates = 2 << sketch.hash_bits + sketch.bucket_bits
    least = 0.0
    for _ in range(6):  # a fixed point: the number of items depends on the frequency
        frequency = max(least, math.sqrt(users))
        share = min(1.0, frequency / users)
        sd = math.sqrt(oracle.rows * users * v * (1 + share * (r - 1) + share / v))
        bar = median_bound(oracle.rows, sd, users, oracle.cells, false_items / candidates)
        least = bar + median_bound(oracle.rows, sd, users, oracle.cells, (1 - LISTED) * beta * share)
        if not math.isfinite(least) or least > users:
            return math.inf
    return least


def decodable(law: SketchLaw, users: int, beta: float) -> float:
    """The least frequency f such that the lists miss any item of f users or more with probability at most beta."""

    def failing(frequency: float) -> float:
        return law.all_missed(users, frequency)

    low, high = 0.0, float(users)
    if failing(high) > beta:
        return math.inf
    for _ in range(30):
        middle = (low + high) / 2
        if failing(middle) > beta:
            low = middle
        else:
            high = middle
    return high


def promised(sketch: ExpanderSketch, users: int, beta: float, false_items: float = _FALSE) -> float:
    """Delta: all items that so many users hold are listed with probability 1 - beta; infinite if there is none."""
    return max(decodable(_law(sketch), users, LISTED * beta), _confirmed(sketch, users, beta, false_items))


def users_needed(sketch: ExpanderSketch, beta: float, false_items: float = _FALSE) -> int:
    """Return the least number of users, to 1%, at which an item that all of them hold is listed."""
    high = 1
    while promised(sketch, high, beta, false_items) > high:
        high *= 2
        if high > 1 << 60:
            return high
    low = high // 2
    while high - low > max(1, low // 100):
        middle = (low + high) // 2
        if promised(sketch, middle, beta, false_items) > middle:
            low = middle
        else:
            high = middle
    return high
