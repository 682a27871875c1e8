"""All frequent items at once with probability 1 - beta, from real reports, in crowds that hold nothing else.

The worst case of the promise is n/N items of N users each. At the frequency for one item alone these crowds lose
items in nearly every run, and the same test rejects it.
"""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from scipy import stats

from ldp_client.protocol.domain import Integers
from ldp_server.arrays.items import from_ints
from ldp_server.arrays.packing import pack
from ldp_server.heavy_hitters import decode
from ldp_server.heavy_hitters.planner import create, plan
from ldp_server.oracles import oracle_for
from simulator import crowd

DOMAIN = Integers(0, (1 << 40) - 1)
MEMORY = 80 << 20
RISK = 1e-3
"""The probability with which a true promise fails the test."""


def complete(users, epsilon, beta, held, found, runs):
    """In how many runs all of the users / held planted items were listed, and how many false items there were."""
    planted, complete, false = users // held, 0, 0
    assert planted >= 10
    for seed in range(runs):
        spec = create(f"all {seed}", DOMAIN, epsilon, found, opens=0, closes=1)
        rng = np.random.default_rng(seed)
        items = [int(x) for x in rng.integers(1, DOMAIN.size, planted + users - planted * held)]
        numbers = [item for item in items[:planted] for _ in range(held)] + items[planted:]
        oracle = oracle_for(spec)
        for reports in crowd.simulate(spec.randomizer, from_ints(numbers, DOMAIN.bits), seed):
            oracle.accumulate(pack(reports, spec.randomizer.report_bytes))
        listed = {DOMAIN.index(h.item) for h in decode(spec, oracle, beta=beta).items}
        complete += set(items[:planted]) <= listed
        false += len(listed - set(items[:planted]))
    return complete, false


def kept(runs, done, beta):
    """Whether `done` of `runs` is no sign against a probability of 1 - beta."""
    return bool(stats.binom.cdf(done, runs, 1 - beta) >= RISK)


CASES = [
    ("4", 60_000, 0.05, 3),  # if none of three is whole, the promise is refused
    pytest.param("4", 60_000, 0.05, 4, marks=pytest.mark.slow),
    pytest.param("4", 60_000, 0.2, 12, marks=pytest.mark.slow),
    pytest.param("4", 60_000, 0.05, 12, marks=pytest.mark.slow),
    pytest.param("1", 300_000, 0.2, 12, marks=pytest.mark.slow),
    pytest.param("1", 300_000, 0.05, 12, marks=pytest.mark.slow),
]


@cache
def planned(users, epsilon, beta):
    return plan(users, DOMAIN, epsilon, beta=beta, memory=MEMORY, mechanism="expander-sketch")


@pytest.mark.timeout(900)
@pytest.mark.parametrize(("epsilon", "users", "beta", "runs"), CASES)
@pytest.mark.thinned(3)
def test_all_items_are_listed_at_once(epsilon, users, beta, runs):
    found = planned(users, epsilon, beta)
    done, false = complete(users, epsilon, beta, round(found.all_at_once), found, runs)
    assert kept(runs, done, beta)
    assert false <= 2


@pytest.mark.timeout(900)
@pytest.mark.long
def test_the_frequency_for_each_alone_is_not_enough():
    found = planned(60_000, "4", 0.05)
    done, _ = complete(60_000, "4", 0.05, round(found.reliable), found, 3)
    assert not kept(3, done, 0.05)
