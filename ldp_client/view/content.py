"""The contents of the user's page, as plain data: the page and `ldp-client view --json` show the same.

Looking is read-only. A ledger in any condition gives a page: what cannot be read is missing, and `problem` says why.
Items are on no disk, so they cannot be shown. What is shown of an answer is what was sent, and what that says at best.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass, field
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from ldp_client.clock import Clock, SystemClock
from ldp_client.durations import format_duration
from ldp_client.errors import PolicyRefused, StorageError
from ldp_client.explain import likelihoods, percent, would_send
from ldp_client.ledger.budget import utc
from ldp_client.ledger.database import Storage
from ldp_client.ledger.view import AnsweredView, LedgerView, MadeView, read_answered, read_ledger
from ldp_client.privacy.information import best_guess
from ldp_client.privacy.statement import QuestionTerms, privacy_statement
from ldp_client.sending.outbox import Outbox, OutboxLimits, OutboxView
from ldp_client.sending.subscription import LIST_FORKED, LIST_REFUSED, LIST_UNSEEN, held_list, kept_specs
from ldp_client.trust.policy import Policy, decimal_text
from ldp_client.volunteering import book
from ldp_client.volunteering.book import VolunteeredView

if TYPE_CHECKING:
    from ldp_client.client import Client
    from ldp_client.collection import Collection
    from ldp_client.trust.signed_list import SignedList

__all__ = ["ReportLine", "ShownQuestion", "Sight", "UserView", "user_view"]

_ANY = Policy(max_epsilon="1000000", budget="1000000", period="1 day", lifetime="1000000")
"""In place of the app's policy, where it is not known. What is left is then not shown."""
_GIVEN_UP = ("dropped", "refused ")
"""The beginnings of the counters of reports that no longer wait and were not accepted."""


_LIST_TROUBLE = {
    LIST_REFUSED: (
        "The server showed this device a signed list that it must not accept, such as a shorter or another one. It was"
        " refused, and what is held stays. Either somebody tampers with the list, or the operator has lost it."
    ),
    LIST_FORKED: (
        "This device's list is not the one that was seen elsewhere: one of the two was made for somebody alone, or a"
        " head was copied wrongly."
    ),
    LIST_UNSEEN: (
        "The server showed this device a list that too few witnesses had signed. It was not taken. This happens when"
        " witnesses are slow; if it goes on, this device may be shown a list of its own."
    ),
}


@dataclass(frozen=True)
class Sight:
    """What the page looks at: a storage, and what is known of the app that uses it."""

    storage: Storage
    policy: Policy | None = None
    """The app's policy; None if it is not known."""
    server: str = ""
    relay: str | None = None
    """Where sealed reports go; "" if the app has no relay, None if that is not known."""
    clock: Clock = field(default_factory=SystemClock)
    resumed: Callable[[], object] = lambda: None
    """Called when the user has resumed, so that the app's sender need not find out by itself."""

    @classmethod
    def of(cls, client: Client) -> Sight:
        """Return what there is to see of a client."""
        return cls(client._storage, client._policy, client._target, client._relay_target, client._clock, client.resume)


@dataclass(frozen=True)
class ReportLine:
    """One report that was made."""

    made: str
    bytes: str = field(repr=False)
    """In hexadecimal digits."""
    epsilon: str
    state: str
    says: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    """For a short list of answers: each with the chance that a device with this answer sends just these bytes."""


@dataclass(frozen=True)
class ShownQuestion:
    """One question: answered, or one that the app may ask."""

    question: str
    question_id: str
    collection_id: str
    answers: int
    spent: str
    terms: tuple[str, ...]
    """What is asked, when, and whether this device's policy allows it."""
    says: tuple[str, ...]
    """What one report, and all of them together, say at best."""
    reports: tuple[ReportLine, ...] = ()
    """The newest ones, newest first."""


@dataclass(frozen=True)
class UserView:
    """Everything that the page shows."""

    at: str
    stopped: bool
    stopped_since: str | None
    problems: tuple[str, ...]
    """One clear line for each thing that is wrong."""
    spent: tuple[str, ...]
    statement: tuple[str, ...]
    asks: tuple[str, ...]
    """Who may ask, and by which keys."""
    questions: tuple[ShownQuestion, ...]
    volunteered: tuple[str, ...]
    """Raw answers that the user gave to a curator: another promise, with another budget."""
    waiting: tuple[str, ...]
    counters: dict[str, int]
    limits: tuple[str, ...]
    """What the page cannot show."""
    trusted: bool
    """Whether the ledger can be trusted."""

    def as_dict(self) -> dict[str, Any]:
        """Return plain data."""
        return asdict(self)


CANNOT_SHOW = (
    "Your answers themselves are nowhere on this device's disk: each is randomized in memory, and only the randomized"
    " report is kept. So this page cannot show what you answered. It shows the bytes that were sent.",
    "This page is served by this device to this device. Looking at it sends nothing and changes nothing.",
)


def user_view(sight: Sight, collections: Iterable[Collection] = (), reports: int = 10) -> UserView:
    """Return what the page shows; `collections` are those that the app ships, `reports` how many of each question."""
    policy = sight.policy or _ANY
    stop = sight.storage.stop.read()
    ledger = read_ledger(sight.storage, policy, sight.clock)
    known = {one.id: one for one in collections}
    answered: tuple[AnsweredView, ...] = ()
    outbox, held = OutboxView(0, 0, None, None, {}), None
    volunteered: tuple[VolunteeredView, ...] = ()
    problem = ledger.problem
    if problem is None:
        try:
            answered = read_answered(sight.storage, reports)
            outbox = Outbox(sight.storage, OutboxLimits()).view()
            with sight.storage.reading() as (db, _):
                held = held_list(db)
                volunteered = book.look(db)
                known = {one.id: one for one in kept_specs(db)} | known
        except StorageError as error:
            problem = str(error)
    looked = _Looked(sight, known, held, outbox)
    return UserView(
        at=utc(sight.clock.time()),
        stopped=stop is not None,
        stopped_since=None if stop is None or stop.since is None else utc(stop.since),
        problems=tuple(_problems(problem, outbox)),
        spent=tuple(_spent(ledger, sight.policy)),
        statement=tuple(ledger.statement()),
        asks=tuple(_asks(sight, held)),
        questions=tuple(looked.questions(answered)),
        volunteered=tuple(_volunteered(volunteered, sight.policy)),
        waiting=tuple(_waiting(outbox)),
        counters=dict(outbox.counters),
        limits=CANNOT_SHOW,
        trusted=problem is None,
    )


def _problems(problem: str | None, outbox: OutboxView) -> Iterator[str]:
    if problem is not None:
        yield f"The ledger of this device cannot be used, so no report can be made: {problem}."
    for counter, words in _LIST_TROUBLE.items():
        if counter in outbox.counters:
            times = outbox.counters[counter]
            yield f"{words} ({counter}: {times:,} time{'s' if times > 1 else ''}.)"


def _spent(ledger: LedgerView, policy: Policy | None) -> Iterator[str]:
    if ledger.problem is not None:
        yield "The whole budget counts as spent."
        return
    spent = f"Spent in all: epsilon {decimal_text(ledger.spent)}"
    if policy is None:
        yield f"{spent}. (What is left depends on the app's policy; give it with --policy.)"
        return
    yield f"{spent}, {decimal_text(ledger.left)} left of {decimal_text(policy.lifetime)} for the life of this device."
    yield (
        f"Spent in the last {format_duration(policy.period)}: {decimal_text(ledger.spent_in_period)}, "
        f"{decimal_text(ledger.left_in_period)} left of {decimal_text(policy.budget)}."
    )
    if ledger.leased:
        yield f"{decimal_text(ledger.leased)} of this is set aside for reports in memory."
    for reset in ledger.resets:
        yield f"The ledger was reset on {utc(reset.at)}: {reset.reason} (found: {reset.found})."


def _asks(sight: Sight, held: SignedList | None) -> Iterator[str]:
    policy = sight.policy
    if sight.server:
        yield f"Reports go to {sight.server}."
    if sight.relay:
        yield f"Sealed reports go to the relay {sight.relay}, each question's on a connection of its own."
    if policy is None:
        yield "The app's policy is not known here; give it with --policy."
    else:
        yield f"One report may cost at most epsilon {decimal_text(policy.max_epsilon)}, by the app's policy."
        if policy.mechanisms is not None:
            yield f"Allowed mechanisms: {', '.join(sorted(policy.mechanisms))}."
        if policy.pinned is not None:
            yield f"The app pins {len(policy.pinned)} questions by their ids; no other is answered."
        elif not policy.list_keys:
            yield "The app asks the questions that it ships; it names no list and pins none."
        if policy.witnesses:
            yield (
                f"A list counts only if {policy.witnesses_needed} of {len(policy.witnesses)} witnesses have seen it:"
                f" {', '.join(sorted(key.hex() for key in policy.witnesses))}."
            )
        for key in sorted(policy.list_keys):
            yield f"Questions on the public list signed by this key may be asked: {key.hex()}."
    if held is not None:
        yield f"The list that this device holds has {held.serial} questions."
        yield f"It is signed by the key {held.signed.signer.hex()}."
        yield (
            f"Its root is {held.list_head.root.hex()}. Everybody who has a list of this size should have this root:"
            " compare it with the operator's page or with another device."
        )


def _volunteered(found: tuple[VolunteeredView, ...], policy: Policy | None) -> Iterator[str]:
    if not found:
        return
    yield (
        "The answers below left this device as they are, because you agreed to it. They are not randomized: the curator"
        " reads them. What the curator publishes about them is bounded by the epsilon that you agreed to."
    )
    for one in found:
        yield f"{utc(one.at)}: {one} You agreed to: {one.words}"
    spent = sum((one.charged for one in found), Fraction(0))
    total = "" if policy is None else f" of {decimal_text(policy.volunteer_lifetime)}"
    yield f"Agreed to in all: epsilon {decimal_text(spent)}{total}. This is apart from the budget of reports."


def _waiting(outbox: OutboxView) -> Iterator[str]:
    if not outbox.waiting:
        yield "Nothing waits to be sent."
    elif outbox.oldest is not None and outbox.next_due is not None:
        count = f"{outbox.waiting:,} report{'s wait' if outbox.waiting > 1 else ' waits'}"
        yield f"{count} to be sent, the oldest since {utc(outbox.oldest)}; the next is due {utc(outbox.next_due)}."
    for counter, times in outbox.counters.items():
        yield f"{counter}: {times:,}"


@dataclass(frozen=True)
class _Looked:
    """What was found, for the questions' own lines."""

    sight: Sight
    known: dict[bytes, Collection]
    held: SignedList | None
    outbox: OutboxView

    def questions(self, answered: Iterable[AnsweredView]) -> Iterator[ShownQuestion]:
        """Yield the answered questions, then those that are known and were not answered."""
        by_question = {one.question_id: one for one in self.known.values()}
        for found in answered:
            yield self._answered(found, by_question.pop(found.asked.question_id, None))
        for collection in by_question.values():
            terms = tuple(self._terms(collection))
            ids = (collection.question_id.hex(), collection.id.hex())
            says = (*would_send(collection), *_promise(collection))
            yield ShownQuestion(collection.question, *ids, 0, "0", terms, says)

    def _answered(self, found: AnsweredView, newest: Collection | None) -> ShownQuestion:
        asked, made = found.asked, found.made
        collection = self.known.get(made[0].collection_id, newest) if made else newest
        words = asked.question or (collection.question if collection else "(its words are not kept)")
        return ShownQuestion(
            question=words,
            question_id=asked.question_id.hex(),
            collection_id=made[0].collection_id.hex() if made else "",
            answers=asked.answers,
            spent=decimal_text(asked.spent),
            terms=tuple(self._terms(collection)) if collection else (),
            says=tuple(self._says(found, collection)),
            reports=tuple(self._report(one, collection) for one in made),
        )

    def _says(self, found: AnsweredView, collection: Collection | None) -> Iterator[str]:
        """A charge of 0 means that the report was paid by a lease; all reports of a question have one epsilon."""
        epsilon = max((one.epsilon for one in found.made), default=None)
        if collection is not None:
            epsilon = collection.epsilon.value
            yield from would_send(collection)[1:]
            yield from _promise(collection)
        elif not epsilon:
            yield "What these reports say at best is not known here: they were paid as part of another charge."
        if not epsilon:
            return
        if collection is None:
            yield privacy_statement(QuestionTerms(epsilon), groups=()).lines[0]
        answers = found.asked.answers
        if answers > 1:
            yield (
                f"All {answers:,} reports of this question together say at best, about an answer that never changed,"
                f" what one report with epsilon {decimal_text(epsilon * answers)} says: a fifty-fifty guess becomes"
                f" {_percent_up(best_guess(epsilon * answers, 0.5))}% sure at most."
            )

    def _terms(self, collection: Collection) -> Iterator[str]:
        asked = f"Asked from {utc(collection.opens)} until {utc(collection.closes)}"
        schedule = collection.schedule
        if schedule is not None:
            asked += f", once every {format_duration(schedule.period_seconds)}, at most {schedule.reports:,} times"
        size = collection.randomizer.report_bytes
        yield f"{asked}; a report has {size} byte{'s' if size > 1 else ''} ({collection.randomizer.name})."
        yield from self._relay(collection)
        policy = self.sight.policy
        if policy is None:
            return
        try:
            policy.check(collection, self.held.ids if self.held else None)
            yield f"The policy allows it. A report costs epsilon {collection.epsilon.text}."
        except PolicyRefused as refusal:
            yield f"The policy does not allow it: {refusal}."

    def _relay(self, collection: Collection) -> Iterator[str]:
        """Who gets the sealed reports of a question, if they pass through a relay."""
        batch, relay = collection.smallest_batch, self.sight.relay
        if batch is None:
            return
        if relay == "":
            yield "Its reports must go through a relay, and the app names none: so it is not answered."
            return
        name = f"the relay {relay}" if relay else "the relay that the app names"
        yield (
            f"Its reports are sealed and go to {name}, never straight to the collection server. Nothing is sent unless"
            f" the relay promises to pass on at least {batch:,} together."
        )

    def _report(self, one: MadeView, collection: Collection | None) -> ReportLine:
        return ReportLine(
            made=utc(one.at),
            bytes=one.report.hex(),
            epsilon=decimal_text(one.epsilon),
            state=self._state(one),
            says=tuple((name, percent(chance)) for name, chance in likelihoods(collection, one.report))
            if collection is not None
            else (),
        )

    def _state(self, one: MadeView) -> str:
        if one.due is not None:
            return f"waits; is sent about {utc(one.due)}"
        if any(name.startswith(_GIVEN_UP) for name in self.outbox.counters):
            return "sent, or given up (see the counters)"
        return "sent"


@lru_cache(maxsize=256)
def _promise(collection: Collection) -> tuple[str, ...]:
    """The privacy statement of a question, as analysts see it, without what it says of every device."""
    every = privacy_statement().lines
    return tuple(line for line in privacy_statement(collection, groups=()).lines if line not in every)


def _percent_up(value: float) -> str:
    return f"{math.ceil(value * 1000) / 10:.1f}"
