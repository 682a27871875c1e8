"""Intervals of attributes, pairs, ranges and quantiles hold as often as they say, alone and all at once."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from ldp_client.collection import Collection
from ldp_client.errors import InvalidSpec
from ldp_client.mechanisms import composed_response, hierarchy
from ldp_client.protocol.domain import Attributes, Integers
from ldp_server.answers import numbers
from ldp_server.answers.attributes import attributes_answer
from ldp_server.answers.estimates import Coverage
from ldp_server.oracles import oracle_for
from ldp_server.oracles.base import TooFewReports, Unsupported
from tests.server.oracles.cases import filled

NAMES = Attributes(tuple(f"a{i}" for i in range(6)))
CONFIDENCE = 0.8


def collection(domain, mechanism, epsilon, parameters=None):
    return Collection.create("?", domain, mechanism, epsilon, opens=0, closes=1, parameters=parameters or {})


def skewed_sets(users):
    """Attributes from very rare to very common; the last two are held by the same people."""
    place = np.arange(users)
    held = [place % 97 == 0, place % 50 == 0, place % 20 == 0, place % 3 == 0, place % 10 > 0, place % 10 > 0]
    return sum(one.astype(np.uint64) << np.uint64(i) for i, one in enumerate(held)), held


@pytest.fixture
def runs(request):
    """So many crowds: fewer by default."""
    return 100 if request.config.getoption("--slow") else 16


def least(confidence, runs):
    """So many of the runs hold, but for once in ten thousand."""
    return runs * confidence - 3.8 * math.sqrt(runs * confidence * (1 - confidence))


@pytest.mark.parametrize("epsilon", ["1", "4"])
@pytest.mark.parametrize("mechanism", ["sampled-attribute", "composed-response", "randomized-response"])
@pytest.mark.parametrize("pairs", [False, True])
@pytest.mark.thinned(5)
def test_attributes_hold_alone_and_together(runs, mechanism, epsilon, pairs):
    """With a crowd whose counts lie near the ends, and 80% so that a failure would show."""
    if pairs and mechanism == "sampled-attribute":
        return
    parameters = composed_response.design(epsilon, 6) if mechanism == "composed-response" else {}
    asked = collection(NAMES, mechanism, epsilon, parameters)
    users, held = skewed_sets(600)
    chosen = list(itertools.combinations(range(6), 2 if pairs else 1))
    truths = [np.logical_and.reduce([held[i] for i in places]).sum() for places in chosen]
    alone, at_once = np.zeros(len(chosen)), 0
    for run in range(runs):
        oracle = filled(asked.randomizer, users, run)
        rows = attributes_answer(asked, oracle, pairs=pairs, confidence=CONFIDENCE).rows
        alone += [row.low <= truth <= row.high for row, truth in zip(rows, truths, strict=True)]
        whole = attributes_answer(asked, oracle, pairs=pairs, confidence=CONFIDENCE, together=True)
        assert whole.coverage is Coverage.TOGETHER
        at_once += all(row.low <= truth <= row.high for row, truth in zip(whole.rows, truths, strict=True))
        best = attributes_answer(asked, oracle, pairs=pairs, confidence=CONFIDENCE, top=2)
        assert best.coverage is Coverage.SELECTED
        by_name = {row.attributes: row for row in whole.rows}
        assert all(row == by_name[row.attributes] for row in best.rows)
        assert [row.estimate for row in best.rows] == sorted((row.estimate for row in rows), reverse=True)[:2]
    assert alone.min() >= least(CONFIDENCE, runs)
    assert at_once >= least(CONFIDENCE, runs)
    if not pairs:  # all at once is more than each alone: the wider intervals are needed
        assert alone.mean() < runs * 0.97


def test_ranges_and_quantiles_hold_together(runs):
    """Most numbers are small, and a few very large."""
    line = Integers(-5, 64)
    asked = collection(line, "hierarchy", "2", hierarchy.design("2", 64))
    values = np.minimum(np.arange(2000) % 40 % 7 + 60 * (np.arange(2000) % 25 == 0), 63)
    users = (values + 1).astype(np.uint64)
    shares = (0.1, 0.5, 0.9, 0.97)
    true = [int(np.sort(values)[math.ceil(share * len(values)) - 1]) - 5 for share in shares]
    bins_right = quantiles_right = 0
    for run in range(runs):
        oracle = filled(asked.randomizer, users, run)
        bins = numbers.bins_answer(asked, oracle, 8, confidence=CONFIDENCE, coverage=Coverage.TOGETHER)
        assert [(row.first, row.last) for row in bins.ranges] == [(-5 + 8 * i, 2 + 8 * i) for i in range(8)]
        counts = [((values - 5 >= row.first) & (values - 5 <= row.last)).sum() for row in bins.ranges]
        bins_right += all(row.low <= count <= row.high for row, count in zip(bins.ranges, counts, strict=True))
        found = numbers.quantiles_answer(asked, oracle, shares, confidence=CONFIDENCE, coverage=Coverage.TOGETHER)
        quantiles_right += all(row.low <= one <= row.high for row, one in zip(found.quantiles, true, strict=True))
    assert bins_right >= least(CONFIDENCE, runs)
    assert quantiles_right >= least(CONFIDENCE, runs)


def test_bins_cover_the_domain_once():
    asked = collection(Integers(-7, 23), "hierarchy", "1", hierarchy.design("1", 23))
    oracle = filled(asked.randomizer, np.full(300, 4, np.uint64), 1)
    for bins in (1, 5, 23):
        ranges = numbers.bins_answer(asked, oracle, bins).ranges
        assert [x for row in ranges for x in range(row.first, row.last + 1)] == list(range(-7, 16))
        widths = {row.last - row.first for row in ranges}
        assert len(ranges) == bins
        assert max(widths) - min(widths) <= 1
    for bins in (0, 24):
        with pytest.raises(InvalidSpec, match="1 to 23 bins"):
            numbers.bins_answer(asked, oracle, bins)
    for wrong in ([], [(0, 16)], [(-8, 0)], [(3, 2)]):
        with pytest.raises(InvalidSpec, match="range"):
            numbers.ranges_answer(asked, oracle, wrong)


def test_few_reports_say_so():
    asked = collection(NAMES, "sampled-attribute", "1")
    oracle = oracle_for(asked)
    with pytest.raises(TooFewReports, match="no reports yet"):
        attributes_answer(asked, oracle)
    with pytest.raises(Unsupported, match="composed-response does"):
        attributes_answer(asked, oracle, pairs=True)
    one = filled(asked.randomizer, np.zeros(1, np.uint64), 1)
    rows = attributes_answer(asked, one).rows
    assert sorted({(row.standard_error, row.low, row.high) for row in rows})[-1] == (math.inf, 0.0, 1.0)
