"""Areas of a map: least squares against a second solution, intervals at hard settings, and what is refused."""

from __future__ import annotations

import math

import numpy as np
import pytest

from ldp_client.collection import Collection
from ldp_client.errors import InvalidSpec
from ldp_client.mechanisms.records.sampled_grid import SampledGrid, design
from ldp_client.protocol.domain import Field, Integers, Record
from ldp_client.protocol.epsilon import Epsilon
from ldp_server.answers.estimates import Coverage
from ldp_server.answers.fields.areas import areas_answer
from ldp_server.oracles import oracle_for
from ldp_server.oracles.laws.projection import norm_sub
from tests.server.oracles.cases import filled

SIDE = 64
RECORD = Record((Field("x", Integers(0, SIDE)), Field("y", Integers(0, SIDE))))


def grid(epsilon, numbers):
    return SampledGrid(Epsilon(epsilon), RECORD, *numbers)


def places(x, y):
    return np.asarray((x + 1) + (SIDE + 1) * (y + 1), np.uint64)


AREAS = [
    ((0, 31), (0, 31)),  # one tile of four
    ((16, 47), (16, 31)),  # on lines of columns and rows, cutting tiles
    ((5, 40), (9, 50)),  # on no lines
    ((0, 63), (8, 15)),  # rows over the whole map
    ((3, 12), (0, 63)),  # cut columns over the whole map
    ((7, 7), (60, 60)),  # one place
    ((0, 63), (0, 63)),  # all that is on the map
]


def true_count(x, y, area):
    (a, b), (c, d) = area
    return int(((x >= a) & (x <= b) & (y >= c) & (y <= d)).sum())


def crowds(name, users):
    """Where people are: nearly all in one place, on a diagonal, or spread."""
    rng = np.random.default_rng(users)
    if name == "one place":
        few = users // 20
        return tuple(np.concatenate([np.full(users - few, at), rng.integers(0, SIDE, few)]) for at in (7, 60))
    if name == "diagonal":
        x = rng.integers(0, SIDE, users)
        return x, np.clip(x + rng.integers(-4, 5, users), 0, SIDE - 1)
    return rng.integers(0, SIDE, users), rng.integers(0, SIDE, users)


def check_coverage(epsilon, users, name, numbers, trials):
    """A fair interval of 95% fails with probability below 1e-5 an area."""
    made, (x, y) = grid(epsilon, numbers), crowds(name, users)
    missed = np.zeros(len(AREAS))
    for seed in range(trials):
        oracle = filled(made, places(x, y), seed)
        for i, area in enumerate(AREAS):
            found = oracle.area(*area, 0.95)
            missed[i] += not found.low <= true_count(x, y, area) <= found.high
            assert found.low <= found.estimate <= found.high
    assert missed.max() <= trials * 0.05 + 4.5 * math.sqrt(trials * 0.05 * 0.95), missed


FEW = (8, 8, 2, 2, 1, 2, 3, 3)
SETTINGS = [("1", 400, "one place", FEW), ("4", 300, "diagonal", (16, 16, 4, 4, 1, 2, 0, 0))]
MORE = [
    (epsilon, users, name, numbers)
    for epsilon in ("0.5", "2", "6")
    for users in (200, 3000)
    for name in ("one place", "diagonal", "spread")
    for numbers in (FEW, (16, 8, 4, 4, 1, 2, 5, 0), (1, 1, 4, 4, 0, 1, 0, 8))
]


@pytest.mark.parametrize(("epsilon", "users", "name", "numbers"), SETTINGS)
@pytest.mark.thinned(1)
def test_intervals_hold_wherever_people_are(epsilon, users, name, numbers):
    check_coverage(epsilon, users, name, numbers, 40)


@pytest.mark.slow
@pytest.mark.parametrize(("epsilon", "users", "name", "numbers"), MORE)
def test_intervals_hold_over_the_grid(epsilon, users, name, numbers):
    check_coverage(epsilon, users, name, numbers, 200)


def test_an_interval_that_trusted_the_even_spread_would_miss():
    """Everybody is in one corner of the cut tiles: the noise alone does not hold the truth, and the interval does."""
    x, y = np.full(4000, 33), np.full(4000, 33)
    found = filled(grid("4", FEW), places(x, y), 1).area((0, 34), (0, 34), 0.95)
    assert not found.on_lines
    assert found.estimate + 2 * found.error < 4000 <= found.high


def test_the_agreed_grids_are_the_least_squares_solution():
    """A second time, with a number for every atom: the weighted fit of all three grids' estimates."""
    made, (x, y) = grid("1", (4, 8, 2, 4, 1, 2, 3, 0)), crowds("diagonal", 3000)
    oracle = filled(made, places(x, y), 2)
    agreed, n = oracle.agreed(), 3000.0
    atoms = [(column, row) for row in range(8) for column in range(4)]
    lines, raw = [], []
    for j, cell_of in enumerate((lambda a: a[0], lambda a: a[1], lambda a: a[0] // 2 + 2 * (a[1] // 2))):
        estimates = oracle.estimates(j)
        for element, value in enumerate(estimates):
            lines.append([float(element == 0)] + [float(cell_of(a) + 1 == element) for a in atoms])
            raw.append(value)
    a, fitted = np.array(lines), np.zeros(len(raw))
    for _ in range(2):
        held = dict(zip(range(3), np.split(fitted, [5, 14]), strict=True))
        root = np.concatenate([agreed.parts[j].variances(one) for j, one in held.items()]) ** -0.5
        heavy = 1e6 * root.max()  # all add up to n
        system = np.vstack([a * root[:, None], np.full((1, a.shape[1]), heavy)])
        fitted = a @ np.linalg.lstsq(system, np.append(raw * root, n * heavy), rcond=None)[0]
    mine = np.concatenate([agreed.elements[j] for j in range(3)])
    assert np.allclose(mine, fitted, atol=1e-3 * math.sqrt(n))


@pytest.mark.long
def test_errors_of_areas_on_lines_are_those_that_are_measured():
    made, (x, y) = grid("1", FEW), crowds("spread", 1500)
    areas = [AREAS[0], AREAS[3]]
    found = []
    for seed in range(120):
        oracle = filled(made, places(x, y), 1000 + seed)
        found.append([(one.estimate, one.error) for one in (oracle.area(*area, 0.95) for area in areas)])
    values = np.array(found)
    for i, area in enumerate(areas):
        agreed = [oracle.agreed().count({2: np.array([1.0, 0, 0, 0])}), oracle.agreed().count({1: np.eye(8)[1]})][i]
        measured = float(np.std(values[:, i, 0]))
        assert values[:, i, 1].mean() == pytest.approx(measured, rel=0.25)
        assert agreed.error == pytest.approx(values[-1, i, 1])
        assert abs(values[:, i, 0].mean() - true_count(x, y, area)) < 4.5 * measured / math.sqrt(120) + 0.02 * 1500


def test_the_map_has_the_agreed_counts_and_everybody_on_it():
    made, (x, y) = grid("3", (16, 16, 4, 4, 1, 2, 0, 8)), crowds("diagonal", 20_000)
    oracle = filled(made, places(x, y), 3)
    drawn = oracle.agreed().map()
    assert drawn.shape == (16, 16) and drawn.min() >= 0
    assert drawn.sum() == pytest.approx(oracle.holders(), rel=1e-6)
    tiles = drawn.reshape(4, 4, 4, 4).sum(axis=(1, 3))
    truth = np.histogram2d(y, x, bins=4, range=[[0, 64], [0, 64]])[0]
    assert np.corrcoef(tiles.ravel(), truth.ravel())[0, 1] > 0.99
    columns = norm_sub(oracle.agreed().elements[0][1:], drawn.sum())
    assert np.allclose(drawn.sum(axis=0), columns, atol=0.01 * 20_000)
    alone = filled(grid("3", (1, 1, 4, 4, 0, 1, 0, 8)), places(x, y), 3).agreed().map()
    assert alone.shape == (4, 4)


def question(record=RECORD, epsilon="2", users=20_000):
    parameters = design(epsilon, record, users)
    return Collection.create("?", record, "sampled-grid", epsilon, opens=0, closes=1, parameters=parameters)


def test_an_answer_is_in_the_fields_own_numbers():
    record = Record((Field("east", Integers(-30, 61)), Field("north", Integers(100, 20))))
    asked = question(record)
    people = [{"east": -10, "north": 118}] * 9000 + [{"east": None, "north": 100}] * 1000
    oracle = filled(asked.randomizer, np.array([record.index(one) for one in people], np.uint64), 5)
    whole = areas_answer(asked, oracle, confidence=0.9999)
    sizes = asked.randomizer.parameters()
    assert whole.map and (whole.x, whole.y) == ("east", "north")
    assert len(whole.areas) == sizes["across"] * sizes["down"]
    assert (whole.areas[0].first_x, whole.areas[0].first_y) == (-30, 100)
    assert (whole.areas[-1].last_x, whole.areas[-1].last_y) == (30, 119)
    covered = sum((one.last_x - one.first_x + 1) * (one.last_y - one.first_y + 1) for one in whole.areas)
    assert covered == 61 * 20
    for one in whole.areas:
        held = 9000 if one.first_x <= -10 <= one.last_x and one.first_y <= 118 <= one.last_y else 0
        assert one.on_lines and one.low <= held <= one.high
    assert whole.holders == pytest.approx(9000, abs=600)
    one = ((-10, -10), (118, 118))
    alone = areas_answer(asked, oracle, [one])
    both = areas_answer(asked, oracle, [one, ((-30, 30), (100, 119))], coverage=Coverage.TOGETHER)
    assert not alone.map and not alone.areas[0].on_lines and both.areas[1].on_lines
    assert both.areas[0].low <= alone.areas[0].low and alone.areas[0].high <= both.areas[0].high
    assert alone.areas[0].high >= 9000


def test_what_cannot_be_answered_is_said():
    asked = question()
    oracle = oracle_for(asked)
    with pytest.raises(InvalidSpec, match="no reports yet"):
        areas_answer(asked, oracle)
    with pytest.raises(InvalidSpec, match="a grid of the map has no reports yet"):
        areas_answer(asked, filled(asked.randomizer, np.array([5], np.uint64), 1))
    oracle = filled(asked.randomizer, places(*crowds("spread", 500)), 1)
    for area in (((0, 64), (0, 5)), ((-1, 3), (0, 5)), ((3, 2), (0, 5))):
        with pytest.raises(InvalidSpec, match="an area lies within 0 to 63 and 0 to 63"):
            areas_answer(asked, oracle, [area])
    with pytest.raises(InvalidSpec, match="1 to 4096 areas"):
        areas_answer(asked, oracle, [])
    other = Collection.create("?", RECORD, "linear-hash", "1", opens=0, closes=1, parameters={"q": 3, "t": 8})
    with pytest.raises(InvalidSpec, match="linear-hash gives no areas of a map: a collection with sampled-grid does"):
        areas_answer(other, oracle_for(other))
