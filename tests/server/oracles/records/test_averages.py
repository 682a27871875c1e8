"""Averages of cells: the law of a cell's two counts, intervals at hard settings, and the promised variance."""

from __future__ import annotations

import math

import numpy as np
import pytest

from ldp_client.collection import Collection
from ldp_client.errors import InvalidSpec
from ldp_client.mechanisms.records.averaged_table import AveragedTable, design
from ldp_client.protocol.domain import Field, Integers, Record, YesNo
from ldp_client.protocol.epsilon import Epsilon
from ldp_server.answers.estimates import Coverage
from ldp_server.answers.fields.averages import averages_answer
from ldp_server.oracles import oracle_for
from ldp_server.oracles.records.averages import CellLaw, CellSums
from tests.server.oracles.cases import filled

R = 100


def made(epsilon, cells, q=None):
    record = Record((Field("g", Integers(1, cells)), Field("y", Integers(0, R + 1))))
    parameters = design(epsilon, record, "y")
    return AveragedTable(Epsilon(epsilon), record, 1, parameters["q"] if q is None else q)


@pytest.mark.parametrize(("q", "cells"), [(0, 2), (2, 2), (3, 3), (4, 2), (5, 3), (3, 8)])
def test_the_law_of_two_counts_is_free_of_where_everybody_else_is(q, cells):
    """All reports of all elements, one by one. At q = 3 and 8 cells, elements 1 + 2 g + up would fail this."""
    mechanism = made("1.3", cells, q)
    law, inner, table = oracle_for(mechanism).law, mechanism.inner, mechanism.cells.size
    reports = np.array(
        [[float(inner.probability(e, r)) for r in range(mechanism.bound)] for e in range(mechanism.inner.size)]
    )

    def supported(element):
        if not q:
            return np.arange(mechanism.bound) == element
        points = [inner.product(inner.point(number), element) for number in range(inner.points)]
        return (np.arange(mechanism.bound) % q) == np.repeat(points, q)

    for cell in range(table):
        down, up = (supported(mechanism.base + mechanism.step * cell + end) for end in (0, 1))
        for element in (0, *(mechanism.base + mechanism.step * g + end for g in range(table) for end in (0, 1))):
            own = mechanism.base + mechanism.step * cell
            wanted = law.down if element == own else law.up if element == own + 1 else law.other
            seen = [reports[element] @ ((down == a) & (up == b)) for b in (0, 1) for a in (0, 1)]
            assert np.allclose(seen, wanted, atol=1e-12)


def sums_of(mechanism, cells, numbers, trials, seed):
    """The sums of all trials as one, a line for each cell of each trial: their means are worked out at once."""
    rng, downs, ups = np.random.default_rng(seed), [], []
    stride = mechanism.record.strides[1]
    indexes = np.asarray(cells + stride * (numbers + 1), np.uint64)
    for _ in range(trials):
        found = filled(mechanism, indexes, int(rng.integers(1 << 40))).sums()
        downs.append(found.downs)
        ups.append(found.ups)
    return CellSums(found.reports, found.law, np.concatenate(downs), np.concatenate(ups))


def people(name, users):
    """Cells and numbers: one cell with 95% of the users, a small one and a tiny one."""
    cells = np.repeat([1, 2, 3], [users - users // 25 - users // 100, users // 25, users // 100])
    numbers = {
        "all at an end": np.zeros(users, np.int64),
        "half at each end": np.arange(users) % 2 * R,
        "near an end": np.full(users, 3),
        "opposed": np.where(cells == 1, R, 0),
    }
    return cells, numbers[name]


SETTINGS = [("1", 300, "opposed"), ("6", 400, "opposed")]
MORE = [
    (epsilon, users, name)
    for epsilon in ("0.3", "1", "3", "6")
    for users in (60, 300, 3000)
    for name in ("all at an end", "half at each end", "near an end", "opposed")
]


def check_coverage(epsilon, users, name, trials):
    """How often each kind of interval misses; a fair one of 95% fails with probability below 1e-6 a setting."""
    mechanism = made(epsilon, 3)
    cells, numbers = people(name, users)
    found = sums_of(mechanism, cells, numbers, trials, users).means(0.025)
    held = np.array([(cells == g).sum() for g in range(4)])
    truth = np.array([numbers[cells == g].mean() / R if held[g] else 0.5 for g in range(4)])
    limit = trials * 0.05 + 5 * math.sqrt(trials * 0.05 * 0.95)
    for cell in range(1, 4):
        mine = slice(cell, None, 4)
        missed = (found.low[mine] > truth[cell] + 1e-9) | (found.high[mine] < truth[cell] - 1e-9)
        assert missed.sum() <= limit, (cell, missed.sum())
        missed = (found.users_low[mine] > held[cell]) | (found.users_high[mine] < held[cell])
        assert missed.sum() <= limit, (cell, missed.sum())
    tells = np.isfinite(found.errors)
    assert np.all(found.low[~tells] == 0) and np.all(found.high[~tells] == 1)
    assert np.all((found.low <= found.means) & (found.means <= found.high))
    return found


@pytest.mark.parametrize(("epsilon", "users", "name"), SETTINGS)
@pytest.mark.thinned(1)
def test_intervals_hold_in_small_cells_and_beside_a_large_one(epsilon, users, name):
    check_coverage(epsilon, users, name, 40)


@pytest.mark.slow
@pytest.mark.parametrize(("epsilon", "users", "name"), MORE)
def test_intervals_hold_over_the_grid(epsilon, users, name):
    check_coverage(epsilon, users, name, 400)


@pytest.mark.long
def test_a_law_without_the_count_of_its_cell_would_miss():
    """The check fails where intervals are too narrow: with the law of a response that lies less."""
    mechanism = made("1", 3)
    cells, numbers = people("half at each end", 1000)
    found = sums_of(mechanism, cells, numbers, 12, 5)
    narrow = CellSums(found.reports, CellLaw.of_response(0.9, 0.1 / 8), found.downs, found.ups).means(0.025)
    missed = (narrow.low[1::4] > 0.5) | (narrow.high[1::4] < 0.5)
    assert missed.mean() > 0.3


@pytest.mark.parametrize("end", [0.0, 0.5])
def test_the_variance_is_the_one_that_is_promised(end):
    """V/(n f^2) at an end of the range, and half of it in the middle; f = 0.3 of 2,000 users, in 41 cells."""
    mechanism, users, trials = made("1", 40), 2000, 80
    cells = np.where(np.arange(users) < 600, 7, 8 + np.arange(users) % 30)
    numbers = np.where(cells == 7, int(end * R), R)
    sums = sums_of(mechanism, cells, numbers, trials, 3)
    mine = slice(7, None, 41)
    linear = (sums.ups[mine] - end * (sums.ups[mine] + sums.downs[mine])) / 600
    e = math.e
    scale = 4 * e / (e - 1) ** 2 / (users * 0.3**2)
    error = 5 * math.sqrt(2 / trials)
    assert np.mean(linear**2) <= 1.1 * scale * (1 + error)
    assert np.mean(linear**2) == pytest.approx(scale * (1 if end == 0 else 0.5), rel=error + 0.12)
    deviation = sums.law.deviations(np.array([end]), np.array([600.0]), users)[0] / (sums.law.gap * 600)
    assert deviation**2 == pytest.approx(np.mean(linear**2), rel=error + 0.02)
    assert abs(linear.mean()) < 5 * math.sqrt(scale / trials)


def question(record, parameters, epsilon="2"):
    return Collection.create("?", record, "averaged-table", epsilon, opens=0, closes=1, parameters=parameters)


RECORD = Record((Field("paid", YesNo(none_is_no=True)), Field("minutes", Integers(-50, 101)), Field("old", YesNo())))


def test_an_answer_is_in_the_numbers_own_unit():
    asked = question(RECORD, design("2", RECORD, "minutes"))
    people = [{"paid": True, "minutes": 30, "old": False}] * 10_000 + [
        {"paid": False, "minutes": -50, "old": True}
    ] * 4500
    people += [{"paid": True, "minutes": None, "old": True}] * 1500
    oracle = filled(asked.randomizer, np.array([RECORD.index(one) for one in people], np.uint64), 4)
    found = averages_answer(asked, oracle, confidence=0.99999)
    assert (found.number, found.reports, len(found.averages)) == ("minutes", 16_000, 6)
    known = {tuple(row.item.values()) if row.item else (False, None): row for row in found.averages}
    paid, free, without = known[True, False], known[False, True], known[True, True]
    assert paid.low < 30 < paid.high and abs(paid.estimate - 30) < 5 * paid.standard_error < 16
    assert free.low == -50 <= free.estimate < -40
    assert (without.standard_error, without.low, without.high, without.estimate) == (math.inf, -50, 50, 0)
    assert paid.users_low < 10_000 < paid.users_high
    assert abs(found.holders - 14_500) < 5 * paid.users_error
    wide = averages_answer(asked, oracle, confidence=0.99999, coverage=Coverage.TOGETHER).averages
    assert all(a.low <= b.low and b.high <= a.high for a, b in zip(wide, found.averages, strict=True))


def test_what_cannot_be_answered_is_said():
    asked = question(RECORD, design("2", RECORD, "minutes"))
    with pytest.raises(InvalidSpec, match="no reports yet"):
        averages_answer(asked, oracle_for(asked))
    other = Collection.create("?", RECORD, "linear-hash", "1", opens=0, closes=1, parameters={"q": 3, "t": 9})
    with pytest.raises(InvalidSpec, match="linear-hash gives no averages of cells: a collection with averaged-table"):
        averages_answer(other, oracle_for(other))
    many = Record((Field("town", Integers(1, 5000)), Field("y", Integers(0, 2))))
    wide = question(many, design("2", many, "y"))
    oracle = filled(wide.randomizer, np.arange(10, dtype=np.uint64), 1)
    with pytest.raises(InvalidSpec, match="at most 4096 cells; this table has 5001"):
        averages_answer(wide, oracle)
