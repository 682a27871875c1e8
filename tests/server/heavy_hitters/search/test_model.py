"""Acceptance, on scores made by hand: who is believed, who is taken for a mixture, and who cannot be hidden."""

from __future__ import annotations

import numpy as np
import pytest

from ldp_server.arrays.team_cells import bulk_code
from ldp_server.heavy_hitters.search.acceptance import Noise, Settings
from ldp_server.heavy_hitters.search.rounds import decode_scores
from ldp_server.heavy_hitters.search.scores import TeamScores
from tests.server.heavy_hitters.cases import EXPANDER, collection

CODE = bulk_code(collection("expander-sketch", EXPANDER).randomizer)
TEAMS, CHUNK = 5, 10
CELLS = 1 << CHUNK + 4
NOISE = Noise(1_000_000, 4.0, 1.0, 0.2)
SETTINGS = Settings(8.0, width=1 << 12)


def scores(seed):
    rng = np.random.default_rng(seed)
    return rng, [rng.standard_normal(CELLS).astype(np.float32) for _ in range(TEAMS)]


def message(rng):
    return rng.integers(0, 1 << CHUNK, (1, 4))


def put(arrays, item, values):
    for team, (cell, value) in enumerate(zip(CODE.cells(item)[0], values, strict=True)):
        arrays[team][cell] = value


def listed(arrays):
    found = decode_scores(CODE, [TeamScores(part, 200_000) for part in arrays], NOISE, SETTINGS)
    return {tuple(row) for row in found.messages.tolist()}


def key(item):
    return tuple(item[0].tolist())


@pytest.mark.parametrize("boosted", [(0,), (3,), (1, 4), (0, 1, 2, 3)])
@pytest.mark.thinned(2)
def test_who_lends_an_item_too_much_does_not_hide_it(boosted):
    """Excess in some teams (liars, or another item in the same cell): the rest is evidence enough."""
    for seed in range(4):
        rng, arrays = scores(seed)
        item = message(rng)
        values = 6.0 + 0.5 * rng.standard_normal(TEAMS)
        values[list(boosted)] += 7.0
        put(arrays, item, values)
        assert key(item) in listed(arrays)


@pytest.mark.long
def test_an_excess_is_no_evidence():
    """One team alone lifts the sum over the threshold; capped, nothing is left of it."""
    for seed in range(4):
        rng, arrays = scores(seed)
        item = message(rng)
        put(arrays, item, [18.0, 1.5, 0.5, 1.0, 1.5])
        assert key(item) not in listed(arrays)


@pytest.mark.parametrize("silent", range(TEAMS))
@pytest.mark.thinned(2)
def test_what_one_team_knows_nothing_of_is_taken_for_a_mixture(silent):
    for seed in range(4):
        rng, arrays = scores(seed)
        item = message(rng)
        values = np.full(TEAMS, 7.0)
        values[silent] = 0.0
        put(arrays, item, values)
        assert key(item) not in listed(arrays)


def sharing(rng, item, teams):
    """Another element with the item's cells in just these teams."""
    cells, symbols = CODE.cells(item)[0], CODE.reed_solomon.encode(item)[0]
    for _ in range(200):
        places = [*teams, *[m for m in range(TEAMS) if m not in teams]][:4]
        word = np.tile(symbols[places], (512, 1))
        word[:, len(teams) :] = rng.integers(0, 1 << CHUNK, (512, 4 - len(teams)))
        made = CODE.reed_solomon.interpolate(places, word)
        same = CODE.cells(made) == cells
        wanted = np.array([m in teams for m in range(TEAMS)])
        good = np.flatnonzero((same == wanted).all(axis=1))
        if len(good):
            return made[good[:1]]
    raise AssertionError("no such element was found")


@pytest.mark.long
def test_two_items_are_not_mistaken_for_one_that_shares_their_cells():
    """The mixture scores higher than either of its parents, is in balance, and is refused for them."""
    for seed in range(6):
        rng, arrays = scores(seed)
        mixture = message(rng)
        one, other = sharing(rng, mixture, [0]), sharing(rng, mixture, [1, 2, 4])
        put(arrays, mixture, [7.3, 5.9, 5.9, 2.6, 5.3])
        put(arrays, one, [7.3, 3.4, 5.5, 4.6, 5.1])
        put(arrays, other, [3.6, 5.9, 5.9, 4.4, 5.3])
        assert listed(arrays) == {key(one), key(other)}


@pytest.mark.long
def test_a_crowd_of_equal_items_is_listed_whole_and_alone():
    """So many that the paths that mix them fill a search: it is widened before anything is believed."""
    for seed in range(2):
        rng, arrays = scores(seed)
        items = [message(rng) for _ in range(30)]
        for item in items:
            put(arrays, item, 6.0 + rng.standard_normal(TEAMS))
        found = listed(arrays)
        assert found <= {key(item) for item in items}
        assert len(found) >= 28
