"""Release: all disjunctions of some width, from queries to fresh users, beside tables and the best constant.

Users have 10 yes/no fields that go together (four kinds of users). The figure of a method is its mean absolute error
over all sets of so many fields, as a share of the users. The methods are those of `ldp-simulate queries`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from benchmarks.row import Options, Row, row
from simulator.experiments.queries.limits import query_limits
from simulator.experiments.queries.run import QueriesGoal, measured

__all__ = ["run"]

_FIELDS, _EPSILON = 10, "1"
_CUTS = (0.2, 0.1, 0.05)

Bits = npt.NDArray[np.bool_]


def run(options: Options) -> Iterator[Row]:
    """Measure them with 10^5 and 10^6 users; `--full` takes three crowds instead of one."""
    for users in (100_000, 1_000_000):
        for width in (2, 3):
            found: dict[str, list[float]] = {}
            for seed in range(3 if options.full else 1):
                for name, value in _methods(_crowd(users, seed), QueriesGoal(width, epsilon=_EPSILON, seed=seed)):
                    found.setdefault(name, []).append(value)
            start = f"{users:,} users, any of {width} of {_FIELDS} fields, epsilon {_EPSILON}"
            for name, values in found.items():
                yield row(f"{start}: {name}", float(np.mean(values)), "share" if "error" in name else "count")
    sets = math.comb(_FIELDS, 3)
    limits = query_limits(_FIELDS, sets, 1_000_000, _EPSILON, QueriesGoal.levels)
    error, missed = limits["decomposition_error"], limits["decomposition_missed"]
    cut = f"decomposition: cut that proves an error of {error:g} on all but {missed:g} of the sets"
    yield row(cut, limits["decomposition_cut"], "share")
    parts = limits["decomposition_log10_parts"]
    yield row("decomposition: log10 of its bound on the number of parts at this cut", parts, "")
    proof = f"each set of 3 asked: users that prove an error of {limits['wanted_tolerance']:g} for all at once"
    yield row(proof, limits["users_for_wanted"], "users")


def _crowd(users: int, seed: int) -> Bits:
    rng = np.random.default_rng(seed)
    kind = rng.choice(4, users, p=(0.4, 0.3, 0.2, 0.1))
    shares = rng.beta(0.7, 2.0, (_FIELDS, 4))
    return rng.random((users, _FIELDS)) < shares[:, kind].T


def _methods(people: Bits, goal: QueriesGoal) -> Iterator[tuple[str, float]]:
    """Measure each method once, and the decomposition at each cut."""
    for method in measured(people, replace(goal, cut=_CUTS[0])):
        name = method["method"]
        cut = f", cut {_CUTS[0]}" if name == "decomposition" else ""
        yield from _figures(name + cut, method["error"], method["queries"])
    for other in _CUTS[1:]:
        for method in measured(people, replace(goal, cut=other), ["decomposition"]):
            yield from _figures(f"decomposition, cut {other}", method["error"], method["queries"])


def _figures(name: str, error: float | None, queries: int) -> Iterator[tuple[str, float]]:
    if error is not None:
        yield f"{name}: error", error
    if queries:
        yield f"{name}: queries" if error is not None else f"{name}: queries when the users were used up", queries
