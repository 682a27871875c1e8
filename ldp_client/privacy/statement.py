"""The privacy statement: what is promised about reports, and what is not, in sentences.

`privacy_statement` is the only place where the sentences are written. A server passes a collection, a device passes its
charges so far, and a simulation passes both. The statement says nothing about what is not passed. Every number is
rounded up, and every total names the rule that proves it (composition.py).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from typing import Protocol

from ldp_client.durations import format_duration
from ldp_client.errors import InvalidSpec
from ldp_client.mechanisms.base import Randomizer
from ldp_client.privacy.charges import Charges, basic, tally
from ldp_client.privacy.composition import Total, compose
from ldp_client.privacy.groups import every_group_of, group
from ldp_client.privacy.information import best_guess, mutual_information, odds_factor
from ldp_client.privacy.rounding import HasValue, Number, exact, fraction_up, shown
from ldp_client.privacy.shuffle import batches, grouped, shuffled

__all__ = ["Asked", "Device", "PrivacyStatement", "QuestionTerms", "Repeated", "privacy_statement", "relay_lines"]

DELTA = 1e-6
_ADDED_UP = "added up"
"""What a reader is told instead of `basic`, the name of the rule in composition.py."""
GROUPS = (2, 5)
_CLEARLY = 0.98
"""A total with a delta is stated only if it is at most this part of the plain sum."""


class Repeated(Protocol):
    """A schedule of repeated reports."""

    @property
    def period_seconds(self) -> int: ...

    @property
    def reports(self) -> int: ...


class Asked(Protocol):
    """The part of a collection that a statement reads. A ldp_client.collection.Collection has it."""

    @property
    def epsilon(self) -> HasValue: ...

    @property
    def schedule(self) -> Repeated | None: ...

    @property
    def randomizer(self) -> Randomizer: ...

    @property
    def smallest_batch(self) -> int | None: ...


@dataclass(frozen=True)
class QuestionTerms:
    """The same values for a question without a collection."""

    epsilon: Number
    """Of one report."""
    reports: int = 1
    """The most reports of one device."""
    period_seconds: int | None = None
    """How often a device answers; None: once, or at times that are not known."""
    smallest_batch: int | None = None
    """At least so many reports are released together by a relay; None: there is no relay."""
    randomizer: Randomizer | None = None
    """The mechanism, for what a relay is worth; None: what holds for every mechanism is stated."""


@dataclass(frozen=True)
class Device:
    """The charges of one device over all its questions."""

    charges: Charges
    """Those of its reports so far."""
    budget: Number | None = None
    """Its lifetime budget."""


@dataclass(frozen=True)
class PrivacyStatement:
    """The statement, a few sentences a line."""

    lines: tuple[str, ...]

    def __str__(self) -> str:
        return "\n".join(self.lines)


@dataclass(frozen=True)
class _Crowd:
    """The number of users, if it is known, and the delta of all totals."""

    users: int | None
    delta: float


def privacy_statement(
    asked: Asked | QuestionTerms | None = None,
    *,
    device: Device | None = None,
    users: int | None = None,
    groups: Sequence[int] = GROUPS,
    delta: float = DELTA,
) -> PrivacyStatement:
    """Return what is promised about a question, a device, or both.

    `users` is the number of people who are asked, `groups` are the sizes of groups to speak about. If the question's
    reports pass through a relay, the statement has beside the local epsilon what holds if the relay is honest.
    """
    lines: list[str] = []
    if asked is not None:
        question = asked if isinstance(asked, QuestionTerms) else _question(asked)
        amount = exact(question.epsilon)
        if amount <= 0 or question.reports < 1:
            raise InvalidSpec("a statement is about at least one report with an epsilon above 0")
        crowd = _Crowd(users, delta)
        lines += [_report_line(amount), *_question_lines(question, delta), *relay_lines(question, delta)]
        lines += [line for people in groups for line in _group_lines(people, {amount: question.reports}, crowd)]
    if device is not None:
        lines += _device_lines(device)
    lines.append(
        "Not hidden by epsilon: that a device takes part, its network address, and when it sends. "
        "Not prevented: people who send false reports on purpose."
    )
    return PrivacyStatement(tuple(lines))


def _question(asked: Asked) -> QuestionTerms:
    terms = QuestionTerms(asked.epsilon, smallest_batch=asked.smallest_batch, randomizer=asked.randomizer)
    often = asked.schedule
    return terms if often is None else replace(terms, reports=often.reports, period_seconds=often.period_seconds)


def _report_line(amount: Fraction) -> str:
    nats = mutual_information(amount)
    return (
        f"One report: eps = {_show(fraction_up(amount))}. Whatever it says, the odds between any two answers"
        f" change by a factor of at most {_show(odds_factor(amount))}; a fifty-fifty guess becomes at best"
        f" {_percent(best_guess(amount, 0.5))}; it carries at most {_show(nats)} nats"
        f" ({_show(nats / math.log(2))} bits) about the answer."
    )


def _question_lines(question: QuestionTerms, delta: float) -> Iterator[str]:
    if question.randomizer is not None and question.randomizer.parts:
        yield _parts_line(question.randomizer, fraction_up(exact(question.epsilon)))
    if question.randomizer is not None and question.randomizer.field_losses:
        yield _fields_line(question.randomizer, exact(question.epsilon), question.reports)
    if question.period_seconds is not None:
        yield f"A device answers once every {format_duration(question.period_seconds)}."
    elif question.reports == 1:
        yield "Each device answers once: asking again shows nothing new about the answer."
    if question.reports > 1:
        total = _clear({exact(question.epsilon): question.reports}, delta)
        yield f"This question, at most {question.reports} reports of one device: {_in_words(total)}."


def _parts_line(randomizer: Randomizer, epsilon: float) -> str:
    """Both accounts of a record, side by side. What a device draws is free of its answer, and its report shows it."""
    touched = ", ".join(f"{name} {float(chance):.1%}" for name, chance in randomizer.parts if chance)
    never = [name for name, chance in randomizer.parts if not chance]
    rest = f" No report is about {', '.join(never)}." if never else ""
    return (
        f"A report is about some fields of a record, which the device draws: eps = {_show(epsilon)} for the person, "
        f"eps = {_show(epsilon)} for each field that is drawn, eps = 0 for every other field. How often each field is "
        f"drawn: {touched}.{rest} Fields that are correlated tell about each other. "
        "Tables, and synthetic records that have them, are worked out from the reports: they use no further privacy."
    )


def _fields_line(randomizer: Randomizer, epsilon: Fraction, reports: int) -> str:
    """Both accounts of a record that is answered field by field."""

    def accounts(times: int) -> str:
        each = ", ".join(
            f"{one.name} {_show(fraction_up(one.epsilon.value * times))}" for one in randomizer.field_losses
        )
        return f"eps per field: {each}; eps for the person, their sum: {_show(fraction_up(epsilon * times))}."

    often = f" All {reports:,} reports of one device together: {accounts(reports)}" if reports > 1 else ""
    return (
        f"A report answers every field of a record, each by itself: {accounts(1)}{often} A field without an answer is "
        "protected like any other value. Fields that are correlated tell about each other: then only the person's "
        "number is a bound. Tables, and synthetic records that have them, are worked out from the reports: they use no "
        "further privacy."
    )


def _group_lines(people: int, charges: Charges, crowd: _Crowd) -> Iterator[str]:
    total = group(people, charges, crowd.delta)
    plain = _plain(charges, people)
    name = f"A household of {people}" if people <= 9 else f"A group of {people} people"
    yield f"{name}, one such question each: {_in_words(total if _is_clear(total, plain) else plain)}."
    if crowd.users is None or people > crowd.users:
        return
    all_groups = every_group_of(people, crowd.users, charges, crowd.delta)
    if all_groups.delta > 0:
        yield (
            f"With probability 1 - {all_groups.delta:g}, for no group of {people} people among the users do the reports"
            f" favour the true answers by more than eps = {_show(all_groups.epsilon)} over other answers that were"
            f" fixed beforehand. Over answers chosen after reading the reports the limit is {_in_words(plain)}."
        )


def relay_lines(asked: Asked | QuestionTerms, delta: float = DELTA) -> tuple[str, ...]:
    """Return the part of the statement that is about a relay: nothing without one."""
    question = asked if isinstance(asked, QuestionTerms) else _question(asked)
    return () if question.smallest_batch is None else _worth(question, question.smallest_batch, delta)


@lru_cache(maxsize=256)
def _worth(question: QuestionTerms, batch: int, delta: float) -> tuple[str, ...]:
    """Local and shuffled side by side, with all conditions of shuffle.py. It takes some tenths of a second."""
    asked, half = question.randomizer or question.epsilon, max(1, batch // 2)
    one = shuffled(asked, batch, delta)
    local = (
        f"Reports are sealed and pass through a relay. One report: eps = {_show(fraction_up(exact(question.epsilon)))}"
    )
    if one.rule == "local":
        return (f"{local}. Batches of {batch} reports are too small to state less, even if the relay is honest.",)
    lines = [
        f"{local} (local); if the relay is honest, {_shown(one)}, among at least {batch} reports that are released.",
        "The second number needs all of this: the relay and the collector do not work together, and the relay passes"
        f" on nothing but reports in random order; all {batch} reports are from people who report honestly; nobody has"
        f" two reports in a batch. If only {half} of them are honest, it is {_shown(shuffled(asked, half, delta))}. The"
        " relay cannot tell made-up reports from honest ones. If the relay and the collector work together, the first"
        " number holds, for every user.",
    ]
    if question.reports > 1:
        plain = _plain({exact(question.epsilon): question.reports})
        many = batches(asked, batch, question.reports, delta)
        lines.append(
            f"One report in each of {question.reports} batches: eps = {_show(plain.epsilon)} (local); if the relay is"
            f" honest, {_shown(many)}. If a period has too few reports, the relay may put several reports of a device"
            f" into one batch: {_shown(grouped(asked, batch, question.reports, delta))} holds however they lie."
        )
    return tuple(lines)


def _in_words(total: Total) -> str:
    """A total in one line, with the plain sum called so."""
    return str(total).replace("basic", _ADDED_UP)


def _shown(total: Total) -> str:
    """A total with four digits; without delta, the word `local` says that nothing less could be stated."""
    where = "" if total.delta == 0 else f" at delta = {total.delta:g}"
    return f"eps = {_show(total.epsilon)}{where} ({total.rule})".replace("basic", _ADDED_UP)


def _device_lines(device: Device) -> Iterator[str]:
    """The plain sum, and no other rule.

    These charges are what has happened. Questions may have been chosen, and may stop, in view of earlier answers, so
    neither their number nor their amounts were fixed beforehand. The rules with a delta hold only for what was: whoever
    stops at the worst moment gets several times the delta. The plain sum holds in every case.
    """
    charges = tally(device.charges)
    limit = "" if device.budget is None else f", of {_show(fraction_up(exact(device.budget)))} allowed in its life"
    yield f"This device so far: {_in_words(_plain(charges))}{limit}."
    yield f"Two such devices of one person or household: {_in_words(_plain(charges, 2))}."


def _plain(charges: Charges, times: int = 1) -> Total:
    return Total(fraction_up(times * basic(charges)), 0.0, "basic")


def _clear(charges: Charges, delta: float) -> Total:
    """Return the best total if it is clearly smaller than the plain sum, else the plain sum, which needs no delta."""
    best, plain = compose(charges, delta), _plain(charges)
    return best if _is_clear(best, plain) else plain


def _is_clear(best: Total, plain: Total) -> bool:
    return best.epsilon < _CLEARLY * plain.epsilon


def _show(value: float) -> str:
    """Return four significant digits, rounded up."""
    return shown(value, 4)


def _percent(value: float) -> str:
    return f"{math.ceil(value * 1000 - 1e-6) / 10:g}%"
