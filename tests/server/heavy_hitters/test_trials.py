"""The benchmarks' experiments run, and their arithmetic is right."""

from __future__ import annotations

import random

import numpy as np
import pytest

from benchmarks.hitters.benchmark import fitted95
from benchmarks.hitters.poison import _common
from benchmarks.hitters.theorem import MULTIPLES, error_at, expander_trial, repeated_trial
from benchmarks.hitters.trials import KINDS, Trial, TrialSetting, population, run_trial
from ldp_client.mechanisms.linear_hash import LinearHash
from ldp_client.protocol.domain import Integers, Strings
from ldp_client.protocol.epsilon import Epsilon


def test_a_trial_finds_what_it_planted():
    trial = run_trial(TrialSetting(Integers(0, (1 << 40) - 1), 50_000, "4").plant((2.0, 0.3), 2), 1)
    assert [hit for multiple, hit in trial.planted if multiple == 2.0] == [True, True]
    assert [hit for multiple, hit in trial.planted if multiple == 0.3] == [False, False]
    assert trial.false == 0
    assert len(trial.errors) >= 2
    assert max(map(abs, trial.errors)) < 5


@pytest.mark.parametrize("kind", KINDS)
def test_populations_add_up(kind):
    setting = TrialSetting(Strings(8), 20_000, "4", kind=kind).plant((1.5,), 2)
    indexes, truth, planted = population(setting, 3)
    assert len(indexes) == sum(truth.values()) == 20_000
    assert all(truth[index] >= round(1.5 * setting.d_opt) for index in planted)
    assert 0 not in truth


def test_the_fit_finds_the_curve_it_was_drawn_from():
    rng = random.Random(1)
    trials = []
    for _ in range(400):
        planted = [(m, rng.gauss(9.8 * (m - 1.05), 1) > 0) for m in (1.0, 1.1, 1.2, 1.3)]
        trials.append(Trial("x", planted, 0, [], [], [], {}))
    assert fitted95(trials, 9.8) == pytest.approx(1.05 + 1.645 / 9.8, abs=0.02)


def test_the_theorems_experiment_tells_the_protocols_apart():
    expander = np.mean([expander_trial(seed) for seed in range(3)], axis=0)
    single = np.mean([repeated_trial(seed, 1) for seed in range(6)], axis=0)
    assert expander[4:].mean() > single[2:6].mean()
    assert error_at([0.5, 0.2, 0.0, 0.0, 0, 0, 0, 0], 0.1) == MULTIPLES[2]


def test_a_liars_report_supports_many_cells_at_once():
    inner = LinearHash(Epsilon("1"), 3**9, 3, 9)
    cells = [5, 800, 12_345, 777, 19_000]
    rng = np.random.default_rng(1)
    for _ in range(20):
        number, answer = _common(inner, cells, rng)
        assert all(inner.product(inner.point(number), cell) == answer for cell in cells)
