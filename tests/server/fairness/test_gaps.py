"""Gaps between groups: verdicts, refusals, and what one report may tell."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest

from ldp_client.errors import InvalidSpec
from ldp_client.protocol.domain import Categories, Field, Record, YesNo
from ldp_server.answers.estimates import Verdict
from ldp_server.fairness.gaps import gaps_answer
from ldp_server.fairness.leakage import separation
from tests.examples import LISTABLE, label
from tests.server.learning.populations import asked, counted

JOBS = Record((Field("group", Categories(("a", "b", "c"))), Field("hired", YesNo()), Field("job", Categories(("x",)))))


def people(**shares):
    """For each group the users and how many of them have the outcome."""
    return [
        ({"group": group, "hired": told, "job": "x" if group != "c" else None}, count)
        for group, (users, yes) in shares.items()
        for told, count in ((True, yes), (False, users - yes))
    ]


def found(crowd, epsilon="4", **options):
    collection = asked(JOBS, epsilon=epsilon)
    return gaps_answer(collection, counted(collection, crowd, 1), ("group", "hired"), **options)


def test_verdicts():
    alike = people(a=(4000, 2000), b=(4000, 2000), c=(4000, 2000))
    assert found(alike).verdict is Verdict.YES
    assert found(alike, epsilon="0.5").verdict is Verdict.CANNOT_TELL
    apart = found(people(a=(4000, 3000), b=(4000, 1000), c=(4000, 2800)))
    assert apart.verdict is Verdict.NO
    assert [gap.verdict for gap in apart.gaps] == [Verdict.NO, Verdict.YES, Verdict.NO]
    assert [(gap.first, gap.second) for gap in apart.gaps] == [("a", "b"), ("a", "c"), ("b", "c")]
    assert apart.gaps[0].low <= 0.5 <= apart.gaps[0].high
    assert apart.outcome == "hired is yes"


def test_a_group_that_is_not_seen_forbids_a_yes():
    answer = found(people(a=(8000, 4000), b=(8000, 4000), c=(2, 1)))
    assert math.isinf(answer.rows[2].standard_error)
    assert answer.gaps[0].verdict is Verdict.YES
    assert answer.verdict is Verdict.CANNOT_TELL


def test_a_slice_compares_some_users():
    answer = found(people(a=(4000, 3000), b=(4000, 1000), c=(4000, 2000)), where={"job": ["x"]})
    assert answer.where == ("job: x",)
    assert abs(answer.rows[0].users - 4000) < 300
    assert math.isinf(answer.rows[2].standard_error)


def test_bad_questions_about_gaps_say_what_to_do():
    crowd = people(a=(50, 20))
    collection = asked(JOBS)
    oracle = counted(collection, crowd, 1)
    for names, options, message in (
        (("group", "group"), {}, "name two fields"),
        (("group", "hired"), {"tolerance": 1.0}, "a tolerance is a difference of shares"),
        (("job", "hired"), {}, "between 2 to 64 groups: 'job' has 1"),
        (("hired", "group"), {}, "say which values of 'group' count"),
        (("group", "pay"), {}, "has no such field"),
    ):
        with pytest.raises(InvalidSpec, match=message):
            gaps_answer(collection, oracle, names, **options)
    with pytest.raises(InvalidSpec, match="gives no tables of fields"):
        numbers = asked(Categories(("x", "y")))
        gaps_answer(numbers, counted(numbers, [("x", 5)], 1), ("group", "hired"))


SMALL = [made for made in LISTABLE if made.size <= 12 and made.bound <= 400]


@pytest.mark.parametrize("made", SMALL, ids=label)
@pytest.mark.thinned(1)
def test_no_report_separates_two_items_by_more(made):
    """Every report: the distance of any two laws, as fractions."""
    laws = [[made.probability(x, y) for y in range(made.bound)] for x in range(made.size)]
    most = max(sum(abs(a - b) for a, b in zip(p, q, strict=True)) / 2 for p, q in combinations(laws, 2))
    assert most <= Fraction(separation(made)) <= Fraction(math.tanh(float(made.epsilon) / 2)) + Fraction(1, 10**9)


def test_binary_randomized_response_reaches_the_bound():
    for epsilon in ("0.5", "1", "2", "4"):
        made = asked(Categories(("x",)), epsilon=epsilon).randomizer
        table = np.array([[float(made.probability(x, y)) for y in range(2)] for x in range(2)])
        assert np.abs(table[0] - table[1]).sum() / 2 == pytest.approx(separation(made))
        assert separation(made) == pytest.approx(math.tanh(float(epsilon) / 2))
