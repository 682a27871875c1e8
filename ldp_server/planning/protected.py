r"""From an epsilon for each field and a workload of tables to a question's file, with what it will tell.

Every device answers every field (every-field). Of the k cells of a table of some fields with s elements each, answered
with p for the truth and q for a lie, d = p - q, a cell's count has for users who are spread evenly the variance

    product over the fields of (1/s^2 + (s - 1)/(s^2 d^2)) - 1/k^2

for one report. The estimate of a cell that most users are in may vary more. With p and q the probabilities of the truth
and of each lie, a field's part of E[g^2] is 1 + p (1 - p)/d^2 for users with the cell's value and q (1 - q)/d^2 for all
others (oracles/shared/product.py). The largest product over the fields, less 1 for users in the cell, bounds the
variance of one report, wherever the users are: the half interval that follows is stated too.

Users and error follow from each other; the epsilons are given. It is compared with what else could be
asked: one table drawn by each device, at the sum of all epsilons, where a field may cost all of it; and the same at the
least of them, which keeps to each field's epsilon too and costs a person less.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from ldp_client.collection import Collection, Details
from ldp_client.errors import InvalidSpec
from ldp_client.mechanisms.randomized_response import Response
from ldp_client.mechanisms.records.every_field import BILLION, EveryField, design
from ldp_client.protocol.domain import Record
from ldp_client.protocol.epsilon import MAX_EPSILON, Epsilon
from ldp_server.oracles.base import two_sided
from ldp_server.oracles.records.parts import Places
from ldp_server.planning.drafts import question_file
from ldp_server.planning.goals import MOST_USERS
from ldp_server.planning.promise import share_in_words
from ldp_server.planning.tables import TablesDesign, design_tables, tables_of

__all__ = [
    "EVERY_FIELD",
    "ProtectedDraft",
    "ProtectedField",
    "ProtectedGoal",
    "cell_variance",
    "draft_protected",
    "most_variance",
    "person_epsilon",
    "read_field_epsilons",
]


EVERY_FIELD = "every field"
"""What this way to ask is called where several are compared."""


@dataclass(frozen=True)
class ProtectedGoal:
    """Which tables are to be known, the epsilon of each field, and one of users and error."""

    record: Record
    workload: str | tuple[tuple[str, ...], ...]
    """"singles", "pairs", or the names of each table's fields."""
    epsilons: Mapping[str, str]
    users: int | None = None
    within: float | None = None
    confidence: float = 0.95

    def __post_init__(self) -> None:
        if (self.users is None) == (self.within is None):
            raise InvalidSpec(
                "the fields' epsilons are given: give one of users and the error, the other is worked out"
            )
        if self.users is not None and not 1 <= self.users <= MOST_USERS:
            raise InvalidSpec(f"users are a whole number from 1 to {MOST_USERS:,}")
        if self.within is not None and not (math.isfinite(self.within) and self.within > 0):
            raise InvalidSpec("the error is a number above 0, such as 0.01")


@dataclass(frozen=True)
class ProtectedField:
    """A field as it will be asked."""

    name: str
    epsilon: str
    elements: int
    within: float
    """Half an interval of one of its values by itself, as a share of the users, who are spread evenly."""
    at_most: float
    """The same wherever the users are."""


@dataclass(frozen=True)
class ProtectedDraft:
    """The file of a question that is not asked yet, and what will be learned from it."""

    text: str
    promise: tuple[str, ...]
    users: int
    epsilon: str
    """Of the person: the sum over the fields."""
    within: float
    """Half an interval of a cell, of the table that is known least, as a share of the users, who are spread evenly."""
    at_most: float
    """The same wherever the users are."""
    fields: tuple[ProtectedField, ...]
    compared: dict[str, float]
    """The standard error of each way to ask, averaged over the workload, as a share of the users."""
    collection: Collection = field(metadata={"json": "never"})


def read_field_epsilons(given: Sequence[str]) -> dict[str, str]:
    """Read the epsilon of each field: its name, and a number behind a colon."""
    found: dict[str, str] = {}
    for text in given:
        name, colon, epsilon = (part.strip() for part in text.rpartition(":"))
        if not name or not colon:
            raise InvalidSpec('the epsilon of a field is written "NAME: EPSILON", such as "age: 0.5"')
        if name in found:
            raise InvalidSpec(f"{name!r} has two epsilons: give one for each field")
        found[name] = Epsilon.parse(epsilon).text
    return found


def person_epsilon(record: Record, epsilons: Mapping[str, str]) -> Epsilon:
    """Return the sum of the fields' epsilons, which a report costs the person."""
    total = sum(design(record, epsilons)["epsilons"])
    if total > MAX_EPSILON * BILLION:
        raise InvalidSpec(
            f"the fields' epsilons add up to {total / BILLION:.9g}, and a report costs at most {MAX_EPSILON}: lower "
            "them, or leave fields out"
        )
    whole, part = divmod(total, BILLION)
    return Epsilon.parse(f"{whole}.{part:09d}")


def cell_variance(made: EveryField, places: Places) -> float:
    """Return the variance of a cell's count for one report, for users who are spread evenly."""
    found = [_own(made.responses[place]) for place in places]
    return math.prod(found) - 1 / math.prod(made.responses[place].k for place in places) ** 2


def most_variance(made: EveryField, places: Places) -> float:
    """Return the largest variance of a cell's count for one report, wherever the users are."""
    parts = [_holders(made.responses[place]) for place in places]
    largest = math.prod(own for own, _ in parts) - 1
    for at, (_, other) in enumerate(parts):
        largest = max(largest, other * math.prod(max(part) for part in (*parts[:at], *parts[at + 1 :])))
    return max(largest, cell_variance(made, places))


def _holders(response: Response) -> tuple[float, float]:
    """E[g^2] of users who hold a value, and of those who hold another one."""
    p, q = float(response.p), float(response.q)
    return 1 + p * (1 - p) / (p - q) ** 2, q * (1 - q) / (p - q) ** 2


def _own(response: Response) -> float:
    kept, s = (response.truth - response.lie) / (1 << response.word_bits), response.k
    return 1 / s**2 + (s - 1) / (s * kept) ** 2


def draft_protected(question: str, goal: ProtectedGoal, **details: object) -> ProtectedDraft:
    """Plan a question and write its file; `details` are those of `Collection.create`."""
    epsilon = person_epsilon(goal.record, goal.epsilons)
    known: Details = {**details, "parameters": design(goal.record, goal.epsilons)}  # type: ignore[typeddict-item]
    collection = Collection.create(question, goal.record, "every-field", epsilon, **known)
    made = collection.randomizer
    if not isinstance(made, EveryField):
        raise AssertionError("every-field makes the question")
    tables = tables_of(goal.record, goal.workload)
    variances = [cell_variance(made, table) for table in tables]
    users = _users(goal, max(variances), epsilon)
    reach = two_sided(goal.confidence) / math.sqrt(users)
    fields = _fields(made, goal.record, reach)
    others = dict(_others(goal, epsilon))
    compared = {EVERY_FIELD: math.sqrt(sum(variances) / len(variances) / users)}
    compared |= {name: other.standard_error(users) for name, other in others.items()}
    within = reach * math.sqrt(max(variances))
    at_most = reach * math.sqrt(max(most_variance(made, table) for table in tables))
    promise = tuple(_sentences(goal, made, users, (within, at_most), fields, compared))
    text = question_file(collection, promise)
    return ProtectedDraft(text, promise, users, epsilon.text, within, at_most, fields, compared, collection)


def _fields(made: EveryField, record: Record, reach: float) -> tuple[ProtectedField, ...]:
    """The fields; `reach` times the root of a variance is half an interval."""
    found = []
    for place, (one, size) in enumerate(zip(made.field_losses, record.sizes, strict=True)):
        even, most = (reach * math.sqrt(variance(made, (place,))) for variance in (cell_variance, most_variance))
        found.append(ProtectedField(one.name, one.epsilon.text, size, even, most))
    return tuple(found)


def _users(goal: ProtectedGoal, worst: float, epsilon: Epsilon) -> int:
    if goal.users is not None:
        return goal.users
    users = max(1, math.ceil(two_sided(goal.confidence) ** 2 * worst / (goal.within or 1.0) ** 2))
    if users > MOST_USERS:
        raise InvalidSpec(
            f"this error takes {users:,} users, {epsilon} being the sum of the epsilons, and a plan has at most "
            f"{MOST_USERS:,}: take larger epsilons, coarser fields, or tables of fewer fields"
        )
    return users


def _others(goal: ProtectedGoal, epsilon: Epsilon) -> Iterator[tuple[str, TablesDesign]]:
    """What else could be asked for this workload."""
    least = min((Epsilon.parse(text) for text in goal.epsilons.values()), key=lambda one: one.value)
    yield f"one table drawn, at {epsilon}", design_tables(goal.record, epsilon, goal.workload)[0]
    if least != epsilon:
        yield f"one table drawn, at {least}", design_tables(goal.record, least, goal.workload)[0]


def _sentences(
    goal: ProtectedGoal,
    made: EveryField,
    users: int,
    reached: tuple[float, float],
    fields: tuple[ProtectedField, ...],
    compared: Mapping[str, float],
) -> Iterator[str]:
    within, at_most = map(share_in_words, reached)
    yield (
        f"With {users:,} reports, the share of users in a cell is known to +- {within} of the users in the table that "
        f"is known least ({goal.confidence * 100:.6g}% interval), for users who are spread evenly over its cells; to "
        f"+- {at_most} wherever they are. The standard error, averaged over all tables, is "
        f"{share_in_words(compared[EVERY_FIELD])} for users spread evenly."
    )
    if reached[0] > 0.25:
        yield "Careful: this is too few users to tell most cells from empty ones."
    each = ", ".join(
        f"{one.name} {one.epsilon} (+- {share_in_words(one.within)}, at most {share_in_words(one.at_most)})"
        for one in fields
    )
    yield (
        f"Each report answers every field by itself. Epsilon per field, with the half interval of one of its values: "
        f"{each}. Per person: {made.epsilon}, the sum. If fields tell each other, only the person's number is a bound."
    )
    for response, one in zip(made.responses, fields, strict=True):
        most = int(3 * math.exp(float(response.epsilon)) + 2)
        if one.elements > most:
            yield (
                f"{one.name} has {one.elements:,} elements, and at epsilon {one.epsilon} the answers tell more than "
                f"{most} apart badly: coarser values make its errors smaller."
            )
    costs = (
        "a report costs the person as much, and each field in it up to all of that",
        "no field costs more than it does here, and a report costs the person no more than that in all",
    )
    for (name, error), cost in zip(list(compared.items())[1:], costs, strict=False):
        yield f"With {name}, the standard error would be {share_in_words(error)}: {cost}."
    size = made.report_bytes
    yield f"Half this error takes {4 * users:,} reports. A report has {size} byte{'s' * (size > 1)}."
