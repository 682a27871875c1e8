r"""The best decision map that treats similar types alike, and one that treats two groups alike too.

Types are public descriptions, such as a region and an age band; a person's own type stays on the person's device. How
frequent types are comes from randomized answers, made possible. Given the loss L[x][a] of decision a for type x,
`fair_map` chooses the chances mu to

    minimise  sum over x, a of pi[x] L[x][a] mu_x(a)
    with      D(mu_x, mu_y) <= d(x, y)  for all types,

D the total variation distance (Dwork, Hardt, Pitassi, Reingold and Zemel, ITCS 2012, Figure 1). For each two types with
d < 1 and each decision a variable t >= mu_x(a) - mu_y(a), t >= 0, and their sum is at most d(x, y).

**Two groups.** Where the groups S and T lie far apart in d, a Lipschitz map may treat them very differently. Then
`affirmative_map` (the paper's section 4) first moves S onto T with the least change: the map e from types of S to types
of T that minimises the mean d(x, e(x)), is Lipschitz inside S, and makes the moved S equal to T but for `parity` in
total variation. Then it solves the programme on T's types with the losses of both groups, and composes. What holds:
parity between the groups up to `parity`, and the Lipschitz condition inside S and inside T. Between S and T it does not
hold; `moved` is the mean distance by which people of S are moved, which bounds how much it is missed in the mean.

The device gets whole weights (ldp_client/decisions.py) and proves them itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
import numpy.typing as npt

from ldp_client.decisions import DecisionMap
from ldp_client.errors import InvalidSpec
from ldp_server.fairness.bias import checked_distances
from ldp_server.fairness.programmes import ProgrammeRows, solved
from ldp_server.oracles.base import Floats

__all__ = ["FairMap", "affirmative_map", "fair_map", "programme_size", "total_variation", "whole_map"]

UNIT = 10**6
_WORDS = 1 << 64
_LEAST_MIXTURE, _MOST_MIXTURE = 2.0**-44, 1e-3


@dataclass(frozen=True)
class FairMap:
    """Chances of decisions, a line for each type, and what they cost."""

    chances: Floats
    loss: float
    """The mean loss over the people."""
    free: float
    """The mean loss where every type gets its own best decision."""
    alike: float
    """The mean loss where all types get one and the same chances."""
    moved: float = 0.0
    """The mean distance by which people of the first group are moved onto the second."""


def programme_size(types: int, decisions: int, first: int = 0) -> int:
    """Return how many variables the largest programme of a map has for pairs of types, at most.

    `first` is how many types the first of two groups has. The time grows faster than the variables.
    """
    other = types - first
    alone = other * (other - 1) // 2 * decisions
    return max(alone, first * (first - 1) // 2 * 2 * other)


def fair_map(shares: npt.ArrayLike, loss: npt.ArrayLike, distances: npt.ArrayLike) -> FairMap:
    """Return the map of the least loss that is Lipschitz in these distances."""
    d = checked_distances(distances)
    pi, losses = _people(shares, len(d)), _losses(loss, len(d))
    chances = _lipschitz(pi[:, None] * losses, d)
    return _described(pi, losses, chances)


def affirmative_map(
    groups: tuple[npt.ArrayLike, npt.ArrayLike],
    loss: npt.ArrayLike,
    distances: npt.ArrayLike,
    parity: float = 0.0,
) -> FairMap:
    """Return a map that treats two groups alike up to `parity`, and similar types inside each group alike.

    A group is given by how its members are spread over the types; every type belongs to one of the groups.
    """
    d = checked_distances(distances)
    s, t = (_people(group, len(d)) for group in groups)
    losses = _losses(loss, len(d))
    if ((s > 0) & (t > 0)).any() or ((s == 0) & (t == 0)).any():
        raise InvalidSpec("every type belongs to exactly one of the groups")
    if not 0 <= parity <= 1:
        raise InvalidSpec("parity is a difference of chances, from 0 to 1")
    ours, theirs = np.flatnonzero(s), np.flatnonzero(t)
    onto = _moved(s[ours], t[theirs], d[np.ix_(ours, theirs)], d[np.ix_(ours, ours)], parity)
    together = t[theirs][:, None] * losses[theirs] + onto.T @ (s[ours][:, None] * losses[ours])
    inner = d[np.ix_(theirs, theirs)]
    chances = np.empty((len(d), losses.shape[1]))
    chances[theirs] = _lipschitz(together, inner) if len(theirs) > 1 else _own_best(together)
    chances[ours] = onto @ chances[theirs]
    cost = float((s[ours][:, None] * onto * d[np.ix_(ours, theirs)]).sum())
    return _described((s + t) / 2, losses, chances, cost)


def _moved(s: Floats, t: Floats, far: Floats, inside: Floats, parity: float) -> Floats:
    """The map from the types of S to those of T: for each type of S, the chances of types of T."""
    k, m = far.shape
    pairs = [pair for pair in combinations(range(k), 2) if inside[pair] < 1]
    rows = ProgrammeRows(k * m + 2 * len(pairs) * m + m)
    _chances(rows, k, m)
    at = _lipschitz_rows(rows, inside, pairs, m, k * m)
    for y in range(m):  # what is more at y than T has, and its sum
        places = np.append(np.arange(y, k * m, m), at + y)
        rows.at_most(places, np.append(s, -1.0), float(t[y]))
    rows.at_most(at + np.arange(m), np.ones(m), parity)
    costs = np.zeros(rows.variables)
    costs[: k * m] = (s[:, None] * far).ravel()
    return _cleaned(solved(costs, rows)[: k * m].reshape(k, m))


def _lipschitz(priced: Floats, d: Floats) -> Floats:
    k, m = priced.shape
    pairs = [pair for pair in combinations(range(k), 2) if d[pair] < 1]
    rows = ProgrammeRows(k * m + 2 * len(pairs) * m)
    _chances(rows, k, m)
    _lipschitz_rows(rows, d, pairs, m, k * m)
    costs = np.zeros(rows.variables)
    costs[: k * m] = priced.ravel()
    return _cleaned(solved(costs, rows)[: k * m].reshape(k, m))


def _chances(rows: ProgrammeRows, k: int, m: int) -> None:
    for x in range(k):
        rows.equal(np.arange(x * m, (x + 1) * m), np.ones(m), 1.0)


def _lipschitz_rows(rows: ProgrammeRows, d: Floats, pairs: Sequence[tuple[int, int]], m: int, at: int) -> int:
    """Add the rows of D(mu_x, mu_y) <= d for these pairs; their variables begin at `at`. Return the next place."""
    for x, y in pairs:
        for a in range(m):
            rows.at_most(np.array([x * m + a, y * m + a, at + a]), np.array([1.0, -1.0, -1.0]), 0.0)
        rows.at_most(at + np.arange(m), np.ones(m), float(d[x, y]))
        at += m
    return at


def _cleaned(found: Floats) -> Floats:
    found = np.maximum(found, 0.0)
    return np.asarray(found / found.sum(axis=1, keepdims=True))


def _own_best(priced: Floats) -> Floats:
    return np.asarray(np.eye(priced.shape[1])[priced.argmin(axis=1)])


def _described(pi: Floats, losses: Floats, chances: Floats, moved: float = 0.0) -> FairMap:
    free, alike = float(pi @ losses.min(axis=1)), float((pi @ losses).min())
    return FairMap(chances, float((pi[:, None] * losses * chances).sum()), free, alike, moved)


def _people(shares: npt.ArrayLike, types: int) -> Floats:
    pi = np.asarray(shares, np.float64)
    if pi.shape != (types,) or not np.isfinite(pi).all() or pi.min() < 0 or pi.sum() <= 0:
        raise InvalidSpec(f"how frequent types are is {types} numbers of at least 0, and not all 0")
    return np.asarray(pi / pi.sum())


def _losses(loss: npt.ArrayLike, types: int) -> Floats:
    found = np.asarray(loss, np.float64)
    if found.ndim != 2 or len(found) != types or found.shape[1] < 2 or not np.isfinite(found).all():
        raise InvalidSpec(
            f"losses are a line for each of {types} types, and a column for each of two or more decisions"
        )
    return found


def total_variation(chances: Floats) -> Floats:
    """Return the distance of every two lines."""
    return np.asarray(np.abs(chances[:, None, :] - chances[None, :, :]).sum(axis=2) / 2)


def whole_map(
    names: tuple[Sequence[str], Sequence[str]], found: FairMap, distances: npt.ArrayLike | None = None
) -> DecisionMap:
    """Return the map in whole weights, as a device proves it; `names` are those of the types and of the decisions.

    Without distances, those that the map has itself are stated, rounded up: an affirmative map is not Lipschitz between
    the groups. The chances are mixed with a little of their mean, where every condition has room, until the device's
    own proof holds.
    """
    apart = total_variation(found.chances) if distances is None else np.minimum(checked_distances(distances), 1.0)
    units = np.ceil(np.round(apart * UNIT, 6)).astype(object)
    stated = tuple(tuple(int(one) for one in line) for line in units)
    mean, mixed = found.chances.mean(axis=0), _LEAST_MIXTURE
    while mixed <= _MOST_MIXTURE:
        lines = [_rounded(line) for line in (1 - mixed) * found.chances + mixed * mean]
        for x, y in combinations(range(len(lines)), 2):
            if not stated[x][y]:
                lines[y] = lines[x]
        try:
            return DecisionMap(tuple(names[0]), tuple(names[1]), tuple(lines), stated, UNIT)
        except InvalidSpec as error:
            if "treat two similar types alike" not in str(error):
                raise
            mixed *= 2
    raise InvalidSpec("the solver's map is too far from a fair one: use coarser distances")


def _rounded(line: Floats) -> tuple[int, ...]:
    weights = [int(value * _WORDS) for value in line.tolist()]
    weights[max(range(len(weights)), key=weights.__getitem__)] += _WORDS - sum(weights)
    return tuple(weights)
