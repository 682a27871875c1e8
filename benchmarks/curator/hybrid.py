"""What volunteers are worth: all pairs of 8 attributes, 200,000 users, epsilon = 1.

Everybody but the volunteers sends one randomized parity of at most two attributes; the volunteers' parities are
released centrally with discrete Laplace noise. The error is the mean absolute error of the 28 x 4 cells of all pairs.
The parities of the two sources are merged by `ldp_server.answers.merging`, so the weights are those of the command.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from benchmarks.row import Options, Row, row
from ldp_server.answers.merging.cohorts import CohortCount, merged
from ldp_server.curator.draws import laplace_scale
from ldp_server.curator.laws import laplace_variance
from ldp_server.curator.noise import ExactDraws

__all__ = ["rows"]

USERS, ATTRIBUTES, EPSILON = 200_000, 8, Fraction(1)
PARITIES = [part for size in (1, 2) for part in itertools.combinations(range(ATTRIBUTES), size)]

Floats = npt.NDArray[np.float64]
Bits = npt.NDArray[np.int8]


def rows(options: Options) -> Iterator[Row]:
    """Yield the error of the reports alone, and of both together, for shares of volunteers."""
    runs = 20 if options.full else 6
    for share, target in ((0.01, "<= 0.90"), (0.05, "<= 0.45")):
        alone, both, curated = (
            float(np.mean(part)) for part in zip(*(_run(share, k) for k in range(runs)), strict=True)
        )
        name = f"8 attributes, all pairs, {share:.0%} volunteers"
        yield row(f"{name}: mean error of a cell, reports alone", alone, "")
        yield row(f"{name}: mean error of a cell, volunteers alone", curated, "")
        yield row(f"{name}: error merged / error of reports alone", both / alone, "", target)


def _run(share: float, seed: int) -> tuple[float, float, float]:
    rng = np.random.default_rng([20, seed])
    people = _mixture(rng)
    first = int(share * USERS)
    truth = _cells(np.array([_odd(people, part).mean() for part in PARITIES]))
    curated, people_c = _central(people[:first]), first
    local, per = _local(people[first:], rng), (USERS - first) / len(PARITIES)
    pieces = [
        merged({"odd": curated[k]}, people_c, {"odd": local[k]}, round(per)).rows[0] for k in range(len(PARITIES))
    ]
    everybody = _local(people, rng)
    alone = np.array([one.count for one in everybody]) / round(USERS / len(PARITIES))
    shares = np.array([piece.share for piece in pieces])
    central = np.array([piece.volunteers for piece in pieces])
    return tuple(float(np.abs(_cells(part) - truth).mean()) for part in (alone, shares, central))  # type: ignore[return-value]


def _mixture(rng: np.random.Generator) -> Bits:
    """Three kinds of people, each with its own frequency of each attribute."""
    kinds = rng.choice(3, USERS, p=(0.5, 0.3, 0.2))
    return (rng.random((USERS, ATTRIBUTES)) < rng.random((3, ATTRIBUTES))[kinds]).astype(np.int8)


def _odd(people: Bits, part: Sequence[int]) -> Bits:
    odd: Bits = people[:, list(part)].sum(axis=1) % 2
    return odd


def _central(people: Bits) -> list[CohortCount]:
    """How many volunteers have an odd parity: replacing a record moves each of the m counts by 1."""
    scale = laplace_scale(len(PARITIES), EPSILON)
    noisy = ExactDraws().laplace([int(_odd(people, part).sum()) for part in PARITIES], scale)
    return [CohortCount(count, laplace_variance(scale)) for count in noisy]


def _local(people: Bits, rng: np.random.Generator) -> list[CohortCount]:
    """Each user sends one parity, flipped with probability 1 / (e^epsilon + 1); estimates of equal parts of them."""
    keep = math.exp(float(EPSILON)) / (math.exp(float(EPSILON)) + 1)
    found = []
    size = round(len(people) / len(PARITIES))
    for k, part in enumerate(PARITIES):
        mine = _odd(people[k :: len(PARITIES)], part)
        said = np.where(rng.random(len(mine)) < keep, mine, 1 - mine).sum()
        share = (said / len(mine) - (1 - keep)) / (2 * keep - 1)
        variance = size * keep * (1 - keep) / (2 * keep - 1) ** 2
        found.append(CohortCount(float(share) * size, variance))
    return found


def _cells(odd: Floats) -> Floats:
    """The four cells of each pair from the shares of odd parities: P(a, b) = (1 + s_a + s_b + s_ab) / 4 with signs."""
    mean = dict(zip(PARITIES, 1 - 2 * odd, strict=True))
    cells = [
        (1 + (-1) ** x * mean[(a,)] + (-1) ** y * mean[(b,)] + (-1) ** (x + y) * mean[(a, b)]) / 4
        for a, b in itertools.combinations(range(ATTRIBUTES), 2)
        for x in (0, 1)
        for y in (0, 1)
    ]
    return np.array(cells)
