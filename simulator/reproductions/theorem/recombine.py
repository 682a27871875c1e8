"""Small failure probabilities from few runs, without bias: each team's list from another run.

The public coins (hashes, graph, and which user is in which team) are drawn once, then the users randomize K times.
Given the public coins the teams are independent, and every run has the same law. So the lists L_1 of run r_1, L_2 of
run r_2 and so on are, for every choice of r_1 ... r_M, distributed exactly like the lists of one run. The share of the
K^M choices that fail is therefore an unbiased estimate of the probability of failure given the public coins (a
generalised U-statistic). The mean over independent public coins is an unbiased estimate of the probability of failure.

The public coins are drawn in two strata with known weights: a popular item shares the bucket, or it does not. The
interval is a bootstrap over the public coins, within the strata: they are what is independent. A bootstrap knows
nothing of failures that were not seen. So for a stratum without any, the upper end counts 3 failures in as many runs as
were really made (the rule of three, 95%), and not in as many as were put together.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from itertools import product

import numpy as np

__all__ = ["interval", "recombined"]

_ALL = 600
"""So many choices are tried one by one; of more, a random sample of this size."""
_RESAMPLED = 2000


def recombined(
    lists: Sequence[Sequence[Hashable]], fails: Callable[[tuple[Hashable, ...]], bool], rng: np.random.Generator
) -> float:
    """The share of failing choices; `lists[m][r]` is the list of team m in run r."""
    kinds = [list(Counter(team).items()) for team in lists]
    if math.prod(map(len, kinds)) > _ALL:
        picks = [tuple(team[int(r)] for team, r in zip(lists, runs, strict=True)) for runs in _picks(lists, rng)]
        return sum(count * fails(pick) for pick, count in Counter(picks).items()) / len(picks)
    failed = sum(
        math.prod(count for _, count in chosen) for chosen in product(*kinds) if fails(tuple(x for x, _ in chosen))
    )
    return failed / math.prod(map(len, lists))


def _picks(lists: Sequence[Sequence[Hashable]], rng: np.random.Generator) -> np.ndarray[tuple[int, int]]:
    return rng.integers(0, len(lists[0]), (_ALL, len(lists)))


def interval(strata: Sequence[tuple[float, Sequence[float]]], runs: int, seed: int) -> tuple[float, float, float]:
    """(estimate, low, high): the weighted mean of the strata's means, with a 95% interval; `runs` for each value."""
    rng = np.random.default_rng(seed)
    means = np.zeros(_RESAMPLED)
    estimate = unseen = 0.0
    for weight, values in strata:
        shares = np.asarray(values, float)
        estimate += weight * float(shares.mean())
        if not shares.any():
            unseen += weight * min(1.0, 3 / (runs * len(shares)))
        means += weight * shares[rng.integers(0, len(shares), (_RESAMPLED, len(shares)))].mean(axis=1)
    low, high = np.quantile(means, [0.025, 0.975])
    return estimate, float(low), float(high) + unseen
