"""What a device has spent on each field of records, beside what it has spent on the person: from its own ledger.

A report about one table of a record's fields says nothing about the other fields, and which table it was stands in the
report. So the ledger knows it already, and the account needs no entries of its own. It needs the questions: the ledger
keeps their ids and not their fields. A report that answers every field at an epsilon of its own counts with that for
the field, and with the sum of them for the person. Reports of a question that is not given count for the person alone,
and those whose mechanism looks at the whole record for all of its fields.

Fields of the same name in several questions are one field. Fields that are correlated tell about each other: the number
of a field is the loss between two records that differ in it alone. That of the person covers everything.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

from ldp_client.ledger.view import AnsweredView, MadeView
from ldp_client.mechanisms.records.sampled_table import SampledTable
from ldp_client.privacy.attributes import AttributeFilter
from ldp_client.protocol.domain import Record
from ldp_client.trust.policy import decimal_text

if TYPE_CHECKING:
    from ldp_client.collection import Collection

__all__ = ["FieldTotals", "field_totals"]


@dataclass(frozen=True)
class FieldTotals:
    """The losses so far, by plain addition."""

    person: Fraction
    """Of all reports, whatever they are about, and of all that is set aside: what the ledger calls spent."""
    fields: Mapping[str, Fraction]
    """Of the reports that were about each field."""
    elsewhere: Fraction
    """The part of the person's that is about no field of the questions that were given."""

    def __str__(self) -> str:
        each = ", ".join(f"{name} {decimal_text(spent)}" for name, spent in self.fields.items())
        return f"per field: {each or 'none'}; the person: {decimal_text(self.person)}"


def field_totals(spent: Fraction, answered: Iterable[AnsweredView], asked: Iterable[Collection]) -> FieldTotals:
    """Return both accounts; `spent` is the ledger's total, and `asked` are the questions about records."""
    known = {one.question_id: one for one in asked if isinstance(one.domain, Record)}
    names = list(dict.fromkeys(name for one in known.values() for name in _names(one)))
    if not names:
        return FieldTotals(spent, {}, spent)
    both = AttributeFilter(dict.fromkeys(names, spent), spent)
    for question in answered:
        collection = known.get(question.asked.question_id)
        if collection is not None:
            for made in question.made:
                if made.epsilon > 0:
                    for touched, epsilon in _spent(collection, made):
                        both.spend(touched, epsilon)
    return FieldTotals(spent, both.attributes, spent - both.person)


def _names(collection: Collection) -> tuple[str, ...]:
    return collection.domain.names if isinstance(collection.domain, Record) else ()


def _spent(collection: Collection, made: MadeView) -> Iterator[tuple[tuple[str, ...], Fraction]]:
    """What a report costs: sets of fields with their epsilons, which add up to what the person is charged."""
    names, randomizer = _names(collection), collection.randomizer
    if isinstance(randomizer, SampledTable):
        table = randomizer.tables[randomizer.drawn(int.from_bytes(made.report, "little"))]
        yield tuple(names[place] for place in table.places), made.epsilon
    elif randomizer.field_losses:
        for one in randomizer.field_losses:
            yield (one.name,), one.epsilon.value
    else:
        yield names, made.epsilon
