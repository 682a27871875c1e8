"""The release through a strategy: what a person moves, what is printed is caught, errors, intervals, the shell."""

import functools
import itertools
import json
import math
from fractions import Fraction

import numpy as np
import pytest

from benchmarks.curator.outcomes import largest_loss, law_of
from benchmarks.curator.queries.audits import moved
from benchmarks.curator.wrong import AddRemoveLinear
from ldp_client.errors import InvalidSpec
from ldp_client.protocol.domain import Categories, Field, Integers, Record, YesNo
from ldp_server.curator.laws import gaussian_law, laplace_half_width, laplace_law
from ldp_server.curator.noise import ExactDraws
from ldp_server.curator.workloads.kinds import WorkloadWish, workload_mechanism
from ldp_server.curator.workloads.matrix import plans
from ldp_server.curator.workloads.matrix.answers import LinearAnswers
from ldp_server.curator.workloads.matrix.plans import STRATEGIES, Price
from ldp_server.curator.workloads.matrix.queries import LinearQueries, condition, ranges_of, table_queries
from ldp_server.curator.workloads.matrix.widths import gaussian_sum_width, laplace_sum_width
from tests.server.commands import run_here
from tests.server.curator.seeded import Noted

FIELDS = Record((Field("plan", Categories(("free", "paid"))), Field("age", Integers(0, 6)), Field("dark", YesNo(True))))
TEXTS = ("age: 1..3", "age: 2..5; plan: paid", "dark: yes; plan: none, free")
ASKED = LinearQueries(
    FIELDS,
    (*(condition(FIELDS, text) for text in TEXTS), *table_queries(FIELDS, [("dark",)]), *ranges_of(FIELDS, "age")),
)
PURE, RHO = Price(epsilon=Fraction(1)), Price(rho=Fraction(1, 8))
PRICES = pytest.mark.parametrize("price", [PURE, RHO], ids=["laplace", "gaussian"])


@functools.cache
def linear(price, name=None):
    """A mechanism whose plan is made once."""
    return LinearAnswers(ASKED, price, name)


# -- the price


@PRICES
@pytest.mark.parametrize("name", STRATEGIES)
def test_the_realised_loss_is_the_price(price, name):
    """Over all pairs of records, from what the code adds noise to: the loss of independent draws adds up."""
    made = linear(price, name)
    declared = float(price.epsilon or price.rho)
    assert moved(made) == pytest.approx(declared, rel=1e-6)
    assert moved(made) <= declared * (1 + 1e-12)


@PRICES
def test_the_largest_column_alone_is_caught(price):
    """For a histogram the printed sensitivity is half in L1, and half of the square."""
    wrong = AddRemoveLinear(ASKED, price, "identity")
    assert moved(wrong) == pytest.approx(2 * float(price.epsilon or price.rho), rel=1e-6)


def test_the_law_of_the_code_has_that_loss(monkeypatch):
    """All outcomes of all draws, with rows that are not scaled up: a query and its complement, and two queries."""
    monkeypatch.setattr(plans, "_FINE", 1)
    record = Record((Field("a", YesNo(True)), Field("b", YesNo(True))))
    asked = LinearQueries(record, (condition(record, "a: yes"), condition(record, "b: yes")))
    made = LinearAnswers(asked, Price(epsilon=Fraction(9)), "workload")
    laws = [law_of(lambda draws, cell=cell: tuple(made.noisy([cell, 0], draws)), 1e-6) for cell in range(4)]  # type: ignore[misc]
    losses = [largest_loss(one, other) for one, other in itertools.combinations(laws, 2)]
    assert max(losses) == pytest.approx(9, abs=1e-6)
    assert sorted(losses)[0] == pytest.approx(4.5, abs=1e-6)
    assert all(law.lost < 1e-4 for law in laws)


@PRICES
def test_the_rows_are_what_gets_noise_and_nothing_else(price):
    made, seen = linear(price), Noted()
    records = np.random.default_rng(2).integers(0, FIELDS.size, 50).tolist()
    made.run(records, seen)
    assert seen.values == [(made.plan.rows @ ASKED.counts(records)).tolist()]
    assert seen.scales == [made.scale]
    assert made.price.epsilon == price.epsilon
    assert made.price.rho == (price.rho or Fraction(1, 2))


# -- what is promised


@PRICES
@pytest.mark.parametrize("name", STRATEGIES)
def test_without_noise_the_answers_are_the_truth(price, name):
    rng = np.random.default_rng(5)
    records = rng.integers(0, FIELDS.size, 400).tolist()
    truth = (ASKED.matrix @ ASKED.counts(records)).tolist()
    assert [row.count for row in linear(price, name).run(records, Noted()).rows] == truth


def noises(made, runs, rng):
    """The noise of each row of the strategy, for so many runs."""
    shape = (runs, len(made.plan.rows))
    if not made.paid.pure:
        return np.rint(rng.normal(0, made.scale, shape))
    q = math.exp(-1 / made.scale)
    return rng.geometric(1 - q, shape) - rng.geometric(1 - q, shape)


@PRICES
@pytest.mark.parametrize("name", ["identity", "hierarchy", "optimised"])
def test_errors_and_intervals_are_those_that_were_printed(price, name):
    made = linear(price, name)
    off = noises(made, 20_000, np.random.default_rng(7)) @ made.plan.answers.T
    assert np.square(off).mean(axis=0) == pytest.approx(made.plan.variances, rel=0.1)
    inside = (np.abs(off) <= np.array(made.half_widths)).mean(axis=0)
    assert inside.min() >= 0.943
    assert inside.max() <= 0.962  # the widths are not wider than needed


def test_the_exact_sampler_gives_the_printed_error():
    """1,680 draws: their mean square is within 30% but for a probability of 1e-7 (kurtosis 6)."""
    made, silent = linear(PURE, "identity"), Noted()
    rows = [made.noisy([0] * 50, ExactDraws()) for _ in range(60)]
    made.noisy([0] * 50, silent)
    off = np.array(rows) - np.array(silent.values[0])
    assert off.size == 1680
    assert np.square(off).mean() == pytest.approx(2 * made.scale**2, rel=0.35)
    row = made.run([0] * 50, ExactDraws()).rows[0]
    assert row.high - row.low <= 2 * (math.ceil(made.half_widths[0] + 1))


def test_an_interval_stays_between_nobody_and_everybody():
    rows = LinearAnswers(ASKED, Price(epsilon=Fraction(1, 50))).run([0] * 9, ExactDraws()).rows
    assert all(0 <= row.low <= row.high <= 9 for row in rows)


# -- sums of draws


def tail_of_two(scale, w):
    """P(|Y1 + Y2| > w) of two continuous Laplace draws."""
    return math.exp(-w / scale) * (1 + w / (2 * scale))


def test_the_width_of_one_draw_is_its_quantile():
    for scale in (50.0, 8000.0):
        assert laplace_sum_width(np.array([1.0]), scale, 0.05) == pytest.approx(
            scale * math.log(20), rel=0.012, abs=1.1
        )
        assert laplace_sum_width(np.array([1.0]), scale, 0.05) >= laplace_half_width(scale, 0.05)
        assert gaussian_sum_width(np.array([1.0]), scale, 0.05) == pytest.approx(1.96 * scale, rel=1e-3, abs=1.1)


def test_the_width_of_two_draws():
    width = laplace_sum_width(np.array([1.0, -1.0]), 1000.0, 0.05) - 2
    assert tail_of_two(1000.0, width) <= 0.05
    assert tail_of_two(1000.0, width * 0.985) > 0.05


def test_a_small_coefficient_changes_little_and_zeros_nothing():
    one = laplace_sum_width(np.array([1.0]), 100.0, 0.05)
    assert laplace_sum_width(np.array([1.0, 0.0, 1e-12]), 100.0, 0.05) == pytest.approx(one, rel=1e-9)
    both = laplace_sum_width(np.array([1.0, 0.1]), 100.0, 0.05)
    assert one < both < 1.1 * one + 1


@pytest.mark.parametrize("beta", [0.2, 0.05, 0.001])
@pytest.mark.parametrize("parts", [[1.0] * 40, [1.0, 0.7, 0.2, 0.2], [3.0, *[0.4] * 100]])
def test_the_width_of_a_sum_holds_and_is_not_wide(parts, beta):
    """Beside the law of the sum by convolution on a fine grid."""
    parts, step = np.array(parts), 0.05
    grid = np.arange(-(1 << 12), 1 << 12) * step
    wave = np.ones(len(grid), complex)
    for part, times in zip(*np.unique(parts, return_counts=True), strict=True):
        law = np.exp(-np.abs(grid) / part)
        wave *= np.fft.fft(np.fft.ifftshift(law / law.sum())) ** times
    law = np.fft.fftshift(np.fft.ifft(wave).real)
    scale = 3000.0
    width = (laplace_sum_width(parts, scale, beta) - parts.sum()) / scale
    assert law[np.abs(grid) > width + step].sum() <= beta * 1.0001
    assert law[np.abs(grid) > width * 0.97].sum() > beta


@pytest.mark.parametrize("scale", [1.0, 1.5, 4.0])
def test_the_width_of_discrete_draws_holds_where_they_are_coarse(scale):
    """All outcomes of two draws with coefficients 1 and 0.6, for noise hardly wider than a step."""
    ends = range(-60, 61)
    for law, width in (
        (laplace_law, laplace_sum_width(np.array([1.0, 0.6]), scale, 0.05)),
        (gaussian_law, gaussian_sum_width(np.array([1.0, 0.6]), scale, 0.05)),
    ):
        chances = [law(scale, z) for z in ends]
        outside = math.fsum(
            chances[a] * chances[b] for a, x in enumerate(ends) for b, y in enumerate(ends) if abs(x + 0.6 * y) > width
        )
        assert outside <= 0.05


# -- wishes and the shell


def test_what_is_asked_for():
    wish = WorkloadWish("linear", "laplace", epsilon=Fraction(1), record=FIELDS)
    assert len(workload_mechanism(wish).asked.queries) == 3 * 7 + 3 * 2 + 7 * 2  # all pairs of fields
    wish = WorkloadWish(
        "linear", "gaussian", rho=Fraction(1), record=FIELDS, queries=("age: 3", "age:3"), ranges=("age",)
    )
    made = workload_mechanism(wish)
    assert len(made.asked.queries) == 21 + 1  # the same query is asked once
    assert made.parameters()["strategy"] == made.plan.name
    with pytest.raises(InvalidSpec, match="--rho"):
        workload_mechanism(WorkloadWish("linear", "gaussian", epsilon=Fraction(1), record=FIELDS))
    with pytest.raises(InvalidSpec, match="--field"):
        workload_mechanism(WorkloadWish("linear", "laplace", epsilon=Fraction(1)))


@pytest.fixture
def curator(tmp_path, capsys, monkeypatch):
    def call(*arguments):
        monkeypatch.chdir(tmp_path)
        monkeypatch.setenv("LDP_CURATOR_HOME", "home")
        return run_here(monkeypatch, capsys, "curator", *arguments)

    return call


ASKS = ("--field", "age: 0..9", "--field", "dark: yes", "--query", "age: 2..5; dark: yes", "--query", "dark: no")


def test_strategies_and_a_release_from_the_shell(curator, tmp_path):
    code, out, err = curator("strategies", *ASKS, "--rho", "0.5")
    assert (code, err) == (0, "")
    assert "no strategy with Gaussian noise has a smaller error than" in out
    assert "age: 2..5; dark: yes" in out
    code, out, _ = curator("strategies", *ASKS, "--epsilon", "2", "--json")
    told = json.loads(out)
    assert code == 0
    assert told["bound"] is None
    assert next(one["strategy"] for one in told["strategies"]) in STRATEGIES
    assert told["strategies"][0]["error"] <= told["strategies"][1]["error"] * 1.001
    assert told["queries"][1]["item"] == {"text": "dark: no"}
    assert 0 < told["queries"][1]["standard_error"] < told["queries"][1]["half_width"]
    rows = "".join(f"{k},{k % 10},{'yes' if k % 2 else 'no'}\n" for k in range(400))
    (tmp_path / "people.csv").write_text(f"id,age,dark\n{rows}")
    assert curator("create", "panel", "--epsilon", "100")[0] == 0
    asks = ("--data-set", "panel", "--data", "people.csv", "--person", "id", *ASKS)
    code, out, err = curator("release", "linear", *asks, "--epsilon", "20", "--json")
    assert (code, err) == (0, "")
    content = json.loads(json.loads(out)["release"])
    assert [row["count"] for row in content["rows"]] == pytest.approx([80, 200], abs=5)
    assert content["details"]["strategy"] == content["parameters"]["strategy"] == told["strategies"][0]["strategy"]
    assert len(content["details"]["standard_errors"]) == 2
    code, out, err = curator("release", "linear", *asks, "--epsilon", "1", "--strategy", "guess")
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert "--strategy: one of identity" in err


def test_more_queries_than_are_shown(curator):
    code, out, _ = curator("strategies", "--field", "age: 0..12", "--ranges", "age", "--epsilon", "1")
    assert code == 0
    assert "31 more queries: --json has all of them" in out


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--field", "age: 0..9", "--query", "age: 3"), "give the price"),
        (("--query", "age: 3", "--epsilon", "1"), "--field"),
        (("--field", "age: 0..9", "--query", "town: 3", "--epsilon", "1"), "a query names fields"),
        (("--field", "age: 0..9", "--ranges", "town", "--epsilon", "1"), "--ranges"),
    ],
)
def test_bad_input_is_one_line(curator, options, said):
    code, out, err = curator("strategies", *options)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert said in err
