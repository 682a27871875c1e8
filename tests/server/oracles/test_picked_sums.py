"""The excess of picked estimates: right on average for every crowd, with the standard error stated."""

from __future__ import annotations

import math

import numpy as np
import pytest

from ldp_server.oracles.laws.normal import NormalErrors
from ldp_server.oracles.laws.picked_sums import excess_of_picked
from ldp_server.oracles.laws.support import SupportLaw

CROWDS = {
    "nobody": lambda d: np.zeros(d, int),
    "flat": lambda d: np.full(d, 20),
    "steps": lambda d: np.arange(d) // 4,
    "one": lambda d: np.where(np.arange(d) == 0, 5000, 1),
}
RUNS = 60


def outcomes(law, held, picked):
    """The errors of the estimated excess, in stated standard errors, and how often the stated ends miss."""
    rng, found, misses = np.random.default_rng(21), [], 0
    for _ in range(RUNS):
        supports = rng.binomial(held, law.p) + rng.binomial(law.reports - held, law.s)
        estimates = (supports - law.reports * law.s) / (law.p - law.s)
        order = np.argsort(-estimates, kind="stable")
        best = order[:picked]
        excess = excess_of_picked(law, estimates[best], estimates[order[picked:]])
        error = float(estimates[best].sum() - held[best].sum()) - excess.mean
        found.append(error / math.sqrt(excess.variance))
        misses += abs(error) > 1.96 * math.sqrt(excess.variance) + excess.allowance
    return np.array(found), misses


@pytest.mark.parametrize("crowd", CROWDS)
@pytest.mark.parametrize(("items", "picked"), [(60, 20), (800, 20), (800, 1)])
@pytest.mark.parametrize(("p", "s"), [(0.5, 0.27), (0.6, 0.004)])
@pytest.mark.thinned(2)
def test_the_excess_is_right_on_average(crowd, items, picked, p, s):
    errors, misses = outcomes(SupportLaw(20_000, p, s), CROWDS[crowd](items), picked)
    assert abs(errors.mean()) < 0.25 + 3.5 / math.sqrt(RUNS)
    assert errors.std() < 1.3
    assert misses <= 11  # 3 are expected; a true 10% shows more in one of 50 such tests, and there are 24


def test_without_it_the_sum_is_far_off():
    law, held = SupportLaw(20_000, 0.5, 0.27), np.zeros(800, int)
    rng = np.random.default_rng(3)
    estimates = (rng.binomial(law.reports - held, law.s) - law.reports * law.s) / (law.p - law.s)
    order = np.argsort(-estimates)
    excess = excess_of_picked(law, estimates[order[:20]], estimates[order[20:]])
    assert estimates[order[:20]].sum() > 8 * math.sqrt(20) * float(law.spread(0.0))
    assert excess.mean > 8 * math.sqrt(20) * float(law.spread(0.0))


def test_items_that_stand_out_have_no_excess():
    law = NormalErrors(1000, lambda f: np.full(np.shape(f), 4.0))
    excess = excess_of_picked(law, np.array([500.0, 400.0]), np.linspace(-3, 3, 100))
    assert abs(excess.mean) < 1e-6
    assert excess.variance == pytest.approx(8, rel=0.05)
    nothing_else = excess_of_picked(law, np.array([500.0, 400.0]), np.empty(0))
    assert (nothing_else.mean, nothing_else.variance) == (0.0, 8.0)


def test_no_errors_are_no_excess():
    law = NormalErrors(0, lambda f: np.zeros(np.shape(f)))
    excess = excess_of_picked(law, np.zeros(2), np.zeros(5))
    assert (excess.mean, excess.variance, excess.allowance) == (0.0, 0.0, 0.0)


@pytest.mark.parametrize("reports", [0, 1, 2, 7])
def test_very_few_reports(reports):
    law = SupportLaw(reports, 0.9, 0.01)
    estimates = (np.array([float(reports), 0.0, 0.0, 0.0]) - reports * law.s) / (law.p - law.s)
    excess = excess_of_picked(law, estimates[:2], estimates[2:])
    assert all(math.isfinite(value) for value in (excess.mean, excess.variance, excess.allowance))
