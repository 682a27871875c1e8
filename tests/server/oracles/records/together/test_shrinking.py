"""Tables moved towards independent fields: weights by signal to noise, errors beside raw ones, intervals as before."""

from __future__ import annotations

import math
from itertools import combinations

import numpy as np
import pytest

from ldp_client.collection import Collection
from ldp_client.protocol.domain import Field, Integers, Record, YesNo
from ldp_server.arrays.packing import pack
from ldp_server.oracles import oracle_for
from ldp_server.oracles.records.parts import centred
from ldp_server.oracles.records.sources import AskedTable
from ldp_server.oracles.records.together.shrinking import Effect, shrunk, weights_of
from ldp_server.oracles.records.view import pooling, table_view
from ldp_server.planning.tables import design_tables
from simulator import crowd

MIXED = Record(tuple(Field(f"f{i}", Integers(1, size - 1)) for i, size in enumerate((3, 4, 5, 6))))
BITS = Record(tuple(Field(f"b{i}", YesNo(none_is_no=True)) for i in range(6)))


def test_noise_alone_keeps_nothing_and_what_is_clear_keeps_all():
    rng = np.random.default_rng(1)
    noise = rng.normal(0, 3, (60, 4))
    weights = weights_of(np.square(noise).sum(axis=1), np.full(60, 4.0), np.full(60, 9.0))
    assert weights.max() < 0.2 and weights.mean() < 0.1
    noise[:5] += 100
    weights = weights_of(np.square(noise).sum(axis=1), np.full(60, 4.0), np.full(60, 9.0))
    assert weights[:5].min() > 0.99 and weights[5:].max() < 0.2  # whatever the others do
    assert (weights >= 0).all() and (weights <= 1).all()
    louder = weights_of(np.square(noise).sum(axis=1), np.full(60, 4.0), np.full(60, 9e4))
    assert louder.max() < 0.2


def test_a_weight_grows_with_the_signal_and_is_that_of_the_prior():
    """Half of the sets have rests of four times the noise: the mean of the rest given the estimate is 4/5 of it."""
    rng = np.random.default_rng(2)
    true = np.where(np.arange(400)[:, None] % 2, rng.normal(0, 2, (400, 20)), 0.0)
    seen = true + rng.normal(0, 1, true.shape)
    squares = np.square(seen).sum(axis=1)
    weights = weights_of(squares, np.full(400, 20.0), np.ones(400))
    order = np.argsort(squares)
    assert (np.diff(weights[order]) >= -1e-9).all()
    assert weights[1::2].mean() == pytest.approx(0.8, abs=0.04) and weights[::2].mean() < 0.05
    after = np.square(weights[:, None] * seen - true).mean()
    assert after < 0.6 * np.square(seen - true).mean()


@pytest.mark.parametrize(
    ("free", "kept"), [((1.0,), 1.0), ((24.0, 25.0), 1.0), ((25.0, 25.0), 0.04), ((50.0, 150.0), 0.01)]
)
def test_with_few_numbers_nothing_is_moved(free, kept):
    weights = weights_of(np.zeros(len(free)), np.array(free), np.ones(len(free)))
    assert weights == pytest.approx(np.full(len(free), kept), abs=0.015)
    assert weights_of(np.zeros(0), np.zeros(0), np.zeros(0)).shape == (0,)


def test_where_hardly_anything_is_gained_nothing_is_moved():
    """The noise of 60 sets is a thirtieth of their rests, or an eighth: a gain of 3% is left, one of 12% is taken."""
    rng = np.random.default_rng(6)
    for ratio, moved in ((30, False), (8, True)):
        rests = rng.normal(0, math.sqrt(ratio), (60, 10))
        weights = weights_of(np.square(rests).sum(axis=1), np.full(60, 10.0), np.ones(60))
        assert (weights.max() < 1) == moved, weights


def test_sets_that_nobody_knows_move_nothing():
    assert weights_of(np.array([9.0, 1.0]), np.array([4.0, 4.0]), np.array([1.0, math.inf])).tolist() == [1.0, 1.0]


def test_independent_fields_become_products_of_their_singles():
    singles = {(0,): np.array([60.0, 10.0, 30.0]) - 100 / 3, (1,): np.array([80.0, 20.0]) - 50}
    product = np.outer([60, 10, 30], [80, 20]) / 100
    pair = product - product.mean(axis=0) - product.mean(axis=1, keepdims=True) + product.mean()
    rng = np.random.default_rng(3)
    others = {(place, place + 1): centred(rng.normal(0, 5, (4, 4))) for place in range(2, 30, 2)}
    alone = {(place,): np.zeros(4) for place in range(2, 32)}
    pairs = {**others, (0, 1): pair + centred(rng.normal(0, 5, (3, 2)))}
    effects = {places: Effect(values, 1.0) for places, values in {**singles, **alone}.items()}
    effects |= {places: Effect(values, 25.0) for places, values in pairs.items()}
    found = shrunk(100, effects)
    assert found[(0,)] is singles[(0,)]
    assert found[(0, 1)] == pytest.approx(pair, abs=1)
    assert max(float(np.abs(found[one]).max()) for one in others) < 5


def crowd_of(record, users, strength, rng):
    """Users of three kinds, of whom a part keep their kind's values together and the others have them by chance."""
    kind = rng.choice(3, users, p=(0.5, 0.3, 0.2))
    values = np.empty((len(record.sizes), users), np.int64)
    for place, size in enumerate(record.sizes):
        shares = rng.dirichlet(np.full(size, 0.7), 3)
        for one in range(3):
            values[place, kind == one] = rng.choice(size, int((kind == one).sum()), p=shares[one])
    alone = np.array([rng.permutation(line) for line in values])
    return np.where(rng.random(users) < strength, values, alone)


def counted(record, values, seed, epsilon):
    made = next(one for one in design_tables(record, epsilon, "pairs") if one.form != "whole record")
    asked = Collection.create("Q?", record, "sampled-table", epsilon, opens=0, closes=1, parameters=made.parameters)
    indexes = (values.astype(np.uint64) * np.array(record.strides[:-1], np.uint64)[:, None]).sum(0, dtype=np.uint64)
    oracle = oracle_for(asked)
    for reports in crowd.simulate(asked.randomizer, indexes, seed):
        oracle.accumulate(pack(reports, asked.randomizer.report_bytes))
    return oracle


def errors_of(record, oracle, values):
    """The mean squares of the errors of all pairs: raw, and made possible."""
    pooled, found = pooling(oracle, record), []
    for one, other in combinations(range(len(record.sizes)), 2):
        true = np.zeros((record.sizes[one], record.sizes[other]))
        np.add.at(true, (values[one], values[other]), 1)
        found.append([np.square(table[(one, other)] - true).mean() for table in (tables_of(pooled), pooled.possible)])
    return np.mean(found, axis=0)


def tables_of(pooled):
    return {one: pooled.table(one) for one in pooled.largest}


@pytest.mark.parametrize("strength", [0.0, 0.2, 1.0])
@pytest.mark.parametrize(("record", "users", "epsilon"), [(MIXED, 500, "1"), (MIXED, 30_000, "1"), (BITS, 4000, "4")])
@pytest.mark.thinned(4)
def test_made_possible_is_never_worse_than_raw(record, users, epsilon, strength):
    rng = np.random.default_rng([users, round(10 * strength)])
    for seed in range(3):
        values = crowd_of(record, users, strength, rng)
        raw, possible = errors_of(record, counted(record, values, seed, epsilon), values)
        assert possible <= raw


@pytest.mark.long
def test_many_reports_keep_what_goes_together():
    """The weights tend to 1: with few users the fields look independent, with many the error goes on falling."""
    rng, found = np.random.default_rng(9), []
    for users in (2_000, 200_000):
        values = crowd_of(MIXED, users, 1.0, rng)
        raw, possible = errors_of(MIXED, counted(MIXED, values, 1, "4"), values)
        found.append(math.sqrt(possible) / users)
        assert possible <= raw
    assert found[1] < found[0] / 5


def test_estimates_and_intervals_are_those_of_the_unbiased_tables(monkeypatch):
    values = crowd_of(MIXED, 5000, 0.3, np.random.default_rng(4))
    oracle = counted(MIXED, values, 4, "1")
    view = table_view(oracle, MIXED, AskedTable(MIXED, (0, 1)))
    cells = np.arange(view.listed, dtype=np.uint64)
    raw = view.estimate_all()
    before = raw, view.standard_errors(cells, raw), *view.intervals(cells, raw, 0.025)
    possible = view.possible(raw)
    assert possible.min() >= 0 and possible.sum() == pytest.approx(5000)
    monkeypatch.setattr("ldp_server.oracles.records.pooled.shrunk", lambda _users, effects: {
        places: np.zeros_like(one.values) for places, one in effects.items()
    })  # fmt: skip
    again = counted(MIXED, values, 4, "1")
    other = table_view(again, MIXED, AskedTable(MIXED, (0, 1)))
    after = other.estimate_all(), other.standard_errors(cells, raw), *other.intervals(cells, raw, 0.025)
    assert all(np.array_equal(one, two) for one, two in zip(before, after, strict=True))
    assert not np.allclose(other.possible(raw), possible)  # that is what shrinking changes


def test_singles_agree_with_the_pairs_that_have_them():
    values = crowd_of(MIXED, 8000, 0.5, np.random.default_rng(5))
    pooled = pooling(counted(MIXED, values, 5, "2"), MIXED)
    for place in range(4):
        sums = [
            table.sum(axis=tuple(axis for axis, one in enumerate(places) if one != place))
            for places, table in pooled.possible.items()
            if place in places
        ]
        assert all(one == pytest.approx(sums[0], abs=8) for one in sums)
