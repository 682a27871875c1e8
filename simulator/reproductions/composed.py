"""`ldp-simulate reproduce composed`: Theorem 5.1, k randomized responses as one pure mechanism.

The approximate composition answers like k independent responses if the number of lies is within sqrt(k ln(2/beta)/2)
of its mean k/(e^eps + 1), and else with a uniform one of all other answers. All probabilities are worked out exactly.
The theorem: if beta < (eps sqrt(k)/2(k+1))^(2/3) and e = 6 eps sqrt(k ln(1/beta)) <= 1, it is e-private and differs
from the independent responses with probability at most beta.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from ldp_client.mechanisms.composed_response import FLIP_BITS, ComposedResponse
from ldp_client.protocol.epsilon import Epsilon
from simulator import crowd
from simulator.report.plots import Panel, Series
from simulator.reproductions.reproduction import Progress, Reproduction, Rows

__all__ = ["composed"]

PEOPLE = (8, 16, 64, 256, 1024, 4096)
BETA = 0.0001
TOTAL = 0.9
"""The theorem's epsilon of every row, so that its condition holds."""
_CLIENT = 16
"""Attributes that the client's mechanism takes in this measurement."""


def composed(
    runs: int | None = None, seed: int = 1, progress: Progress | None = None, full: bool = False
) -> Reproduction:
    """Return exact values for k up to 4,096, beside real reports of the client where k is small."""
    tell, count = progress or (lambda _steps: None), 100_000 * (runs or (20 if full else 2))
    rows: Rows = []
    for k in PEOPLE:
        rows.append(_row(k, BETA) | ({"measured_outside": _measured(k, count, seed)} if k <= _CLIENT else {}))
        tell(1)
    return Reproduction(tuple(_panels(rows)), rows)


def _log_choose(k: int, d: int) -> float:
    return math.lgamma(k + 1) - math.lgamma(d + 1) - math.lgamma(k - d + 1)


def _shell(k: int, epsilon: float, beta: float) -> tuple[int, int]:
    """The least and the largest number of lies inside the shell."""
    middle, reach = k / (math.exp(epsilon) + 1), math.sqrt(k * math.log(2 / beta) / 2)
    return max(0, math.ceil(middle - reach)), min(k, math.floor(middle + reach))


def _row(k: int, beta: float) -> dict[str, Any]:
    epsilon = TOTAL / (6 * math.sqrt(k * math.log(1 / beta)))
    low, high = _shell(k, epsilon, beta)
    lie = -math.log1p(math.exp(epsilon))
    weight = [(k - d) * epsilon + k * lie for d in range(k + 1)]
    mass = [math.exp(_log_choose(k, d) + weight[d]) for d in range(k + 1)]
    outside = [d for d in range(k + 1) if not low <= d <= high]
    used = weight[low : high + 1]
    rest = math.fsum(mass[d] for d in outside)
    if outside:
        others = math.log(math.fsum(math.exp(_log_choose(k, d) - k * math.log(2)) for d in outside)) + k * math.log(2)
        level = math.log(rest) - others
        used = [*used, level]
        moved = math.fsum(abs(mass[d] - math.exp(_log_choose(k, d) + level)) for d in outside) / 2
    else:
        moved = 0.0
    return {
        "k": k,
        "epsilon": epsilon,
        "beta": beta,
        "condition": beta < (epsilon * math.sqrt(k) / (2 * (k + 1))) ** (2 / 3),
        "theorem": TOTAL,
        "exact": max(used) - min(used),
        "basic": k * epsilon,
        "outside": rest,
        "total_variation": moved,
    }


def _measured(k: int, count: int, seed: int) -> float | None:
    """The part of the client's reports outside the shell; None where its shell takes all answers."""
    epsilon = TOTAL / (6 * math.sqrt(k * math.log(1 / BETA)))
    low, high = _shell(k, epsilon, BETA)
    flip = round((1 << FLIP_BITS) / (math.exp(epsilon) + 1))
    mechanism = ComposedResponse(Epsilon.parse("5"), 1 << k, low, high, flip)
    words = crowd.draw_words(seed, k, count, mechanism.words)
    reports = crowd.randomize(mechanism, np.zeros(count, np.uint64), words)
    lies = np.bitwise_count(reports)
    return float(np.mean((lies < low) | (lies > high)))


def _panels(rows: Rows) -> Iterator[Panel]:
    x = [row["k"] for row in rows]
    lines = [
        Series("exact", x, [row["exact"] for row in rows]),
        Series("basic composition, k eps", x, [row["basic"] for row in rows]),
        Series("Theorem 5.1", x, [row["theorem"] for row in rows], theory=True),
    ]
    yield Panel("epsilon of the composition", "responses k", "epsilon", lines, log_x=True, log_y=True)
    parts = [
        Series("outside the shell", x, [row["outside"] for row in rows]),
        Series("total variation from k responses", x, [row["total_variation"] for row in rows]),
        Series("beta", x, [row["beta"] for row in rows], theory=True),
    ]
    yield Panel("what is not composed", "responses k", "probability", parts, log_x=True, log_y=True)
