"""The privacy statement: what is promised, in numbers and in words, the same from ledger, server and
simulator.

`privacy_statement` takes what is known (a server does not know a device's other answers; a simulator knows
its crowd) and says nothing about the rest. Every number is rounded up; every total names the rule that proves
it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from fractions import Fraction
from typing import Protocol

from ldp_client.errors import InvalidSpec
from ldp_client.privacy.charges import Charges, basic, tally
from ldp_client.privacy.composition import Total, compose
from ldp_client.privacy.groups import every_group_of, group
from ldp_client.privacy.information import best_guess, mutual_information, odds_factor
from ldp_client.privacy.rounding import HasValue, Number, exact, fraction_up, shown
from ldp_client.privacy.shuffle import shuffled_epsilon

__all__ = ["Asked", "GroupLine", "PrivacyStatement", "Repeated", "privacy_statement", "statement_for"]


class Repeated(Protocol):
    """A schedule of repeated measurement."""

    @property
    def reports(self) -> int:
        """The most reports of one device."""
        ...


class Asked(Protocol):
    """What a statement has to know of a collection; ldp_client.collection.Collection is one."""

    @property
    def epsilon(self) -> HasValue:
        """Of one report."""
        ...

    @property
    def schedule(self) -> Repeated | None:
        """How often a device answers; None: once."""
        ...


@dataclass(frozen=True)
class GroupLine:
    """What is promised to a group of people."""

    people: int
    total: Total
    """For a group fixed in advance."""
    any_group: Total | None
    """For all groups of this size among the users at once; None where the number of users is not known."""


@dataclass(frozen=True)
class PrivacyStatement:
    """Numbers first; `lines` says them in words."""

    epsilon: float
    """Of one report."""
    odds: float
    """How far one report can move the odds between two items."""
    even_guess: float
    """The best that anybody can do, after one report, at a guess that was fifty-fifty before."""
    nats: float
    """The most that one report can say about its item."""
    reports: int
    """How many reports this question takes of one device at most."""
    question: Total
    """All reports of this question from one device."""
    device: Total | None
    """All reports of this device so far, every question together."""
    budget: float | None
    """What the device allows in its life."""
    groups: tuple[GroupLine, ...]
    shuffled: float | None
    """Epsilon of one report if a trusted shuffler stood between; the number is not a promise without one."""
    delta: float

    @property
    def lines(self) -> list[str]:
        """The statement in words, one line each."""
        said = [
            f"One report: eps = {_show(self.epsilon)}. Whatever it says, the odds between any two answers"
            f" change by a factor of at most {_show(self.odds)}; a fifty-fifty guess becomes at best"
            f" {_percent(self.even_guess)}; it carries at most {_show(self.nats)} nats"
            f" ({_show(self.nats / math.log(2))} bits) about the answer.",
        ]
        if self.reports > 1:
            said.append(f"This question, at most {self.reports} reports of one device: {self.question}.")
        if self.device is not None:
            limit = "" if self.budget is None else f", of {_show(self.budget)} allowed in its life (counted by adding)"
            said.append(f"This device so far: {self.device}{limit}.")
        for line in self.groups:
            name = f"A household of {line.people}" if line.people <= 9 else f"A group of {line.people} people"
            said.append(f"{name}, one such question each: {line.total}.")
            if line.any_group is not None and line.any_group.delta > 0:
                said.append(
                    f"With probability {_sure(line.any_group.delta)} no group of {line.people} people"
                    f" among the users is exposed beyond eps = {_show(line.any_group.epsilon)}."
                )
        if self.shuffled is not None:
            said.append(
                "Only if a trusted shuffler removed names, addresses and order, and all others reported"
                f" honestly: eps = {_show(self.shuffled)} at delta = {self.delta:g} for one report."
            )
        return said

    def to_dict(self) -> dict[str, object]:
        """The numbers, ready for JSON."""
        return asdict(self) | {"groups": [asdict(line) for line in self.groups], "lines": self.lines}

    def __str__(self) -> str:
        return "\n".join(self.lines)


def privacy_statement(
    epsilon: Number,
    *,
    reports: int = 1,
    device: Charges | None = None,
    budget: Number | None = None,
    groups: Sequence[int] = (5,),
    users: int | None = None,
    delta: float = 1e-6,
    shuffled: bool = False,
) -> PrivacyStatement:
    """Return the statement for one question.

    `epsilon` is that of one report and `reports` the most that one device sends for this question. `device`
    are the charges of one device so far (the ledger's), with its lifetime `budget`. `users` is the size of
    the crowd.
    """
    amount = exact(epsilon)
    if amount <= 0 or reports < 1:
        raise InvalidSpec("a statement is about at least one report with an epsilon above 0")
    charges = {amount: reports}
    lines = tuple(
        GroupLine(
            people,
            _clear(group(people, charges, delta), people * reports * amount),
            every_group_of(people, users, charges, delta) if users is not None and people <= users else None,
        )
        for people in groups
    )
    return PrivacyStatement(
        epsilon=fraction_up(amount),
        odds=odds_factor(amount),
        even_guess=best_guess(amount, 0.5),
        nats=mutual_information(amount),
        reports=reports,
        question=_clear(compose(charges, delta), reports * amount),
        device=None if device is None else _device(device, delta),
        budget=None if budget is None else fraction_up(exact(budget)),
        groups=lines,
        shuffled=shuffled_epsilon(amount, users, delta) if shuffled and users is not None and users > 1 else None,
        delta=delta,
    )


def statement_for(
    collection: Asked,
    *,
    device: Charges | None = None,
    budget: Number | None = None,
    groups: Sequence[int] = (2, 5),
    users: int | None = None,
    delta: float = 1e-6,
) -> PrivacyStatement:
    """Return the statement for a collection: what a server, a ledger and a simulator show beside it."""
    return privacy_statement(
        collection.epsilon,
        reports=1 if collection.schedule is None else collection.schedule.reports,
        device=device,
        budget=budget,
        groups=groups,
        users=users,
        delta=delta,
    )


def _device(charges: Charges, delta: float) -> Total:
    counts = tally(charges)
    if not counts:
        return Total(0.0, 0.0, "basic")
    return _clear(compose(counts, delta), basic(counts))


def _clear(best: Total, added: Fraction) -> Total:
    """Return the plain sum unless the best statement is clearly smaller: a delta has to be worth its while."""
    plain = fraction_up(added)
    return best if best.epsilon < 0.98 * plain else Total(plain, 0.0, "basic")


def _show(value: float) -> str:
    """Four significant digits, rounded up."""
    return shown(value, 4)


def _percent(value: float) -> str:
    return f"{math.ceil(value * 1000 - 1e-6) / 10:g}%"


def _sure(delta: float) -> str:
    return f"1 - {delta:g}"
