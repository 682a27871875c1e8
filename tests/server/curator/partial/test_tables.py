"""Counts that are made consistent and synthetic tables: sensitivities, laws on small data, accuracy."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

from benchmarks.curator.outcomes import law_of
from ldp_client.errors import InvalidSpec
from ldp_server.curator.noise import ExactDraws
from ldp_server.curator.releases.partial.bits import texts_of
from ldp_server.curator.releases.partial.mwem import PairTable, packings, table_counts
from ldp_server.curator.releases.partial.projection import ProjectedConjunctions, projected
from tests.server.curator.seeded import Noted, Seeded
from tests.server.curator.test_releases import Fixed

DRAWS = ExactDraws()
ONE = Fraction(1)
RNG = np.random.default_rng(9)


@pytest.mark.parametrize(
    ("bits", "k"), [(4, 2), pytest.param(5, 2, marks=pytest.mark.long), pytest.param(5, 3, marks=pytest.mark.long)]
)
def test_counts_move_as_the_price_says(bits, k):
    """The largest squared move of a whole record, and of one attribute, are those that rho is made from."""
    made, records = ProjectedConjunctions(bits, k, ONE), list(itertools.product("01", repeat=bits))
    seen = Noted()
    for record in records:
        made.run(["".join(record), "0" * bits], seen)
    values, texts = np.array(seen.values), np.array(records)
    moved = ((values[:, None] - values[None]) ** 2).sum(2)
    changes = (texts[:, None] != texts[None]).sum(2)
    whole, single = moved.max(), moved[changes == 1].max()
    assert whole == math.comb(bits, k)
    assert single == math.comb(bits, k) * k // bits
    assert int(whole) / (2 * Fraction(seen.scales[0]) ** 2) <= ONE
    assert f"rho = {float(Fraction(k, bits)):.6g}" in made.about


def truth_of(rows, sets):
    return np.array([rows[:, list(one)].all(1).mean() for one in sets])


@pytest.mark.parametrize(("bits", "k", "people"), [(8, 2, 60), (8, 3, 200), (6, 2, 5000)])
def test_made_consistent_is_never_farther_from_the_truth(bits, k, people):
    made = ProjectedConjunctions(bits, k, Fraction(1, 8))
    rows = (RNG.random((people, bits)) < RNG.random(bits)).astype(np.uint8)
    truth, raw, near = truth_of(rows, made.sets), 0.0, 0.0
    for _ in range(6):
        noisy = truth + RNG.normal(0, made.sigma / people, len(truth))
        found = projected(noisy, bits, made.sets)
        before, after = float(((noisy - truth) ** 2).sum()), float(((found - truth) ** 2).sum())
        assert after <= before * (1 + 1e-9)
        raw, near = raw + before, near + after
    assert near <= (0.7 if people < 1000 else 1.0) * raw


def test_what_is_inside_stays_as_it_is():
    made = ProjectedConjunctions(5, 2, ONE)
    truth = truth_of(RNG.integers(0, 2, (300, 5)).astype(np.uint8), made.sets)
    assert np.allclose(projected(truth, 5, made.sets), truth, atol=1e-3)


def test_all_intervals_of_made_consistent_counts_hold():
    draws = Seeded(1)
    made, right = ProjectedConjunctions(6, 2, Fraction(1, 2)), 0
    rows = RNG.integers(0, 2, (300, 6)).astype(np.uint8)
    truth = (truth_of(rows, made.sets) * 300).round().astype(int)
    for _ in range(10):
        found = made.run(texts_of(rows), draws).rows
        assert all(row.low <= row.count <= row.high for row in found)
        right += all(row.low <= value <= row.high for row, value in zip(found, truth, strict=True))
    assert right >= 7  # of 10 with 95% or more each: fewer with a probability under 0.2%
    assert found[0].item == "1+2"


def test_all_sets_of_disjoint_pairs():
    assert [len(packings(bits, pairs)) for bits, pairs in ((4, 1), (4, 2), (8, 4), (7, 2))] == [6, 3, 105, 105]
    for one in packings(6, 2):
        assert len({place for pair in one for place in pair}) == 4
    assert len(set(packings(6, 2))) == 45


def log_ratios(made, one, other):
    """The largest log-ratio of the first choice's law: range of the exponential mechanism."""

    class Stop(Exception):
        pass

    class First(Fixed):
        def __init__(self, draws):
            super().__init__(0)
            self.draws = draws

        def exponential(self, scores, scale):
            raise Stop(self.draws.exponential(scores, scale))

    def first(records):
        def run(draws):
            try:
                made.run(records, First(draws))
            except Stop as stop:
                return stop.args[0]
            raise AssertionError

        return law_of(run).chances

    a, b = first(one), first(other)
    losses = [math.log(chance / b[choice]) for choice, chance in a.items()]
    return max(losses) - min(losses)


@pytest.mark.parametrize("pairs", [1, 2])
def test_the_first_choice_of_a_table_has_the_range_that_its_price_is_made_from(pairs):
    """For one attribute 2 e, for a whole record 2 l e; both are nearly reached."""
    made = PairTable(5, Fraction(4), pairs, 4)
    e = math.sqrt(2 * 4 / (4 * (pairs**2 + pairs)))
    rest = ["00000"] * 3
    single = max(log_ratios(made, [*rest, "11111"], [*rest, text]) for text in ("01111", "11110"))
    whole = max(log_ratios(made, [*rest, "11111"], [*rest, text]) for text in ("00000", "00111"))
    assert 0.7 * e < single <= 2 * e * (1 + 1e-9)
    assert single < whole or pairs == 1
    assert whole <= 2 * pairs * e * (1 + 1e-9)
    assert "rho = " in made.about


def test_a_table_has_the_pairs_of_the_people():
    """Against the table that knows nothing: the uniform one."""
    people, bits = 4000, 6
    first = RNG.random(people) < 0.7
    rows = np.column_stack([first ^ (RNG.random(people) < 0.1) for _ in range(bits)]).astype(np.uint8)
    made = PairTable(bits, ONE, 3, 40)
    table = made.fitted(table_counts(rows), DRAWS)
    cells = np.arange(1 << bits)[:, None] >> np.arange(bits)[None, ::-1] & 1
    pairs = list(itertools.combinations(range(bits), 2))
    errors = [
        abs(float((cells[:, a] & cells[:, b]) @ table) - float((rows[:, a] & rows[:, b]).mean())) for a, b in pairs
    ]
    assert max(errors) < 0.2
    assert sum(errors) / len(errors) < 0.5 * abs(0.25 - float((rows[:, 0] & rows[:, 1]).mean()))
    released = made.run(texts_of(rows), DRAWS)
    assert sum(row.count for row in released.rows) == people
    assert len(released.rows) == 64
    assert released.rows[0].low is None


def test_counting_a_table():
    assert table_counts(np.array([[0, 1], [1, 1], [1, 1]], np.uint8)).tolist() == [0, 1, 0, 2]


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: ProjectedConjunctions(20, 2, ONE),
        lambda: ProjectedConjunctions(6, 5, ONE),
        lambda: PairTable(13, ONE),
        lambda: PairTable(6, ONE, 4),
        lambda: PairTable(6, ONE, 1, 0),
    ],
)
def test_what_makes_no_sense_is_refused(wrong):
    with pytest.raises(InvalidSpec):
        wrong()
