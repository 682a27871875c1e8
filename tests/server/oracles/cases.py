"""One oracle of each form, small enough to run many times."""

from __future__ import annotations

import numpy as np

from ldp_client.mechanisms import REPRODUCTIONS
from ldp_server.arrays.items import from_ints
from ldp_server.arrays.packing import pack
from ldp_server.oracles import FrequencyOracle, oracle_for
from simulator import crowd
from tests.examples import FULL

EVERY = [one for one in FULL if one.name not in REPRODUCTIONS]
"""Every mechanism; a reproduction's oracle is tested beside it."""
CASES = [one for one in EVERY if isinstance(oracle_for(one), FrequencyOracle)]
"""Those that estimate frequencies of items."""


def indexes_of(randomizer, numbers):
    """Indexes as arrays, in the form that the size of the domain asks for."""
    return from_ints([number % randomizer.size for number in numbers], max(1, (randomizer.size - 1).bit_length()))


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
