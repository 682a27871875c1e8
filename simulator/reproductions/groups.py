"""`ldp-simulate reproduce groups`: Theorem 4.2, the privacy loss of k people together.

Each of the k people reports on their own. The loss of a group is ln Pr[reports | x] / Pr[reports | x'], for two
databases that differ in these k people. Its exact law is the k-fold convolution of the law of one report's loss, which
is read off the mechanism's own probabilities. The quantile of this law that is exceeded with probability delta is
compared with the theorem's k eps^2/2 + eps sqrt(2 k ln(1/delta)), and with the curator's k eps.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from ldp_client.mechanisms.base import Randomizer
from ldp_client.mechanisms.linear_hash import LinearHash
from ldp_client.mechanisms.randomized_response import RandomizedResponse
from ldp_client.protocol.epsilon import Epsilon
from simulator import crowd
from simulator.report.plots import Panel, Series
from simulator.reproductions.reproduction import Progress, Reproduction, Rows

__all__ = ["groups"]

EPSILON = "1"
DELTA = 1e-6
SEEN = 0.01
"""The delta of the measured check: so many of the groups may exceed the bound."""
PEOPLE = (1, 4, 16, 64, 256, 1024, 4096)
ITEMS = (0, 1)

Floats = npt.NDArray[np.float64]


def groups(
    runs: int | None = None, seed: int = 1, progress: Progress | None = None, full: bool = False
) -> Reproduction:
    """Return the loss of groups at epsilon = 1; `runs` counts the simulated groups of each size."""
    tell, count = progress or (lambda _steps: None), runs or (100_000 if full else 10_000)
    epsilon = Epsilon.parse(EPSILON)
    mechanisms = {"one_bit": RandomizedResponse(epsilon, 2), "linear_hash": LinearHash(epsilon, 7, 3, 2)}
    rows: Rows = []
    for people in PEOPLE:
        row: dict[str, Any] = {"people": people, "curator": people * float(epsilon), "theorem": _theorem(people, DELTA)}
        for name, mechanism in mechanisms.items():
            steps, law = _loss(mechanism)
            row[f"{name}_exact"] = _quantile(_power(law, people), people * (len(law) // 2), DELTA) * steps
        row["seen_bound"] = _theorem(people, SEEN)
        row["seen_above"] = _exceeded(mechanisms["one_bit"], people, min(count, 4_000_000 // people), seed)
        rows.append(row)
        tell(1)
    return Reproduction(tuple(_panels(rows)), rows)


def _theorem(people: int, delta: float) -> float:
    """K eps^2/2 + eps sqrt(2 k ln(1/delta))."""
    epsilon = float(EPSILON)
    return people * epsilon**2 / 2 + epsilon * math.sqrt(2 * people * math.log(1 / delta))


def _loss(mechanism: Randomizer) -> tuple[float, Floats]:
    """The step eps and the law of one report's loss: the probabilities of -eps, 0 and +eps."""
    law, step = np.zeros(3), 0.0
    for report in range(mechanism.bound):
        p, q = (mechanism.probability(item, report) for item in ITEMS)
        law[1 + (p > q) - (p < q)] += float(p)
        step = max(step, abs(math.log(p / q)))
    return step, law


def _power(law: Floats, times: int) -> Floats:
    """The law of the sum of so many independent losses."""
    out = np.ones(1)
    while times:
        if times & 1:
            out = np.convolve(out, law)
        law, times = np.convolve(law, law), times >> 1
    return out


def _quantile(law: Floats, zero: int, delta: float) -> int:
    """The least loss, in steps, that is exceeded with probability at most delta."""
    above = np.cumsum(law[::-1])[::-1]
    return int(np.argmax(np.append(above[1:], 0.0) <= delta)) - zero


def _exceeded(mechanism: Randomizer, people: int, count: int, seed: int) -> float:
    """The part of simulated groups, with real reports, whose loss is above the theorem's bound at delta = 0.01."""
    table = np.array(
        [math.log(mechanism.probability(1, report) / mechanism.probability(0, report)) for report in range(2)]
    )
    words = crowd.draw_words(seed, people, people * count, mechanism.words)
    reports = crowd.randomize(mechanism, np.ones(people * count, np.uint64), words)
    losses = table[reports.astype(np.intp)].reshape(count, people).sum(axis=1)
    return float(np.mean(losses > _theorem(people, SEEN)))


def _panels(rows: Rows) -> Iterator[Panel]:
    x: Sequence[float] = [row["people"] for row in rows]

    def line(key: str, name: str, theory: bool = False) -> Series:
        return Series(name, x, [row[key] for row in rows], theory=theory)

    lines = [
        line("one_bit_exact", "one-bit response, exact"),
        line("linear_hash_exact", "linear hash q = 3, exact"),
        line("theorem", "Theorem 4.2", theory=True),
        line("curator", "a curator's k eps", theory=True),
    ]
    yield Panel("privacy loss of a group", "people k", "loss, delta = 10^-6", lines, log_x=True, log_y=True)
