"""Periods of a question with a schedule: which ones a request asks for, and which ones an answer is about.

Periods are counted from 1970, and each has the length that the schedule says. The number depends on the clock and the
spec, never on the item (docs/protocol.md). A report belongs to the period in which it was made, however late it comes.

A person may report in many periods. The estimates of a period are about its reports, so about the people who reported
in it. Those of a span count a person once for each period in which they reported: they are about reports, not about
people.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta

from ldp_client.collection import Collection, Schedule
from ldp_client.errors import InvalidSpec, WrongType
from ldp_client.protocol.v1 import analyst_pb2 as pb

__all__ = ["Moment", "PeriodLine", "PeriodSpan", "Periods", "asked_periods", "period_dates", "span_of"]

Moment = int | date | datetime
"""A period: its number, or a date or a moment (UTC) that lies in it."""
Periods = Moment | tuple[Moment, Moment]
"""One period, or the first and the last of a span. A date stands for the whole day."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class PeriodSpan:
    """The periods that an answer is about, `last` included. Times are seconds since 1970; `ends` is not included."""

    first: int
    last: int
    begins: int
    ends: int

    @classmethod
    def of(cls, schedule: Schedule, first: int, last: int) -> PeriodSpan:
        return cls(first, last, schedule.begins(first), schedule.begins(last + 1))

    def __str__(self) -> str:
        name = f"period {self.first}" if self.first == self.last else f"periods {self.first} to {self.last}"
        return f"{name} ({period_dates(self.begins, self.ends)})"


@dataclass(frozen=True)
class PeriodLine:
    """One period that has reports."""

    period: int
    begins: int
    """Seconds since 1970, as `ends`."""
    ends: int
    reports: int
    batches: int
    state: str
    """held: its reports are in the log; folded: their counts only; dropped: neither."""


def asked_periods(periods: Periods | None) -> pb.AskedPeriods | None:
    """Return what a request says of the periods that are asked for; None: of all."""
    if periods is None:
        return None
    first, last = periods if isinstance(periods, tuple) and len(periods) == 2 else (periods, periods)
    numbers = [isinstance(end, int) and not isinstance(end, bool) for end in (first, last)]
    if all(numbers):
        return _asked(_number(first), _number(last), moments=False)
    if any(numbers):
        raise InvalidSpec("give both ends of a span of periods as numbers, or both as dates")
    return _asked(_seconds(first, end=False), _seconds(last, end=True), moments=True)


def _asked(first: int, last: int, *, moments: bool) -> pb.AskedPeriods:
    if first > last:
        raise InvalidSpec("the first period of a span lies after its last one")
    return pb.AskedPeriods(first=first, last=last, moments=moments)


def _number(period: object) -> int:
    if not isinstance(period, int) or not 0 <= period < 1 << 40:
        raise InvalidSpec("a period is a number from 0 on: `ldp-server periods` lists those that have reports")
    return period


def _seconds(moment: object, *, end: bool) -> int:
    if isinstance(moment, datetime):
        found = (moment if moment.tzinfo else moment.replace(tzinfo=UTC)) - _EPOCH
    elif isinstance(moment, date):
        found = datetime(moment.year, moment.month, moment.day, tzinfo=UTC) - _EPOCH
        found += timedelta(days=1, seconds=-1) if end else timedelta()
    else:
        raise WrongType(f"periods: give a number, a date, or a pair of them, not {type(moment).__name__}")
    if found < timedelta():
        raise InvalidSpec("periods are counted from 1970: this date is before it")
    return int(found.total_seconds())


def span_of(collection: Collection, asked: pb.AskedPeriods) -> PeriodSpan:
    """Return the periods of a collection that a request asks for; `InvalidSpec` if there are none."""
    schedule = collection.schedule
    if schedule is None:
        raise InvalidSpec("this question has no schedule, so its reports have no periods: ask without a period")
    first, last = asked.first, asked.last
    if asked.moments:
        first, last = schedule.period(first), schedule.period(last)
    opens, closes = collection.periods
    if first > last:
        raise InvalidSpec("the first period of a span lies after its last one")
    if (first, last) != (0, 0) and (last < opens or first > closes):
        window = PeriodSpan.of(schedule, opens, closes)
        raise InvalidSpec(f"{PeriodSpan.of(schedule, first, last)} is not of this question: its window has {window}")
    return PeriodSpan.of(schedule, first, last)


def period_dates(begins: int, ends: int) -> str:
    """Write when periods begin and end, in UTC."""
    return f"{_written(begins)} to {_written(ends)} UTC"


def _written(seconds: int) -> str:
    try:
        moment = datetime.fromtimestamp(seconds, UTC)
    except (ValueError, OverflowError, OSError):
        return f"{seconds} s"
    return moment.strftime("%Y-%m-%d %H:%M" if seconds % 86_400 else "%Y-%m-%d")
