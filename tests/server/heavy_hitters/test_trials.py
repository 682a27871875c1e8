"""The benchmarks' experiments run, and their arithmetic is right."""

from __future__ import annotations

import random
from dataclasses import replace

import numpy as np
import pytest

from benchmarks.hitters import expander
from benchmarks.hitters.benchmark import fitted95
from benchmarks.hitters.poison import _common
from benchmarks.hitters.trials import KINDS, Trial, TrialSetting, population, run_trial
from ldp_client.mechanisms.linear_hash import LinearHash
from ldp_client.privacy.yardsticks import sigma_opt
from ldp_client.protocol.domain import Integers, Strings
from ldp_client.protocol.epsilon import Epsilon


@pytest.mark.long
def test_a_trial_finds_what_it_planted():
    trial = run_trial(TrialSetting(Integers(0, (1 << 40) - 1), 50_000, "4").plant((2.0, 0.3), 2), 1)
    assert [hit for multiple, hit in trial.planted if multiple == 2.0] == [True, True]
    assert [hit for multiple, hit in trial.planted if multiple == 0.3] == [False, False]
    assert trial.false == 0
    assert len(trial.errors) >= 2
    assert max(map(abs, trial.errors)) < 5


def test_the_slope_is_the_score_of_an_item_at_d_opt():
    setting = TrialSetting(Strings(16), 10**6, "1")
    assert setting.slope == pytest.approx(np.sqrt(2 * (np.log(256.0) * 16 + np.log(40))), rel=1e-3)
    assert setting.slope == pytest.approx(setting.d_opt / np.sqrt(10**6 * 3.678), rel=0.02)  # in standard errors


@pytest.mark.parametrize("kind", KINDS)
def test_populations_add_up(kind):
    setting = TrialSetting(Strings(8), 20_000, "4", kind=kind).plant((1.5,), 2)
    indexes, truth, planted = population(setting, 3)
    assert len(indexes) == sum(truth.values()) == 20_000
    assert all(truth[index] >= round(1.5 * setting.d_opt) for index in planted)
    assert 0 not in truth


def test_a_multiple_of_d_opt_is_so_many_standard_errors():
    setting = TrialSetting(Integers(0, (1 << 64) - 1), 10**6, "1")
    assert setting.slope == pytest.approx(setting.d_opt / sigma_opt(10**6, 1.0), rel=1e-9)
    assert setting.slope == pytest.approx(9.803, abs=0.001)


@pytest.mark.long
def test_the_fit_finds_the_curve_it_was_drawn_from():
    rng = random.Random(1)
    trials = []
    for _ in range(400):
        planted = [(m, rng.gauss(9.8 * (m - 1.05), 1) > 0) for m in (1.0, 1.1, 1.2, 1.3)]
        trials.append(Trial("x", planted, 0, [], [], [], {}))
    assert fitted95(trials, 9.8) == pytest.approx(1.05 + 1.645 / 9.8, abs=0.02)


@pytest.mark.long
def test_the_papers_form_and_the_practical_one_answer_for_the_same_users(request):
    """Far above the promise both list the items, far below it neither does; in between only the practical one."""
    long = request.config.getoption("--slow")
    domain = Integers(0, (1 << (24 if long else 21)) - 2)
    setting = replace(TrialSetting(domain, 40_000, "4"), planted=(8.5, 2.0, 0.3))
    found = expander._trial(setting, 1)
    assert found.hits["paper's form"] == [(8.5, True), (2.0, False), (0.3, False)]
    assert found.hits["practical"] == [(8.5, True), (2.0, True), (0.3, False)]
    assert found.false == {"paper's form": 0, "practical": 0}
    names = [one.name for one in expander._recall("small", [found])]
    assert sum("recall at" in name for name in names) == 6
    assert sum("count and decode" in name for name in names) == 1
    assert found.size["paper's form"] > 1 << 20


def test_a_liars_report_supports_many_cells_at_once():
    inner = LinearHash(Epsilon("1"), 3**9, 3, 9)
    cells = [5, 800, 12_345, 777, 19_000]
    rng = np.random.default_rng(1)
    for _ in range(20):
        number, answer = _common(inner, cells, rng)
        assert all(inner.product(inner.point(number), cell) == answer for cell in cells)
