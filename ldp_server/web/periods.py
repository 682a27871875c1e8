"""Which periods a page is about: read from an address or a form, and written for a command and for Python.

A period tells nothing about an item, so it may stand in an address: as its number, or as a date (UTC) that lies in it.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import date, datetime, timedelta

from ldp_client.collection import Collection, Schedule
from ldp_client.errors import InvalidSpec
from ldp_server.answers.over_time.periods import PeriodLine, PeriodSpan, asked_periods, period_dates

__all__ = [
    "NumberSpan",
    "PeriodChoice",
    "addressed",
    "choices",
    "dates_of",
    "in_part",
    "python_periods",
    "read_periods",
    "read_side",
    "shell_span",
]

NumberSpan = tuple[int, int]
"""The numbers of the first and the last period."""
_MOST_CHOICES = 1000
_DAY = 86_400


@dataclass(frozen=True)
class PeriodChoice:
    """One line of a selector: what stands in the address, and what is read."""

    value: str
    text: str


def read_periods(given: Mapping[str, str], collection: Collection) -> NumberSpan | None:
    """Return the periods of the fields `first` and `last`; None: all. One of them alone is one period."""
    first, last = given.get("first", "").strip(), given.get("last", "").strip()
    return None if not first and not last else _span(first or last, last or first, collection)


def read_side(text: str, collection: Collection) -> NumberSpan | None:
    """Return the periods of one side of a comparison: one period, or FIRST..LAST."""
    first, dots, last = text.strip().partition("..")
    return None if not first and not last else _span(first, last if dots else first, collection)


def _span(first: str, last: str, collection: Collection) -> NumberSpan:
    schedule = collection.schedule
    if schedule is None:
        raise InvalidSpec("this question has no schedule, so its reports have no periods: ask without a period")
    ends = _period(first, schedule), _period(last, schedule, end=True)
    if ends[0] > ends[1]:
        raise InvalidSpec("the first period of a span lies after its last one")
    return ends


def _period(text: str, schedule: Schedule, *, end: bool = False) -> int:
    if re.fullmatch("[0-9]{1,12}", text):
        return int(text)
    try:
        whole_day = re.fullmatch(r"\d{4}-\d\d-\d\d", text) is not None
        moment: date = date.fromisoformat(text) if whole_day else datetime.fromisoformat(text)
        if whole_day and end and moment < date.max:
            # A date stands for the whole day: a span ends with the last period that begins on it.
            return _of(datetime(moment.year, moment.month, moment.day) + timedelta(days=1, seconds=-1), schedule)
    except (ValueError, OverflowError):
        raise InvalidSpec("a period is its number, or a date in it such as 2026-11-19") from None
    return _of(moment, schedule)


def _of(moment: date, schedule: Schedule) -> int:
    asked = asked_periods(moment)
    return 0 if asked is None else schedule.period(asked.first)


def shell_span(periods: NumberSpan) -> str:
    """Write periods as a command takes them."""
    return f"{periods[0]}" if periods[0] == periods[1] else f"{periods[0]}..{periods[1]}"


def python_periods(periods: NumberSpan) -> int | NumberSpan:
    """Return periods as a line of Python gives them."""
    return periods[0] if periods[0] == periods[1] else periods


def addressed(periods: NumberSpan | None) -> dict[str, str]:
    """The fields of an address that say these periods."""
    return {} if periods is None else {"first": str(periods[0]), "last": str(periods[1])}


def choices(collection: Collection, lines: Iterable[PeriodLine], chosen: Iterable[NumberSpan]) -> list[PeriodChoice]:
    """Return the periods that can be chosen, newest first, with those that are chosen whether they exist or not."""
    schedule = collection.schedule
    if schedule is None:
        return []
    there = {line.period: line for line in lines if line.state != "dropped"}
    numbers = sorted(there, reverse=True)[:_MOST_CHOICES]
    parts = {number: in_part(collection, number, time.time()).partition(":")[0] for number in numbers}
    found = [
        PeriodChoice(str(number), dates_of(schedule, (number, number)) + (f" ({part})" if part else ""))
        for number, part in parts.items()
    ]
    known = {choice.value for choice in found}
    for span in chosen:
        value = shell_span(span)
        if value not in known:
            found.append(PeriodChoice(value, dates_of(schedule, span)))
            known.add(value)
    return found


def in_part(collection: Collection, period: int, now: float) -> str:
    """Why fewer people could report in a period than in a whole one; empty for a whole one."""
    if collection.schedule is None:
        return ""
    span = PeriodSpan.of(collection.schedule, period, period)
    if max(span.begins, collection.opens) <= now < min(span.ends, collection.closes):
        return "still running"
    if collection.opens > span.begins:
        return "in part: the question opened during it"
    return "in part: the question closed during it" if collection.closes < span.ends else ""


def dates_of(schedule: Schedule, periods: NumberSpan) -> str:
    """Write when periods begin and end. One that is one day has one date."""
    span = PeriodSpan.of(schedule, *periods)
    text = period_dates(span.begins, span.ends).removesuffix(" UTC")
    one_day = span.ends - span.begins == _DAY and span.begins % _DAY == 0
    return text.partition(" to ")[0] if one_day else text
