"""Counts of simulated reports. Where their law is known in short, they are drawn from it, and no report is made.

- Randomized response: with chance 1 - k q the true answer, else any of the k, all alike.
- Subset selection: with chance 1 - c a set that holds the true category, else any set of d categories, all alike. The
  sets are counted category by category: of the users whose set has r places left among c categories, the next one is in
  Bin(users, r/c) sets. Only how many users have how many places left is kept. Users whose set is bound to hold their
  category keep a place for it; as everything before it is independent of which category that is, they are exchangeable,
  and those whose category comes next have places left like a sample of all.
- Everything else: packed reports, counted as production does.

A test compares the drawn counts with those of packed reports.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ldp_client.collection import Collection
from ldp_client.mechanisms.randomized_response import RandomizedResponse
from ldp_client.mechanisms.subset_selection import SubsetSelection
from ldp_server.arrays.packing import pack
from ldp_server.oracles import Oracle, oracle_for
from simulator import crowd

__all__ = ["counted", "drawn", "packed"]

Counts = npt.NDArray[np.int64]


def counted(collection: Collection, people: npt.NDArray[np.uint64], seed: int) -> Oracle:
    """Return an oracle that has counted a report of each of these people."""
    held = np.bincount(people.astype(np.intp), minlength=collection.domain.size)
    return drawn(collection, held, seed) or packed(collection, people, seed)


def packed(collection: Collection, people: npt.NDArray[np.uint64], seed: int) -> Oracle:
    """Make and count packed reports."""
    oracle = oracle_for(collection)
    for part in crowd.simulate(collection.randomizer, people, seed):
        oracle.accumulate(pack(part, collection.randomizer.report_bytes))
    return oracle


def drawn(collection: Collection, held: Counts, seed: int) -> Oracle | None:
    """Draw the counts from their law; None where it is not known in short."""
    randomizer, rng = collection.randomizer, np.random.default_rng([seed, 12])
    if isinstance(randomizer, RandomizedResponse):
        counts = _response(randomizer, held, rng)
    elif isinstance(randomizer, SubsetSelection):
        counts = _subsets(randomizer, held, rng)
    else:
        return None
    oracle = oracle_for(collection)
    oracle.counts.values[:] = counts
    oracle.counts.total = int(held.sum())
    return oracle


def _response(randomizer: RandomizedResponse, held: Counts, rng: np.random.Generator) -> Counts:
    k, q = randomizer.size, float(randomizer.response.q)
    told = rng.binomial(held, 1 - k * q)
    lies = int(held.sum() - told.sum())
    return np.asarray(told + np.bincount(rng.integers(k, size=lies), minlength=k))


def _subsets(randomizer: SubsetSelection, held: Counts, rng: np.random.Generator) -> Counts:
    k, d, p = randomizer.size, randomizer.d, float(randomizer.support[0])
    # A set of d categories, all alike, holds the true one with chance d/k.
    bound = rng.binomial(held, (p - d / k) / (1 - d / k))
    free, kept = np.zeros(d + 1, np.int64), np.zeros(d + 1, np.int64)
    free[d], kept[d - 1] = int(held.sum() - bound.sum()), int(bound.sum())
    found, places = np.zeros(k, np.int64), np.arange(d + 1)
    for category in range(k):
        left = k - category
        own = rng.multivariate_hypergeometric(kept, int(bound[category]))
        kept = kept - own
        taken = rng.binomial(free, np.minimum(places / left, 1.0))
        # Of the categories that are left, one is each bound user's own.
        more = rng.binomial(kept, np.minimum(places / max(left - 1, 1), 1.0))
        found[category] = int(own.sum() + taken.sum() + more.sum())
        free = free - taken + np.append(taken[1:], 0)
        kept = kept - more + np.append(more[1:], 0)
        free += own
    return found
