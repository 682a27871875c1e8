"""What is said of copies: how errors and intervals grow, in which words, and the worst of several sets."""

from __future__ import annotations

import math
from types import SimpleNamespace

import numpy as np
import pytest
from scipy import stats

from ldp_server.answers.over_time import copies
from ldp_server.answers.over_time.copies import accepted_set, worst_of
from ldp_server.oracles.independence.chances import Chance
from ldp_server.oracles.independence.result import INDEPENDENT, MOST, Independence, NotIndependent

FOUR = Independence(widened=4.0)


def test_nothing_grows_where_nothing_was_seen():
    values = np.array([1.0, 2.0])
    assert INDEPENDENT.error(3.0) == 3.0
    assert INDEPENDENT.errors(values) is values
    assert INDEPENDENT.tail(0.025) == 0.025 and INDEPENDENT.confidence(0.95) == 0.95
    low, high = np.array([-5.0]), np.array([500.0])
    assert INDEPENDENT.stretched(values[:1], low, high, 9.0) == (low, high)
    assert (INDEPENDENT.z, INDEPENDENT.variance_factor, INDEPENDENT.cut, INDEPENDENT.warnings) == (0.0, 1.0, 0, ())


def test_errors_grow_with_the_root_of_the_factor():
    assert FOUR.error(3.0) == 6.0
    assert FOUR.errors(np.array([1.0, 2.5])).tolist() == [2.0, 5.0]
    assert FOUR.tail(0.025) == pytest.approx(stats.norm.sf(2 * stats.norm.isf(0.025)))
    assert FOUR.confidence(0.95) == pytest.approx(1 - 2 * stats.norm.sf(2 * stats.norm.isf(0.025)))
    assert FOUR.confidence(0.9999999999) == 1 - 1e-12
    assert Independence(widened=1e6).tail(1e-9) == pytest.approx(0, abs=1e-290)
    assert Independence(widened=1e6).tail(1e-9) > 0


def test_intervals_are_stretched_around_the_estimate_and_cut_at_what_is_possible():
    estimates = np.array([50.0, 10.0, 95.0])
    low, high = FOUR.stretched(estimates, np.array([45.0, 2.0, 90.0]), np.array([60.0, 11.0, 99.0]), 100.0)
    assert low.tolist() == [40.0, 0.0, 85.0]
    assert high.tolist() == [70.0, 12.0, 100.0]


def test_the_line_below_a_table():
    assert INDEPENDENT.line.startswith("copies of reports cannot be seen here: too few different draws")
    seen = Independence(1.25, 1.0125, 1.0, 0.01234)
    wanted = "copies of reports are noticed from 1.23% of all reports on; z = 1.2, variance factor 1.012"
    assert seen.line == wanted
    assert MOST == 2.0


# -- limits of counts


def chance(counts, **more):
    return Chance(np.array(counts), **({"trials": 1000, "most": 0.3, "least": 0.1} | more))


def test_limits_share_the_failure_probability_among_all_tails():
    low, high = chance([1, 2, 3, 4]).limits(0.01)
    each = 0.01 / 8
    assert stats.binom.sf(high, 1000, 0.3) <= each < stats.binom.sf(high - 1, 1000, 0.3)
    assert stats.binom.cdf(low - 1, 1000, 0.1) <= each < stats.binom.cdf(low, 1000, 0.1)
    assert chance([1, 2, 3, 4], of=5).limits(0.05) == (low, high)
    assert chance([1] * 8).limits(0.02) == (low, high)
    assert chance([1, 2, 3, 4], least=0.0).limits(0.01) == (0, high)
    assert chance([1, 2, 3, 4], least=-0.1).limits(0.01) == (0, high)


def test_a_count_beyond_its_limit_is_broken():
    low, high = chance([0, 0]).limits(1e-6)
    assert 40 < low < 100 < 300 < high < 400
    assert not chance([low, high]).broken(1e-6)
    assert chance([low - 1, high]).broken(1e-6)
    assert chance([low, high + 1]).broken(1e-6)
    assert not chance([]).broken(1e-6)
    assert not chance([1000], trials=0).broken(1e-6)
    assert (chance([]).place, chance([]).of) == (None, 1)


# -- several sets


def warned(*texts, **more):
    return Independence(**({"warnings": texts} | more))


def test_the_worst_of_several_sets():
    found = worst_of(
        [
            ("Monday", Independence(1.0, 1.5, 1.2, 0.02, 3)),
            ("Tuesday", Independence(-4.0, 1.1, 1.9, 0.05, 4, ("some are copies.",))),
        ]
    )
    assert found == Independence(1.0, 1.5, 1.9, 0.05, 7, ("Tuesday: some are copies.",))
    assert worst_of([]) is INDEPENDENT
    assert worst_of([("a", Independence(visible_from=0.5)), ("b", INDEPENDENT)]).visible_from is None
    assert worst_of([("a", INDEPENDENT)]) == INDEPENDENT


@pytest.mark.parametrize("count", [4, 5, 6, 2000])
def test_at_most_five_sets_are_named(count):
    sets = [(f"day {place}", warned("one.", "two.") if place % 2 else INDEPENDENT) for place in range(2 * count)]
    warnings = worst_of(sets).warnings
    named = [
        text for place in range(min(count, 5)) for text in (f"day {2 * place + 1}: one.", f"day {2 * place + 1}: two.")
    ]
    assert list(warnings[: len(named)]) == named
    more = count - 5
    last = [f"{more:,} more periods have such warnings: ask about each of them."] if more > 0 else []
    assert list(warnings[len(named) :]) == last


def test_a_refusal_names_its_set(monkeypatch):
    def refusing(_):
        raise NotIndependent("too many copies")

    oracle = SimpleNamespace()
    monkeypatch.setattr(copies, "accepted", lambda one: (one, INDEPENDENT))
    assert accepted_set(oracle, "Monday") == (oracle, INDEPENDENT)
    monkeypatch.setattr(copies, "accepted", refusing)
    with pytest.raises(NotIndependent, match=r"^Monday: too many copies$"):
        accepted_set(oracle, "Monday")


def test_a_factor_that_is_no_square_is_exact():
    assert Independence(widened=2.0).error(1.0) == math.sqrt(2)
