"""Charts by themselves: the band of noise, scales, and what strange numbers and texts do to them."""

from __future__ import annotations

import math
from xml.etree import ElementTree

import pytest
from scipy.stats import binom

from ldp_client.collection import Collection
from ldp_client.protocol.domain import Categories
from ldp_server.answers.numbers import Range
from ldp_server.oracles import frequency_oracle
from ldp_server.oracles.laws.support import normal_quantile
from ldp_server.web.charts.dots import Dot, DotChart, dots
from ldp_server.web.charts.draw import Scale, compact, cut, element
from ldp_server.web.charts.histogram import histogram
from ldp_server.web.charts.noise import _law, noise_reach
from tests.server.test_every_door import example


def collection_of(epsilon, count=50):
    names = tuple(f"item {i}" for i in range(count))
    return Collection.create("Noise?", Categories(names), "randomized-response", epsilon, opens=0, closes=1)


@pytest.mark.parametrize("name", ["randomized-response", "linear-hash", "subset-selection"])
def test_the_band_is_drawn_from_the_law_of_the_oracle(name):
    collection = example(name)
    law = frequency_oracle(collection).law
    ours = _law(collection.randomizer, 0)
    assert (ours.p, ours.s) == (law.p, law.s)


def exceeded(collection, reports, reach):
    """The exact probability that an item which nobody holds has an estimate above `reach`."""
    law = frequency_oracle(collection).law
    p, s = law.p, law.s
    return float(binom.sf(math.floor(reports * s + reach * (p - s) + 1e-9), reports, s))


@pytest.mark.parametrize(("epsilon", "reports"), [("1", 5000), ("4", 400), ("6", 200)])
@pytest.mark.parametrize("items", [1, 50])
def test_the_band_of_noise_holds_where_counts_are_few_and_skewed(epsilon, reports, items):
    """The last case is one where the normal law fails: there the band would be too narrow."""
    collection = collection_of(epsilon)
    law = frequency_oracle(collection).law
    p, s = law.p, law.s
    error = math.sqrt(reports * s * (1 - s)) / (p - s)
    tail = 0.05 / 2 / items
    reach = noise_reach(collection, reports, error, 0.95, items)
    assert exceeded(collection, reports, reach) <= tail
    assert exceeded(collection, reports, reach - 2 / (p - s)) > tail, "and it is no wider than it must be"
    if epsilon == "6" and items == 50:
        assert exceeded(collection, reports, normal_quantile(tail) * error) > tail


@pytest.mark.parametrize(("low", "high"), [(0, 1), (-3, 17), (0, 1e-9), (5, 5), (0, 1 << 63), (-1e300, 1e300)])
def test_ticks_are_round_and_within(low, high):
    ticks = Scale(float(low), float(high), 0.0, 100.0).ticks()
    assert 1 <= len(ticks) <= 13
    assert all(low - abs(low) * 1e-9 <= tick <= high + abs(high) * 1e-9 for tick in ticks)
    assert all(0 <= Scale(float(low), float(high), 0.0, 100.0)(tick) <= 100 for tick in ticks)


def test_numbers_at_an_axis_share_a_unit():
    ticks = [0.0, 5000.0, 10_000.0]
    assert [compact(tick, ticks) for tick in ticks] == ["0", "5k", "10k"]
    assert [compact(value) for value in (0.25, 9000.0, -20_000.0, 3e7, 2e13)] == ["0.25", "9,000", "-20k", "30M", "20T"]
    assert cut("abc", 3) == "abc"
    assert cut("abcd", 3) == "ab…"


def test_nothing_in_an_element_is_markup_by_accident():
    made = element("text", "<b>&", class_='a" onload="b', x=1.5)
    parsed = ElementTree.fromstring(made)
    assert (parsed.text, parsed.get("class"), list(parsed)) == ("<b>&", 'a" onload="b', [])


@pytest.mark.parametrize("width", [860.0, 358.0])
def test_odd_answers_are_drawn(width):
    for rows in ([], [Dot("a", 0.0, 0.0, 0.0)], [Dot("-" * 500, -5.0, 0.0, 1e18, truth=7.0)]):
        ElementTree.fromstring(dots(DotChart("t", rows, noise=3.0, threshold=math.inf), width))
    wide = [Range(-(1 << 62), 1 << 62, 5.0, 1.0, 0.0, 9.0)]
    ElementTree.fromstring(histogram("t", wide, (), width))
