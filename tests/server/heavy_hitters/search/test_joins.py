"""The join against the table that it never makes."""

from __future__ import annotations

import numpy as np
import pytest

from ldp_server.heavy_hitters.search.joins import Sorted, best_cells, join


@pytest.mark.parametrize("width", [5, 100, 4000, 10**6])
@pytest.mark.parametrize("paths", [1, 300, 6000])
def test_the_best_pairs_that_agree(width, paths):
    rng = np.random.default_rng(width + paths)
    scores = np.sort(rng.normal(size=paths))[::-1]
    blocks = rng.integers(0, 16, paths)
    cell_scores, cell_blocks = rng.normal(size=200), rng.integers(0, 16, 200)
    parents, chosen, sums = join(scores, blocks, Sorted(cell_blocks, cell_scores), width)
    assert (blocks[parents] == cell_blocks[chosen]).all()
    assert np.allclose(sums, scores[parents] + cell_scores[chosen])
    assert (np.diff(sums) <= 0).all()
    table = np.where(blocks[:, None] == cell_blocks[None, :], scores[:, None] + cell_scores[None, :], -np.inf)
    every = np.sort(table[np.isfinite(table)])[::-1]
    assert len(sums) <= 2 * width
    if width >= len(every):
        assert np.allclose(sums, every)
    else:
        assert len(sums) >= 0.5 * width
        assert np.allclose(sums[: len(sums) // 2], every[: len(sums) // 2])


def test_equal_scores_do_not_blow_up():
    parents, _, _ = join(
        np.zeros(5000), np.zeros(5000, np.int64), Sorted(np.zeros(5000, np.int64), np.zeros(5000)), 100
    )
    assert len(parents) <= 200


def test_nothing_joins_nothing():
    empty = np.empty(0)
    none = np.empty(0, np.int64)
    for result in (
        join(empty, none, Sorted(none, empty), 10),
        join(np.ones(1), np.zeros(1, np.int64), Sorted(none, empty), 10),
    ):
        assert all(len(part) == 0 for part in result)


@pytest.mark.parametrize("values", ["normal", "zeros", "few"])
def test_best_cells_are_bounded(values):
    rng = np.random.default_rng(1)
    scores = {
        "normal": rng.normal(size=500_000),
        "zeros": np.zeros(500_000),
        "few": np.where(np.arange(500_000) % 1000 == 0, 5.0, 0.0),
    }[values].astype(np.float32)
    chosen = best_cells(scores, 10_000)
    assert 2500 <= len(chosen) <= 20_000
    if values != "zeros":
        assert set(np.argsort(-scores, kind="stable")[:400]) <= set(chosen)
