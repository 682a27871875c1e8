"""A strategy with its noise: what each answer's error will be, before any record is looked at.

A strategy A of integers is measured as A x + noise, x being how many people are in each column. The answers are
R (A x + noise) + c n with R A + c 1^T = W, W being the queries' matrix and n the public number of people. Of all such R
the one with the smallest rows is taken: by Gauss and Markov no other linear answers have a smaller error.

    error of query q     variance of the noise on a row, times |R_q|^2

The rows are scaled up, and the noise with them, so that the noise is as good as continuous.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np
import numpy.typing as npt

from ldp_client.errors import InvalidSpec
from ldp_server.curator.draws import gaussian_scale, laplace_scale
from ldp_server.curator.laws import gaussian_variance, laplace_variance
from ldp_server.curator.workloads.matrix.optimised import best_gram, centred, weighted
from ldp_server.curator.workloads.matrix.queries import LinearQueries
from ldp_server.curator.workloads.matrix.sensitivity import largest_l1, largest_squared
from ldp_server.curator.workloads.matrix.strategies import PLAIN, all_rows, marginal_rows, without_constants
from ldp_server.curator.workloads.matrix.widths import gaussian_sum_width, laplace_sum_width

__all__ = ["STRATEGIES", "Price", "StrategyPlan", "best_plan", "gaussian_bound", "plans"]

STRATEGIES = (*PLAIN, "marginals", "optimised")
_FINE = 1 << 12
"""What the largest entry of a strategy is scaled to, at least."""
_RIGHT = 1e-7
_MOST_OPTIMISED = 160
_LOW, _SMALL = -4.0, 0.01
"""The logarithm of the first weight of a row that the start does not have; below which a weight may be left out."""

Floats = npt.NDArray[np.float64]
Integer = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Price:
    """A pure epsilon, for Laplace noise, or a rho, for Gaussian noise."""

    epsilon: Fraction | None = None
    rho: Fraction | None = None

    @property
    def pure(self) -> bool:
        return self.rho is None


@dataclass(frozen=True, eq=False)
class StrategyPlan:
    """A strategy, the noise that its price takes, and the answers from it."""

    name: str
    rows: Integer
    answers: Floats
    """R."""
    people: Floats
    """c."""
    off: float
    """The largest entry of R A + c 1^T - W: a rounding error."""
    price: Price

    @cached_property
    def sensitivity(self) -> int:
        """The largest distance of two columns: in L1, or squared in L2."""
        return largest_l1(self.rows) if self.price.pure else largest_squared(self.rows)

    @cached_property
    def scale(self) -> float:
        """Of the noise on each row."""
        if self.price.epsilon is not None:
            return laplace_scale(self.sensitivity, self.price.epsilon)
        return gaussian_scale(self.sensitivity, self.price.rho or Fraction(1))

    @cached_property
    def variances(self) -> Floats:
        """Of the error of each answer."""
        noise = laplace_variance(self.scale) if self.price.pure else gaussian_variance(self.scale)
        return np.asarray(noise * np.square(self.answers).sum(axis=1))

    @property
    def error(self) -> float:
        """The root of the mean squared error of all answers."""
        return math.sqrt(float(self.variances.mean()))

    def widths(self, beta: float) -> list[float]:
        """Return how far each answer may be off with probability 1 - beta, but for rounding."""
        width = laplace_sum_width if self.price.pure else gaussian_sum_width
        known: dict[bytes, float] = {}
        found = []
        for row in self.answers:
            ordered = np.sort(np.abs(row))
            key = np.round(ordered / max(float(ordered[-1]), 1e-300), 9).tobytes() + ordered[-1:].astype("f4").tobytes()
            if key not in known:
                known[key] = width(ordered, self.scale, beta) * (1 + 1e-6) if ordered[-1] > 0 else 0.0
            found.append(known[key])
        return found


def plans(
    asked: LinearQueries,
    price: Price,
    say: Callable[[str], None] = lambda _: None,
    names: Sequence[str] = STRATEGIES,
) -> list[StrategyPlan]:
    """Return a plan for each of these strategies that can answer the queries, the smallest error first."""
    found = []
    for name in names:
        say(f"strategy {name}")
        tried = (_plan(name, rows, asked, price) for rows in _rows(name, asked, price))
        made = [plan for plan in tried if plan is not None]
        if made:
            found.append(min(made, key=lambda plan: plan.error))
    return sorted(found, key=lambda plan: plan.error)


def best_plan(asked: LinearQueries, price: Price, name: str | None = None) -> StrategyPlan:
    """Return the plan with the smallest error, or that of a strategy by its name."""
    if name is not None and name not in STRATEGIES:
        raise InvalidSpec(f"--strategy: one of {', '.join(STRATEGIES)}")
    for plan in plans(asked, price, names=STRATEGIES if name is None else [name]):
        return plan
    raise InvalidSpec(f"the strategy {name!r} cannot answer these queries: leave --strategy out for the best one")


def gaussian_bound(asked: LinearQueries, rho: Fraction) -> float | None:
    """Return an error below which no strategy with Gaussian noise is, or None if there are too many columns."""
    if asked.columns > _MOST_OPTIMISED:
        return None
    _, bound = best_gram(centred(asked.matrix))
    return math.sqrt(bound / (2 * float(rho)) / len(asked.queries))


def _rows(name: str, asked: LinearQueries, price: Price) -> Iterator[Integer]:
    """Yield the rows of a strategy; of a strategy with weights, several to choose from."""
    if name in PLAIN:
        rows = PLAIN[name](asked)
        if rows is not None:
            yield without_constants(rows) * _FINE
    elif asked.columns > _MOST_OPTIMISED:
        return
    elif name == "marginals":
        found = marginal_rows(asked)
        if found is not None and max(found[1]) > 0:
            yield from _weighted(*found, [], asked, price)
    elif price.pure:
        rows = all_rows(asked)
        starts = [made for make in PLAIN.values() if (made := make(asked)) is not None]
        if len(rows):
            yield from _weighted(rows, tuple(range(len(rows))), starts, asked, price)
    else:
        yield _best_rows(asked)


def _weighted(
    rows: Integer, groups: tuple[int, ...], starts: Sequence[Integer], asked: LinearQueries, price: Price
) -> Iterator[Integer]:
    """Yield rows with weights as integers, with and without those of small weight, from several starts."""
    numbers = np.array(groups)
    firsts = [np.zeros(max(groups) + 1)]
    for start in starts:
        held = {row.tobytes() for row in start}
        firsts.append(np.array([0.0 if row.tobytes() in held else _LOW for row in rows]))
    for first in firsts:
        weights = weighted(centred(asked.matrix), rows, numbers, first, squared=not price.pure)
        for least in (0.0, _SMALL):
            kept = np.rint(np.where(weights >= least, weights, 0) * _FINE * 4).astype(np.int64)
            yield np.asarray(rows * kept[numbers][:, None])


def _best_rows(asked: LinearQueries) -> Integer:
    """Return integer rows whose products are nearly those of the best strategy for Gaussian noise.

    They are whole multiples of some queries, added up: then the queries are sums of them again.
    """
    base = _independent(np.unique(asked.matrix, axis=0))
    gram, _ = best_gram(centred(asked.matrix))
    values, vectors = np.linalg.eigh(gram)
    kept = values > values[-1] * 1e-9
    rows = np.sqrt(values[kept])[:, None] * vectors[:, kept].T
    parts = rows @ np.linalg.pinv(centred(base), rcond=1e-9)
    return np.asarray(np.rint(parts / np.abs(parts).max() * _FINE * 16).astype(np.int64) @ base)


def _independent(rows: Integer) -> Integer:
    """Return some rows of which all others are sums, but for multiples of a row of ones."""
    left = centred(rows)
    columns = left.shape[1]
    kept: list[int] = []
    while float(np.square(left).sum(axis=1).max()) > 1e-9:
        kept.append(int(np.square(left).sum(axis=1).argmax()))
        one = left[kept[-1]] / np.linalg.norm(left[kept[-1]])
        left = left - np.outer(left @ one, one)
    return np.eye(columns, dtype=np.int64) if len(kept) == columns - 1 else rows[kept]


def _plan(name: str, rows: Integer, asked: LinearQueries, price: Price) -> StrategyPlan | None:
    """Return a plan without rows that no answer uses; None where an answer does not follow from the rows."""
    rows = rows[rows.any(axis=1)]
    wanted = asked.matrix.astype(np.float64)
    for _ in range(2):
        if not len(rows):
            return None
        answers = centred(wanted) @ np.linalg.pinv(centred(rows), rcond=1e-10)
        used = np.abs(answers).max(axis=0) > 1e-9 * np.abs(answers).max()
        if used.all():
            break
        rows = rows[used]
    left = wanted - answers @ rows
    people = left.mean(axis=1)
    off = float(np.abs(left - people[:, None]).max())
    return StrategyPlan(name, rows, answers, people, off, price) if off < _RIGHT else None
