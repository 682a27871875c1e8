"""The chooser for numbers: the simulated errors of averages and of ranks stay within the stated ones."""

from __future__ import annotations

import math

import numpy as np
import pytest

from ldp_client.collection import Collection
from ldp_client.protocol.domain import Integers
from ldp_server.answers.choose import Kind, alternatives, choose, table
from ldp_server.arrays.packing import pack
from ldp_server.oracles import oracle_for
from simulator import crowd

USERS, RANGE = 20_000, 200


def counted(pick, epsilon, indexes, run):
    collection = Collection.create(
        "?", Integers(0, RANGE + 1), pick.mechanism, epsilon, parameters=pick.parameters, opens=0, closes=1, nonce=run
    )
    oracle = oracle_for(collection)
    for reports in crowd.simulate(collection.randomizer, indexes, run):
        oracle.accumulate(pack(reports, collection.randomizer.report_bytes))
    return oracle


@pytest.mark.parametrize("epsilon", ["1", "3"])
@pytest.mark.parametrize("value", [0, RANGE // 2, RANGE])
@pytest.mark.thinned(1)
def test_an_average_is_as_good_as_promised(epsilon, value):
    """At the worst value the promise is met, not only kept; at others the error may be smaller, not larger."""
    pick = choose(USERS, RANGE + 2, epsilon, Kind.AVERAGE)
    assert pick.mechanism == "bounded-number"
    indexes = np.full(USERS, value + 1, np.uint64)
    errors = [counted(pick, epsilon, indexes, run).average().estimate - value for run in range(60)]
    ratio = math.sqrt(np.mean(np.square(errors))) / pick.standard_error
    assert ratio < 1.25
    if value != RANGE // 2:
        assert ratio > 0.5


@pytest.mark.parametrize("epsilon", ["1", "3"])
def test_ranks_are_within_the_bound(epsilon):
    pick = choose(USERS, RANGE + 2, epsilon, Kind.QUANTILES)
    assert pick.mechanism == "hierarchy"
    held = np.random.default_rng(1).integers(1, RANGE + 2, USERS).astype(np.uint64)
    truth = np.cumsum(np.bincount(held.astype(np.intp), minlength=RANGE + 2)[1:])
    squares = []
    for run in range(30):
        estimates = counted(pick, epsilon, held, run).estimate_all()[1:]
        squares.append((np.cumsum(estimates) - truth) ** 2)
    worst = math.sqrt(np.mean(squares, axis=0).max())
    assert 0.2 < worst / pick.standard_error < 1.1


def test_the_error_of_an_average_has_the_numbers_unit():
    options = alternatives(USERS, RANGE + 2, "1", Kind.AVERAGE)
    assert [one.unit for one in options] == [""]
    assert options[0].variance_over_optimum == 1
    assert "users" not in table(options)
    assert "users" in table(alternatives(USERS, RANGE + 2, "1", Kind.QUANTILES))
