"""One oracle of each form, small enough to run many times."""

from __future__ import annotations

import numpy as np

from ldp_client.mechanisms import (
    ExpanderSketch,
    Hashtogram,
    LinearHash,
    PrefixTree,
    RandomizedResponse,
    TreeSketch,
)
from ldp_client.protocol.epsilon import Epsilon
from ldp_server.arrays.packing import pack
from ldp_server.oracles import oracle_for
from simulator import crowd

SEED = bytes(range(32))

CASES = [
    RandomizedResponse(Epsilon("1"), 2),
    RandomizedResponse(Epsilon("0.5"), 12),
    LinearHash(Epsilon("1"), 500, 2, 9),
    LinearHash(Epsilon("1"), 500, 3, 6),
    LinearHash(Epsilon("2"), 500, 7, 4),
    LinearHash(Epsilon("4"), 500, 53, 2),
    Hashtogram(Epsilon("1"), 500, SEED, 4, 3, 7),
    Hashtogram(Epsilon("2"), 1 << 90, SEED, 8, 7, 4),
    ExpanderSketch(Epsilon("1"), 1 << 30, SEED, 5, 8, 2, 2, 0, 3, 9),
    ExpanderSketch(Epsilon("2"), 1 << 90, SEED, 12, 8, 2, 2, 0, 7, 5, symbol_pointers=1),
    ExpanderSketch(Epsilon("2"), 1 << 30, SEED, 5, 8, 2, 2, 0, 3, 9, 0, 4, 5, 4),
    TreeSketch(Epsilon("1"), 1 << 30, SEED, 10, 8, 12, 3, 8, 1),
    PrefixTree(Epsilon("2"), 1 << 30, SEED, 10, 8, 12, 7, 5),
]


def reports_of(randomizer, indexes, seed):
    return np.concatenate(list(crowd.simulate(randomizer, indexes, seed)))


def filled(randomizer, indexes, seed):
    """An oracle that has read these users' reports through packed bytes."""
    oracle = oracle_for(randomizer)
    oracle.accumulate(pack(reports_of(randomizer, indexes, seed), randomizer.report_bytes))
    return oracle


def population(size, users, seed, exponent=1.1, distinct=400):
    """Zipf-distributed indexes from 1 on; index 0 (none) stays empty."""
    rng = np.random.default_rng(seed)
    distinct = min(distinct, size - 1)
    weights = np.arange(1, distinct + 1) ** -exponent
    return rng.choice(np.arange(1, distinct + 1, dtype=np.uint64), users, p=weights / weights.sum())
