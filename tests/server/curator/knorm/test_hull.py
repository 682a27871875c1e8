"""The K-norm mechanism of small polytopes: facets, lattice points, the law of the draws, the loss, widths."""

import itertools
import math
import tracemalloc
from fractions import Fraction

import numpy as np
import pytest

from benchmarks.curator.outcomes import law_of
from benchmarks.curator.queries.audits import hull_loss
from benchmarks.curator.wrong import PrintedHull
from ldp_client.errors import InvalidSpec
from ldp_server.curator.laws import laplace_half_width, laplace_law, laplace_variance
from ldp_server.curator.noise import ExactDraws
from ldp_server.curator.workloads.knorm.counts import KNormCounts, group_noises, patterns
from ldp_server.curator.workloads.knorm.cube import CubeNoise
from ldp_server.curator.workloads.knorm.hull import MOST_DIMENSIONS, hull_noise
from ldp_server.curator.workloads.knorm.polytope import Polytope, lattice_box
from tests.server.curator.seeded import Seeded

ONE, DRAWS = Fraction(1), ExactDraws()


def units(count):
    return [(0,) * count, *(tuple(row) for row in np.eye(count, dtype=int).tolist())]


def nested(count):
    return [tuple(int(k >= j) for k in range(count)) for j in range(count + 1)]


ANSWERS = {
    "one": [(0,), (1,)],
    "two apart": units(2),
    "two together": [*itertools.product((0, 1), repeat=2)],
    "three nested": nested(3),
    "window": [(0,) * 4, (1, 1, 0, 0), (0, 1, 1, 0), (0, 0, 1, 1), (1, 0, 0, 1), (1, 0, 0, 0)],
    "two of four": [(0,) * 4, *(v for v in itertools.product((0, 1), repeat=4) if sum(v) == 2)],
}
EVERY = pytest.mark.parametrize("name", ANSWERS)


def moves_of(answers):
    rows = np.array(answers)
    return np.unique((rows[:, None] - rows[None, :]).reshape(-1, rows.shape[1]), axis=0)


# -- polytopes


@pytest.mark.parametrize(
    ("answers", "corners", "facets", "series"),
    [
        (ANSWERS["one"], 2, 2, (1, 1)),
        ([*itertools.product((0, 1), repeat=3)], 8, 6, (1, 23, 23, 1)),
        (units(3), 12, 14, (1, 9, 9, 1)),
        (units(4), 20, 30, (1, 16, 36, 16, 1)),
        (nested(4), 20, 30, (1, 16, 36, 16, 1)),
    ],
)
def test_known_polytopes(answers, corners, facets, series):
    """Cubes, and the root polytopes of A_d, whose series is the squares of the binomials."""
    body = Polytope(moves_of(answers))
    assert (len(body.corners), len(body.facets[0]), body.series) == (corners, facets, series)


@EVERY
def test_a_facet_holds_all_corners_and_passes_through_enough(name):
    body = Polytope(moves_of(ANSWERS[name]))
    normals, levels = body.facets
    heights = body.corners @ normals.T
    assert (levels > 0).all()
    assert (heights <= levels).all()
    for k in range(len(levels)):
        on = body.corners[heights[:, k] == levels[k]]
        assert np.linalg.matrix_rank(on) == body.dimension
    assert body.holds(body.points, 1).all()
    assert not body.holds(2 * body.corners, 1).any()


@EVERY
def test_the_number_of_points_is_the_polynomial_of_its_series(name):
    """Also for multiples that it was not worked out from; and no h_j is negative."""
    body = Polytope(moves_of(ANSWERS[name]))
    d = body.dimension
    assert min(body.series) >= 0
    for k in range(d + 4):
        assert body.count(k) == sum(h * math.comb(k - j + d, d) for j, h in enumerate(body.series) if k >= j)


def test_points_in_a_box():
    box = lattice_box(3, 2)
    assert len(np.unique(box, axis=0)) == 125
    assert np.abs(box).max() == 2


# -- the draws


@EVERY
def test_the_law_of_how_far_the_noise_reaches(name):
    """All outcomes of one attempt: j is kept with a probability proportional to h_j q^j."""
    noise = hull_noise(ANSWERS[name], Fraction(3))
    law = law_of(noise.attempt, 1e-9).chances
    q = math.exp(-1 / noise.scale)
    for j, h in enumerate(noise.body.series):
        assert law[j] / law[0] == pytest.approx(h * q**j, rel=1e-3)


def test_the_whole_reach_is_that_plus_geometric_draws():
    """P(k) is proportional to L(k) q^k, for one dimension over all outcomes."""
    noise = hull_noise(ANSWERS["one"], Fraction(3))
    q = math.exp(-1 / noise.scale)
    chances = dict.fromkeys(range(4), 0.0)
    for j, p in law_of(noise.attempt, 1e-9).chances.items():
        more = law_of(
            lambda draws: sum(z if z >= 0 else -z - 1 for z in draws.laplace([0, 0], noise.scale)), 1e-9
        ).chances
        for m, r in more.items():
            if j is not None and j + m in chances:
                chances[j + m] += p * r
    for k in range(1, 4):
        assert chances[k] / chances[0] == pytest.approx(noise.body.count(k) * q**k, rel=1e-5)


class Boxed(ExactDraws):
    """Runs through all points of a box, in order."""

    def __init__(self, count):
        self.given = itertools.chain.from_iterable(itertools.product(range(count), repeat=2))

    def uniform(self, count):
        return next(self.given)


def test_a_point_inside_is_the_next_one_of_the_box():
    noise, found = hull_noise(ANSWERS["two apart"], ONE), []
    draws = Boxed(5)
    for _ in range(noise.body.count(2)):
        found.append(tuple(noise.point(2, draws)))
    box = [tuple(point) for point in lattice_box(2, 2).tolist()]
    assert found == [point for point in box if noise.body.holds(np.array([point]), 2)[0]]


def density(noise, reach):
    """P(Z = z) for the points of a box, by the definition: q to the norm, rounded up."""
    box = lattice_box(noise.body.dimension, reach)
    normals, levels = noise.body.facets
    norms = np.ceil((box @ normals.T / levels).max(axis=1) - 1e-9)
    return box, np.exp(-norms / noise.scale)


@pytest.mark.parametrize("name", ["one", "two apart", "two together", "three nested"])
def test_the_law_of_each_count(name):
    """Beside the sum over all points of a large box."""
    noise = hull_noise(ANSWERS[name], Fraction(2))
    box, chances = density(noise, 16)
    chances = chances / chances.sum()
    for count in range(len(noise.factors)):
        values = box @ noise.factors[count]
        for t in range(5):
            assert noise.laws[count][t] == pytest.approx(chances[values == t].sum(), rel=1e-6)
        want = float(chances @ (values * values))
        assert noise.variances[count] == pytest.approx(want, rel=1e-5)
        for beta in (0.3, 0.05, 0.01):
            w = noise.half_width(count, beta)
            assert chances[np.abs(values) > w].sum() <= beta
            assert w == 0 or chances[np.abs(values) > w - 1].sum() > beta


@pytest.mark.parametrize("epsilon", [Fraction(1, 100), Fraction(1), Fraction(8)])
@EVERY
def test_all_probabilities_of_a_count_add_up_to_one(name, epsilon):
    noise = hull_noise(ANSWERS[name], epsilon)
    for law in noise.laws:
        assert 2 * law.sum() - law[0] == pytest.approx(1, rel=1e-9)
        assert (np.diff(law) <= 1e-15).all()


def test_one_count_has_the_noise_of_laplace():
    noise = hull_noise(ANSWERS["one"], ONE)
    assert noise.laws[0][:6] == pytest.approx([laplace_law(1.0, t) for t in range(6)])
    assert noise.half_width(0, 0.05) == laplace_half_width(1.0, 0.05)
    assert noise.variances[0] == pytest.approx(laplace_variance(1.0))


@pytest.mark.parametrize("epsilon", [pytest.param(ONE, marks=pytest.mark.long), Fraction(1, 10)])
def test_the_code_draws_that_law(epsilon):
    noise, draws = hull_noise(ANSWERS["three nested"], epsilon), Seeded(3)
    found = np.array([noise.add([5, 6, 7], draws) for _ in range(4000)]) - np.array([5, 6, 7])
    assert np.square(found).mean(axis=0) == pytest.approx(np.array(noise.variances), rel=0.15)
    for count in range(3):
        outside = (np.abs(found[:, count]) > noise.half_width(count, 0.05)).mean()
        assert 0.01 < outside < 0.06


def test_the_exact_sampler_draws_it_too():
    """200 draws: a third of the mean square, or twice it, has a probability below 1e-6 (the norm is nearly Gamma)."""
    noise = hull_noise(ANSWERS["three nested"], ONE)
    found = np.array([noise.add([5, 6, 7], DRAWS) for _ in range(200)]) - np.array([5, 6, 7])
    assert 1 / 3 < np.square(found).mean() / np.mean(noise.variances) < 2


# -- the price


@EVERY
def test_the_realised_loss_is_epsilon(name):
    """Over all points of a box and all moves of one person."""
    found = hull_loss(hull_noise(ANSWERS[name], Fraction(2)), moves_of(ANSWERS[name]))
    assert found == pytest.approx(2, rel=1e-9)


@pytest.mark.parametrize("name", ["two apart", "three nested", "window"])
def test_the_hull_of_answers_instead_of_moves_is_caught(name):
    """As printed: K is the hull of what one person adds, which is for adding or removing. A replacement costs more."""
    wrong = PrintedHull.of(ANSWERS[name], Fraction(2))
    assert hull_loss(wrong, moves_of(ANSWERS[name])) > 3.9


# -- which counts


def test_a_count_that_is_a_sum_of_others_gets_that_sum_of_noise():
    noise = hull_noise([(0, 0, 0), (1, 0, 1), (0, 1, 1)], ONE)
    assert noise.body.dimension == 2
    for _ in range(20):
        a, b, both = noise.add([10, 20, 30], DRAWS)
        assert a + b == both
    flat = hull_noise(units(2), ONE)
    assert noise.variances[0] == pytest.approx(flat.variances[0])
    assert noise.variances[2] == pytest.approx(flat.variances[0])  # of these moves any two coordinates are alike


def test_what_is_not_worked_out():
    assert hull_noise(units(MOST_DIMENSIONS + 1), ONE) is None
    assert hull_noise([(1, 0)], ONE) is None
    with pytest.raises(InvalidSpec, match="larger epsilon"):
        hull_noise(ANSWERS["one"], Fraction(1, 10**7)).half_width(0, 0.05)
    with pytest.raises(InvalidSpec, match="larger epsilon"):
        CubeNoise(2, Fraction(1, 10**7)).half_width(0.05)


def test_what_one_person_may_answer():
    assert patterns([("a", "b"), ("b", "c")]) == [(0, 0), (0, 1), (1, 0), (1, 1)]
    assert patterns([("a",), ("a", "b")]) == [(0, 0), (0, 1), (1, 1)]


def pairs_of(count):
    """Answers of people whose item is in one or two of so many groups, or in none."""
    return sorted(
        {tuple(int(k in chosen) for k in range(count)) for chosen in itertools.product(range(count), repeat=2)}
    )


@pytest.mark.parametrize(
    ("answers", "best"),
    [
        (nested(3), "hull"),
        ([*itertools.product((0, 1), repeat=6)], "cube"),
        (units(20), "exclusive"),
        (pairs_of(10), "laplace"),
    ],
)
def test_the_noise_with_the_smallest_error_is_taken(answers, best):
    found = group_noises(answers, ONE)
    assert found[0].name == best
    errors = [round(one.error, 6) for one in found]
    assert errors == sorted(errors)
    if best == "laplace":
        assert found[0].scale == 4


def test_distances_of_very_many_answers_are_bounded():
    rows = [tuple(int(bit) for bit in f"{k:011b}") for k in range(1600)]
    assert next(one for one in group_noises(rows, ONE) if one.name == "laplace").scale == 11


@pytest.mark.parametrize("count", [1, 3, 6])
def test_the_variance_of_a_cube_is_that_of_its_law(count):
    noise = CubeNoise(count, Fraction(2))
    ks = np.arange(200)
    weights = (2.0 * ks + 1) ** count * np.exp(-ks / noise.scale)
    want = float(weights @ (ks * (ks + 1) / 3) / weights.sum())
    assert noise.variance == pytest.approx(want, rel=1e-9)
    if 1 < count <= MOST_DIMENSIONS:
        whole = hull_noise([*itertools.product((0, 1), repeat=count)], Fraction(2))
        assert whole.variances[0] == pytest.approx(noise.variance, rel=1e-6)


_TWO = ["".join(one) for many in (1, 2) for one in itertools.combinations("abcdefghij", many)]


def test_counts_with_each_noise():
    records = ["a"] * 50 + ["b"] * 30 + [None] * 20
    for groups, name in (
        ((("a",), ("a", "b")), "hull"),
        (tuple((letter,) for letter in "abcdefghij"), "exclusive"),
        (tuple(tuple(one for one in _TWO if letter in one) for letter in "abcdefghij"), "laplace"),
        (tuple(tuple(k for k in range(64) if k >> bit & 1) for bit in range(6)), "cube"),
    ):
        made = KNormCounts(groups, Fraction(4))
        outcome = made.run(records, DRAWS)
        assert outcome.details["noise"] == made.parameters()["noise"] == name
        assert len(outcome.details["variances"]) == len(groups)
        truth = [sum(one in group for one in records) for group in groups]
        assert [row.count for row in outcome.rows] == pytest.approx(truth, abs=15)
        for place, row in enumerate(outcome.rows):
            assert row.high == min(max(row.count + made.noise.half_width(place), 0), 100)


def test_answers_of_many_dimensions_are_refused_before_their_moves_are_listed():
    """1,500 answers to 64 counts have 2 million moves, which took a gigabyte: their rank follows from 1,500 of them."""
    answers = np.random.default_rng(2).integers(0, 2, (1500, 64))
    tracemalloc.start()
    assert hull_noise(answers, Fraction(1)) is None
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most < 50_000_000
    flat = np.array([[0, 0, 0], [1, 0, 1], [0, 1, 1], [1, 1, 2]])  # three counts, two of which say all
    assert hull_noise(flat, Fraction(1)).body.dimension == 2
