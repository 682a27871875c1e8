"""The join against the table that it never makes, and the forms of scores and rows that it needs."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from ldp_server.heavy_hitters.search import joins
from ldp_server.heavy_hitters.search.joins import (
    Sorted,
    best_cells,
    falling,
    first_rows,
    floats_of,
    join,
    keys_of,
    pairs,
    units,
)


def slow_join(scores, blocks, cell_scores, cell_blocks):
    """Every pair that agrees, best first."""
    table = np.where(blocks[:, None] == cell_blocks[None, :], scores[:, None] + cell_scores[None, :], -(1 << 60))
    parents, chosen = np.nonzero(table > -(1 << 60))
    order = np.argsort(-table[parents, chosen], kind="stable")
    return parents[order], chosen[order], table[parents, chosen][order]


@pytest.mark.parametrize("width", [5, 100, 4000, 10**6])
@pytest.mark.parametrize("paths", [1, 300, 6000])
def test_the_best_pairs_that_agree(width, paths):
    rng = np.random.default_rng(width + paths)
    scores = units(np.sort(rng.normal(size=paths))[::-1])
    blocks = rng.integers(0, 16, paths)
    cell_scores, cell_blocks = units(rng.normal(size=200)), rng.integers(0, 16, 200)
    parents, chosen, sums = join(scores, blocks, Sorted(cell_blocks, cell_scores), width)
    assert (blocks[parents] == cell_blocks[chosen]).all()
    assert (sums == scores[parents] + cell_scores[chosen]).all()
    assert (np.diff(sums) <= 0).all()
    _, _, every = slow_join(scores, blocks, cell_scores, cell_blocks)
    assert len(sums) <= 2 * width
    assert (sums == every[: len(sums)]).all()
    assert len(sums) >= min(len(every), 0.5 * width)


def test_a_join_that_keeps_everything_is_the_table():
    """The same pairs, not only the same sums; blocks that no cell has, and paths of blocks beyond all cells."""
    rng = np.random.default_rng(8)
    for top in (4, 1 << 16, (1 << 24) - 1):
        some = np.append(rng.integers(0, top, 6), top)
        scores = units(np.sort(3 * rng.normal(size=400))[::-1])
        blocks, cell_blocks = rng.choice(some, 400), rng.choice(some[:5], 300)
        cell_scores = units(50 * rng.normal(size=300)) >> 8 << 8
        got = join(scores, blocks, Sorted(cell_blocks, cell_scores), 10**6)
        want = slow_join(scores, blocks, cell_scores, cell_blocks)
        assert (got[2] == want[2]).all()
        assert set(zip(*(part.tolist() for part in got), strict=True)) == set(
            zip(*(part.tolist() for part in want), strict=True)
        )


def test_with_very_many_blocks_scores_have_fewer_digits():
    """Blocks of 24 bits beside 400,000 places: the sums are right to 2^-8."""
    rng = np.random.default_rng(9)
    count = 400_000
    cell_scores, cell_blocks = rng.normal(size=count), rng.integers(0, 1 << 24, count)
    blocks = np.sort(rng.choice(cell_blocks, 50))
    parents, chosen, sums = join(np.zeros(50, np.int64), blocks, Sorted(cell_blocks, units(cell_scores)), 10**6)
    assert (cell_blocks[chosen] == blocks[parents]).all()
    assert len(parents) == sum(int((cell_blocks == block).sum()) for block in blocks)
    assert np.abs(floats_of(sums) - cell_scores[chosen]).max() < 2**-8


def test_the_strongest_scores_are_cut_and_keep_their_order_with_the_rest():
    scores = np.array([1e9, 3.25, -1e9, 2000.0])
    assert floats_of(units(scores)).round(3).tolist() == [2048.0, 3.25, -2048.0, 2000.0]
    _, chosen, _ = join(np.zeros(1, np.int64), np.zeros(1, np.int64), Sorted(np.zeros(4, np.int64), units(scores)), 9)
    assert chosen.tolist() == [0, 3, 1, 2]


def test_falling_scores_keep_the_order_of_equal_ones():
    scores = np.random.default_rng(3).integers(-5, 5, 1000)
    assert (falling(scores) == np.argsort(-scores, kind="stable")).all()


def test_different_rows_once_each():
    rng = np.random.default_rng(4)
    rows = rng.integers(0, 3, (500, 4))
    first = first_rows(rows)
    assert (first == np.sort(np.unique(rows, axis=0, return_index=True)[1])).all()
    assert first_rows(rows[:0]).tolist() == []


def test_equal_scores_do_not_blow_up():
    none = np.zeros(5000, np.int64)
    parents, _, _ = join(none, none, Sorted(none, none), 100)
    assert len(parents) <= 200


def test_nothing_joins_nothing():
    none, one = np.empty(0, np.int64), np.ones(1, np.int64)
    for result in (join(none, none, Sorted(none, none), 10), join(one, one, Sorted(none, none), 10)):
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


def halved_on_the_sample(scores, blocks, cells, width):
    """The join's threshold by counting every pair of its sample at each of 14 steps, or fewer."""
    count = len(scores)
    low, high = int(scores.min()) + cells.least - 65536, int(scores.max()) + cells.best + 65536
    weights = np.ones(count)
    if count > 2500:
        step = (count - 1000) / 1500
        some = np.append(np.arange(1000), 1000 + (np.arange(1500) * step).astype(np.int64))
        scores, blocks, weights = scores[some], blocks[some], np.where(some < 1000, 1.0, step)

    def weight(tau):
        return float(cells.partners(cells.starts(blocks), blocks, scores, tau) @ weights)

    if weight(low) <= width:
        return low
    for _ in range(14):
        middle = (low + high) // 2
        if width * 31 / 32 <= weight(middle) <= width:
            return middle
        low, high = (middle, high) if weight(middle) > width else (low, middle)
    return high


@pytest.mark.parametrize("listed", [40_000, 10])
@pytest.mark.parametrize("width", [50, 3000, 40_000])
@pytest.mark.parametrize("paths", [40, 2400, 9000])
def test_the_threshold_is_that_of_counting_at_each_step(paths, width, listed, monkeypatch):
    """Whether the pairs of the sample are listed or counted; a few cells far above the rest."""
    monkeypatch.setattr(joins, "_LISTED", listed)
    rng = np.random.default_rng(paths + width)
    scores = units(np.sort(2 * rng.normal(size=paths))[::-1])
    blocks, cell_blocks = rng.integers(0, 8, paths), rng.integers(0, 8, 3000)
    cell_scores = rng.normal(size=3000)
    cell_scores[:3] += 60
    cells = Sorted(cell_blocks, units(cell_scores))
    assert joins._threshold(scores, blocks, cells, width) == halved_on_the_sample(scores, blocks, cells, width)


def test_the_threshold_among_equal_scores():
    """An eighth of the sample cannot tell where the pairs lie: all or none of them do."""
    for paths, width in ((5000, 100), (200, 10**9)):
        scores, blocks = np.zeros(paths, np.int64), np.arange(paths) % 4
        cells = Sorted(np.arange(400) % 4, np.zeros(400, np.int64))
        assert joins._threshold(scores, blocks, cells, width) == halved_on_the_sample(scores, blocks, cells, width)


def test_pairs_in_their_order_are_the_join():
    rng = np.random.default_rng(12)
    scores = np.sort(rng.integers(-90, 90, 9000))[::-1] << 11
    blocks = rng.integers(0, 16, 9000)
    cells = Sorted(rng.integers(0, 16, 500), rng.integers(-90, 90, 500) << 11)
    found, whole = pairs(scores, blocks, cells, 20_000), join(scores, blocks, cells, 20_000)
    order = falling(found[2])
    assert all((one[order] == other).all() for one, other in zip(found, whole, strict=True))
    with ThreadPoolExecutor(2) as threads:
        best = join(scores, blocks, cells, 20_000, threads, most=700)
    assert all((one[:700] == other).all() for one, other in zip(whole, best, strict=True))
    assert not (np.diff(found[2]) <= 0).all()


@pytest.mark.parametrize("top", [7, 5000])
def test_a_block_begins_where_its_first_cell_is(top):
    """By a table for few blocks, by a search for many; also blocks that no cell has."""
    rng = np.random.default_rng(top)
    blocks = np.append(rng.choice(top, 200), top)
    cells = Sorted(blocks, units(rng.normal(size=201)))
    wanted = np.arange(top + 2)
    assert (cells.starts(wanted) == np.searchsorted(np.sort(blocks), wanted)).all()


def test_partners_are_counted_at_both_ends_of_the_scores():
    cells = Sorted(np.array([0, 0, 0, 1]), units(np.array([-3.0, 0.0, 5.0, 1.0])))
    blocks, none = np.array([0, 1, 2]), np.zeros(3, np.int64)
    for least, expected in ((-1e4, [3, 1, 0]), (0.0, [2, 1, 0]), (5.0, [1, 0, 0]), (5.1, [0, 0, 0]), (1e4, [0, 0, 0])):
        assert cells.partners(cells.starts(blocks), blocks, none, round(least * 65536)).tolist() == expected


def test_equal_rows_have_equal_keys_and_others_do_not():
    rng = np.random.default_rng(2)
    rows = rng.integers(0, 1 << 16, (20_000, 4))
    rows[7] = rows[11]
    keys = keys_of(rows)
    assert keys[7] == keys[11]
    assert len(np.unique(keys)) == len(np.unique(rows, axis=0)) == 19_999
    assert keys_of(rows[:0]).shape == (0,)
    assert keys_of(np.array([[1, 2], [2, 1]])).tolist() != keys_of(np.array([[2, 1], [1, 2]])).tolist()


def test_nobody_knows_which_rows_have_equal_hashes():
    """With a key that is known, rows of equal hash can be computed."""
    rows = np.random.default_rng(5).integers(0, 1 << 16, (50_000, 5))
    assert len(set(joins.keys_of(rows).tolist())) == len({tuple(row) for row in rows.tolist()})
    assert np.array_equal(joins.keys_of(rows[:9]), joins.keys_of(rows)[:9])  # the same key all the time
    before = joins.keys_of(rows[:9])
    joins._factors.cache_clear()  # as in another process
    assert not np.isin(joins.keys_of(rows[:9]), before).any()
    assert joins.first_rows(rows[[3, 1, 3, 2, 1]]).tolist() == [0, 1, 3]
