"""collection draft: from a question to a file. No server is called."""

from __future__ import annotations

import functools
import re
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import click

from ldp_client.collection import SMALLEST_BATCHES, Schedule
from ldp_client.collection_text import moment_of
from ldp_client.durations import parse_duration
from ldp_client.errors import InvalidSpec, unread
from ldp_client.protocol.domain import Attributes, Categories, Domain, Field, Integers, Record, Strings, YesNo
from ldp_server.answers.to_json import to_json
from ldp_server.cli.collections import collection
from ldp_server.cli.connection import json_option
from ldp_server.cli.drafting.averages import AVERAGES, averages_goal
from ldp_server.cli.drafting.protected import protected_goal
from ldp_server.cli.drafting.sets import SETS, sets_goal
from ldp_server.cli.show import busy, lines, print_json
from ldp_server.planning import Draft, Goal, QuestionKind, draft
from ldp_server.planning.areas import AreasDraft, AreasGoal, draft_areas
from ldp_server.planning.averages import AveragesDraft, draft_averages
from ldp_server.planning.protected import ProtectedDraft, draft_protected
from ldp_server.planning.record_drafts import TablesDraft, TablesGoal, draft_tables
from ldp_server.planning.sets import SetsDraft, draft_sets
from ldp_server.planning.volunteers import VolunteersWish
from ldp_server.store.errors import translated

__all__ = ["DraftOptions", "drafted", "read_field"]

_RANGE = re.compile(r"\s*(-?[0-9]{1,20})\s*:\s*(-?[0-9]{1,20})\s*")
_HELP = {
    QuestionKind.FREQUENCIES: "how many hold each of some answers",
    QuestionKind.HEAVY_HITTERS: "the popular ones of any texts or numbers",
    QuestionKind.AVERAGE: "the average of a number",
    QuestionKind.QUANTILES: "medians and other quantiles of a number",
    QuestionKind.RANGES: "how many numbers lie in ranges",
    QuestionKind.ATTRIBUTES: "how many say yes to each of several things",
    QuestionKind.PAIRS: "the same, and to both of any two",
}
_TABLES = "tables"
_AREAS = "areas"
_OF_FIELDS = (_TABLES, AVERAGES, _AREAS)
_FieldsDraft = TablesDraft | ProtectedDraft | AveragesDraft | AreasDraft | SetsDraft
_NUMBERS = (QuestionKind.AVERAGE, QuestionKind.QUANTILES, QuestionKind.RANGES)


@dataclass(frozen=True)
class DraftOptions:
    """The options of `collection draft`, as given."""

    question: str | None
    kind: str | None
    answer: tuple[str, ...]
    answers: Path | None
    integers: str | None
    field: tuple[str, ...]
    table: tuple[str, ...]
    field_epsilon: tuple[str, ...]
    number: str | None
    most: int | None
    sizes: str | None
    strings: int | None
    users: int | None
    epsilon: str | None
    within: float | None
    confidence: float
    share: float | None
    missing: bool
    change: bool
    per_day: float | None
    opens: str | None
    closes: str | None
    lasts: str
    period: str | None
    reports: int | None
    smallest_batch: int | None
    volunteers: str | None
    volunteer_epsilon: str | None

    @property
    def wish(self) -> VolunteersWish | None:
        """Which shares of volunteers the promise is to speak of."""
        return VolunteersWish.of_options(self.volunteers, self.volunteer_epsilon)


_DRAFT_OPTIONS = (
    click.option("--question", help="What people are asked, in words that they see."),
    click.option(
        "--kind",
        type=click.Choice([*(kind.value for kind in QuestionKind), SETS, *_OF_FIELDS]),
        help="The kind of answer.",
    ),
    click.option("--answer", multiple=True, metavar="NAME", help="A possible answer, or an attribute; repeat it."),
    click.option(
        "--answers", type=click.Path(path_type=Path), help="A file with the answers, one a line; - is standard input."
    ),
    click.option("--integers", metavar="FIRST:LAST", help="The answers are numbers of this range."),
    click.option(
        "--field",
        multiple=True,
        metavar="NAME: KIND",
        help='Tables, averages, areas: a field: "plan: free, paid", "age: 0..8", "member: yes/no" or "dark: yes".',
    ),
    click.option(
        "--table",
        multiple=True,
        metavar="A,B",
        help="Tables: fields that are to be known together; repeat it. [default: all pairs]",
    ),
    click.option(
        "--field-epsilon",
        multiple=True,
        metavar='"NAME: EPSILON"',
        help="Tables: the epsilon of this field by itself; give one for every field. They add up for the person.",
    ),
    click.option("--number", metavar="NAME", help="Averages: the field that is averaged in each cell of the others."),
    click.option("--most", type=click.IntRange(2), help="Sets: report up to so many items. [default: the best number]"),
    click.option(
        "--sizes",
        metavar="SIZE:WEIGHT,...",
        help='Sets: how many items users hold, such as "0:20, 1:30, 2:30, 5:20". [default: at most --most]',
    ),
    click.option("--strings", type=click.IntRange(1, 1024), metavar="BYTES", help="Any text of up to so many bytes."),
    click.option("--users", type=click.IntRange(1), help="How many will report, in each period of a schedule."),
    click.option("--epsilon", help="Privacy of one report."),
    click.option(
        "--within",
        type=float,
        help="The error wanted: half an interval, as a share of the users (0.01), or in numbers.",
    ),
    click.option("--confidence", type=float, default=0.95, show_default=True, help="Of the intervals."),
    click.option("--share", type=float, help="Plan for an item, attribute or cell of this share of the users."),
    click.option("--missing", is_flag=True, help="Average: some users have no number."),
    click.option("--change", is_flag=True, help="Plan for the change between two periods."),
    click.option("--per-day", type=float, metavar="N", help="Reports a day: says how many days it takes."),
    click.option("--opens", metavar="DATE", help="When the first report is taken. [default: now]"),
    click.option("--closes", metavar="DATE", help="From when on no report is taken. [default: --lasts after that]"),
    click.option("--lasts", default="30 days", show_default=True, help="How long reports are taken."),
    click.option("--period", help='Ask again in every period, such as "7 days".'),
    click.option("--reports", type=click.IntRange(1), help="With --period: how many times. [default: while it lasts]"),
    click.option(
        "--smallest-batch",
        type=click.IntRange(*SMALLEST_BATCHES),
        metavar="N",
        help="Reports are sealed and pass through a relay, at least N together. [default: no relay]",
    ),
    click.option(
        "--volunteers", metavar="SHARES", help="Frequencies, tables, average: also with so many volunteers (0.01,0.05)."
    ),
    click.option(
        "--volunteer-epsilon", metavar="EPSILON", help="The price of a curator's release. [default: --epsilon]"
    ),
)


def _draft_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options of DraftOptions to a command, which gets them in its parameter `options`."""

    @functools.wraps(command)
    def gathering(**given: Any) -> Any:
        options = DraftOptions(**{field.name: given.pop(field.name) for field in fields(DraftOptions)})
        return command(options=options, **given)

    for option in reversed(_DRAFT_OPTIONS):
        gathering = option(gathering)
    return gathering


@collection.command("draft")
@click.argument("file", type=click.Path(path_type=Path), default="-")
@_draft_options
@json_option
def drafted(file: Path, options: DraftOptions, as_json: bool) -> None:
    """Plan a question and write its file: FILE, or standard output.

    Give two of --users, --epsilon and --within; the third is worked out. On a terminal, what is not given is asked.
    """
    if str(file) != "-" and file.exists():
        raise InvalidSpec(f"{file} exists already: give the name of a new file")
    if options.kind in _OF_FIELDS:
        _write(file, _of_fields(options, quiet=as_json), as_json=as_json)
        return
    if options.kind == SETS:
        _write(file, _of_sets(options, quiet=as_json), as_json=as_json)
        return
    asked = _Asked(options, terminal=sys.stdin.isatty() and str(options.answers) != "-")
    question, goal = asked.question(), asked.goal()
    opens, closes = _window(options)
    schedule = _schedule(options, closes - opens)
    with busy("planning", quiet=as_json):
        found = draft(
            question,
            goal,
            opens=opens,
            closes=closes,
            schedule=schedule,
            smallest_batch=options.smallest_batch,
            volunteers=options.wish,
        )
    _write(file, found, as_json=as_json)


def _details(options: DraftOptions) -> dict[str, object]:
    """When reports are taken, and how."""
    opens, closes = _window(options)
    return {
        "opens": opens,
        "closes": closes,
        "schedule": _schedule(options, closes - opens),
        "smallest_batch": options.smallest_batch,
    }


def _of_sets(options: DraftOptions, *, quiet: bool) -> SetsDraft:
    """Plan a question about users who hold several items."""
    if options.question is None:
        raise InvalidSpec("a draft needs --question")
    if options.wish is not None:
        raise InvalidSpec("--volunteers: a curator's release is not merged with sets")
    wanted = (options.users, options.epsilon, options.within)
    goal = sets_goal(_names(options), options.sizes, options.most, wanted, options.confidence, options.share)
    with busy("planning", quiet=quiet):
        return draft_sets(options.question, goal, **_details(options))


def _of_fields(options: DraftOptions, *, quiet: bool) -> _FieldsDraft:
    """Plan a question about the fields of records."""
    question = options.question
    if question is None:
        raise InvalidSpec("a draft needs --question")
    if not options.field:
        raise InvalidSpec(f'a draft of {options.kind} needs --field for each field, such as --field "age: 0..8"')
    details = _details(options)
    fields = tuple(read_field(text) for text in options.field)
    wanted, wish = (options.users, options.epsilon, options.within), options.wish
    if wish is not None and options.kind != _TABLES:
        raise InvalidSpec(f"--volunteers: a curator's release is merged with tables, and not with {options.kind}")
    if options.field_epsilon and (options.kind != _TABLES or wish is not None):
        raise InvalidSpec("--field-epsilon goes with --kind tables, and without --volunteers")
    with busy("planning", quiet=quiet):
        if options.kind == AVERAGES:
            goal = averages_goal(fields, options.number, wanted, options.confidence, options.share)
            return draft_averages(question, goal, **details)
        if options.kind == _AREAS:
            return draft_areas(question, AreasGoal(Record(fields), *wanted, options.confidence), **details)
        workload = tuple(tuple(name.strip() for name in one.split(",")) for one in options.table)
        default = "pairs" if len(fields) > 1 else "singles"
        if options.field_epsilon:
            protected = protected_goal(fields, options.field_epsilon, workload or default, wanted, options.confidence)
            return draft_protected(question, protected, **details)
        tables = TablesGoal(Record(fields), workload or default, *wanted, options.confidence)
        return draft_tables(question, tables, wish, **details)


def read_field(text: str) -> Field:
    """Read a field of a record: its name, and its values behind a colon."""
    name, colon, values = (part.strip() for part in text.partition(":"))
    if not name or not colon or not values:
        raise InvalidSpec('a field is written "NAME: free, paid", "NAME: 0..8", "NAME: yes/no" or "NAME: yes"')
    if values in ("yes/no", "yes"):
        return Field(name, YesNo(none_is_no=values == "yes"))
    between = re.fullmatch(r"(-?[0-9]{1,20})\.\.(-?[0-9]{1,20})", values)
    if between is not None:
        return Field(name, _integers(f"{between[1]}:{between[2]}"))
    return Field(name, Categories(tuple(one.strip() for one in values.split(","))))


def _write(file: Path, found: Draft | _FieldsDraft, *, as_json: bool) -> None:
    if str(file) != "-":
        with translated(file):
            file.write_text(found.text, encoding="utf-8")
    if as_json:
        print_json(to_json(found))
    elif str(file) == "-":
        sys.stdout.write(found.text)
    else:
        _tell(file, found)


def _tell(file: Path, found: Draft | _FieldsDraft) -> None:
    lines(*found.promise, f"Written to {file}: look through it, then `ldp-server collection create {file}`.")


class _Asked:
    """The options, and what is asked on the terminal where they do not say it."""

    def __init__(self, options: DraftOptions, *, terminal: bool) -> None:
        self._options = options
        self._terminal = terminal

    def _text(self, value: str | None, prompt: str, flag: str) -> str:
        if value is not None:
            return value
        if not self._terminal:
            raise InvalidSpec(f"a draft needs {flag} (on a terminal it is asked for)")
        return str(click.prompt(prompt, err=True))

    def question(self) -> str:
        return self._text(self._options.question, "What are people asked, in words that they see?", "--question")

    def goal(self) -> Goal:
        options = self._options
        if options.kind is None and self._terminal:
            lines(*(f"{kind.value:<14} {text}" for kind, text in _HELP.items()))
        kind = QuestionKind(self._choice(options.kind))
        domain = self._domain(kind)
        users, epsilon, within = self._two_of_three(kind)
        return Goal(
            kind,
            domain,
            users,
            epsilon,
            within,
            confidence=options.confidence,
            share=options.share,
            missing=options.missing,
            change=options.change,
            per_day=options.per_day,
        )

    def _choice(self, value: str | None) -> str:
        if value is None and self._terminal:
            return str(click.prompt("Which kind of answer?", type=click.Choice(list(map(_value, _HELP))), err=True))
        return self._text(value, "", "--kind")

    def _domain(self, kind: QuestionKind) -> Domain:
        options, names = self._options, _names(self._options)
        given = [bool(names), options.integers is not None, options.strings is not None]
        if sum(given) > 1:
            raise InvalidSpec("give the answers by name, as --integers or as --strings: one of them")
        if options.strings is not None:
            return Strings(options.strings)
        if options.integers is not None or kind in _NUMBERS:
            return _integers(self._text(options.integers, "From which to which number, FIRST:LAST?", "--integers"))
        if not names and kind is QuestionKind.HEAVY_HITTERS:
            return Strings(int(self._text(None, "Texts of up to how many bytes?", "--strings or --integers")))
        if not names:
            text = self._text(None, "Which answers, with commas between them?", "--answer, --answers or --integers")
            names = tuple(part.strip() for part in text.split(","))
        return Attributes(names) if kind in (QuestionKind.ATTRIBUTES, QuestionKind.PAIRS) else Categories(names)

    def _two_of_three(self, kind: QuestionKind) -> tuple[int | None, str | None, float | None]:
        options = self._options
        users, epsilon, within = options.users, options.epsilon, options.within
        if self._terminal and (users is None) + (epsilon is None) + (within is None) > 1:
            click.echo("Two of three: the one that you leave empty is worked out.", err=True)
            unit = "the numbers' unit" if kind is QuestionKind.AVERAGE else "a share of the users, such as 0.01"
            users = _number(users, "How many people will report?", int)
            within = _number(within, f"Which error is small enough ({unit})?", float)
            if epsilon is None and (users is None or within is None):
                epsilon = _number(None, "Which epsilon?", str)
        return users, epsilon, within


def _value(kind: QuestionKind) -> str:
    return kind.value


def _number(value: Any, prompt: str, kind: type) -> Any:
    if value is not None:
        return value
    text = click.prompt(prompt, default="", show_default=False, err=True).strip().replace(",", "")
    try:
        return kind(text) if text else None
    except ValueError:
        raise InvalidSpec(f"{text!r} is not a number") from None


def _names(options: DraftOptions) -> tuple[str, ...]:
    if options.answers is None:
        return options.answer
    if options.answer:
        raise InvalidSpec("give --answer or --answers, not both")
    try:
        source = options.answers
        text = sys.stdin.read() if str(source) == "-" else source.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        why = unread(error, "one a line, UTF-8 text")
        raise InvalidSpec(f"cannot read answers from {options.answers}: {why}") from None
    found = tuple(line for line in text.splitlines() if line.strip())
    if not found:
        raise InvalidSpec(f"{options.answers} names no answers: write one a line")
    return found


def _integers(text: str) -> Integers:
    found = _RANGE.fullmatch(text)
    if found is None or int(found[1]) > int(found[2]):
        raise InvalidSpec("a range of numbers is written FIRST:LAST, such as 0:1440")
    return Integers(int(found[1]), int(found[2]) - int(found[1]) + 1)


def _window(options: DraftOptions) -> tuple[int, int]:
    opens = int(time.time()) if options.opens is None else moment_of(options.opens)
    closes = opens + parse_duration(options.lasts, "--lasts") if options.closes is None else moment_of(options.closes)
    return opens, closes


def _schedule(options: DraftOptions, seconds: int) -> Schedule | None:
    if options.period is None:
        if options.reports is not None:
            raise InvalidSpec("--reports goes with --period: how often people are asked again")
        return None
    period = parse_duration(options.period, "--period")
    return Schedule(period, options.reports or max(1, seconds // period))
