"""The errors over the number of people, where they cross, and the row that is printed."""

import math
from typing import ClassVar

import numpy as np
import pytest

from ldp_client.errors import InvalidSpec
from ldp_server.curator.prices import CentralPrice
from ldp_server.curator.releases.base import TooFewPeople
from ldp_server.oracles.base import TooFewReports
from simulator.price import measure
from simulator.price.every_release import QUESTIONS
from simulator.price.measure import FEWEST, PriceOptions, crossing, measured, worth_row
from simulator.price.question import PricedQuestion


class _Made:
    """A release of a price alone."""

    price = CentralPrice.pure(1)
    smallest = 100


class _Known(PricedQuestion):
    """A question whose errors are known: 1 / root of the reports, and 1 / root of 25 volunteers each."""

    text, local, remark = "something", "somehow", "a remark"
    releases: ClassVar = {"known": lambda _: _Made()}
    reports_err = staticmethod(lambda people: people**-0.5)
    release_err = staticmethod(lambda people: (25 * people) ** -0.5)
    seen: ClassVar[list] = []

    def people(self, rng):
        return rng.integers(0, 9, self.users)

    def truth(self, people):
        return len(people)

    def reported(self, people, seed):
        self.seen.append(("reports", len(people)))
        return self.reports_err(len(people))

    def central(self, kind, people, draws):
        if len(people) < _Made.smallest:
            raise TooFewPeople("few")
        self.seen.append((kind, len(people)))
        return self.release_err(len(people))

    def columns(self, people):
        raise AssertionError

    def released(self, made, outcome, people):
        raise AssertionError

    def error(self, found, truth):
        assert truth == 64_000, "errors are beside the truth about all users"
        return found


def _kind(**errors):
    return type("_Asked", (_Known,), {name: staticmethod(one) for name, one in errors.items()} | {"seen": []})


@pytest.fixture
def found(monkeypatch):
    def call(asked, users=64_000, runs=1):
        monkeypatch.setattr(measure, "QUESTIONS", (asked,))
        (row,), points = measured(PriceOptions(users, "1", ("known",), runs, 1), lambda _: None)
        return row, points

    return call


def test_a_volunteer_is_worth_as_many_reports_as_err_like_one(found):
    asked = _kind()
    row, points = found(asked)
    assert row["users"] == 64_000
    assert row["reports"] == 64_000**-0.5
    assert row["price"] == pytest.approx(5)
    assert row["volunteers"] == pytest.approx(64_000 / 25, rel=0.06)
    assert row["worth"] == pytest.approx(64_000 / row["volunteers"])
    assert (row["paid"], row["remark"]) == ("epsilon 1", "a remark")
    assert [one["people"] for one in points if one["source"] == "reports"] == [64_000, 16_000, 4000]
    # past the crossing at 2,560, and once more in the middle of the last step
    assert [one["people"] for one in points if one["source"] == "release"] == [64_000, 16_000, 4000, 2000, 1000]
    assert {one["kind"] for one in points} == {"known"}


def test_all_runs_and_repeats_count_as_a_root_mean_square(found):
    values = iter([3.0, 4.0] * 100)
    asked = _kind(reports_err=lambda _: next(values))
    asked.repeats = 2
    row, _ = found(asked)
    assert row["reports"] == pytest.approx(math.sqrt(12.5))
    assert asked.seen.count(("reports", 64_000)) == 2


def test_where_reports_make_no_error_fewer_of_them_are_compared(found):
    row, points = found(_kind(reports_err=lambda n: 0.2 if n <= 1000 else 0.0))
    assert (row["users"], row["reports"]) == (1000, 0.2)
    assert [one["people"] for one in points if one["source"] == "reports"] == [64_000, 16_000, 4000, 1000]
    assert row["release"] == pytest.approx(25_000**-0.5)
    assert row["volunteers"] == 100
    assert "with the 100 people that the release takes it errs less" in row["remark"]


def test_the_fewest_that_are_tried_are_no_limit_of_the_release(found, monkeypatch):
    """What is measured with 16 people is the least that a volunteer is worth."""
    monkeypatch.setattr(_Made, "smallest", 1)
    row, _ = found(_kind(release_err=lambda n: n**-0.5 / 1000))
    assert (row["volunteers"], row["worth"]) == (FEWEST, 64_000 / FEWEST)
    assert row["remark"].endswith("with 16 people, the fewest that are tried, it errs less: a volunteer is worth more")


def test_reports_that_never_err_are_not_compared(found):
    row, points = found(_kind(reports_err=lambda _: 0.0))
    assert (row["volunteers"], row["worth"], row["users"], row["reports"]) == (None, None, 64_000, 0.0)
    assert row["remark"].endswith("so many reports make no error")
    assert min(one["people"] for one in points if one["source"] == "reports") >= FEWEST


def test_a_release_that_errs_more_is_worth_nothing(found):
    row, points = found(_kind(release_err=lambda _: 1.0))
    assert (row["volunteers"], row["worth"]) == (None, None)
    assert row["price"] == pytest.approx(64_000**-0.5)
    assert row["remark"].endswith("the release errs more than the reports")
    assert [one["people"] for one in points if one["source"] == "release"] == [64_000]


def test_too_few_people_for_the_release(found, monkeypatch):
    monkeypatch.setattr(_Made, "smallest", 70_000)
    row, points = found(_kind())
    assert (row["release"], row["price"], row["volunteers"]) == (None, None, None)
    assert row["remark"].endswith("the release needs 70,000 people")
    assert {one["source"] for one in points} == {"reports"}


def test_too_few_reports(found):
    def few(_):
        raise TooFewReports("few")

    row, _ = found(_kind(reports_err=few))
    assert (row["reports"], row["price"], row["worth"]) == (None, None, None)
    assert row["remark"].endswith("too few reports")


def test_the_crossing_lies_on_a_line_over_the_logarithm():
    points = [(1600, 0.1), (400, 0.2), (100, 0.4)]
    assert crossing(points, 0.3) == pytest.approx(200)
    assert crossing(points, 0.2) == pytest.approx(400)
    assert crossing(points, 0.1) == pytest.approx(1600)
    assert crossing(points, 0.5) == 100
    assert crossing(points, 0.05) is None
    assert crossing([], 0.5) is None


def test_a_remark_of_one_kind_is_not_that_of_another():
    class Two(_Known):
        remark = "known: it is far"
        releases: ClassVar = {"known": lambda _: _Made(), "other": lambda _: _Made()}

    options = PriceOptions(64_000, "1", ("known", "other"), 1, 1)
    points = [(64_000, 0.1)], [(64_000, 0.05), (16_000, 0.2)]
    assert worth_row(Two, "known", options, *points)["remark"] == "known: it is far"
    assert worth_row(Two, "other", options, *points)["remark"] == ""


def test_options():
    chosen = PriceOptions(1000, "1", ("mode", "gap-max", "frequent-item"), 1, 1).questions
    assert [kinds for _, kinds in chosen] == [["gap-max"], ["mode", "frequent-item"]]
    assert sum(len(kinds) for _, kinds in PriceOptions(1000, "1", tuple(_every()), 1, 1).questions) == len(_every())
    with pytest.raises(InvalidSpec, match="--users: at least 64"):
        PriceOptions(63, "1", (), 1, 1)
    with pytest.raises(InvalidSpec, match="epsilon"):
        PriceOptions(1000, "much", (), 1, 1)


def _every():
    return [kind for one in QUESTIONS for kind in one.releases]


def test_the_same_people_are_drawn_whenever_a_run_is_repeated(found):
    drawn = []

    class Drawn(_Known):
        def people(self, rng):
            drawn.append(super().people(rng))
            return drawn[-1]

    found(Drawn, runs=2)
    assert len(drawn) == 2 * (3 + 5)
    assert np.array_equal(drawn[0], drawn[2]) and not np.array_equal(drawn[0], drawn[1])
