"""Cells of popular items are left out of the estimates of other items."""

from __future__ import annotations

import numpy as np
import pytest

from ldp_client.collection import Collection
from ldp_client.protocol.domain import Integers, Strings
from ldp_server.oracles import frequency_oracle
from ldp_server.oracles.laws.crowded_cells import CrowdedCells
from ldp_server.oracles.shared.team_sketch import TeamSketchOracle
from tests.server.oracles.cases import filled

COUNT, USERS = 4000, 20_000
PARAMETERS = {"rows": 8, "q": 31, "t": 2}


def question(nonce, domain=None):
    return Collection.create(
        "?", domain or Integers(1, COUNT), "hashtogram", "4", opens=0, closes=1, parameters=PARAMETERS, nonce=nonce
    )


def crowd():
    users = np.random.default_rng(1).integers(2, COUNT, USERS).astype(np.uint64)
    users[: USERS // 2] = 1
    return users


def test_items_that_share_a_cell_with_a_popular_one_are_told_by_the_other_teams():
    """Their errors are like those of other items. The sum over all teams is off by a team's part of the popular one."""
    users, jumps, errors, usual = crowd(), [], [], []
    truth = np.bincount(users.astype(np.intp), minlength=COUNT + 1)
    for run in range(12):
        oracle = filled(question(run).randomizer, users, run)
        crowded, items = oracle.crowded(), np.arange(1, COUNT + 1, dtype=np.uint64)
        assert crowded.popular.tolist() == [1]
        lines = oracle._cells_of(items)
        shared = (~crowded.tells(items, lines)).any(axis=0)
        found = oracle.estimate(items) - truth[1:]
        jumps += (TeamSketchOracle.estimate(oracle, items) - truth[1:])[shared].tolist()
        errors += (found[shared] / oracle.standard_errors(items, found)[shared]).tolist()
        usual += (found[~shared] / oracle.standard_errors(items, found)[~shared]).tolist()
    assert len(errors) > 100
    assert np.mean(jumps) == pytest.approx(USERS / 2 / 8, rel=0.1)
    assert abs(np.mean(errors)) < 0.4
    assert np.std(errors) == pytest.approx(1, abs=0.2)
    assert np.mean(usual) == pytest.approx(0, abs=0.02)
    assert np.std(usual) == pytest.approx(1, abs=0.05)


@pytest.mark.long
def test_sums_have_the_stated_variance():
    users, items = crowd(), np.arange(1, 31, dtype=np.uint64)
    truth = np.bincount(users.astype(np.intp), minlength=COUNT + 1)[1:31]
    sums, stated = [], []
    for run in range(150):
        oracle = filled(question(run).randomizer, users, 1000 + run)
        found = oracle.estimate(items)
        sums.append(float(found.sum() - truth.sum()))
        stated.append(oracle.sum_variance(items, found))
    assert np.mean(np.square(sums)) / np.mean(stated) == pytest.approx(1, abs=0.4)


@pytest.mark.long
def test_sums_of_neighbours_hold():
    """Hashes of numbers in a row share cells unevenly; with the variance of random hashes too many ends miss."""
    weights = np.arange(1.0, 1001) ** -1.1
    users = np.random.default_rng(7).choice(np.arange(1, 1001), 1000, p=weights / weights.sum()).astype(np.uint64)
    truth, misses, naive = int((users <= 30).sum()), 0, 0
    for run in range(80):
        asked = Collection.create(
            "?",
            Integers(1, 1000),
            "hashtogram",
            "3",
            opens=0,
            closes=1,
            parameters={"rows": 8, "q": 11, "t": 2},
            nonce=300 + run,
        )
        oracle, items = filled(asked.randomizer, users, 300 + run), np.arange(1, 31, dtype=np.uint64)
        found = oracle.estimate(items)
        low, high = oracle.sum_interval(items, found, 0.025)
        misses += not low <= truth <= high
        naive += abs(found.sum() - truth) > 1.96 * np.sqrt(oracle.sum_variance(items, found))
    assert misses <= 12
    assert naive > 12


def test_a_domain_that_cannot_be_listed_has_no_known_popular_items():
    oracle = frequency_oracle(question(1, Strings(100)))
    assert oracle.crowded() is None
    assert oracle.error_law is None
    empty = frequency_oracle(question(1))
    assert empty.crowded() is None
    assert empty.estimate(np.array([1, 2], np.uint64)).tolist() == [0, 0]


def test_small_tables_have_no_law_for_picked_items():
    """With 8 teams of 121 cells, items near the threshold share cells: the wide interval is taken."""
    small, large = {"rows": 8, "q": 11, "t": 2}, PARAMETERS
    for parameters, known in ((small, False), (large, True)):
        asked = Collection.create("?", Integers(1, COUNT), "hashtogram", "3", opens=0, closes=1, parameters=parameters)
        assert (frequency_oracle(asked).error_law is not None) is known


def test_an_item_that_no_team_tells_is_told_by_all():
    found = CrowdedCells.of(np.array([7, 8], np.uint64), np.array([90.0, 80.0]), np.array([[1, 1], [2, 3]]), 64)
    tells = found.tells(np.array([7, 8, 9, 10], np.uint64), np.array([[1, 1, 1, 5], [2, 3, 2, 6]]))
    assert tells.tolist() == [[False, False, True, True], [True, True, True, True]]
