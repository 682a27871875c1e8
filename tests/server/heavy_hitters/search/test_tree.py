"""A tree's search for very long items: what a cell counts for, and what one strong item leaves to the others."""

from __future__ import annotations

import math

import numpy as np
import pytest

from ldp_client.protocol.domain import Strings
from ldp_server.arrays.team_cells import bulk_code
from ldp_server.heavy_hitters.search import tree
from ldp_server.heavy_hitters.search.acceptance import VERY_LONG
from ldp_server.heavy_hitters.search.joins import Sorted, units
from ldp_server.heavy_hitters.search.scores import TeamScores
from tests.server.heavy_hitters.cases import TREE, collection

LONG, VERY = (bulk_code(collection("tree-sketch", TREE, domain=Strings(size)).randomizer) for size in (64, 66))
WIDTH = 256


def scene(code, values, seed):
    """Noise, and items with so much in each of their cells. Return the scores, their weight and the items."""
    rng = np.random.default_rng(seed)
    arrays = [rng.standard_normal(1 << code.code.cell_bits).astype(np.float32) for _ in range(code.teams)]
    items = rng.integers(0, [1 << width for width in code.widths], (len(values), len(code.widths)))
    for cells, value in zip(code.cells(items), values, strict=True):
        for team, cell in enumerate(cells):
            arrays[team][cell] = value
    return [TeamScores(part, 200_000) for part in arrays], np.full(code.teams, 1 / math.sqrt(code.teams)), items


def levels(code, teams, weights, threshold):
    return [tree.Level(code, g, teams[g], float(weights[g]), threshold) for g in range(len(code.starts))]


def found(code, values, seed, threshold):
    """Which of the items one search proposes."""
    teams, weights, items = scene(code, values, seed)
    searched = levels(code, teams, weights, threshold)
    rows = {tuple(row) for part in tree.propose(code, searched, teams, weights, WIDTH, 0.0, None) for row in part}
    return [tuple(item) in rows for item in items.tolist()]


def test_the_lengths_are_on_both_sides():
    assert LONG.bits <= VERY_LONG < VERY.bits


def test_a_cell_of_a_very_long_item_counts_for_little_more_than_one_at_the_threshold_has():
    for code in (LONG, VERY):
        teams, weights, _ = scene(code, [40.0], 1)
        threshold = 6 * math.sqrt(code.teams)
        best = levels(code, teams, weights, threshold)[0].renew().best
        most = 1.2 * 6 if code is VERY else 40.0
        assert best == units(np.array([most * weights[0]]))[0]


@pytest.mark.parametrize("seed", range(4))
def test_one_strong_item_does_not_hide_a_very_long_one(seed, monkeypatch):
    threshold = 5 * math.sqrt(VERY.teams)
    assert found(VERY, [40.0, 6.0], seed, threshold) == [True, True]
    monkeypatch.setattr(tree, "VERY_LONG", 1 << 20)
    assert found(VERY, [40.0, 6.0], seed, threshold) == [True, False], "as shorter items are searched for"


def test_paths_with_an_equal_first_half_are_thinned():
    many = np.arange(1000)[:, None] + np.zeros((1, 4), np.int64)
    many[:, :2] = 7  # one family of 1,000
    rest = many[:3].copy()
    rest[:, 0] = [8, 9, 9]
    mixed = np.concatenate([many[:500], rest, many[500:]])
    assert tree._spread(mixed).tolist() == [*many[:256].tolist(), *rest.tolist()]
    assert tree._spread(mixed[:0]).tolist() == []


def joined(seed, strong, guess):
    """Six joins; after the third, one path gets ahead. Return them, and how many paths descend from one of these."""
    rng = np.random.default_rng(seed)
    joins = tree._SpreadJoins(WIDTH, None)
    scores, first, shares = np.zeros(1, np.int64), np.zeros(1, np.int64), []
    out = []
    for level in range(6):
        cells = Sorted(rng.integers(0, 4, 400), units(rng.standard_normal(400)))
        joins._crowded = {"right": joins._crowded, "never": False, "always": level > 1}[guess]
        parents, chosen, scores = joins.next(scores, rng.integers(0, 4, len(scores)), cells)
        first = np.arange(len(parents)) if level == 2 else first[parents] if level > 2 else first
        if level == 2:
            scores = np.sort(scores + np.where(np.arange(len(scores)) == 0, units(np.array([strong]))[0], 0))[::-1]
        out.append((parents.tolist(), chosen.tolist(), scores.tolist()))
        shares.append(np.bincount(first).max())
    return out, shares[3:]


@pytest.mark.parametrize("strong", [0.0, 20.0])
def test_a_guess_whether_one_ancestor_has_too_many_changes_nothing_but_the_work(strong):
    for seed in range(5):
        right, never, always = (joined(seed, strong, guess)[0] for guess in ("right", "never", "always"))
        assert right == never == always


def test_one_ancestor_keeps_a_quarter_of_the_paths():
    """A path 20 standard errors ahead of the others would take all of the next levels."""
    for seed in range(5):
        _, shares = joined(seed, 20.0, "right")
        assert max(shares) <= WIDTH // 4
        assert shares[0] == WIDTH // 4
