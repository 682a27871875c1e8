"""A tree's elements that fail the tests: they are modelled last, and put back once."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from ldp_server.arrays.team_cells import bulk_code
from ldp_server.heavy_hitters.search.acceptance import Noise, Settings, limits_of
from ldp_server.heavy_hitters.search.rounds import Hooks, _Search, decode_scores
from ldp_server.heavy_hitters.search.scores import TeamScores
from tests.server.heavy_hitters.cases import TREE, collection

CODE = bulk_code(collection("tree-sketch", TREE).randomizer)
NOISE = Noise(1_000_000, 4.0, 1.0, 0.2)
SETTINGS = Settings(9.0, width=16, last=256, **limits_of(CODE))
LENT = [6.0, 6.0, 6.0, 6.0, 0.0, 0.0]
MUCH = [6.0, 8.0, 8.0, 8.0, 0.0, 0.0]
HELD = [6.0, 1.2, 4.6, 4.6, 4.6, 4.6]


def scene(seed, lent):
    """An item, and an element that nobody holds with the same first payload: the checks know nothing of it."""
    rng = np.random.default_rng(seed)
    arrays = [rng.standard_normal(1 << CODE.code.cell_bits).astype(np.float32) for _ in range(CODE.teams)]
    item = rng.integers(0, [1 << width for width in CODE.widths])[None]
    other = item.copy()
    other[0, 1:] ^= rng.integers(1, [1 << width for width in CODE.widths[1:]])
    for message, values in ((other, lent), (item, HELD)):
        for team, (cell, value) in enumerate(zip(CODE.cells(message)[0], values, strict=True)):
            arrays[team][cell] = value
    return [TeamScores(part, 200_000) for part in arrays], item, other


@pytest.mark.parametrize("seed", range(4))
def test_what_fails_the_tests_does_not_hide_what_a_wider_search_finds(seed):
    teams, item, _ = scene(seed, LENT)
    found = decode_scores(CODE, teams, NOISE, SETTINGS)
    assert found.messages.tolist() == item.tolist()
    narrow = decode_scores(CODE, scene(seed, LENT)[0], NOISE, replace(SETTINGS, last=1))
    assert not len(narrow.messages), "a search this narrow does not find the item"


def test_what_is_put_back_leaves_no_trace():
    teams, item, other = scene(5, MUCH)
    before = [team.values.copy() for team in teams]
    search = _Search(CODE, teams, NOISE, SETTINGS, Hooks())
    for message in (other, item):
        cells = CODE.cells(message)
        search.model.add(cells[0], float((search.model.at(cells) @ search.weights)[0]))
        search.messages = np.concatenate([search.messages, message])
        search.doubts.append(0.0)
    search.model.refit()
    assert search._put_back(given=0)
    assert search.messages.tolist() == item.tolist()
    assert len(search.model.scores) == len(search.doubts) == 1
    assert not search._put_back(given=0)
    search.model.keep(np.array([False]))
    for team, scores in zip(teams, before, strict=True):
        np.testing.assert_allclose(team.values, scores, atol=1e-5)


def test_what_was_given_stays():
    """A dictionary's candidates are in the model before the search, and have other tests."""
    teams, _, other = scene(6, MUCH)
    search = _Search(CODE, teams, NOISE, SETTINGS, Hooks())
    cells = CODE.cells(other)
    search.model.add(cells[0], float((search.model.at(cells) @ search.weights)[0]))
    search.messages, search.doubts = other, [0.0]
    assert not search._put_back(given=1)
    assert search._put_back(given=0)
    assert not len(search.messages)
