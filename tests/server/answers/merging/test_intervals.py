"""Merged intervals where they would fail: noise with heavy tails, few reports, one percent of volunteers, a fit."""

import math
from fractions import Fraction

import numpy as np
import pytest

from ldp_client.errors import InvalidSpec
from ldp_client.protocol.domain import Field, FieldItems, Record, YesNo
from ldp_server.answers.merging.averages import CohortAverage, averages_answer, cautious, merged_average
from ldp_server.answers.merging.cohorts import CohortCount, CohortShare, ErrorBound, matched, merged
from ldp_server.answers.merging.reweighed import reweighed, rolled_up
from ldp_server.answers.merging.sources import LocalFrequencies, merged_frequencies
from ldp_server.answers.to_json import item_json
from ldp_server.curator.workloads.matrix.answers import LinearAnswers
from ldp_server.curator.workloads.matrix.plans import Price
from ldp_server.curator.workloads.matrix.queries import LinearQueries, condition
from tests.server.curator.seeded import Seeded

RUNS = 2000


def within(share, runs=RUNS, sigmas=4.3):
    """The least number of runs inside, but for a chance below 1e-5."""
    return share * runs - sigmas * math.sqrt(runs * share * (1 - share))


def released(made, records, draws):
    """A release as its content is signed."""
    found = made.run(records, draws)
    rows = [{"item": item_json(row.item), "count": row.count, "low": row.low} for row in found.rows]
    content = {"kind": made.kind, "people": len(records), "variance": found.variance, "rows": rows, "statement": []}
    content |= {"details": dict(found.details), "parameters": made.parameters(), "price": made.price.as_dict()}
    return content


# -- Laplace noise


@pytest.mark.parametrize(
    ("people", "reports", "local", "confidence", "runs"),
    [(100, 30, 40.0, 0.99, 4000), (200, 20_000, 6000.0, 0.95, 1000), (2000, 20_000, 200.0, 0.95, 1000)],
)
def test_an_interval_has_the_tails_of_the_noise(people, reports, local, confidence, runs):
    """Few volunteers at a small price: noise of 28 people, and sampling of 5. A normal interval misses 2.6% of 1%."""
    rng, truth, scale = np.random.default_rng(3), 0.3, 20.0
    inside = normal = 0
    for _ in range(runs):
        noisy = rng.binomial(people, truth) + rng.laplace(scale=scale)
        told = rng.binomial(reports, truth) + rng.normal(scale=local)
        one, other = CohortCount(noisy, 2 * scale**2, laplace=True), CohortCount(told, local**2)
        row = merged({"a": one}, people, {"a": other}, reports, confidence).rows[0]
        inside += row.low <= truth <= row.high
        bare = merged({"a": CohortCount(noisy, 2 * scale**2)}, people, {"a": other}, reports, confidence).rows[0]
        normal += bare.low <= truth <= bare.high
    assert inside >= within(confidence, runs)
    assert normal <= inside
    if people == 100 and confidence == 0.99:
        assert normal < within(0.99, runs)  # what was stated before


def test_a_warning_at_one_percent_comes_in_one_percent():
    """100 volunteers with noise of 28 people beside many precise reports: normal tails warn in 2.6% of all cases."""
    rng, scale = np.random.default_rng(4), 20.0
    other, warned, normal = CohortShare(0.3, 1e-7, 1_000_000), 0, 0
    for _ in range(RUNS):
        noise = 2 * scale**2 / 100**2
        share = (rng.binomial(100, 0.3) + rng.laplace(scale=scale)) / 100
        for laplace in (noise, 0.0):
            found = matched({"a": CohortShare(share, noise, 100, laplace=laplace)}, 100, {"a": other}, 1_000_000)
            warned, normal = warned + (found.disagree and laplace > 0), normal + (found.disagree and not laplace)
    assert warned <= 0.01 * RUNS + 4.3 * math.sqrt(RUNS * 0.01)
    assert normal > 0.02 * RUNS


def test_an_average_has_these_tails_too():
    wide = merged_average(CohortAverage(5, 1.0, 50), CohortAverage(5, 1e6, 9), 1e-3, (0, 10), 0.99)
    assert wide.high - wide.estimate == pytest.approx(math.log(100) / math.sqrt(2) + 10 / 59, rel=1e-2)
    apart = merged_average(CohortAverage(2, 1.0, 1e6), CohortAverage(5, 1e-6, 1e6), 1e-3, (0, 10))
    assert averages_answer(apart, 1.0, 9, 9, 0.95).chance == pytest.approx(math.exp(-3 * math.sqrt(2)), rel=1e-2)
    assert averages_answer(apart, 1.0, 9, 9, 0.95).warning is None
    assert averages_answer(apart, 0.0, 9, 9, 0.95).chance == pytest.approx(0.0027, rel=1e-2)


# -- few people, whose shares move in steps


def chances(people, share):
    """P(k of so many people), for each k."""
    return np.array([math.comb(people, k) * share**k * (1 - share) ** (people - k) for k in range(people + 1)])


@pytest.mark.parametrize(("people", "reports"), [(1, 5), (5, 5), (20, 20), (10, 100)])
@pytest.mark.parametrize("confidence", [0.95, 0.99])
def test_intervals_of_few_people_hold_for_every_share(people, reports, confidence):
    """All outcomes of two crowds without noise. Without the person on each side, 95% of 5 and 5 held in 89%."""
    rows = [
        [merged({"a": CohortCount(k, 0.01)}, people, {"a": CohortCount(m, 0.01)}, reports, confidence).rows[0]
         for m in range(reports + 1)]
        for k in range(people + 1)
    ]  # fmt: skip
    low, high = (np.array([[getattr(row, end) for row in line] for line in rows]) for end in ("low", "high"))
    held = []
    for share in np.linspace(0.002, 0.5, 50):
        inside = (low <= share) & (share <= high)
        held.append(float(chances(people, share) @ inside @ chances(reports, share)))
    assert min(held) >= confidence - 0.002


@pytest.mark.parametrize(("people", "reports", "noise"), [(20, 50, 130.0), (20, 2000, 3000.0), (50, 20, 60.0)])
def test_reports_with_much_noise_do_not_make_a_few_volunteers_many(people, reports, noise):
    """All of 20 volunteers have what 90% have, in 12% of all cases: only their number says how sure that is."""
    rng, inside = np.random.default_rng(7), 0
    for _ in range(RUNS):
        one = CohortCount(rng.binomial(people, 0.9), 0.01)
        other = CohortCount(rng.binomial(reports, 0.9) + rng.normal(scale=noise), noise**2)
        row = merged({"a": one}, people, {"a": other}, reports).rows[0]
        inside += row.low <= 0.9 <= row.high
    assert inside >= within(0.95)


@pytest.mark.parametrize(("people", "reports"), [(1, 100), (2, 300), (5, 200), (20, 100)])
def test_few_volunteers_who_are_like_everybody_else_are_rarely_warned_about(people, reports):
    """All outcomes: one of two volunteers with a rare item is no proof. A normal law warned in up to 9%."""
    warned = [
        [merged({"a": CohortCount(k, 0.01)}, people, {"a": CohortCount(m, 0.01)}, reports).disagree
         for m in range(reports + 1)]
        for k in range(people + 1)
    ]  # fmt: skip
    for share in np.linspace(0.002, 0.5, 50):
        assert chances(people, share) @ np.array(warned, float) @ chances(reports, share) <= 0.01


def test_both_ends_lie_within_the_possible_shares_and_in_their_order():
    """Noise takes estimates below 0 and above all: the interval was "0% to -1%" then."""
    for count in (-900.0, -300.0, 1300.0, 1900.0):
        one, other = CohortCount(count / 10, 400.0), CohortCount(count, 10_000.0)
        row = merged({"a": one}, 100, {"a": other}, 1000).rows[0]
        assert 0 <= row.low <= row.high <= 1
    for value in (-9.0, 19.0):
        found = merged_average(CohortAverage(value, 0.01, 50), CohortAverage(value, 0.01, 50), 0.1, (0, 10))
        assert 0 <= found.low <= found.high <= 10


@pytest.mark.parametrize(
    ("people", "reports", "noise", "share"),
    [(20, 20, 1.0, 0.05), (5, 50, 0.5, 0.1), (5, 5, 0.1, 0.5), (100, 1000, 0.5, 0.02), (200, 2000, 0.2, 0.005)],
)
def test_the_average_of_few_people_some_of_whom_have_a_large_number(people, reports, noise, share):
    """Few have 10 and all others 0. Volunteers who show none of them showed no spread: 40% to 88% of intervals held.

    And the warning at 1% comes in 1% of all crowds at most, but for a chance below 1e-5.
    """
    rng, inside, warned = np.random.default_rng(2), 0, 0
    for _ in range(RUNS):
        own, others = 10 * rng.binomial(people, share) / people, 10 * rng.binomial(reports, share) / reports
        one = CohortAverage(own, 1e-6, people)
        other = CohortAverage(others + rng.normal(scale=noise), noise**2, reports)
        found = merged_average(one, other, cautious(10 * own - own**2, one, (0, 10)), (0, 10))
        inside += found.low <= 10 * share <= found.high
        warned += averages_answer(found, 1e-6, people, reports, 0.95).disagree
    assert inside >= within(0.95)
    assert warned <= 0.01 * RUNS + 4.3 * math.sqrt(RUNS * 0.01)


def test_two_people_more_at_each_end():
    """Of yes and no, 0 and 1, it is the variance of a share moved by two people on each side."""
    one = CohortAverage(0.1, 0.0, 20)
    share = (2 + 2) / 24
    assert cautious(0.09, one, (0, 1)) == pytest.approx(share * (1 - share))
    assert cautious(0.0, CohortAverage(-9.0, 1.0, 0.2), (0, 1)) <= 0.25
    assert cautious(1.0, CohortAverage(5.0, 1.0, 10**6), (0, 10)) == pytest.approx(1.0, rel=1e-3)


# -- bounds


BOUNDS = tuple(ErrorBound(chance, most) for chance, most in ((0.05, 10.0), (0.025, 12.0), (0.005, 20.0), (5e-5, 40.0)))


def test_a_bound_stands_beside_the_chance():
    """The volunteers' count is off by the whole bound, always in one direction."""
    rng, inside, bare = np.random.default_rng(6), 0, 0
    for _ in range(RUNS):
        counted = rng.binomial(400, 0.3) + 12.0
        other = CohortCount(rng.binomial(5000, 0.3) + rng.normal(scale=200.0), 200.0**2)
        row = merged({"a": CohortCount(counted, 0.0, bounds=BOUNDS)}, 400, {"a": other}, 5000).rows[0]
        inside += row.low <= 0.3 <= row.high
        plain = merged({"a": CohortCount(counted, 0.0)}, 400, {"a": other}, 5000).rows[0]
        bare += plain.low <= 0.3 <= plain.high
    assert inside >= within(0.975)
    assert bare < within(0.95) < inside
    assert row.volunteers_off == 12.0 / 400
    assert row.volunteers_text == f"{row.volunteers:.2%} ± {row.volunteers_error:.2%} ± 3.00%"


def test_a_source_with_a_large_bound_hardly_counts():
    other = CohortCount(1500.0, 100.0)
    for most, share in ((1e-6, 0.25), (1e9, 0.3)):
        bounds = (ErrorBound(0.01, most),)
        row = merged({"a": CohortCount(25e5, 0.0, bounds=bounds)}, 10**7, {"a": other}, 5000).rows[0]
        assert row.share == pytest.approx(share, abs=1e-3)
    assert row.high - row.low == pytest.approx(2 * 2.0 * row.reports_error, rel=0.05)


def test_the_bound_is_the_one_of_the_confidence():
    one, other = {"a": CohortCount(100.0, 0.0, bounds=BOUNDS)}, {"a": CohortCount(1250.0, 100.0)}
    for confidence, most in ((0.8, 10.0), (0.9, 10.0), (0.95, 12.0), (0.98, 20.0), (0.99, 20.0), (0.999, 40.0)):
        assert merged(one, 400, other, 5000, confidence).rows[0].volunteers_off == most / 400
    with pytest.raises(InvalidSpec, match=r"at most 0\.9999"):
        merged(one, 400, other, 5000, 0.99999)


def test_what_a_bound_explains_is_no_disagreement():
    """The surest bound is 40 of 400 people; its chance is part of the warning's."""
    other = {"a": CohortCount(1000.0, 1.0)}
    for count, disagree in ((120.0, False), (125.0, False), (190.0, True)):
        found = merged({"a": CohortCount(count, 0.0, bounds=BOUNDS)}, 400, other, 5000)
        assert found.disagree is disagree
    assert found.chance >= 5e-5
    assert found.rows[0].z == pytest.approx((190 / 400 - 0.2 - 0.1) / math.hypot(0.0204, 0.0057), rel=0.05)
    assert merged({"a": CohortCount(81.0, 0.0, bounds=BOUNDS)}, 400, other, 5000).rows[0].z == 0.0
    low = merged({"a": CohortCount(0.0, 0.0, bounds=BOUNDS)}, 400, other, 5000).rows[0]
    assert low.z < -1  # the sign says who is above


# -- correlated cells


def test_cells_of_parities_are_no_independent_cells():
    """Their noise adds up over cells and groups. With the formula for independent cells the error was too small."""
    people, runs, scale = 4000, 1500, 20.0
    rng = np.random.default_rng(9)
    groups = {FieldItems({"a": value}): CohortShare(0.5, 0.0, 10**9) for value in (False, True)}
    found = []
    for noise in rng.normal(scale=scale * 2**0.5, size=(runs, 3)):
        signs = {(a, b): ((-1) ** a, (-1) ** b, (-1) ** (a + b)) for a in (0, 1) for b in (0, 1)}
        cells = {
            FieldItems({"a": bool(a), "b": bool(b)}): CohortCount(
                1000 - sign @ noise / 2, 3 / 4 * 2 * scale**2, alone=False
            )
            for (a, b), sign in ((held, np.array(one)) for held, one in signs.items())
        }
        found.append(reweighed(cells, ["a"], ["b"], groups)[FieldItems({"b": True})].share)
    true = float(np.var(found))
    cells = {item: CohortCount(1000, one.variance, alone=False) for item, one in cells.items()}
    stated = reweighed(cells, ["a"], ["b"], groups)[FieldItems({"b": True})]
    sampled = 0.25 / people
    alone = {item: CohortCount(one.count, one.variance) for item, one in cells.items()}
    before = reweighed(alone, ["a"], ["b"], groups)[FieldItems({"b": True})].noise - sampled
    assert before < 0.85 * true < true < stated.noise - sampled
    assert stated.noise - sampled < 4 * true


def test_sums_of_cells_that_go_together():
    cells = {FieldItems({"a": a, "b": b}): CohortCount(10.0, 4.0, alone=False) for a in (0, 1) for b in (0, 1)}
    (one,) = {value.variance for value in rolled_up(cells, ["a"]).values()}
    assert one == pytest.approx(16.0)  # two standard errors of 2
    assert not rolled_up(cells, ["a"])[FieldItems({"a": 0})].alone
    cells = {item: CohortCount(10.0, 4.0, laplace=True) for item in cells}
    one = rolled_up(cells, ["b"])[FieldItems({"b": 1})]
    assert (one.variance, one.laplace, one.alone) == (8.0, True, True)


# -- a linear release from one percent of the people

FIELDS = Record((Field("a", YesNo(none_is_no=True)), Field("b", YesNo(none_is_no=True)), Field("c", YesNo())))


@pytest.mark.parametrize("price", [Price(epsilon=Fraction(1, 5)), Price(rho=Fraction(1, 50))])
def test_the_interval_of_a_condition_holds(price):
    """200 volunteers of 20,000 users: each condition alone at 95%, and better than either source."""
    asked = LinearQueries(FIELDS, (condition(FIELDS, "a: yes; c: yes"), condition(FIELDS, "b: no, yes; c: none")))
    made = LinearAnswers(asked, price)
    rng, runs = np.random.default_rng(8), 400
    shares = rng.dirichlet(np.ones(FIELDS.size))
    cells = np.arange(FIELDS.size)
    truth = [
        float(shares[(cells % 2 == 1) & (cells // 4 == 2)].sum()),
        float(shares[cells // 4 == 0].sum()),
    ]
    inside, errors = np.zeros(2), []
    for run in range(runs):
        content = released(made, rng.choice(FIELDS.size, 200, p=shares).tolist(), Seeded(run))
        names = [row["item"]["text"] for row in content["rows"]]
        told = rng.multinomial(20_000, [*truth, 1 - sum(truth)])[:2] + rng.normal(scale=2000.0, size=2)
        local = LocalFrequencies(
            {name: CohortCount(one, 2000.0**2) for name, one in zip(names, told, strict=True)}, 20_000
        )
        found = merged_frequencies(content, local)
        inside += [row.low <= share <= row.high for row, share in zip(found.rows, truth, strict=True)]
        errors.append(
            [(row.share - s, row.volunteers - s, row.reports - s) for row, s in zip(found.rows, truth, strict=True)]
        )
    assert inside.min() >= within(0.95, runs)
    squares = np.square(errors).mean(axis=0)
    assert (squares[:, 0] < 1.05 * squares[:, 1:].min(axis=1)).all()
