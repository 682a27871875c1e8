"""Frequencies, plans, poisoning, a year of reports, comparison: right where theory says what is right."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from ldp_client.errors import InvalidSpec
from ldp_client.mechanisms.hashtogram import Hashtogram
from ldp_client.mechanisms.linear_hash import LinearHash
from ldp_client.mechanisms.randomized_response import RandomizedResponse
from ldp_client.mechanisms.subset_selection import SubsetSelection
from ldp_client.protocol.domain import Integers
from ldp_client.protocol.epsilon import Epsilon
from simulator import crowd
from simulator.attacks.observer import supports
from simulator.experiments import frequencies, longitudinal, plan, poison
from simulator.experiments.longitudinal import Year
from simulator.experiments.options import SimulationOptions
from simulator.experiments.poison import Attacks
from simulator.shapes import FrequenciesRun, LongitudinalRow, PlanRow, PoisonRow

BASE = SimulationOptions(40_000, domain="512", runs=8)


def test_frequencies_are_as_good_as_promised():
    """8 runs x 512 elements: the mean square error has a relative standard deviation of about 2%."""
    found = frequencies.run(BASE)
    shape = found.shape
    assert set(shape) == set(FrequenciesRun.__annotations__)
    assert shape["mse_over_optimum"] == pytest.approx(1.02, abs=0.09)
    assert shape["norm_sub_mse_over_optimum"] < 0.3
    assert shape["coverage"] == pytest.approx(0.95, abs=0.02)
    assert shape["domain"] == 512
    assert shape["report_bits"] >= 10
    assert set(shape["seconds"]) == {"randomize", "aggregate", "estimate"}
    assert len(found.errors) == 8


def test_a_wrong_oracle_would_show(monkeypatch):
    """Estimates half as large again are seen in the error and in the coverage."""
    right = frequencies.measure

    def wrong(oracle, raw, *others, **more):
        return right(oracle, raw * 1.5, *others, **more)

    monkeypatch.setattr(frequencies, "measure", wrong)
    shape = frequencies.run(BASE).shape
    assert shape["mse_over_optimum"] > 1.8
    assert shape["coverage"] < 0.93


def test_one_bit_is_worse_by_what_theory_says():
    options = replace(BASE, epsilon="4", mechanism="linear-hash", parameters=(("q", 2), ("t", 9)))
    e = math.exp(4)
    assert frequencies.run(options).shape["mse_over_optimum"] == pytest.approx((e + 1) ** 2 / (4 * e), rel=0.1)


@pytest.mark.long
def test_subset_selection_in_a_small_domain():
    """Where the chooser takes it, and where it is asked for."""
    auto = frequencies.run(replace(BASE, domain="70"))  # 4^3 elements would have linear hash
    assert auto.shape["mechanism"] == "subset-selection"
    for shape in (auto.shape, frequencies.run(replace(BASE, domain="20", mechanism="subset-selection")).shape):
        assert shape["mse_over_optimum"] == pytest.approx(0.98, abs=0.2)
        assert shape["coverage"] > 0.9


@pytest.mark.long
def test_a_domain_too_large_to_list_is_probed():
    options = replace(BASE, domain="4294967296", population="mixture:0.8*zipf:1.1:2000+0.2*singletons", runs=3)
    found = frequencies.run(options)
    assert found.shape["mechanism"] == "hashtogram"
    assert found.shape["norm_sub_mse_over_optimum"] is None
    assert found.shape["mse_over_optimum"] == pytest.approx(1.05, abs=0.15)
    assert found.top[0]["truth"] > 2000


def test_words_of_a_vocabulary_are_shown_as_words():
    found = frequencies.run(SimulationOptions(20_000, population="vocabulary"))
    assert found.top[0]["item"] == {"text": "the"}
    assert found.shape["domain"] == 12_763


@pytest.mark.parametrize(
    "changes",
    [
        {"users": 0},
        {"runs": 0},
        {"epsilon": "0"},
        {"mechanism": "nonsense"},
        {"mechanism": "hashtogram"},
        {"mechanism": "linear-hash", "parameters": (("q", 6), ("t", 5))},
        {"mechanism": "linear-hash", "parameters": (("x", 4),)},
        {"parameters": (("q", 2),)},
        {"domain": "16"},
        {"domain": None, "population": "singletons"},
    ],
)
def test_impossible_wishes_are_refused(changes):
    with pytest.raises(InvalidSpec) as caught:
        frequencies.run(replace(BASE, **{"population": "zipf:1.1:400", **changes}))
    assert "\n" not in str(caught.value)


def test_plans_are_kept():
    table = plan.rows(BASE, 0.02)
    assert set(table[0]) <= set(PlanRow.__annotations__)
    assert plan.verify(table, BASE)
    assert all(row["measured_error"] == pytest.approx(row["standard_error"], rel=0.1) for row in table)


@pytest.mark.parametrize("frequency", [0, -0.1, 1.1])
def test_a_frequency_that_is_no_share_is_refused_by_its_name(frequency):
    with pytest.raises(InvalidSpec, match=r"^--frequency is a share of the users"):
        plan.rows(BASE, frequency)
    with pytest.raises(InvalidSpec, match=r"^--frequency is a share of the users"):
        plan.sketch_rows(BASE, Integers(0, 2**64 - 1), frequency)


def test_a_broken_promise_is_seen():
    table = plan.rows(BASE)
    table[0]["standard_error"] /= 1.3
    table[0]["variance_over_optimum"] /= 1.69
    assert not plan.verify(table[:1], BASE)


@pytest.mark.long
def test_users_needed_are_enough_and_not_too_many(request):
    """With so many users, an item of that share is told apart from nothing 95% of the time (within 3.3 sd)."""
    runs = 400 if request.config.getoption("--slow") else 60
    options = SimulationOptions(20_000, domain="64")
    needed = plan.rows(options, 0.05)[0]["users_needed"]
    row = plan.rows(replace(options, users=needed), 0.05)[0]
    assert row["smallest_share"] == pytest.approx(0.05, rel=0.02)
    setting = frequencies.prepare(replace(options, users=needed, population="planted:0.05+uniform"))
    z = plan._reach(64) - plan._POWER
    seen = 0
    for run in range(runs):
        job = frequencies.Job(frequencies.build(setting, "1", run), setting.population, setting.naming, needed, run)
        counted = frequencies.count(job)
        raw = counted.oracle.estimate(np.array([1], np.uint64))
        seen += raw[0] - z * np.sqrt(counted.oracle.variance(raw))[0] > 0
    assert abs(seen / runs - 0.95) < 3.3 * math.sqrt(0.95 * 0.05 / runs)


def test_poison_moves_estimates_by_what_theory_says():
    rows = poison.run(BASE, Attacks(fractions=(0.02,)))
    assert set(rows[0]) == set(PoisonRow.__annotations__)
    assert {row["mechanism"] for row in rows} == {"randomized-response", "linear-hash"}
    for row in rows:
        slack = 0.01 if row["attack"] != "claim" else 5 * row["standard_error"] * math.sqrt(0.02) / abs(row["expected"])
        assert row["damage"] == pytest.approx(row["expected"], rel=max(0.01, slack))


@pytest.mark.parametrize("mechanism", ["randomized-response", "subset-selection", "linear-hash"])
def test_poison_in_a_small_domain(mechanism):
    """Every report of `promote` and none of `hide` supports the item: there is hardly any spread."""
    options = SimulationOptions(20_000, domain="32")
    for row in poison.run(options, Attacks((mechanism,), ("promote", "hide"), (0.1,))):
        assert row["damage"] == pytest.approx(row["expected"], rel=0.01)


@pytest.mark.long
def test_a_year_of_the_mechanism_that_suits_a_small_domain_best():
    """The default of the command: 32 elements, epsilon 1, the chooser's mechanism, whichever that is."""
    rows = longitudinal.run(Year(SimulationOptions(2000, domain="32"), days=60, every=59))
    assert rows[-1]["guessed_fresh"] > 0.9 > 0.3 > rows[0]["guessed_fresh"]


def test_poison_in_a_hashed_domain():
    options = SimulationOptions(20_000, domain="4294967296", population="zipf:1.1:100")
    (row,) = poison.run(options, Attacks(("hashtogram",), ("promote",), (0.05,)))
    assert row["damage"] == pytest.approx(row["expected"], rel=0.03)


@pytest.mark.parametrize("options", [{"fractions": (0.0,)}, {"fractions": (1.0,)}, {"target": 1000}, {"kinds": ("x",)}])
def test_impossible_attacks_are_refused(options):
    with pytest.raises(InvalidSpec):
        poison.run(BASE, Attacks(**options))


@pytest.mark.parametrize(
    "randomizer",
    [
        RandomizedResponse(Epsilon("1"), 9),
        LinearHash(Epsilon("1"), 27, 3, 3),
        LinearHash(Epsilon("1"), 32, 2, 5),
        Hashtogram(Epsilon("1"), 100, bytes(32), 3, 3, 3),
        SubsetSelection(Epsilon("1"), 9, 3),
    ],
    ids=lambda r: f"{r.name}-{dict(r.parameters())}",
)
def test_supports_are_what_the_exact_law_favours(randomizer):
    """A report supports exactly the items under which it is most likely."""
    held = np.arange(9, dtype=np.uint64)
    reports = crowd.randomize(randomizer, held, crowd.draw_words(1, 0, 9, randomizer.words))
    found = supports(randomizer, reports, held)
    for i, report in enumerate(reports):
        law = [randomizer.probability(int(index), int(report)) for index in held]
        if min(law) < max(law):
            # Sets of one kind differ by the remainders of their ranks, by a part of 2^-64.
            np.testing.assert_array_equal(found[i], [p > max(law) * Fraction(999, 1000) for p in law])


@pytest.mark.long
def test_a_year_of_daily_reports():
    """The reference value: 365 reports at epsilon = 1 and delta = 1e-6 cost 244.6 exactly."""
    rows = longitudinal.run(Year(SimulationOptions(3000, domain="16"), every=73))
    assert set(rows[0]) == set(LongitudinalRow.__annotations__)
    last = rows[-1]
    assert [row["day"] for row in rows] == [1, 73, 146, 219, 292, 365]
    assert last["spent_basic"] == 365
    assert last["spent_best"] == pytest.approx(244.6, abs=0.1)
    assert last["spent_first_answer"] == 1
    assert last["guessed_fresh"] > 0.99
    assert last["guessed_first_answer"] == rows[0]["guessed_fresh"] < 0.4
    assert last["rmse_first_answer"] > 2 * rows[0]["rmse_first_answer"]
    assert last["rmse_fresh"] == pytest.approx(rows[0]["rmse_fresh"], rel=0.9)


def test_without_drift_the_first_answer_is_never_stale():
    rows = longitudinal.run(Year(SimulationOptions(3000, domain="16"), days=50, drift=0.0, every=49))
    assert rows[-1]["rmse_first_answer"] == pytest.approx(rows[0]["rmse_first_answer"])


@pytest.mark.parametrize("year", [Year(BASE, days=0), Year(BASE, drift=2), Year(replace(BASE, domain="65536"))])
def test_impossible_years_are_refused(year):
    with pytest.raises(InvalidSpec):
        longitudinal.run(year)


@pytest.mark.parametrize("mechanism", ["expander-sketch", "prefix-tree"])
@pytest.mark.thinned(1)
def test_poison_in_a_sketch(mechanism):
    """In a tree only the last level's users count, scaled up: the same on average, with more spread (sd 3.5% here)."""
    options = SimulationOptions(20_000, domain="strings:4", population="zipf:1.1:100")
    (row,) = poison.run(options, Attacks((mechanism,), ("promote",), (0.2,)))
    assert row["damage"] == pytest.approx(row["expected"], rel=0.01 if mechanism == "expander-sketch" else 0.15)
