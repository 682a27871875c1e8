"""What OpenDP draws follows the laws that the audits use; and sinh-normal noise."""

import math
from collections import Counter
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from scipy import stats

from ldp_client.errors import InvalidSpec
from ldp_server.curator import laws, noise
from ldp_server.curator.draws import gaussian_scale, laplace_scale, selection_scale
from ldp_server.curator.noise import ExactDraws
from ldp_server.curator.releases.sinh_normal import SinhNormal, largest_ratio
from ldp_server.curator.releases.top import exponential_scale

DRAWS = ExactDraws()
COUNT = 4000
ALPHA = 1e-6


def fits(drawn, chance):
    """A chi-square test of integers against a law; cells with fewer than ten expected are put together."""
    counts = Counter(drawn)
    cells = [z for z in range(-60, 61) if chance(z) * len(drawn) >= 10]
    expected = [chance(z) * len(drawn) for z in cells]
    seen = [counts[z] for z in cells]
    rest = len(drawn) - sum(expected)
    if rest > 1:
        expected, seen = [*expected, rest], [*seen, len(drawn) - sum(seen)]
    scale = sum(seen) / sum(expected)
    return stats.chisquare(seen, [value * scale for value in expected]).pvalue > ALPHA


@pytest.mark.parametrize("scale", [0.7, 2.0, 6.5])
def test_laplace_draws(scale):
    drawn = DRAWS.laplace([0] * COUNT, scale)
    assert fits(drawn, lambda z: laws.laplace_law(scale, z))
    assert not fits(drawn, lambda z: laws.laplace_law(1.3 * scale, z))
    assert not fits(drawn, lambda z: laws.laplace_law(scale / 1.3, z))


@pytest.mark.parametrize("sigma", [0.6, 3.0])
def test_gaussian_draws(sigma):
    drawn = DRAWS.gaussian([0] * COUNT, sigma)
    assert fits(drawn, lambda z: laws.gaussian_law(sigma, z))
    assert not fits(drawn, lambda z: laws.gaussian_law(1.3 * sigma, z))
    assert not fits(drawn, lambda z: laws.gaussian_law(sigma / 1.3, z))


@pytest.mark.parametrize(
    ("draw", "law", "other"),
    [
        (DRAWS.select, laws.permute_and_flip_law, laws.exponential_law),
        (DRAWS.exponential, laws.exponential_law, laws.permute_and_flip_law),
    ],
)
def test_selections(draw, law, other):
    """The two selections have different laws, and each draws its own: the bug before 0.16 was of this kind."""
    scores = [4, 2, 2, 0]
    drawn = [draw(scores, 2.0) for _ in range(COUNT // 2)]
    chances, wrong = law(scores, 2.0), other(scores, 2.0)
    assert math.isclose(sum(chances), 1)
    assert fits(drawn, lambda z: chances[z] if 0 <= z < 4 else 0)
    assert not fits(drawn, lambda z: wrong[z] if 0 <= z < 4 else 0)


def test_uniform_draws():
    assert fits([DRAWS.uniform(7) for _ in range(COUNT)], lambda z: 1 / 7 if 0 <= z < 7 else 0)


def test_scales_are_rounded_towards_privacy():
    for epsilon in (Fraction(1, 3), Fraction(7, 10), Fraction(1)):
        assert 2 / Fraction(laplace_scale(2, epsilon)) <= epsilon
        assert 2 / Fraction(selection_scale(epsilon)) <= epsilon
        assert Fraction(2) / (2 * Fraction(gaussian_scale(2, epsilon)) ** 2) <= epsilon
        assert 1 / (2 * Fraction(exponential_scale(epsilon)) ** 2) <= epsilon


@pytest.mark.parametrize("scale", [0.0, -1.0, math.inf, math.nan])
def test_no_noise_without_a_scale(scale):
    with pytest.raises(InvalidSpec, match="infinite"):
        DRAWS.laplace([1], scale)


def test_an_old_library_is_refused(monkeypatch):
    noise._opendp.cache_clear()
    monkeypatch.setattr(noise, "library_version", lambda: "0.15.1")
    with pytest.raises(InvalidSpec, match="too old"):
        noise._opendp()
    monkeypatch.undo()
    noise._opendp()


@pytest.mark.parametrize("beta", [0.5, 0.05, 1e-4])
def test_half_widths_are_quantiles(beta):
    for scale in (0.4, 2.0, 30.0):
        width = laws.laplace_half_width(scale, beta)
        inside = sum(laws.laplace_law(scale, z) for z in range(-width, width + 1))
        assert inside >= 1 - beta - 1e-12
        if width:
            assert inside - 2 * laws.laplace_law(scale, width) < 1 - beta
    for sigma in (0.4, 3.0, 400.0):
        width = laws.gaussian_half_width(sigma, beta)
        inside = sum(laws.gaussian_law(sigma, z) for z in range(-width, width + 1))
        assert 1 - beta - 1e-9 <= inside
        assert inside - 2 * laws.gaussian_law(sigma, width) - 2 * laws.gaussian_law(sigma, width - 1) < 1 - beta


# -- sinh-normal noise


RHO, OMEGA = Fraction(1, 10), Fraction(3)


def divergence(noise_, order):
    """By another way than the module: the law from scipy's normal tail, one order, plain sums."""
    width = noise_.grain * noise_.sigma
    top = 1
    while noise_.threshold(top) < 36 * width:
        top += 1
    tail = [0.0, *(stats.norm.logsf((noise_.threshold(t) - 0.5) / width) for t in range(1, top))]
    law = {t: a + math.log1p(-math.exp(b - a)) for t, (a, b) in enumerate(pairwise(tail)) if t}
    law[0] = math.log(1 - 2 * math.exp(tail[1]))
    both = [law[abs(t)] for t in range(-top + 2, top - 1)]
    return math.log(sum(math.exp(order * p + (1 - order) * q) for p, q in pairwise(both))) / (order - 1)


def test_sinh_normal_noise_keeps_its_claim_and_uses_it_up():
    made = SinhNormal.calibrated(RHO, OMEGA)
    ratios = [divergence(made, order) / order for order in (1.05, 1.8, 2.5, 2.8, 2.99)]
    assert max(ratios) <= float(RHO)
    assert max(ratios) > 0.95 * float(RHO)


def test_the_order_from_which_the_divergence_is_infinite():
    made = SinhNormal(A=6.0, sigma=2.0)
    limit = 1 / (1 - math.exp(-2 / 6.0))
    assert largest_ratio(made, limit * 0.9) < math.inf
    assert largest_ratio(made, limit * 1.05) == math.inf


def test_the_printed_side_condition_is_too_weak():
    """rho = .01, omega = 1.25 with the printed sigma^2 = 16 / rho and A = 8 omega spends more than rho / 2 a count."""
    assert largest_ratio(SinhNormal(A=8 * 1.25, sigma=math.sqrt(16 / 0.01)), 1.25) > 1.5 * 0.005


def test_sinh_normal_draws():
    made = SinhNormal.calibrated(RHO, OMEGA)
    law = np.exp(made.log_law())
    assert math.isclose(law[0] + 2 * law[1:].sum(), 1)
    drawn = made.add([0] * COUNT, DRAWS)
    assert fits(drawn, lambda z: law[abs(z)] if abs(z) < len(law) else 0)
    other = np.exp(SinhNormal(made.A, 1.3 * made.sigma).log_law())
    assert not fits(drawn, lambda z: other[abs(z)] if abs(z) < len(other) else 0)
    assert made.half_width(1e-9) < SinhNormal(1e4, made.sigma).half_width(1e-9)
