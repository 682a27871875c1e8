"""What volunteers are worth, as planned: the curator's own laws, promises that hold, and what is said of it."""

import json
from fractions import Fraction

import numpy as np
import pytest

from ldp_client.errors import InvalidSpec
from ldp_client.protocol.domain import Attributes, Categories, Field, Integers, Record, YesNo
from ldp_server.answers.merging.cohorts import CohortCount, merged
from ldp_server.curator.laws import laplace_variance
from ldp_server.curator.releases.histogram import LaplaceHistogram
from ldp_server.curator.workloads.average import LaplaceAverage
from ldp_server.curator.workloads.tables import LaplaceTables
from ldp_server.curator.workloads.universe import Workload, pairs
from ldp_server.planning import Goal, QuestionKind, draft
from ldp_server.planning.planner import solve
from ldp_server.planning.promise import share_in_words
from ldp_server.planning.record_drafts import TablesGoal, draft_tables
from ldp_server.planning.volunteers import (
    VolunteersWish,
    outlook_of_plan,
    outlook_of_tables,
    release_variance,
    volunteer_shares,
)
from tests.server.commands import run_here

K = QuestionKind
ITEMS = Categories(("tea", "coffee", "milk"))
FREQUENCIES = Goal(K.FREQUENCIES, ITEMS, 50_000, "1")
AVERAGE = Goal(K.AVERAGE, Integers(0, 101), 50_000, "1")
RECORD = Record(tuple(Field(name, YesNo(none_is_no=True)) for name in "abc"))


@pytest.mark.parametrize("scale", [0.3, 1.0, 7.5, 400.0])
def test_the_noise_is_that_of_the_curator(scale):
    assert release_variance(scale) == laplace_variance(scale)


def test_each_kind_has_the_variance_that_its_release_states():
    """So the plan and the release cannot drift apart."""
    assert LaplaceHistogram(("a", "b"), Fraction(1, 2)).scale == 2 / 0.5
    assert LaplaceTables(Workload(RECORD, pairs(RECORD)), Fraction(1)).scale == 2 * 3 / 1
    assert LaplaceAverage(0, 100, Fraction(1)).scales[:2] == (4.0, 200.0)
    (one,) = outlook_of_plan(solve(FREQUENCIES), [0.1], "0.5")
    share = solve(FREQUENCIES).truth
    (row,) = merged(
        {"i": CohortCount(share * 5000, laplace_variance(4))}, 5000, {"i": CohortCount(share * 10, 1e12)}, 10
    ).rows
    assert one.volunteers_alone == pytest.approx(1.95996 * row.volunteers_error, rel=1e-2)
    (cell,) = outlook_of_tables(3, 4.0, 50_000, 0.95, [0.01], "1")
    assert cell.volunteers_alone == pytest.approx(
        1.95996 * (laplace_variance(6) / 500**2 + 0.25 / 500) ** 0.5, rel=1e-2
    )


@pytest.mark.parametrize("share", [0.01, 0.3])
@pytest.mark.parametrize("held", [0.5, 0.9])
def test_the_promise_holds_for_the_item_that_it_is_about_and_for_any_other_cell(share, held):
    """Two cohorts are drawn, with both noises: the merged share lies within the promise 95 times of 100."""
    users, per_user, rng = 20_000, 6.0, np.random.default_rng(4)
    (told,) = outlook_of_tables(1, per_user, users, 0.95, [share], "1")
    people, runs, inside, errors = told.volunteers, 4000, 0, []
    reports = users - people
    noise = rng.laplace(scale=2, size=runs)
    one = rng.binomial(people, held, runs) + noise
    other = rng.binomial(reports, held, runs) + rng.normal(scale=(per_user * reports) ** 0.5, size=runs)
    for first, second in zip(one, other, strict=True):
        row = merged(
            {"i": CohortCount(first, 8.0)}, people, {"i": CohortCount(second, per_user * reports)}, reports
        ).rows[0]
        inside += abs(row.share - held) <= told.within
        errors.append(row.share - held)
    assert inside / runs >= 0.935  # 4,000 runs: below that with a probability under 1e-5
    if held == 0.5:
        assert told.within == pytest.approx(1.95996 * np.std(errors), rel=0.06)


@pytest.mark.parametrize("ends", [(0, 101), (-50, 11), (3, 2)])
def test_an_average_holds_where_its_error_is_largest(ends):
    """Half of the people at each end; also where all are at one end, where the count's noise weighs most."""
    goal, rng = Goal(K.AVERAGE, Integers(*ends), 20_000, "1"), np.random.default_rng(5)
    plan = solve(goal)
    (told,) = outlook_of_plan(plan, [0.05], "1")
    people, runs, width = told.volunteers, 4000, ends[1] - 1
    low, high = ends[0], ends[0] + width
    for share in (0.5, 1.0):
        holders = people + rng.laplace(scale=4, size=runs)
        drawn = rng.binomial(people, share, runs)
        total = (2 * drawn - people) * width + rng.laplace(scale=2 * width, size=runs)
        found = np.clip((low + high) / 2 + total / holders / 2, low, high)
        off = np.abs(found - (low + width * share))
        assert np.mean(off <= told.volunteers_alone) >= 0.935
    assert told.within < told.volunteers_alone
    assert told.within < told.alone * 1.2


def test_more_volunteers_and_a_higher_price_are_worth_more():
    few, many = outlook_of_plan(solve(FREQUENCIES), [0.01, 0.2], "1")
    (dear,) = outlook_of_plan(solve(FREQUENCIES), [0.01], "4")
    assert many.within < few.within < few.alone == many.alone
    assert dear.within < few.within
    assert (few.volunteers, many.volunteers) == (500, 10_000)
    assert few.worth > 1
    reports = 50_000 - 500 + 500 * few.worth  # so many reports would have the merged error
    assert few.alone * (50_000 / reports) ** 0.5 == pytest.approx(few.within)


def test_a_draft_speaks_of_volunteers():
    window = {"opens": 0, "closes": 1 << 33}
    plain = draft("Q?", FREQUENCIES, **window)
    made = draft("Q?", FREQUENCIES, volunteers=VolunteersWish((0.02, 0.1), "2"), **window)
    assert plain.volunteers == () and made.promise[: len(plain.promise)] == plain.promise
    assert [one.epsilon for one in made.volunteers] == ["2", "2"]
    line = made.promise[len(plain.promise)]
    assert "2.0% of them (1,000)" in line and "epsilon = 2" in line
    assert f"+- {share_in_words(made.volunteers[0].within)} of the users, instead of" in line
    assert made.collection == plain.collection
    tables = draft_tables("Q?", TablesGoal(RECORD, "pairs", 50_000, "1"), VolunteersWish((0.02,)), **window)
    assert tables.volunteers[0].epsilon == "1"
    per_user = tables.within**2 * 50_000 / 1.959964**2
    (same,) = outlook_of_tables(3, per_user, 50_000, 0.95, (0.02,), "1")
    assert tables.volunteers[0].within == pytest.approx(same.within, rel=1e-5)
    assert "half of the users are in" in tables.promise[-1]


@pytest.mark.parametrize(
    ("goal", "said"),
    [
        (Goal(K.ATTRIBUTES, Attributes(("a", "b")), 5000, "1"), "not with attributes"),
        (Goal(K.FREQUENCIES, ITEMS, 5000, "1", change=True), "a change between two periods"),
        (Goal(K.AVERAGE, Integers(0, 9), 5000, "1", missing=True), "where everybody has a number"),
        (Goal(K.FREQUENCIES, ITEMS, 900, "1"), "fewer than 10 volunteers"),
    ],
)
def test_what_is_not_merged_with_volunteers(goal, said):
    with pytest.raises(InvalidSpec, match=said):
        outlook_of_plan(solve(goal), [0.01], "1")


@pytest.mark.parametrize("text", ["0", "1", "x", "", "0.1,", "nan", ",".join(["0.1"] * 21)])
def test_shares_lie_between_0_and_1(text):
    with pytest.raises(InvalidSpec, match="--volunteers"):
        volunteer_shares(text)


@pytest.fixture
def shell(monkeypatch, capsys):
    def call(*arguments):
        return run_here(monkeypatch, capsys, "collection", "draft", "--question", "Q?", *arguments)

    return call


def test_the_command(shell):
    frequencies = ("--kind", "frequencies", "--answer", "a", "--answer", "b", "--users", "50000", "--epsilon", "1")
    code, out, err = shell(*frequencies, "--volunteers", "0.01,0.05", "--volunteer-epsilon", "2", "--json")
    assert (code, err) == (0, "")
    rows = json.loads(out)["volunteers"]
    assert [(row["share"], row["volunteers"], row["epsilon"]) for row in rows] == [(0.01, 500, "2"), (0.05, 2500, "2")]
    assert "volunteers" not in json.loads(shell(*frequencies, "--json")[1])
    tables = ("--kind", "tables", "--field", "a: yes", "--field", "b: yes", "--users", "50000", "--epsilon", "1")
    assert "A volunteer is" in shell(*tables, "--volunteers", "0.05")[1].replace("\n#   ", " ")
    areas = ("--kind", "areas", "--field", "x: 0..8", "--field", "y: 0..8", "--users", "50000", "--epsilon", "1")
    for wrong, said in (
        ((*areas, "--volunteers", "0.1"), "not with areas"),
        (("--kind", "sets", *frequencies[2:], "--volunteers", "0.1"), "not merged with sets"),
        ((*frequencies, "--volunteers", "2"), "between 0 and 1"),
        ((*frequencies, "--volunteer-epsilon", "2"), "goes with --volunteers"),
        ((*frequencies, "--volunteers", "0.1", "--volunteer-epsilon", "much"), "epsilon"),
    ):
        code, out, err = shell(*wrong)
        assert (code, out, err.count("\n")) == (2, "", 1)
        assert said in err
