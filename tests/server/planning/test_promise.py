"""The sentences of a plan, word for word, from plans that were made by hand; and the file around them."""

from __future__ import annotations

import math

import pytest

from ldp_client.collection import Schedule
from ldp_client.errors import InvalidSpec
from ldp_client.protocol.domain import Attributes, Categories, Integers, Strings
from ldp_server.planning.drafts import commented
from ldp_server.planning.goals import MOST_USERS, Goal, QuestionKind
from ldp_server.planning.planner import Plan
from ldp_server.planning.promise import plan_in_words, share_in_words

K = QuestionKind
DOMAINS = {
    K.FREQUENCIES: Categories(("a", "b")),
    K.HEAVY_HITTERS: Strings(8),
    K.AVERAGE: Integers(0, 101),
    K.QUANTILES: Integers(0, 101),
    K.RANGES: Integers(0, 101),
    K.ATTRIBUTES: Attributes(("a", "b")),
    K.PAIRS: Attributes(("a", "b")),
}


def a_plan(kind=K.FREQUENCIES, goal=None, **changed):
    """A plan in which every number is chosen."""
    wish = Goal(kind, DOMAINS[kind], 10_000, "1", **(goal or {}))
    known = {
        "goal": wish, "solved": "error", "users": 10_000, "epsilon": "1", "mechanism": "linear-hash", "parameters": {},
        "within": 0.0123, "standard_error": 0.00628, "low": 0.08, "high": 0.12, "truth": 0.1, "smallest_share": 0.0456,
        "smallest_share_all": 0.25, "report_bytes": 2, "memory_bytes": 3_400_000, "seconds": 0.25,
        "users_for_half": 40_000, "days": None, "assumes": "for somebody",
    }  # fmt: skip
    return Plan(**(known | changed))


@pytest.mark.parametrize(
    ("share", "text"),
    [
        (0.0, "0%"), (1.0, "100%"), (0.5, "50%"), (0.123456, "12%"), (0.0456, "4.6%"), (0.0999, "10.0%"),
        (0.01, "1.0%"), (0.00123, "0.12%"), (1e-5, "0.0010%"), (1e-20, "0.000000000000%"),
    ],
)  # fmt: skip
def test_shares_have_two_digits_that_count(share, text):
    assert share_in_words(share) == text


def test_all_sentences_of_a_plan():
    assert plan_in_words(a_plan()) == (
        "With 10,000 reports at epsilon = 1, the share of an item is known to +- 1.2% of the users (95% interval; "
        "standard error 0.63%), for somebody.",
        "The smallest share that is told apart from none, without naming the item beforehand, is 4.6%.",
        "Half this error takes 40,000 reports.",
        "A report has 2 bytes. Counting all of them and answering once takes about 0.25 seconds of one core and 3 MB.",
        "Whoever believed a fact about a user with probability 50% believes it with at most 73.2% after seeing the "
        "user's report, whatever else they know.",
    )


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        (K.FREQUENCIES, "the share of an item"),
        (K.QUANTILES, "the share of numbers at or below a quantile"),
        (K.RANGES, "the share of numbers in a range"),
        (K.ATTRIBUTES, "the share of an attribute"),
        (K.PAIRS, "the share of a pair of attributes"),
    ],
)
def test_what_is_known(kind, words):
    first, *others = plan_in_words(a_plan(kind))
    assert f"epsilon = 1, {words} is known to +- 1.2% of the users (95% interval;" in first
    assert any("smallest share" in sentence for sentence in others) == (kind is K.FREQUENCIES)
    if kind not in (K.QUANTILES,):
        changed, *later = plan_in_words(a_plan(kind, {"change": True}))
        assert f"epsilon = 1, the change of {words.removeprefix('the ')} between two periods is known to" in changed
        assert not any("smallest share" in sentence for sentence in later)


def test_an_average_has_the_unit_of_its_numbers():
    first = plan_in_words(a_plan(K.AVERAGE, {"confidence": 0.999}, within=12.345, standard_error=6.2987))[0]
    assert first == (
        "With 10,000 reports at epsilon = 1, the average is known to +- 12.3 (99.9% interval; standard error 6.3), "
        "for somebody."
    )
    assert a_plan(K.AVERAGE).unit == "" and a_plan(K.RANGES).unit == "share of users"


def test_a_list_of_heavy_hitters():
    found = plan_in_words(a_plan(K.HEAVY_HITTERS))
    assert found[:3] == (
        "With 10,000 reports at epsilon = 1, an item that 1.2% of the users hold is listed with probability 95%. The "
        "standard error of its share is 0.63%.",
        "All items above 25% are listed at once, with probability 95%.",
        "Half that share takes 40,000 reports.",
    )
    few = plan_in_words(a_plan(K.HEAVY_HITTERS, smallest_share_all=None, users_for_half=None))
    assert few[1:3] == (
        "There are too few users to list all items above a share at once.", "Half that share is out of reach."
    )  # fmt: skip


def test_what_cannot_be_told_is_said():
    found = plan_in_words(a_plan(smallest_share=None, users_for_half=None))
    assert found[1] == "No share of an item is large enough to tell it from an item that nobody holds."
    assert found[2] == "Half this error is out of reach."


@pytest.mark.parametrize(
    ("days", "text", "half"),
    [
        (0.2, "1 day", "1 day"),
        (1.0, "1 day", "4 days"),
        (1.01, "2 days", "5 days"),
        (4000.0, "4,000 days", "16,000 days"),
    ],
)
def test_days_are_whole_and_rounded_up(days, text, half):
    rate = 10_000 / days
    plan = a_plan(goal={"per_day": rate}, days=days)
    found = plan_in_words(plan)
    assert found[2] == f"At {rate:,.6g} reports a day that takes {text}."
    assert found[3] == f"Half this error takes 40,000 reports, {half} at this rate."


def test_a_window_that_ends_too_early_is_said():
    plan = a_plan(goal={"per_day": 1000.0}, days=10.0)
    careful = [one for one in plan_in_words(plan, window=9.5 * 86_400) if one.startswith("Careful")]
    assert careful == [
        "Careful: reports are taken for 10 days. At this rate about 9,500 will come, fewer than planned: take them "
        "for longer, or plan for fewer."
    ]
    assert not any("Careful" in one for one in plan_in_words(plan, window=10 * 86_400))
    assert not any("Careful" in one for one in plan_in_words(plan))
    assert not any("Careful" in one for one in plan_in_words(a_plan(), window=1.0))
    # A schedule's period counts, whatever the window is.
    assert any("Careful" in one for one in plan_in_words(plan, Schedule(86_400, 3), math.inf))
    assert not any("Careful" in one for one in plan_in_words(plan, Schedule(10 * 86_400, 3), 60.0))


def test_a_schedule_costs_epsilon_in_each_period():
    assert plan_in_words(a_plan(), Schedule(86_400, 30))[-1] == (
        "This is about one period of the schedule. All 30 reports of a person together cost 30 times epsilon."
    )
    assert "schedule" not in " ".join(plan_in_words(a_plan()))


@pytest.mark.parametrize(
    ("changed", "text"),
    [
        ({"report_bytes": 1}, "A report has 1 byte. "), ({"report_bytes": 2}, "A report has 2 bytes. "),
        ({"seconds": 0.01}, "takes about 0.01 seconds of"), ({"seconds": 0.0099}, "takes less than 0.01 seconds of"),
        ({"seconds": 12.34}, "takes about 12 seconds of"), ({"memory_bytes": 1}, "one core and 1 MB."),
        ({"memory_bytes": 1_499_999}, "one core and 1 MB."), ({"memory_bytes": 1_234_567_000}, "core and 1,235 MB."),
    ],
)  # fmt: skip
def test_the_cost(changed, text):
    assert text in plan_in_words(a_plan(**changed))[-2]


def test_what_a_guess_is_worth():
    assert "at most 50.3%" in plan_in_words(a_plan(epsilon="0.01"))[-1]
    assert "at most 95.3%" in plan_in_words(a_plan(epsilon="3"))[-1]


# -- goals


GOOD = {"users": 100, "epsilon": "1"}


@pytest.mark.parametrize(
    "change",
    [
        {"users": 1}, {"users": MOST_USERS}, {"confidence": 1e-9}, {"confidence": 1 - 1e-9}, {"share": 1e-9},
        {"share": 1 - 1e-9}, {"per_day": 1e-9}, {"within": 1e-9}, {"within": 7.0}, {"sample": (0.0, 0.0, 1e-9)},
    ],
)  # fmt: skip
def test_a_goal_at_its_bounds(change):
    goal = Goal(K.FREQUENCIES, DOMAINS[K.FREQUENCIES], **(GOOD | change))
    assert (goal.change, goal.missing) == (False, False)


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"users": 0}, "users are a whole number from 1 to 1,000,000,000,000"),
        ({"users": MOST_USERS + 1}, "from 1 to 1,000,000,000,000"),
        ({"users": None}, "two of users, epsilon and the error"),
        ({"epsilon": None}, "two of users, epsilon and the error"),
        ({"within": 0.0}, "the error is a number above 0"), ({"within": math.inf}, "the error is a number above 0"),
        ({"confidence": 0.0}, "confidence lies strictly between 0 and 1"),
        ({"confidence": 1.0}, "confidence lies strictly between 0 and 1"),
        ({"share": 0.0}, "a share lies strictly between 0 and 1"), ({"share": 1.0}, "a share lies strictly"),
        ({"per_day": math.inf}, "reports a day are a number above 0"), ({"per_day": -1.0}, "reports a day are"),
        ({"sample": (0.0, 0.0, 0.0)}, "a count of at least 0 for each index"),
        ({"sample": (1.0, 1.0, -0.1)}, "a count of at least 0"), ({"sample": (1.0, 1.0)}, "for each index"),
        ({"sample": (1.0, 1.0, math.inf)}, "a count of at least 0"), ({"sample": (1.0,) * 4}, "for each index"),
        ({"missing": True}, "only an average asks whether users have a number"),
    ],
)  # fmt: skip
def test_a_goal_beyond_its_bounds(change, text):
    with pytest.raises(InvalidSpec, match=text):
        Goal(K.FREQUENCIES, DOMAINS[K.FREQUENCIES], **(GOOD | change))


TAKES = {
    K.FREQUENCIES: {"categories", "integers", "strings"}, K.HEAVY_HITTERS: {"strings", "integers"},
    K.AVERAGE: {"integers"}, K.QUANTILES: {"integers"}, K.RANGES: {"integers"}, K.ATTRIBUTES: {"attributes"},
    K.PAIRS: {"attributes"},
}  # fmt: skip


@pytest.mark.parametrize("kind", K)
@pytest.mark.parametrize("domain", [Categories(("a",)), Integers(0, 9), Strings(4), Attributes(("a", "b"))])
def test_each_kind_is_asked_of_its_domains(kind, domain):
    if domain.kind in TAKES[kind]:
        assert Goal(kind, domain, **GOOD).domain == domain
    else:
        with pytest.raises(InvalidSpec, match=f"{kind.value} are asked of .*, not of {domain.kind}$") as error:
            Goal(kind, domain, **GOOD)
        assert set(str(error.value).partition("asked of ")[2].partition(",")[0].split(" or ")) == TAKES[kind]


@pytest.mark.parametrize("kind", K)
def test_where_a_change_is_planned(kind):
    if kind in (K.HEAVY_HITTERS, K.QUANTILES):
        with pytest.raises(InvalidSpec, match=f"a change between two periods is not planned for {kind.value}"):
            Goal(kind, DOMAINS[kind], **GOOD, change=True)
    else:
        assert Goal(kind, DOMAINS[kind], **GOOD, change=True).change
    if kind is K.HEAVY_HITTERS:
        with pytest.raises(InvalidSpec, match="does not depend on a sample"):
            Goal(kind, Integers(0, 2), **GOOD, sample=(1.0, 1.0, 1.0))


# -- the file


def test_a_file_has_a_comment_above_each_part():
    data = {
        "question": "Which?", "id": "00ff", "epsilon": "1", "nonce": 0,
        "domain": {"categories": {"names": ["a"]}}, "unknown": {"x": 1},
    }  # fmt: skip
    text = commented(data, ("One.", "Two " + "words " * 30))
    lines = text.splitlines()
    assert lines[:2] == ["# What will be learned, as planned:", "# - One."]
    assert lines[2].startswith("# - Two words") and lines[3].startswith("#   words")
    assert max(map(len, lines)) <= 102
    assert "id" not in [line.split(" = ")[0] for line in lines] and "nonce" not in text
    before = {line: lines[place - 1] for place, line in enumerate(lines) if place}
    assert before['question = "Which?"'].startswith("# What people are asked")
    assert before['epsilon = "1"'].startswith("# The privacy of one report")
    assert before["[unknown]"] == ""
    assert next(line for line in lines if line.startswith("[domain")) in before
    assert "nonce = 3" in commented({"nonce": 3}, ())
