"""Common causes of what goes together: the fit, the number of causes, and where none are taken."""

from __future__ import annotations

import math
from functools import partial
from itertools import combinations

import numpy as np
import pytest

from ldp_server.oracles.records.parts import centred
from ldp_server.oracles.records.together import causes
from ldp_server.oracles.records.together.causes import PairFit, moved_towards_causes
from ldp_server.oracles.records.together.shrinking import Effect, shrunk

USERS = 100_000


def rests_of_kinds(sizes, kinds, rng):
    """What goes together where the fields of each of some kinds of users are independent."""
    parts = rng.dirichlet(np.full(kinds, 8.0))
    shares = [rng.dirichlet(np.full(size, 0.7), kinds) for size in sizes]
    apart = [one - parts @ one for one in shares]
    return {
        (one, other): USERS * np.einsum("a,ai,aj->ij", parts, apart[one], apart[other])
        for one, other in combinations(range(len(sizes)), 2)
    }


def noise_of(rests, error, rng):
    return {places: centred(rng.normal(0, error, one.shape)) for places, one in rests.items()}


def added(one, other):
    return {places: one[places] + other[places] for places in one}


def apart(one, other):
    return sum(float(np.square(one[places] - other[places]).sum()) for places in one)


def half_way(rests, targets):
    return {places: (one + targets[places]) / 2 for places, one in rests.items()}


def to_targets(rests, targets):
    return {places: targets[places] + 0.1 * (one - targets[places]) for places, one in rests.items()}


SIZES = (3, 2, 4, 2, 5, 3, 2, 2)


def fit_of(rests, variances, sizes=SIZES):
    return PairFit.of(dict(enumerate(sizes)), variances)


def test_four_kinds_are_three_causes():
    rng = np.random.default_rng(1)
    rests = rests_of_kinds(SIZES, 4, rng)
    fit = fit_of(rests, dict.fromkeys(rests, 1e-2))
    assert fit.matrix(rests).shape == (15, 15)
    assert fit.pairs(fit.matrix(rests)).keys() == rests.keys()
    assert apart(fit.pairs(fit.matrix(rests)), rests) < 1e-12
    zero = apart(rests, {places: 0 * one for places, one in rests.items()})
    left = [apart(fit.pairs(fit.of_rank(rests, number)), rests) / zero for number in (1, 2, 3)]
    assert left[0] > left[1] > 10 * left[2]
    assert left[2] < 1e-4


def test_a_pair_that_is_known_badly_counts_less_and_one_that_nobody_knows_not_at_all():
    rng = np.random.default_rng(2)
    rests = rests_of_kinds(SIZES, 2, rng)
    spoilt = {**rests, (0, 4): rests[0, 4] + centred(rng.normal(0, 5_000, (3, 5)))}
    left = {}
    for variance in (1.0, 100.0):
        fit = fit_of(rests, dict.fromkeys(rests, 1.0) | {(0, 4): variance})
        left[variance] = apart(fit.pairs(fit.of_rank(spoilt, 1)), rests)
    without = {places: one for places, one in rests.items() if places != (0, 4)}
    unknown = fit_of(without, dict.fromkeys(without, 1.0))
    left[math.inf] = apart(unknown.pairs(unknown.of_rank(without, 1)), rests)
    assert left[1.0] > 10 * left[100.0] > 10 * left[math.inf]


@pytest.mark.parametrize(
    ("sizes", "kinds", "gain"), [((2,) * 16, 4, 0.7), ((3, 4, 5, 6, 8), 4, 0.9), ((2,) * 16, 2, 0.5)]
)
def test_where_users_are_of_kinds_most_of_the_noise_goes(sizes, kinds, gain, monkeypatch):
    """As it is used: the effects of all pairs, moved with causes and without, over some crowds."""
    rng, after, before = np.random.default_rng(3), 0.0, 0.0
    for _ in range(2):
        rests = rests_of_kinds(sizes, kinds, rng)
        singles = {(place,): Effect(np.zeros(size), 1.0) for place, size in enumerate(sizes)}
        seen = added(rests, noise_of(rests, 1_500, rng))
        effects = singles | {places: Effect(one, 1_500.0**2) for places, one in seen.items()}
        after += apart(rests, shrunk(USERS, effects))
        with monkeypatch.context() as patched:
            patched.setattr(causes, "_MOST_CAUSES", 0)
            before += apart(rests, shrunk(USERS, effects))
    assert after < gain * before


def moved_to_two(fit, start, rests):
    return to_targets(rests, fit.pairs(fit.of_rank(rests, 2, start)))


def test_the_expected_error_is_the_mean_error():
    """Stein's formula for the whole of the work, over repeated noise."""
    rng, error = np.random.default_rng(4), 800.0
    rests = rests_of_kinds((2,) * 16, 3, rng)
    variances = dict.fromkeys(rests, error**2)
    fit, said, true = fit_of(rests, variances, (2,) * 16), [], []
    for _ in range(12):
        seen = added(rests, noise_of(rests, error, rng))
        risks = causes._Risks(fit, seen, variances)

        work = partial(moved_to_two, fit, fit.of_rank(seen, 2))
        after = work(seen)
        said.append((risks.of(after, work) + risks.noise) / risks.noise)
        true.append(apart(after, rests) / risks.noise)
    assert np.mean(true) < 0.6
    assert np.mean(said) == pytest.approx(np.mean(true), abs=5 * np.std(np.subtract(said, true)) / math.sqrt(12))


def test_noise_has_no_causes():
    rng = np.random.default_rng(5)
    for _ in range(3):
        seen = noise_of(rests_of_kinds((2,) * 16, 2, rng), 1_000, rng)
        effects = {(place,): Effect(np.zeros(2), 1.0) for place in range(16)}
        effects |= {places: Effect(one, 1_000.0**2) for places, one in seen.items()}
        found = shrunk(USERS, effects)
        assert sum(float(np.square(found[places]).sum()) for places in seen) < 0.1 * 120 * 1_000**2


def test_the_same_reports_have_the_same_answer():
    rng = np.random.default_rng(6)
    rests = rests_of_kinds((2,) * 16, 4, rng)
    seen = added(rests, noise_of(rests, 1_500, rng))
    variances = dict.fromkeys(seen, 1_500.0**2)
    once, again = (moved_towards_causes(seen, variances, to_targets) for _ in range(2))
    assert all((once[places] == again[places]).all() for places in seen)
    assert apart(once, rests) < 0.5 * apart(seen, rests)


@pytest.mark.parametrize(
    ("sizes", "variance"),
    [((2,) * 14, 1.0), ((2,) * 16, math.inf), ((26, 27, 28, 29, 30), 1.0)],
    ids=["91 numbers", "a pair that nobody knows", "135 lines"],
)
def test_where_no_causes_are_looked_for(sizes, variance):
    rng = np.random.default_rng(7)
    rests = rests_of_kinds(sizes, 3, rng)
    variances = dict.fromkeys(rests, 1.0) | {(0, 1): variance}
    found = moved_towards_causes(rests, variances, half_way)
    assert all((found[places] == one / 2).all() for places, one in rests.items())
