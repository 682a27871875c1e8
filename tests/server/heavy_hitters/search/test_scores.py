"""A team's scores with all cells, and with the best ones only."""

from __future__ import annotations

import numpy as np
import pytest

from ldp_server.heavy_hitters.search.scores import TeamScores


@pytest.fixture
def noise():
    return np.random.default_rng(1).standard_normal(50_000).astype(np.float32)


def test_the_best_cells_read_and_change_like_all_cells(noise):
    every, best = TeamScores(noise.copy(), 1000), TeamScores(noise.copy(), 1000, 2000)
    kept = best.kept
    assert 500 <= len(kept) <= 4000
    assert every.kept is None
    assert set(np.argsort(-noise)[:200].tolist()) <= set(kept.tolist())
    taken = np.array([kept[0], kept[-1], kept[5], kept[5]])
    for scores in (every, best):
        scores.subtract(taken, np.array([1.5, 2.5, 0.25, 0.5]))
    assert every.changes == best.changes == 1
    assert (every.at(kept) == best.at(kept)).all()
    assert best.at(kept[[5]]) == noise[kept[5]] - np.float32(0.75)


def test_what_was_dropped_reads_zero_and_stays_so(noise):
    best = TeamScores(noise, 1000, 2000)
    dropped = np.setdiff1d(np.arange(len(noise)), best.kept)
    best.subtract(dropped[:10], np.ones(10))
    assert (best.at(dropped) == 0).all()
    with pytest.raises(ValueError, match="best cells"):
        _ = best.scores


def test_few_cells_are_kept_all():
    few = TeamScores(np.arange(10, dtype=np.float32), 5, 2000)
    assert few.kept is None
    assert few.at(np.array([3])) == 3.0
