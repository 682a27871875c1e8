"""Which periods are asked for, and what is said of differences: every bound, sign and word, by hand."""

from __future__ import annotations

import math
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta, timezone

import numpy as np
import pytest

from ldp_client.collection import Collection, Schedule
from ldp_client.errors import InvalidSpec, WrongType
from ldp_client.protocol.domain import Categories
from ldp_server.answers.estimates import Coverage, given_items
from ldp_server.answers.over_time.change import always_valid, change, log_ratio
from ldp_server.answers.over_time.compare import Direction, compare
from ldp_server.answers.over_time.crowds import Averaged, Scored, Supported
from ldp_server.answers.over_time.periods import PeriodSpan, asked_periods, period_dates, span_of
from ldp_server.answers.over_time.trend import TrendQuestion
from ldp_server.oracles import oracle_for
from ldp_server.oracles.base import TooFewReports
from ldp_server.oracles.laws.support import SupportLaw
from ldp_server.planning.expected import expected_oracle

DAY = 86_400
WEEK = Schedule(7 * DAY, 52)
WINDOW = {"opens": 100 * DAY, "closes": 200 * DAY}
DRINKS = Collection.create("?", Categories(("tea", "milk", "gin")), "randomized-response", "2", **WINDOW, schedule=WEEK)


def numbers(asked):
    return asked.first, asked.last, asked.moments


# -- periods


@pytest.mark.parametrize(
    ("asked", "wanted"),
    [
        (7, (7, 7, False)), (0, (0, 0, False)), ((3, 9), (3, 9, False)), ((4, 4), (4, 4, False)),
        ((1 << 40) - 1, ((1 << 40) - 1, (1 << 40) - 1, False)),
        (date(1970, 1, 2), (DAY, 2 * DAY - 1, True)), ((date(1970, 1, 2), date(1970, 1, 4)), (DAY, 4 * DAY - 1, True)),
        (datetime(1970, 1, 2, 1, tzinfo=UTC), (DAY + 3600, DAY + 3600, True)),
        (datetime(1970, 1, 2, 1), (DAY + 3600, DAY + 3600, True)),
        (datetime(1970, 1, 2, 1, tzinfo=timezone(timedelta(hours=1))), (DAY, DAY, True)),
        ((datetime(1970, 1, 1, 0, 0, 5, tzinfo=UTC), date(1970, 1, 1)), (5, DAY - 1, True)),
        (date(1970, 1, 1), (0, DAY - 1, True)),
    ],
)  # fmt: skip
def test_what_a_request_says(asked, wanted):
    """A date stands for the whole day, a moment without a zone is UTC."""
    assert numbers(asked_periods(asked)) == wanted
    assert asked_periods(None) is None


@pytest.mark.parametrize(
    ("asked", "kind", "text"),
    [
        (-1, InvalidSpec, "a period is a number from 0 on"), (1 << 40, InvalidSpec, "a period is a number from 0 on"),
        ((3, 2), InvalidSpec, "the first period of a span lies after its last one"),
        ((date(1970, 1, 3), date(1970, 1, 2)), InvalidSpec, "the first period of a span lies after its last one"),
        ((3, date(1970, 1, 2)), InvalidSpec, "give both ends of a span of periods as numbers, or both as dates"),
        (date(1969, 12, 31), InvalidSpec, "periods are counted from 1970: this date is before it"),
        (datetime(1969, 12, 31, 23, 59, 59, tzinfo=UTC), InvalidSpec, "this date is before it"),
        ("1970-01-02", WrongType, "give a number, a date, or a pair of them, not str"),
        (True, WrongType, "not bool"), (1.0, WrongType, "not float"), ((1, 2, 3), WrongType, "not tuple"),
    ],
)  # fmt: skip
def test_what_no_request_says(asked, kind, text):
    with pytest.raises(kind, match=text):
        asked_periods(asked)


def test_a_span_has_its_dates():
    one, three = PeriodSpan.of(WEEK, 15, 15), PeriodSpan.of(WEEK, 15, 17)
    assert (one.begins, one.ends, three.ends) == (105 * DAY, 112 * DAY, 126 * DAY)
    assert str(one) == "period 15 (1970-04-16 to 1970-04-23 UTC)"
    assert str(three) == "periods 15 to 17 (1970-04-16 to 1970-05-07 UTC)"
    assert period_dates(0, 3600) == "1970-01-01 to 1970-01-01 01:00 UTC"
    assert period_dates(DAY, 1 << 60) == f"1970-01-02 to {1 << 60} s UTC"


@pytest.mark.parametrize(
    ("asked", "wanted"),
    [
        (14, (14, 14)), (28, (28, 28)), ((13, 14), (13, 14)), ((28, 99), (28, 99)), (0, (0, 0)),
        (date(1970, 4, 16), (15, 15)), ((date(1970, 4, 15), date(1970, 4, 23)), (14, 16)),
    ],
)  # fmt: skip
def test_the_periods_of_a_collection(asked, wanted):
    assert DRINKS.periods == (14, 28)
    found = span_of(DRINKS, asked_periods(asked))
    assert (found.first, found.last) == wanted
    assert (found.begins, found.ends) == (7 * DAY * wanted[0], 7 * DAY * (wanted[1] + 1))


@pytest.mark.parametrize("asked", [13, 29, (2, 13), (29, 30), date(1970, 4, 8)])
def test_periods_outside_of_the_window(asked):
    with pytest.raises(InvalidSpec, match=r"is not of this question: its window has periods 14 to 28 \(1970-04-09 to"):
        span_of(DRINKS, asked_periods(asked))


def test_a_question_without_a_schedule_has_no_periods():
    once = Collection.create("?", DRINKS.domain, "randomized-response", "2", **WINDOW)
    with pytest.raises(InvalidSpec, match="no schedule, so its reports have no periods: ask without a period"):
        span_of(once, asked_periods(3))


# -- differences


@pytest.mark.parametrize(
    ("low", "high", "wanted"),
    [
        (0.1, 0.2, "rose"),
        (-0.2, -0.1, "fell"),
        (0.0, 0.1, "cannot tell"),
        (-0.1, 0.0, "cannot tell"),
        (-1, 1, "cannot tell"),
    ],
)
def test_a_direction_is_said_where_0_is_excluded(low, high, wanted):
    assert Direction.of(low, high).value == wanted


def side(users, *shares):
    return DRINKS, expected_oracle(DRINKS, np.array(shares), users)


ASKED = TrendQuestion(items=("tea", "milk"))


@pytest.mark.parametrize(("coverage", "parts"), [(Coverage.EACH, 1), (Coverage.TOGETHER, 2)])
def test_a_difference_is_that_of_two_shares(coverage, parts):
    """Each side has half of what may go wrong; crowds of two sizes are compared as shares."""
    before, after = side(4000, 0.1, 0.5, 0.3, 0.1), side(1000, 0.1, 0.3, 0.3, 0.3)
    found = compare(before, after, ASKED, coverage=coverage)
    assert (found.first_reports, found.second_reports, found.unit, found.coverage) == (4000, 1000, "share", coverage)
    each = 1 - 0.05 / parts / 2
    rows = [given_items(*one, ["tea", "milk"], confidence=each).rows for one in (before, after)]
    for place, row in enumerate(found.rows):
        one, two = rows[0][place], rows[1][place]
        assert row.label == ("tea", "milk")[place]
        assert (row.first, row.second) == pytest.approx((one.estimate / 4000, two.estimate / 1000))
        assert row.difference == pytest.approx(row.second - row.first)
        assert (row.low, row.high) == pytest.approx(
            (two.low / 1000 - one.high / 4000, two.high / 1000 - one.low / 4000)
        )
        assert row.standard_error == pytest.approx(math.hypot(one.standard_error / 4000, two.standard_error / 1000))
    assert found.rows[0].difference == pytest.approx(-0.2, abs=1e-9) and found.rows[0].direction is Direction.FELL
    assert found.rows[1].difference == pytest.approx(0.0, abs=1e-9)
    assert found.rows[1].direction is Direction.CANNOT_TELL
    back = compare(after, before, ASKED, coverage=coverage)
    assert back.rows[0].direction is Direction.ROSE
    assert (back.rows[0].low, back.rows[0].high) == pytest.approx((-found.rows[0].high, -found.rows[0].low))


def test_what_is_not_compared():
    full, empty = side(100, 0.25, 0.25, 0.25, 0.25), (DRINKS, oracle_for(DRINKS))
    with pytest.raises(InvalidSpec, match="quantiles are not compared: compare ranges, or look at a trend"):
        compare(full, full, TrendQuestion(quantiles=(0.5,)))
    for one, other in ((full, empty), (empty, full)):
        with pytest.raises(TooFewReports, match="one of the two has no reports yet"):
            compare(one, other, ASKED)


# -- crowds


def test_crowds_add_up():
    law = SupportLaw(0, 0.75, 0.25)
    one = Supported(law, 10, 5.0, (4.0, 1.0), lambda n, s, alpha: (s / n - alpha, s / n + alpha))
    two = one.with_more(replace(one, reports=7, counted=7.0, supports=(2.0, 3.0)))
    assert (two.reports, two.counted, two.supports) == (17, 12.0, (6.0, 4.0))
    assert two.share(0) == pytest.approx((6 / 12 - 0.25) / 0.5)
    assert two.interval(1, 0.05) == pytest.approx(((4 / 12 - 0.05 - 0.25) / 0.5, (4 / 12 + 0.05 - 0.25) / 0.5))
    assert two.interval(1, 0.9) == (0.0, 1.0)


class Sum:
    """A sum of scores, or a cell, that remembers what it was asked."""

    def __init__(self, total):
        self.total, self.mean = total, total / 10

    def with_more(self, other):
        return Sum(self.total + other.total)

    def share_ends(self, tail):
        return self.total - tail, self.total + tail

    def averages(self, tail, *, drawn):
        assert drawn
        return self.mean - tail, self.mean + tail


def test_crowds_of_scores_and_averages():
    scored = Scored(8, (2.0, 6.0), (Sum(1), Sum(2))).with_more(Scored(12, (3.0, 1.0), (Sum(5), Sum(7))))
    assert (scored.reports, scored.estimates) == (20, (5.0, 7.0))
    assert (scored.share(1), scored.interval(1, 0.5)) == (0.35, (8.75, 9.25))
    averaged = Averaged(8, (Sum(1),), -5, 20).with_more(Averaged(2, (Sum(2),), -5, 20))
    assert averaged.reports == 10
    assert averaged.share(0) == pytest.approx(-5 + 20 * 0.3)
    assert averaged.interval(0, 0.2) == pytest.approx((-5 + 20 * 0.2, -5 + 20 * 0.4))


# -- changes


@pytest.mark.parametrize(("n", "s"), [(1, 0), (1, 1), (7, 3), (40, 40)])
@pytest.mark.parametrize("q", [0.1, 0.5, 0.9])
def test_the_averaged_likelihood(n, s, q):
    """The mean over all chances, as a sum over a fine grid, over the likelihood of one."""
    grid = (np.arange(200_000) + 0.5) / 200_000
    averaged = float(np.mean(grid**s * (1 - grid) ** (n - s)))
    assert log_ratio(n, s, q) == pytest.approx(math.log(averaged / (q**s * (1 - q) ** (n - s))), rel=1e-4, abs=1e-6)


@pytest.mark.parametrize("alpha", [0.05, 1e-6])
def test_always_valid_intervals_end_where_the_ratio_does(alpha):
    for n, s in ((10, 0), (10, 4), (10, 10), (500, 77)):
        low, high = always_valid(n, s, alpha)
        assert 0 <= low <= s / n <= high <= 1
        assert low == 0.0 if s == 0 else log_ratio(n, s, low) == pytest.approx(-math.log(alpha), rel=1e-6)
        assert high == 1.0 if s == n else log_ratio(n, s, high) == pytest.approx(-math.log(alpha), rel=1e-6)
    assert always_valid(0, 0, alpha) == (0.0, 1.0)


def test_each_look_spends_its_part():
    """Look t has alpha/(t (t+1)), half of it for each side, and all earlier periods count together."""
    shares = [(0.1, 0.3, 0.3, 0.3)] * 3 + [(0.1, 0.7, 0.1, 0.1)]
    periods = [((20 + k, k * DAY, (k + 1) * DAY), side(2000, *one)[1]) for k, one in enumerate(shares)]
    found = change(DRINKS, periods, ASKED, confidence=0.9)
    tea, milk = found.lines
    assert (tea.label, tea.changed, tea.since, milk.since) == ("tea", True, 23, 23)
    assert [look.direction.value for look in tea.looks] == ["cannot tell", "cannot tell", "rose"]
    assert milk.looks[-1].direction is Direction.FELL
    assert [(look.period, look.reports, look.reports_before) for look in tea.looks] == [
        (21, 2000, 2000), (22, 2000, 4000), (23, 2000, 6000),
    ]  # fmt: skip
    assert [look.before for look in tea.looks] == pytest.approx([0.3] * 3, abs=5e-4)  # supports are whole numbers
    law = SupportLaw(2000, float(DRINKS.randomizer.response.p), float(DRINKS.randomizer.response.q))
    gap = law.p - law.s
    for number, look in enumerate(tea.looks, 1):
        spent = 0.1 / 2 / (number * (number + 1)) / 2
        now = always_valid(2000, 2000 * (law.s + look.share * gap), spent)
        then = always_valid(2000 * number, 2000 * number * (law.s + look.before * gap), spent)
        wanted = ((now[0] - then[1]) / gap, (now[1] - then[0]) / gap)
        assert (look.low, look.high) == pytest.approx(wanted, abs=2e-3)
    assert (found.confidence, found.unit) == (0.9, "share")


def test_a_change_needs_two_periods():
    for count in (0, 1):
        periods = [((k, 0, 1), side(100, 0.25, 0.25, 0.25, 0.25)[1]) for k in range(count)]
        with pytest.raises(TooFewReports, match="a change needs reports of two periods: there are fewer"):
            change(DRINKS, periods, ASKED)
    with pytest.raises(InvalidSpec, match="whether something changed is told of items, attributes, cells and areas"):
        change(DRINKS, [], TrendQuestion(quantiles=(0.5,)))
