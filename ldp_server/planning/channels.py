r"""The best table of probabilities for a loss and a metric: a linear programme, then whole numbers that prove private.

Given the loss L[x][y] of report y for element x, how frequent elements are expected to be (pi), distances d and
epsilon, the programme chooses A to

    minimise  sum over x, y of pi[x] L[x][y] A[x][y]
    with      A[x][y] >= 0,  every line adds up to 1,
              A[x][y] <= e^(epsilon d(x, z)/D) A[z][y]    for all neighbours x, z and all y.

(Bordenabe, Chatzikokolakis and Palamidessi, "Optimal geo-indistinguishable mechanisms for location privacy", 2014.)
Without distances, all elements are neighbours. A column then lies between b and e^epsilon b for a new variable b, which
takes k m constraints instead of k^2 m.

Whole numbers. The solver's floats break a constraint in their last digits. So the solution is mixed with a little of
the table in which all lines are the mean line, where every constraint has room: as little as makes the rounded weights
pass the client's own proof. The mixture begins at 2^-52 and is doubled until they do.

What comes out. With loss 0 for the truth and 1 for all else: randomized response without distances; on a line, the
truncated geometric law (Ghosh, Roughgarden and Sundararajan, 2009). A loss that grows with the distance leaves reports
unused where epsilon is small: the best answer is then never one of them. Such a table serves whoever acts on single
reports. It may not tell all elements apart, and then no frequencies follow from it.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
import numpy.typing as npt

from ldp_client.errors import InvalidSpec
from ldp_client.mechanisms.compiled_channel import MAX_OUTCOMES, CompiledChannel
from ldp_client.protocol.epsilon import Epsilon

__all__ = [
    "ChannelGoal",
    "CompiledTable",
    "best_table",
    "compile_channel",
    "line_distances",
    "linear_programme",
    "named_loss",
]

Floats = npt.NDArray[np.float64]

_WORDS = 1 << 64
_LEAST_MIXTURE, _MOST_MIXTURE = 2.0**-52, 1e-3


@dataclass(frozen=True)
class ChannelGoal:
    """What a table is for."""

    epsilon: Epsilon
    loss: Floats
    """A line for each element of the domain, `none` first, and a column for each report."""
    distances: tuple[int, ...] = ()
    """Of every two elements 0-1, 0-2, ..., 1-2, ...; empty: all are equally far apart."""
    expected: Floats | None = None
    """How frequent elements are expected to be; None: equally. The proof of privacy does not depend on it."""


@dataclass(frozen=True)
class CompiledTable:
    """A table, and what it costs."""

    randomizer: CompiledChannel
    expected_loss: float
    """Of the table as it is."""
    least_loss: float
    """Of the solver's own solution, in floats."""
    mixed: float
    """How much of the mean line was added."""
    best: bool = True
    """Whether `least_loss` is the least of all tables."""

    @property
    def parameters(self) -> dict[str, Any]:
        return dict(self.randomizer.parameters())


def named_loss(name: str, elements: int) -> Floats:
    """Return a loss by its name; elements and reports are numbered alike, and `none` is element 0.

    `truth`: 1 for any report but the own one. `absolute` and `squared`: how far off the report is on the line of items.
    With these, `none` reported as an item, or an item as `none`, counts like the largest distance.
    """
    if name == "truth":
        return 1.0 - np.eye(elements)
    if name not in {"absolute", "squared"}:
        raise InvalidSpec(f"the loss is truth, absolute, squared, or a file with a table: not {name!r}")
    items = np.arange(elements, dtype=np.float64)
    off = np.abs(items[:, None] - items)
    off[0, 1:] = off[1:, 0] = max(1, elements - 2)
    return off if name == "absolute" else off**2


def line_distances(elements: int) -> tuple[int, ...]:
    """Return the distances of items on a line; `none` is as far from every item as the two ends are from each other."""
    far = max(1, elements - 2)
    return tuple(far if x == 0 else z - x for x, z in combinations(range(elements), 2))


def compile_channel(goal: ChannelGoal) -> CompiledTable:
    """Return the best table for a goal, in whole numbers that a device proves private."""
    loss = np.asarray(goal.loss, np.float64)
    if loss.ndim != 2 or not 2 <= loss.shape[0] <= MAX_OUTCOMES or not 2 <= loss.shape[1] <= MAX_OUTCOMES:
        raise InvalidSpec(f"a compiled table has 2 to {MAX_OUTCOMES} elements (with none) and as many reports")
    if not np.isfinite(loss).all():
        raise InvalidSpec("every loss is a finite number")
    weights = _expected(goal.expected, len(loss))
    priced = weights[:, None] * loss / max(1.0, float(np.abs(loss).max()))
    found = _solve(goal, priced)
    found = np.maximum(found, 0.0)
    found /= found.sum(axis=1, keepdims=True)
    least = float((weights[:, None] * loss * found).sum())
    randomizer, mixed = _whole(goal, found)
    table = np.array(randomizer.lines, dtype=object) / _WORDS
    return CompiledTable(randomizer, float((weights[:, None] * loss * table.astype(np.float64)).sum()), least, mixed)


def _expected(given: Floats | None, elements: int) -> Floats:
    if given is None:
        return np.full(elements, 1 / elements)
    weights = np.asarray(given, np.float64)
    if weights.shape != (elements,) or not np.isfinite(weights).all() or weights.min() < 0 or weights.sum() <= 0:
        raise InvalidSpec(f"expected frequencies are {elements} numbers of at least 0, not all 0")
    return np.asarray(weights / weights.sum())


def best_table(goal: ChannelGoal) -> Floats:
    """Return the best table in floats, as the solver finds it."""
    found = np.maximum(_solve(goal, np.asarray(goal.loss) / max(1.0, float(np.abs(goal.loss).max()))), 0.0)
    return np.asarray(found / found.sum(axis=1, keepdims=True))


def _solve(goal: ChannelGoal, priced: Floats) -> Floats:
    k, m = priced.shape
    lines = np.repeat(np.arange(k), m), np.ones(k * m)
    variables = k * m + (0 if goal.distances else m)
    costs = np.concatenate([priced.ravel(), np.zeros(variables - k * m)])
    return linear_programme(costs, _bounds(goal, k, m), lines)[: k * m].reshape(k, m)


def linear_programme(
    costs: Floats, most: tuple[npt.NDArray[Any], npt.NDArray[Any], Floats], lines: tuple[npt.NDArray[Any], Floats]
) -> Floats:
    """Return the variables of at least 0 with the least costs.

    `most` has the rows, columns and values of a matrix whose products are at most 0. `lines` has, of each of the first
    variables, the number of the sum that it is in, and how often: every sum is 1.
    """
    try:
        from scipy.optimize import linprog  # noqa: PLC0415 - an extra
        from scipy.sparse import coo_array  # noqa: PLC0415
    except ModuleNotFoundError:
        raise InvalidSpec("compiling a channel needs scipy: pip install 'hearsay[compile]'") from None

    rows, columns, values = most
    sums, often = lines
    solution = linprog(
        costs,
        A_ub=coo_array((values, (rows, columns)), shape=(int(rows.max(initial=0)) + 1, len(costs))).tocsr(),
        b_ub=np.zeros(int(rows.max(initial=0)) + 1),
        A_eq=coo_array((often, (sums, np.arange(len(sums)))), shape=(int(sums.max()) + 1, len(costs))).tocsr(),
        b_eq=np.ones(int(sums.max()) + 1),
        method="highs-ds",
        options={"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10},
    )
    if solution.status != 0:
        raise InvalidSpec(f"the linear programme was not solved: {solution.message}")
    return np.asarray(solution.x)


def _bounds(goal: ChannelGoal, k: int, m: int) -> tuple[Floats, Floats, Floats]:
    """The inequalities, as rows, columns and values of a sparse matrix whose products are at most 0."""
    y = np.arange(m)
    if not goal.distances:
        cells, tops = np.arange(k * m), k * m + np.tile(y, k)
        first, second = np.arange(k * m), k * m + np.arange(k * m)
        most = np.full(k * m, -float(goal.epsilon.e_low))
        one = np.ones(k * m)
        parts = [(first, cells, one), (first, tops, most), (second, cells, -one), (second, tops, one)]
    else:
        blank = CompiledChannel(goal.epsilon, k, _flat(k, m), goal.distances)  # checks the distances
        parts, at = [], 0
        for distance, pairs in blank.neighbours().items():
            factor = float(np.exp(float(goal.epsilon) * distance / blank.furthest))
            for x, z in pairs:
                parts += [(at + y, x * m + y, np.ones(m)), (at + y, z * m + y, np.full(m, -factor))]
                at += m
    rows, columns, values = (np.concatenate(part) for part in zip(*parts, strict=True))
    return rows, columns, values


def _flat(k: int, m: int) -> tuple[int, ...]:
    return _rounded(np.full((k, m), 1 / m))


def _rounded(table: Floats) -> tuple[int, ...]:
    """Return whole weights; each line's remainder goes to its largest weight."""
    weights: list[int] = []
    for line in table.tolist():
        whole = [int(value * _WORDS) for value in line]
        whole[max(range(len(whole)), key=whole.__getitem__)] += _WORDS - sum(whole)
        weights += whole
    return tuple(weights)


def _whole(goal: ChannelGoal, table: Floats) -> tuple[CompiledChannel, float]:
    mean, mixed = _mean_line(table), _LEAST_MIXTURE
    while mixed <= _MOST_MIXTURE:
        weights = _rounded((1 - mixed) * table + mixed * mean)
        try:
            return CompiledChannel(goal.epsilon, len(table), weights, goal.distances), mixed
        except InvalidSpec:
            mixed *= 2
    raise InvalidSpec("the solver's table is too far from a private one: give a smaller epsilon or fewer reports")


def _mean_line(table: Floats) -> Floats:
    """The mean line, and a little of every report, so that no weight is 0."""
    mean = table.mean(axis=0)
    return np.asarray((mean + mean.mean()) / 2)
