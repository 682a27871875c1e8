"""Items against the elements that share their cells: likelihoods, and searches that start from an item."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from ldp_client.protocol.domain import Strings
from ldp_server.arrays.team_cells import bulk_code
from ldp_server.heavy_hitters.results import _mixed
from ldp_server.heavy_hitters.search.acceptance import Acceptance, limits_of
from ldp_server.heavy_hitters.search.beam import TeamCells, propose, search
from ldp_server.heavy_hitters.search.rounds import decode_scores
from ldp_server.heavy_hitters.search.scores import TeamScores
from tests.server.heavy_hitters.cases import TREE, collection
from tests.server.heavy_hitters.search.test_model import (
    CODE,
    NOISE,
    SETTINGS,
    TEAMS,
    key,
    message,
    put,
    scores,
    sharing,
)

WEIGHTS = np.full(TEAMS, 1 / math.sqrt(TEAMS))
COMPARED = replace(SETTINGS, width=1 << 9, last=4, **limits_of(CODE))


def acceptance(settings):
    return Acceptance(CODE, WEIGHTS, NOISE, settings)


def run(arrays, settings=COMPARED):
    return decode_scores(CODE, [TeamScores(part.copy(), 200_000) for part in arrays], NOISE, settings)


def keys(found):
    return {tuple(row) for row in found.messages.tolist()}


def test_limits_are_those_of_the_sketch():
    assert limits_of(CODE) == {"copy_tail": 1e-2, "doubt": 0.1}
    assert limits_of(bulk_code(collection("tree-sketch", TREE).randomizer)) == {"copy_tail": 2e-4, "doubt": math.inf}
    very_long = collection("tree-sketch", TREE, domain=Strings(66)).randomizer
    assert limits_of(bulk_code(very_long)) == {"copy_tail": 2e-4, "doubt": 0.1}


def test_a_doubt_is_the_sum_of_likelihood_ratios():
    tests = acceptance(SETTINGS)
    assert tests.doubt(10.0, np.array([9.0, 8.0])) == pytest.approx(math.exp(-9.5) + math.exp(-18.0))
    assert tests.doubt(10.0, np.array([10.0])) == 1.0
    assert tests.doubt(10.0, np.array([])) == 0.0
    assert tests.doubt(10.0, np.array([-20.0])) == pytest.approx(math.exp(-50.0))
    assert tests.doubt(1.0, np.array([400.0])) == pytest.approx(math.exp(50.0))


@pytest.mark.parametrize(("seed", "gap", "believed"), [(0, 0.0, False), (1, 2.0, True)])
def test_of_two_that_share_cells_and_score_alike_neither_is_listed(seed, gap, believed):
    """The better one is listed if it is clearly better: 9.5 against 7.5, and not against 9.4."""
    rng, arrays = scores(seed)
    item = message(rng)
    other = sharing(rng, item, [0, 1])
    level = 9.5 / math.sqrt(TEAMS)
    put(arrays, item, [level] * TEAMS)
    lower = level - (0.1 + gap) * math.sqrt(TEAMS) / 3
    put(arrays, other, [level, level, lower, lower, lower])
    found = run(arrays)
    assert (key(item) in keys(found)) is believed
    assert key(other) not in keys(found)
    assert all(found.doubts <= 0.1)
    if not believed:
        assert key(item) in keys(run(arrays, replace(COMPARED, doubt=10.0)))


def test_a_search_from_an_item_finds_relatives_that_others_hide():
    rng, arrays = scores(3)
    item = message(rng)
    weak = sharing(rng, item, [2])
    put(arrays, weak, [3.0] * TEAMS)
    teams = [TeamScores(part, 200_000) for part in arrays]
    lists = [TeamCells(CODE, m, teams[m], 1 / math.sqrt(TEAMS)) for m in range(TEAMS)]
    blind = {key(row[None]) for part in propose(CODE, lists, 32, None, None) for row in part}
    assert key(weak) not in blind
    near = {key(row[None]) for part in propose(CODE, lists, 32, None, None, CODE.cells(item)) for row in part}
    assert key(weak) in near


@pytest.mark.parametrize("slot", [1, 2])
def test_a_search_returns_only_messages_that_every_named_team_agrees_with(slot):
    rng, arrays = scores(5)
    item = message(rng)
    put(arrays, item, [6.0] * TEAMS)
    teams = [TeamScores(part, 200_000) for part in arrays]
    lists = [TeamCells(CODE, m, teams[m], 1 / math.sqrt(TEAMS)) for m in range(TEAMS)]
    for start in range(TEAMS):
        found = search(CODE, lists, start, 256, None, None, slot)
        assert key(item) in {key(row[None]) for row in found}
        assert 0 < len(found) < 512  # of 1,024 paths; the team that is left out is named by two cells, 2 bits each
        cells = CODE.cells(found)
        kept = np.stack([np.isin(cells[:, m], lists[m].cells) for m in range(TEAMS)], axis=1)
        assert (kept.sum(axis=1) >= CODE.code.data).all()


def test_the_sentence_names_the_number():
    assert _mixed(0.0312)[0].startswith("This list is expected to have 0.031 false items besides those of the noise")
    assert "fewer than 0.001 false items" in _mixed(0.00099)[0]
    assert "0.001 false items" in _mixed(0.001)[0]
    assert "fewer" not in _mixed(0.001)[0]
