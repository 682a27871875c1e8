"""Durations: what is written is read back, and nothing else is read."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ldp_client.durations import format_duration, parse_duration
from ldp_client.errors import InvalidSpec


@settings(max_examples=300, deadline=None, derandomize=True)
@given(st.one_of(st.integers(1, 1 << 40), st.integers(1, 5000).map(lambda weeks: 604_800 * weeks)))
def test_round_trip(seconds: int) -> None:
    assert parse_duration(format_duration(seconds)) == seconds


@pytest.mark.parametrize("seconds", [1 << 40, (1 << 40) - 1, 999_999_999_999, 10**12])
def test_the_longest_periods(seconds: int) -> None:
    assert parse_duration(format_duration(seconds)) == seconds


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("1 day", 86_400),
        ("7 days", 604_800),
        ("2 weeks", 1_209_600),
        ("90 s", 90),
        ("5min", 300),
        (" 12  hours ", 43_200),
        ("1 h", 3600),
        ("3 m", 180),
        ("1 w", 604_800),
        ("1 d", 86_400),
    ],
)
def test_forms(text: str, seconds: int) -> None:
    assert parse_duration(text) == seconds


def test_the_shortest_form_is_written() -> None:
    assert [format_duration(s) for s in (604_800, 172_800, 3600, 90, 1)] == [
        "1 week",
        "2 days",
        "1 hour",
        "90 seconds",
        "1 second",
    ]


@pytest.mark.parametrize(
    "text",
    [
        *("", "5", "days", "-1 day", "1.5 days", "1 year", "1 Day", "1 day 2 hours", "0 days", "1 ss", "\u0661 day"),
        *("9" * 14 + " s", 0, 30, 86_400, -5, True, None, 1.5, b"1 s", ["1 day"]),
    ],
)
def test_what_is_no_duration(text: object) -> None:
    with pytest.raises(InvalidSpec):
        parse_duration(text)


def test_a_number_without_a_unit_says_how_to_write_it() -> None:
    with pytest.raises(InvalidSpec, match=r'period: a number alone has no unit; .* "30 days"'):
        parse_duration(30, "period")
