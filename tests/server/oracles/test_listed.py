"""Intervals of listed items: by enumeration of the exact law, given that the item was listed."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from ldp_server.heavy_hitters.results import item_intervals
from ldp_server.oracles.laws.listed import listed_intervals
from ldp_server.oracles.laws.support import SupportLaw

LAWS = [SupportLaw(4000, 0.5, 0.27), SupportLaw(4000, 0.6, 0.004), SupportLaw(4000, 0.95, 1e-4)]


def mass(law, holders):
    held = stats.binom.pmf(np.arange(holders + 1), holders, law.p)
    others = stats.binom.pmf(np.arange(law.reports - holders + 1), law.reports - holders, law.s)
    return np.convolve(held, others)


def cut_of(law):
    return 6 * float(law.spread(0.0)) + 3


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("over", [0.8, 1.0, 1.3, 3.0])
@pytest.mark.thinned(5)
def test_each_end_errs_as_seldom_as_stated_given_the_listing(law, over):
    cut = cut_of(law)
    holders, counts = round(over * cut), np.arange(law.reports + 1.0)
    estimates = (counts - law.reports * law.s) / (law.p - law.s)
    seen = mass(law, holders) * (estimates >= cut)
    some = np.flatnonzero(seen > seen.sum() * 1e-9)
    low, high = listed_intervals(law, estimates[some], law.spread(estimates[some]), cut, 0.025)
    chances = seen[some] / seen.sum()
    assert chances[low > holders].sum() < 0.035
    assert chances[high < holders].sum() < 0.035


def test_the_normal_law_with_skewness_would_not_do():
    """At a large epsilon, the ends made with the skewness of an item that nobody holds miss a held one too often."""
    law, holders = LAWS[2], 40
    estimates = (np.arange(law.reports + 1.0) - law.reports * law.s) / (law.p - law.s)
    error = law.spread(estimates)
    skewness = (1 - 2 * law.s) / np.sqrt(law.reports * law.s * (1 - law.s))
    z = stats.norm.isf(0.025 / (1 << 16))
    high = estimates + error * np.maximum(0.0, z - (z * z - 1) * skewness / 6)
    assert mass(law, holders)[high < holders].sum() > 0.01
    ends = np.array(item_intervals(law, estimates, error, 3.0, float(np.log(1 << 16))))
    assert mass(law, holders)[ends[:, 3] < holders].sum() < 1e-6


def test_a_larger_stated_error_makes_wider_intervals():
    law, estimates = LAWS[0], np.array([1500.0])
    narrow = item_intervals(law, estimates, law.spread(estimates), 900.0, 20.0)[0]
    wide = item_intervals(law, estimates, 2 * law.spread(estimates), 900.0, 20.0)[0]
    assert 1500 - wide[0] == pytest.approx(2 * (1500 - narrow[0]), rel=0.01)
    assert wide[2] <= narrow[2] < narrow[0] < 1500 < narrow[1] < narrow[3] <= wide[3]
    assert item_intervals(law, np.empty(0), np.empty(0), 900.0, 20.0) == []
