"""Oracles whose estimates are linear in the counts: means, variances and limits by the exact law, report by report.

A report adds the same to every estimate whenever it comes, so one oracle for each report has all there is to know. The
mechanism states the probability of every report as a fraction. What follows is a sum, and no chance is in it.
"""

from __future__ import annotations

import numpy as np
import pytest

from ldp_client.mechanisms.compiled_channel import CompiledChannel
from ldp_client.mechanisms.composed_response import ComposedResponse
from ldp_client.mechanisms.linear_hash import LinearHash
from ldp_client.mechanisms.randomized_response import RandomizedResponse
from ldp_client.mechanisms.records.every_field import EveryField
from ldp_client.mechanisms.records.sampled_attribute import SampledAttribute
from ldp_client.mechanisms.set_selection import SetSelection
from ldp_client.mechanisms.shifted_channel import ShiftedChannel
from ldp_client.mechanisms.subset_selection import SubsetSelection
from ldp_client.protocol.epsilon import Epsilon
from ldp_server.arrays.packing import pack
from ldp_server.oracles import oracle_for
from tests.examples import LISTABLE, label, whole_table

TINY = 1e-9
EXACT = LinearHash | RandomizedResponse | SubsetSelection
"""Their variance is that of the law, whoever holds what; the others state a bound."""
PRODUCTS = ShiftedChannel | EveryField
FREQUENCIES = [one for one in LISTABLE if isinstance(one, EXACT | ComposedResponse | CompiledChannel | PRODUCTS)]
SETS = [one for one in LISTABLE if isinstance(one, ComposedResponse | SampledAttribute)]
COUNTED = [*FREQUENCIES, *(one for one in SETS if one not in FREQUENCIES)]


def counted(randomizer, reports):
    oracle = oracle_for(randomizer)
    oracle.accumulate(pack(np.asarray(reports, np.uint64), randomizer.report_bytes))
    return oracle


@pytest.fixture(scope="module")
def known():
    """The law, and what one report of each number adds to the estimates; worked out once for each mechanism."""
    found = {}

    def of(randomizer):
        if id(randomizer) not in found:
            adds = np.array([counted(randomizer, [y]).estimate_all() for y in range(randomizer.bound)])
            found[id(randomizer)] = whole_table(randomizer), adds
        return found[id(randomizer)]

    return of


def crowds(randomizer):
    """Numbers of users for each index: all alike, everybody at one, some of each."""
    size = randomizer.size
    some = np.random.default_rng(5).integers(0, 40, size)
    return [np.full(size, 3), 50 * np.eye(size, dtype=int)[-1], 50 * np.eye(size, dtype=int)[0], some]


def variance_of(law, adds, crowd):
    """The exact variance of each estimate: the sum over the users."""
    means = law @ adds
    return crowd @ (law @ adds**2 - means**2)


@pytest.mark.parametrize("randomizer", FREQUENCIES, ids=label)
def test_estimates_are_unbiased_by_the_exact_law(known, randomizer):
    law, adds = known(randomizer)
    assert law.sum(axis=1) == pytest.approx(np.ones(randomizer.size))
    assert np.abs(law @ adds - np.eye(randomizer.size)).max() < TINY


@pytest.mark.parametrize("randomizer", FREQUENCIES, ids=label)
def test_reports_add_up(known, randomizer):
    """The estimates of many reports are the sums of what each one adds; so are those of two oracles, merged."""
    _, adds = known(randomizer)
    drawn = np.random.default_rng(6).integers(0, randomizer.bound, 90)
    whole, first = counted(randomizer, drawn), counted(randomizer, drawn[:31])
    wanted = adds[drawn].sum(axis=0)
    assert whole.estimate_all() == pytest.approx(wanted, abs=TINY * 90)
    assert whole.estimate(np.array([randomizer.size - 1, 0], np.uint64)) == pytest.approx(wanted[[-1, 0]], abs=1e-7)
    first.estimate_all()  # what it keeps of these must not stay
    first.merge(counted(randomizer, drawn[31:]))
    assert first.estimate_all() == pytest.approx(wanted, abs=TINY * 90)


@pytest.mark.parametrize("randomizer", FREQUENCIES, ids=label)
def test_the_stated_variance_is_that_of_the_law_or_above_it(known, randomizer):
    law, adds = known(randomizer)
    for crowd in crowds(randomizer):
        oracle = oracle_for(randomizer)
        oracle.counts.total = int(crowd.sum())
        exact, stated = variance_of(law, adds, crowd), oracle.variance(crowd)
        if isinstance(randomizer, EXACT):
            assert stated == pytest.approx(exact, rel=1e-6)
        else:
            assert (stated >= exact * (1 - TINY)).all()
            assert stated.max() <= 60 * exact.max()


@pytest.mark.parametrize("randomizer", FREQUENCIES, ids=label)
def test_the_variance_of_a_sum_is_that_of_the_law_or_above_it(known, randomizer):
    """Of one index, of two, of all but one. The oracles that read variances off the counts are given expected ones."""
    law, adds = known(randomizer)
    for crowd in crowds(randomizer):
        oracle = oracle_for(randomizer)
        oracle.accumulate(b"")
        oracle.counts.values = (crowd @ law).astype(np.float64)
        oracle.counts.total = int(crowd.sum())
        for chosen in ([0], [randomizer.size - 1, 0], range(1, randomizer.size)):
            places = np.unique(np.array(list(chosen), np.uint64))
            sums = adds[:, places.astype(int)].sum(axis=1, keepdims=True)
            exact = float(variance_of(law, sums, crowd)[0])
            stated = oracle.sum_variance(places, crowd[places.astype(int)].astype(float))
            if isinstance(randomizer, RandomizedResponse | SubsetSelection | CompiledChannel):
                assert stated == pytest.approx(exact, rel=1e-5, abs=1e-6)
            elif not isinstance(randomizer, PRODUCTS | ComposedResponse):
                assert stated >= exact * (1 - 1e-6) - 1e-6


@pytest.mark.parametrize("randomizer", COUNTED, ids=label)
def test_no_count_is_likelier_or_rarer_than_its_limits_say(randomizer):
    """Each counted number, by what one report of each kind adds to it. Both limits are reached: none is idle."""
    law, oracle = whole_table(randomizer), oracle_for(randomizer)
    singles = [list(counted(randomizer, [y]).chances()) for y in range(randomizer.bound)]
    kinds = list(oracle.chances())
    assert all(1 <= one.of == kinds[0].of <= max(1, len(kinds)) for one in kinds)
    for number, one in enumerate(kinds):
        part = law @ np.array([single[number].counts for single in singles], float)
        assert part.max() <= one.most * (1 + TINY)
        assert part.min() >= one.least * (1 - TINY)
        if not isinstance(randomizer, LinearHash):
            assert part.max() == pytest.approx(one.most, rel=1e-6)
            assert part.min() == pytest.approx(one.least, rel=1e-6)


@pytest.mark.parametrize("randomizer", COUNTED, ids=label)
def test_draws_that_are_free_of_the_item_have_one_probability(randomizer):
    """Teams and points: each value is as likely for every index."""
    law = whole_table(randomizer)
    singles = [counted(randomizer, [y]) for y in range(randomizer.bound)]
    for number, one in enumerate(oracle_for(randomizer).teams()):
        table = np.array([list(single.teams())[number].counts for single in singles], float)
        assert one.most == one.least
        assert law @ table == pytest.approx(np.full((randomizer.size, len(one.counts)), one.most))
    for number, _ in enumerate(oracle_for(randomizer).points()):
        table = np.array([np.concatenate([*map(np.ravel, list(one.points())[number])]) for one in singles], float)
        assert law @ table == pytest.approx(np.full((randomizer.size, table.shape[1]), 1 / table.shape[1]), rel=1e-6)


# -- attributes


def held_by(randomizer):
    """Which attributes each index has."""
    k = (randomizer.size - 1).bit_length()
    return (np.arange(randomizer.size)[:, None] >> np.arange(k) & 1).astype(float)


@pytest.mark.parametrize("randomizer", SETS, ids=label)
def test_attributes_are_unbiased_at_the_expected_counts(randomizer):
    """With as many reports of each number as there are on average, every attribute has its true count."""
    law = whole_table(randomizer)
    for crowd in crowds(randomizer):
        oracle = oracle_for(randomizer)
        oracle.counts.values = crowd @ law
        oracle.counts.total = users = int(crowd.sum())
        estimates, variances = oracle.attribute_counts()
        assert estimates == pytest.approx(crowd @ held_by(randomizer), abs=1e-6)
        assert (variances > 0).all()
        if isinstance(randomizer, ComposedResponse):
            adds = np.array([counted(randomizer, [y]).attribute_counts()[0] for y in range(randomizer.bound)])
            assert variances == pytest.approx(variance_of(law, adds, crowd), rel=1e-6)
            continue
        p, q = (float(randomizer.response.probability(told, 1)) for told in (1, 0))
        k, f = len(estimates), crowd @ held_by(randomizer)
        noise = k * (f * p * (1 - p) + (users - f) * q * (1 - q)) / (p - q) ** 2
        assert variances == pytest.approx(noise + f * (1 - f / users) * (k - 1), rel=1e-6)


PAIRED = [one for one in SETS if isinstance(one, ComposedResponse) and one.size > 2]


@pytest.mark.parametrize("randomizer", PAIRED, ids=label)
def test_pairs_of_attributes_by_the_exact_law(randomizer):
    law, held = whole_table(randomizer), held_by(randomizer)
    adds = np.array([counted(randomizer, [y]).pair(1, 0).estimate for y in range(randomizer.bound)])
    assert law @ adds == pytest.approx(held[:, 0] * held[:, 1], abs=TINY)
    crowd = crowds(randomizer)[-1]
    oracle = oracle_for(randomizer)
    oracle.counts.values, oracle.counts.total = crowd @ law, int(crowd.sum())
    found = oracle.pair(1, 0)
    assert found.attributes == (1, 0)
    assert found.estimate == pytest.approx(crowd @ (held[:, 0] * held[:, 1]), abs=1e-6)
    assert found.standard_error**2 == pytest.approx(variance_of(law, adds[:, None], crowd)[0], rel=1e-6)


# -- sets


def test_set_selection_s_limits_are_those_of_an_element():
    """An element is in the set of its holder with p, and in that of anybody else with q."""
    maker = SetSelection(Epsilon("1"), 1 << 4, 2, 2)
    (one,) = oracle_for(maker).chances()
    p, q = maker.support
    assert (one.most, one.least) == pytest.approx((float(p), float(q)), rel=1e-6)
    assert len(one.counts) == maker.elements
