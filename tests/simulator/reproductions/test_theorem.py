"""Theorem 3.13's page: the estimate has no bias, the folded transform is the whole one, both protocols find items."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from ldp_client.protocol.epsilon import Epsilon
from simulator.reproductions.rival import BETA_0, Rival, copies_for, hash_bits_for
from simulator.reproductions.theorem import page, runs
from simulator.reproductions.theorem.recombine import interval, recombined
from simulator.reproductions.theorem.runs import RunSetting, expander_missed, rival_missed
from tests.effort import examples


def test_a_share_of_all_choices_has_no_bias():
    """Three teams fail with their own probabilities; the mean over all outcomes of two runs is the true probability."""
    failing, rng = (0.1, 0.3, 0.5), np.random.default_rng(1)
    truth = 1 - sum(  # at most one team fails
        np.prod([p if f else 1 - p for p, f in zip(failing, fate, strict=True)])
        for fate in itertools.product((0, 1), repeat=3)
        if sum(fate) <= 1
    )
    mean = 0.0
    for outcome in itertools.product((0, 1), repeat=6):
        lists = [outcome[2 * m : 2 * m + 2] for m in range(3)]
        chance = np.prod([p if f else 1 - p for p, team in zip(failing, lists, strict=True) for f in team])
        mean += chance * recombined(lists, lambda chosen: sum(chosen) > 1, rng)
    assert mean == pytest.approx(truth)


def test_many_choices_are_sampled():
    """Twelve teams of three different runs: 531,441 choices; the sampled share is near the exact one."""
    lists = [(0, 1, 2)] * 12
    share = recombined(lists, lambda chosen: sum(one == 0 for one in chosen) >= 5, np.random.default_rng(3))
    assert share == pytest.approx(0.3685, abs=0.08)


def test_the_interval_holds_the_weighted_mean():
    estimate, low, high = interval([(0.75, [0.0, 0.2, 0.1, 0.1]), (0.25, [1.0, 0.6])], 5, 1)
    assert estimate == pytest.approx(0.75 * 0.1 + 0.25 * 0.8)
    assert low < estimate < high
    assert interval([(1.0, [0.5, 0.5])], 5, 1) == (0.5, 0.5, 0.5)
    assert interval([(0.5, [0.0, 0.0]), (0.5, [0.2, 0.2])], 5, 1) == pytest.approx((0.1, 0.1, 0.1 + 0.5 * 3 / 10))


def test_the_transform_of_one_bucket_is_the_whole_one(monkeypatch):
    shape = {"teams": 6, "chunk_bits": 4, "hash_bits": 1, "degree": 3, "bucket_bits": 3, "q": 2, "t": 11}
    monkeypatch.setattr(runs, "SHAPE", shape)
    rng = np.random.default_rng(1)
    held, x, other = RunSetting(3000).population(500, rng)
    assert np.count_nonzero(held == x) >= 500
    sketch = runs._public(rng, x, other, True)
    teams = rng.integers(0, 6, len(held))
    cells = runs.cells_of_teams(sketch, held, teams).astype(np.uint64)
    bucket = sketch.cell(x, 0) >> 8
    assert bucket == sketch.cell(other, 3) >> 8
    one = runs._bucket_scores(sketch, cells, teams, bucket, 5)
    whole = runs._run(sketch.inner, cells, teams, 6, 5)
    for team in range(6):
        assert one[team] == pytest.approx(whole[team].reshape(8, -1)[bucket], abs=1e-4)


@pytest.mark.long
def test_an_item_is_missed_less_the_more_users_hold_it():
    setting = RunSetting(runs=examples(3, 2))
    assert [expander_missed(setting, f, False, 1) for f in (9000, 22_000)] == [1.0, 0.0]
    assert [rival_missed(setting, f, 11, 1) for f in (900, 9500)] == [1.0, 0.0]


def test_the_rival_as_a_whole_finds_a_popular_item():
    """Its parameters are the theorem's: Y >= sqrt(n)/beta_0, and as many copies as beta asks for."""
    assert [copies_for(beta) for beta in (0.3, 0.25, 0.05, 1e-4)] == [1, 1, 3, 7]
    assert 1 << hash_bits_for(50_000, 2) >= 25_000**0.5 / BETA_0
    rival = Rival(Epsilon("2"), 16, 60_000, 2, bytes(32))
    held = np.random.default_rng(1).integers(1, 1 << 16, 60_000).astype(np.uint64)
    held[:20_000] = 4711
    counts, second = rival.count(*rival.reports(held, 3))
    found = rival.candidates(counts)
    assert 4711 in found
    assert second.estimate_median(np.array([4711], np.uint64))[0] == pytest.approx(20_000, rel=0.2)
    words = tuple((40_503 * (i + 1)) << 46 for i in range(6))
    assert 0 <= rival.randomize(4711, words) < 1 << rival.report_bits


def test_the_error_is_read_off_the_curve():
    points = [(10.0, 0.5), (12.0, 0.05), (14.0, 0.0005)]
    assert page._crossing(points, 0.05) == pytest.approx(12.0)
    assert page._crossing(points, 0.005) == pytest.approx(13.0)
    assert page._crossing(points, 1e-4) is None
