"""An oracle of statistical queries with a price, and what learns from it: the loss, what is printed, failing never."""

import itertools
import json
import math
from fractions import Fraction

import numpy as np
import pytest

from benchmarks.curator.outcomes import largest_loss, law_of
from benchmarks.curator.queries.sets import adaptive_loss
from benchmarks.curator.workloads import binary, people
from benchmarks.curator.wrong import PrintedQueries
from ldp_client.errors import InvalidSpec
from ldp_client.protocol.domain import Field, Integers, Record
from ldp_server.curator.laws import laplace_variance
from ldp_server.curator.noise import ExactDraws
from ldp_server.curator.workloads.asking.oracle import CuratorQueries
from ldp_server.curator.workloads.asking.sets import METHODS, AnyOfSets
from ldp_server.curator.workloads.kinds import WorkloadWish, workload_mechanism
from ldp_server.learning.queries import AnyOf
from tests.server.commands import run_here
from tests.server.curator.seeded import Seeded

ONE = Fraction(1)
FOUR = binary(4)
RECORDS = [0b0000] * 40 + [0b0001] * 30 + [0b0110] * 20 + [0b1111] * 10


class Silent(Seeded):
    """Adds nothing, and notes the scales."""

    def __init__(self):
        super().__init__(1)
        self.scales = []

    def laplace(self, values, scale):
        self.scales += [scale] * len(values)
        return list(values)


def any_of(*names, every=False):
    return AnyOf(frozenset(names), every)


# -- the oracle


@pytest.mark.parametrize(
    ("predicate", "share"),
    [
        (any_of("f0"), 0.4),
        (any_of("f1", "f2"), 0.3),
        (any_of("f1", "f2", every=True), 0.3),
        (any_of("f0", "f3"), 0.4),
        (any_of("f0", "f3", every=True), 0.1),
        (any_of("f0", "f1", "f2", "f3"), 0.6),
        (any_of(), 0.0),
        (any_of(every=True), 1.0),
    ],
)
def test_shares_of_people(predicate, share):
    queries = CuratorQueries(FOUR, RECORDS, 3, ONE, Silent())
    found = queries.ask(predicate)
    assert found.estimate == pytest.approx(share)
    assert found.users == 100
    assert found.standard_error == (math.sqrt(laplace_variance(3.0)) / 100 if predicate.fields else 0)
    assert queries.queries == len(predicate.fields and [1])


def test_a_query_costs_once_and_has_one_answer():
    queries = CuratorQueries(FOUR, RECORDS, 5, ONE, Seeded(4))
    answers = {queries.ask(any_of("f0", "f1")).estimate for _ in range(20)}
    assert len(answers) == 1
    assert queries.queries == 1
    assert queries.scale == 5
    with pytest.raises(InvalidSpec, match="at least one"):
        CuratorQueries(FOUR, RECORDS, 0, ONE, Silent())


def test_without_a_query_left_the_answer_follows_from_earlier_ones():
    """It is no failure: a failure would tell something, and is not charged."""
    queries = CuratorQueries(FOUR, RECORDS, 4, ONE, draws := Silent())
    for predicate in (any_of("f0"), any_of("f1", "f2"), any_of("f0", every=True), any_of("f3", every=True)):
        queries.ask(predicate)
    assert queries.ask(any_of("f0", "f1", "f2")).estimate == pytest.approx(0.4)
    assert queries.ask(any_of("f1", "f2", "f3")).estimate == pytest.approx(0.3)
    assert queries.ask(any_of("f3")).estimate == 0
    assert queries.ask(any_of("f0", "f3", every=True)).estimate == pytest.approx(0.1)
    assert queries.ask(any_of("f1", every=True)).estimate == 1
    assert queries.queries == 4
    assert len(draws.scales) == 4
    assert queries.ask(any_of("f0")).estimate == pytest.approx(0.4)


def asked(kind, record, predicates, epsilon):
    """The law of the answers to these queries, for one person with this record."""

    def answers(draws):
        queries = kind(binary(2), [record], len(predicates), Fraction(epsilon), draws)
        return tuple(queries.ask(one).estimate for one in predicates)

    return law_of(answers, 1e-6)


def test_the_realised_loss_of_all_queries_is_epsilon():
    """All outcomes of all draws, all pairs of records; and the printed noise costs one epsilon for each query."""
    predicates = (any_of("f0"), any_of("f0", "f1"))
    for kind, want in ((CuratorQueries, 8), (PrintedQueries, 16)):
        laws = [asked(kind, record, predicates, 8) for record in range(4)]
        losses = [largest_loss(one, other) for one, other in itertools.combinations(laws, 2)]
        assert max(losses) == pytest.approx(want, abs=1e-5)


@pytest.mark.parametrize("printed", [False, True])
def test_queries_that_depend_on_answers_cost_no_more(printed):
    """The second query is another one where the first answer is high."""
    found = adaptive_loss(PrintedQueries if printed else CuratorQueries, 6)
    assert found == pytest.approx(12 if printed else 6, abs=1e-5)


# -- releases


def truth_of(made, records):
    masks = [sum(1 << place for place in one) for one in made.sets]
    return [sum(record & mask != 0 for record in records) for mask in masks]


def test_the_sets_are_all_of_up_to_k_fields():
    made = AnyOfSets(FOUR, ONE, 2)
    assert [sorted(one) for one in made.sets] == [[0], [1], [2], [3], [0, 1], [0, 2], [0, 3], [1, 2], [1, 3], [2, 3]]
    assert made.queries == 10
    assert AnyOfSets(FOUR, ONE, 4, "thresholds", 5).queries == 5


def test_counts_are_the_truth_without_noise():
    made, draws = AnyOfSets(FOUR, ONE, 3), Silent()
    rows = made.run(RECORDS, draws).rows
    assert [row.count for row in rows] == truth_of(made, RECORDS)
    assert rows[4].item == "f0 or f1"
    assert len(draws.scales) == 14 + 1
    assert draws.scales[0] == pytest.approx(14 / 0.9)
    assert draws.scales[-1] == 10


@pytest.mark.parametrize("method", METHODS)
def test_the_scales_of_a_release_add_up_to_epsilon(method):
    made, draws = AnyOfSets(FOUR, Fraction(1, 2), 3, method, 9), Silent()
    made.run(RECORDS, draws)
    assert sum(1 / scale for scale in draws.scales) <= 0.5 * (1 + 1e-12)
    assert made.price.epsilon == Fraction(1, 2)
    if method != "decomposition":  # which may leave queries over
        assert sum(1 / scale for scale in draws.scales) == pytest.approx(0.5)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("epsilon", [Fraction(1, 20), Fraction(2)])
@pytest.mark.thinned(2)
def test_all_sets_lie_in_their_intervals(method, epsilon):
    """Where the answers are bad and where they are good."""
    records, draws = people(np.random.default_rng(6), 400, 6), Seeded(2)
    made = AnyOfSets(binary(6), epsilon, 3, method, 20)
    truth = truth_of(made, records)
    right = 0
    for _ in range(60):
        rows = made.run(records, draws).rows
        right += all(row.low <= one <= row.high for row, one in zip(rows, truth, strict=True))
    assert right >= 53


def test_a_decomposition_without_noise_is_near_for_a_small_cut():
    records = people(np.random.default_rng(8), 3000, 6)
    errors = []
    for cut in (Fraction(3, 10), Fraction(1, 100)):
        made = AnyOfSets(binary(6), ONE, 6, "decomposition", 63, cut)
        outcome = made.run(records, Silent())
        gaps = [abs(row.count - one) for row, one in zip(outcome.rows, truth_of(made, records), strict=True)]
        errors.append(float(np.mean(gaps)) / 3000)
    assert errors[1] < 0.02 < errors[0]
    assert "0.00056" in outcome.note


def test_thresholds_without_noise_are_right_up_to_a_few_levels():
    records = people(np.random.default_rng(8), 3000, 6)
    made = AnyOfSets(binary(6), ONE, 6, "thresholds", 60)
    outcome = made.run(records, Silent())
    gaps = [abs(row.count - one) for row, one in zip(outcome.rows, truth_of(made, records), strict=True)]
    assert np.mean(gaps) / 3000 < 0.06
    assert f"{round(4410 * math.log(63) / 0.01):,} sets" in outcome.note


def test_a_decomposition_never_fails_however_few_queries_there_are():
    for seed in range(20):
        made = AnyOfSets(binary(6), Fraction(1, 100), 3, "decomposition", 2, Fraction(1, 1000))
        assert len(made.run([5] * 10, Seeded(seed)).rows) == 41


def test_the_sets_that_are_asked_do_not_depend_on_the_records():
    made = AnyOfSets(FOUR, ONE, 2, "thresholds", 6)
    drawn = [made._drawn(6, Seeded(3)) for _ in range(2)]
    assert drawn[0] == drawn[1]
    assert len(set(drawn[0])) == 6
    assert set(drawn[0]) <= set(made.sets)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"record": Record((Field("n", Integers(0, 3)),))}, "two values"),
        ({"record": binary(13)}, "up to 12 fields"),
        ({"width": 0}, "--k"),
        ({"width": 5}, "--k"),
        ({"method": "guess"}, "--method"),
        ({"method": "thresholds", "asks": 1}, "--rounds"),
        ({"method": "thresholds", "asks": 11}, "--rounds"),
        ({"cut": Fraction(1)}, "--cut"),
    ],
)
def test_what_makes_no_sense_is_refused(changes, said):
    with pytest.raises(InvalidSpec, match=said):
        AnyOfSets(**({"record": FOUR, "epsilon": ONE, "width": 2} | changes))


# -- wishes and the shell


def test_from_a_wish():
    asks = {"epsilon": ONE, "record": FOUR, "k": 3}
    made = workload_mechanism(WorkloadWish("any-of", "laplace", **asks))
    assert (made.method, made.queries, made.cut) == ("counts", 14, Fraction(1, 20))
    made = workload_mechanism(
        WorkloadWish("any-of", "laplace", **asks, method="decomposition", rounds=9, cut=Fraction(1, 4))
    )
    assert (made.method, made.queries, made.cut) == ("decomposition", 9, Fraction(1, 4))
    assert made.parameters()["cut"] == "1/4"
    assert [field["name"] for field in made.parameters()["fields"]] == ["f0", "f1", "f2", "f3"]
    with pytest.raises(InvalidSpec, match="--rounds"):
        workload_mechanism(WorkloadWish("any-of", "laplace", **asks, method="thresholds"))
    with pytest.raises(InvalidSpec, match="--k"):
        workload_mechanism(WorkloadWish("any-of", "laplace", epsilon=ONE, record=FOUR))


def test_a_release_from_the_shell(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("LDP_CURATOR_HOME", "home")
    rows = "".join(f"{k},{'yes' if k % 2 else 'no'},{'yes' if k % 3 else ''}\n" for k in range(600))
    (tmp_path / "people.csv").write_text(f"id,a,b\n{rows}")

    def call(*arguments):
        return run_here(monkeypatch, capsys, "curator", *arguments)

    assert call("create", "panel", "--epsilon", "90")[0] == 0
    asks = ("release", "any-of", "--data-set", "panel", "--data", "people.csv", "--person", "id", "--epsilon", "40")
    code, out, err = call(*asks, "--field", "a: yes", "--field", "b: yes", "--k", "2", "--json")
    assert (code, err) == (0, "")
    content = json.loads(json.loads(out)["release"])
    assert {row["item"]["text"]: row["count"] for row in content["rows"]} == pytest.approx(
        {"a": 300, "b": 400, "a or b": 500}, abs=4
    )
    code, out, err = call(*asks, "--field", "a: yes", "--k", "1", "--method", "thresholds", "--rounds", "9")
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert "--rounds: how many sets are asked" in err


def test_the_exact_samplers_draw_the_noise():
    made = AnyOfSets(FOUR, Fraction(30), 2)
    rows = made.run(RECORDS, ExactDraws()).rows
    assert [row.count for row in rows] == pytest.approx(truth_of(made, RECORDS), abs=10)
