r"""Answers to all queries of a kind after asking some: disjunctions of yes/no fields.

f(S) is the share of users who hold any of the fields S. It grows with S, and what a field adds shrinks with S: it is
monotone and submodular. Conjunctions are 1 minus disjunctions of the fields turned round. Two algorithms, both of
statistical queries (queries.py), experimental, and hardly ever better than the tables (docs/learning.md):

**Decomposition** (Gupta, Hardt, Roth and Ullman, "Privately releasing conjunctions and the statistical query barrier",
STOC 2011). I begins as {empty set}. For each field x in order, and each B in I: if x adds more than `cut` to f(B), then
B + x is in I too. A set S belongs to one B in I: walk through the fields of S in order and take those that add more
than `cut`. Given B, no field of S that was left out adds much, so f(S) is nearly the same for all such S, and is
answered by a mean over some of them that were asked. There are at most d^(1/cut) sets in I, as each step adds more than
`cut` to a share. For an error alpha on all but beta of the sets the theorem asks for cut = alpha^2/(6 ln(2/beta)). That
is 0.00056 for alpha = beta = 0.1, where the bound on I exceeds every number of users.

**Thresholds** (Hardt, Rothblum and Servedio, "Private data release via learning thresholds", SODA 2012). Some sets are
asked. For each of k levels i/(k + 1), a classifier of sets learns whether f(S) reaches the level. A set is answered by
the highest level up to which the classifiers say yes in a row. The classifier here is a ridge regression on products of
at most two indicator variables, which the paper's guarantee does not cover.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
import numpy.typing as npt

from ldp_client.errors import InvalidSpec
from ldp_server.oracles.base import Floats

__all__ = ["Decomposition", "Thresholds", "best_constant", "decompose", "learn_thresholds", "proved_cut"]

Fields = frozenset[int]
Ask = Callable[[Fields], float]
"""The share of users who hold any of the fields."""


@dataclass(frozen=True)
class Decomposition:
    """A few sets, and an answer for all sets that belong to each."""

    parts: tuple[Fields, ...]
    taken: dict[Fields, frozenset[int]]
    """For each of `parts`, the fields that are in it if they are added to it."""
    means: dict[Fields, float]

    def part_of(self, fields: Fields) -> Fields:
        """Return the set to which these fields belong."""
        found: Fields = frozenset()
        for x in sorted(fields):
            if x in self.taken[found]:
                found |= {x}
        return found

    def answer(self, fields: Fields) -> float:
        return self.means[self.part_of(fields)]


def decompose(ask: Ask, fields: int, cut: float, sets: Sequence[Fields], most: int = 1000) -> Decomposition:
    """Build the decomposition, and ask the given sets for the means; `most` parts at most.

    The answer of a part to which none of these sets belongs is that of the part itself.
    """
    if not 0 < cut < 1:
        raise InvalidSpec("cut is a share between 0 and 1, such as 0.1")
    taken: dict[Fields, set[int]] = {frozenset(): set()}
    for x in range(fields):
        for part in list(taken):
            if ask(part | {x}) - (ask(part) if part else 0.0) > cut:
                taken[part].add(x)
                taken.setdefault(part | {x}, set())
                if len(taken) > most:
                    raise InvalidSpec(f"the decomposition has more than {most} parts: take a larger cut")
    kept = {part: frozenset(added) for part, added in taken.items()}
    empty = Decomposition(tuple(kept), kept, {})
    seen: dict[Fields, list[float]] = {part: [] for part in kept}
    for one in sets:
        seen[empty.part_of(one)].append(ask(one))
    means = {part: float(np.mean(values)) if values else (ask(part) if part else 0.0) for part, values in seen.items()}
    return Decomposition(empty.parts, kept, means)


def proved_cut(error: float, failing: float) -> float:
    """Return the cut for which the theorem proves this error on all but a share `failing` of the sets."""
    if not 0 < error < 1 or not 0 < failing < 1:
        raise InvalidSpec("error and failing are shares between 0 and 1")
    return float(error**2 / (6 * np.log(2 / failing)))


@dataclass(frozen=True)
class Thresholds:
    """A classifier for each level."""

    fields: int
    levels: Floats
    weights: Floats
    """A line for each level."""

    def answer(self, fields: Fields) -> float:
        reached = _products([fields], self.fields) @ self.weights.T > 0
        below = np.flatnonzero(~reached[0])
        place = int(below[0]) if len(below) else len(self.levels)
        return float(self.levels[place - 1]) if place else 0.0


def learn_thresholds(ask: Ask, fields: int, sets: Sequence[Fields], levels: int = 9, ridge: float = 1.0) -> Thresholds:
    """Ask the given sets, and learn for each level which sets reach it."""
    if levels < 1 or not sets:
        raise InvalidSpec("give at least one level and one set to ask")
    shares = np.array([ask(one) for one in sets])
    steps = np.arange(1, levels + 1) / (levels + 1)
    products = _products(sets, fields)
    told = np.where(shares[:, None] >= steps[None, :], 1.0, -1.0)
    grown = products.T @ products + ridge * np.eye(products.shape[1])
    return Thresholds(fields, steps, np.asarray(np.linalg.solve(grown, products.T @ told).T, np.float64))


def _products(sets: Sequence[Fields], fields: int) -> Floats:
    """1, each field's indicator, and the products of two."""
    held: npt.NDArray[np.float64] = np.array([[float(x in one) for x in range(fields)] for one in sets])
    pairs = [held[:, i] * held[:, j] for i, j in combinations(range(fields), 2)]
    return np.column_stack([np.ones(len(sets)), held, *pairs])


def best_constant(shares: npt.ArrayLike) -> float:
    """Return the number with the least mean absolute error: the median."""
    return float(np.median(np.asarray(shares)))
