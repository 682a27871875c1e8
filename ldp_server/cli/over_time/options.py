"""periods, and the options --period and --periods of every question."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable
from datetime import UTC, date, datetime
from typing import Any, TypeVar

import click

from ldp_server.analyst import Analyst, Which
from ldp_server.answers.over_time.periods import Moment, Periods, PeriodSpan, period_dates
from ldp_server.answers.to_json import to_json
from ldp_server.cli.connection import connected, json_option, which_argument
from ldp_server.cli.main import cli
from ldp_server.cli.show import busy, print_json, table, whole

__all__ = ["PERIODS", "period_options", "periods", "periods_text"]

F = TypeVar("F", bound=Callable[..., Any])


def _moment(text: str) -> Moment | None:
    if re.fullmatch("[0-9]{1,12}", text):
        return int(text)
    try:
        return date.fromisoformat(text) if re.fullmatch(r"\d{4}-\d\d-\d\d", text) else datetime.fromisoformat(text)
    except ValueError:
        return None


class _Period(click.ParamType):  # type: ignore[type-arg]  # generic in newer versions of click only
    """A period's number, or a date or a moment that lies in it."""

    name = "period"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Periods:
        found = _moment(value) if isinstance(value, str) else value
        if found is None:
            self.fail(f"{value!r} is no period: give its number or a date in it, such as 2026-11-19", param, ctx)
        return _utc(found)


class _Span(click.ParamType):  # type: ignore[type-arg]  # generic in newer versions of click only
    """The first and the last period of a span, written FIRST..LAST."""

    name = "first..last"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Periods:
        if isinstance(value, tuple):
            return value
        first, dots, last = str(value).partition("..")
        ends = (_moment(first), _moment(last))
        if not dots or ends[0] is None or ends[1] is None:
            self.fail(
                f"{value!r} is no span: write its first and its last period, such as 2026-11-01..2026-11-30", param, ctx
            )
        return _utc(ends[0]), _utc(ends[1])


class _OneOrSpan(click.ParamType):  # type: ignore[type-arg]  # generic in newer versions of click only
    """One period, or the first and the last one of a span."""

    name = "periods"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Periods:
        kind = _Span() if ".." in str(value) else _Period()
        return kind.convert(value, param, ctx)


PERIODS = _OneOrSpan()


def _utc(moment: Moment) -> Moment:
    return moment.replace(tzinfo=UTC) if isinstance(moment, datetime) and moment.tzinfo is None else moment


def period_options(command: F) -> F:
    """Add --period and --periods to a command, which gets them in its parameter `periods`."""

    @functools.wraps(command)
    def wrapper(*args: Any, period: Periods | None, span: Periods | None, **kwargs: Any) -> Any:
        if period is not None and span is not None:
            raise click.UsageError("give --period or --periods, not both")
        return command(*args, periods=span if period is None else period, **kwargs)

    span = click.option(
        "--periods", "span", type=_Span(), metavar="FIRST..LAST", help="The periods of a span, both ends included."
    )
    one = click.option(
        "--period",
        type=_Period(),
        metavar="NUMBER|DATE",
        help="One period of a question with a schedule: its number, or a date (UTC) that lies in it. [default: all]",
    )
    return one(span(wrapper))  # type: ignore[return-value]  # the options change what click sees


def periods_text(span: PeriodSpan | None) -> str:
    """Write which periods an answer is about, for a caption."""
    return "" if span is None else f"; {span}"


@cli.command()
@which_argument
@period_options
@json_option
@connected
def periods(analyst: Analyst, which: Which, periods: Periods | None, as_json: bool) -> None:
    """List the periods of a question with a schedule that have reports.

    COLLECTION is an id, its first digits (at least four), or the collection's file.
    """
    with busy("looking", quiet=as_json):
        found = analyst.periods(which, periods)
    if as_json:
        for line in found.rows:
            print_json(to_json(line))
        return
    columns = [("period", "right"), ("dates", ""), ("reports", "right"), ("batches", "right"), ("state", "")]
    rows = [
        [str(line.period), period_dates(line.begins, line.ends), whole(line.reports), whole(line.batches), line.state]
        for line in found.rows
    ]
    table(found.info.collection.question, columns, rows, f"{len(rows)} periods with reports")
