"""What has to be asked of the reports so that they answer the same questions as a curator's release.

A release of conditions (`linear`) and one of sets of yes/no fields (`any-of`) name their rows. Here a row becomes a
condition on a collection's records. The release and the collection may list other values of a field: who holds a value
that the release does not list is among its `none`. So each value that the collection lists stands for one of the
release, and a condition of the release is one of the collection. Where the release tells values apart that the
collection does not list, the reports cannot answer, and an error says so.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations
from typing import Any

from ldp_client.errors import InvalidSpec
from ldp_client.protocol.domain import Domain, Field, FieldItem, FieldItems, Integers, Record
from ldp_server.answers.fields.conditions import MOST_CONDITIONS, Condition, Held, read_condition
from ldp_server.answers.words import item_text

__all__ = [
    "ANY_OF",
    "LINEAR",
    "OTHER_FORM",
    "NotTheSame",
    "asked_conditions",
    "asked_ranges",
    "held_by",
    "record_of",
    "row_name",
    "same_values",
]

LINEAR, ANY_OF = "linear", "any-of"
OTHER_FORM = "this release has another form than this version of the program reads"
_MOST_VALUES = 1 << 16


class NotTheSame(InvalidSpec):
    """The reports cannot answer the same question as the release. The text says why."""


def record_of(content: Mapping[str, Any]) -> Record:
    """Return the fields that a release is about."""
    return Record.from_readable({"fields": content["parameters"]["fields"]})


def row_name(record: Record, item: Mapping[str, Any]) -> str:
    """Return what a merged answer calls a row of a release of conditions; a cell has its fields in their order."""
    ((kind, value),) = item.items()
    if kind != "record":
        return str(value)
    return item_text(FieldItems({name: value[name] for name in record.names if name in value}))


def asked_conditions(content: Mapping[str, Any], domain: Domain, lines: Iterable[str] | None = None) -> list[Condition]:
    """Return the conditions of a release about a collection's domain: all, or those of some lines."""
    record = record_of(content)
    if not isinstance(domain, Record):
        raise NotTheSame(
            "this release is about fields of records, and the collection has none: its reports cannot answer the same "
            "questions"
        )
    if content["kind"] == ANY_OF:
        found = _sets(content, record, domain)
    else:
        found = [
            _condition(row_name(record, row["item"]), held_by(record, row["item"]), record, domain)
            for row in _rows(content)
        ]
    if lines is not None:
        names = {one.name for one in found}
        wanted = {line if line in names else read_condition(record, line)[0] for line in map(str.strip, lines)}
        found = [one for one in found if one.name in wanted]
        if len(found) < len(wanted):
            raise InvalidSpec("the release does not answer all of these conditions: write them as it does")
    if len(found) > MOST_CONDITIONS:
        raise InvalidSpec(
            f"the release answers {len(found):,} conditions, and at most {MOST_CONDITIONS:,} are asked at once: name "
            "some in a file (--conditions), or ask for a table (--fields)"
        )
    return found


def _rows(content: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    rows: Sequence[Mapping[str, Any]] = content["rows"]
    return rows


def held_by(record: Record, item: Mapping[str, Any]) -> Held:
    """Return what a row of the release is about."""
    ((kind, value),) = item.items()
    if kind != "record":
        return read_condition(record, str(value))[1]
    return {
        record.names.index(name): frozenset((record.fields[record.names.index(name)].domain.index(one),))
        for name, one in value.items()
    }


def _condition(name: str, held: Held, record: Record, domain: Record) -> Condition:
    where = {
        record.names[place]: _values(record.fields[place], domain, indexes) for place, indexes in sorted(held.items())
    }
    return Condition(name, where)


def _values(field: Field, domain: Record, indexes: frozenset[int]) -> list[FieldItem]:
    """Return the values of the collection's field that stand for these of the release's."""
    if field.name not in domain.names:
        raise NotTheSame(f"the collection's records have no field {field.name!r}: its reports cannot answer the same")
    asked = domain.fields[domain.names.index(field.name)].domain
    stands = same_values(field, asked)
    return [_item(asked, index) for index, place in enumerate(stands) if place in indexes]


def _item(domain: Domain, index: int) -> FieldItem:
    found: FieldItem = domain.item(index)  # type: ignore[assignment]  # a field's items are text, integers or yes/no
    return found


def same_values(field: Field, asked: Domain) -> list[int]:
    """Return, for each value of the collection's field, the index of what the release counts it as."""
    if asked.size > _MOST_VALUES:
        raise NotTheSame(f"the collection's field {field.name!r} has too many values for a condition")
    try:
        stands = [field.domain.index(_item(asked, index)) for index in range(asked.size)]
    except TypeError:
        raise NotTheSame(
            f"the field {field.name!r} holds something else in the collection than in the release"
        ) from None
    lost = sorted(set(range(field.domain.size)) - set(stands))
    if lost:
        shown = item_text(FieldItems({field.name: _item(field.domain, lost[0])}))
        raise NotTheSame(
            f"the release tells {shown} apart, and the collection's reports do not: they cannot answer the same"
        )
    return stands


def _sets(content: Mapping[str, Any], record: Record, domain: Record) -> list[Condition]:
    """Return the sets of an any-of release: everybody but those who hold none of the fields."""
    places = range(len(record.names))
    width = min(int(content["parameters"]["width"]), len(places))
    sets = [one for size in range(1, width + 1) for one in combinations(places, size)]
    names = [row_name(record, row["item"]) for row in _rows(content)]
    if names != [" or ".join(record.names[place] for place in one) for one in sets]:
        raise InvalidSpec(OTHER_FORM)
    none = frozenset((0,))
    wheres = [{record.names[place]: _values(record.fields[place], domain, none) for place in one} for one in sets]
    return [Condition(name, where, otherwise=True) for name, where in zip(names, wheres, strict=True)]


def asked_ranges(content: Mapping[str, Any], domain: Domain) -> dict[tuple[int, int], str]:
    """Return the first and the last integer of each row of a linear release about one field of whole numbers."""
    record = record_of(content)
    own = record.fields[0].domain
    if content["kind"] != LINEAR or len(record.names) != 1 or not isinstance(own, Integers):
        raise NotTheSame("ranges are merged with a linear release about one field of whole numbers")
    if not isinstance(domain, Integers) or (domain.lowest, domain.highest) != (own.lowest, own.highest):
        raise NotTheSame(
            f"the release is about whole numbers from {own.lowest} to {own.highest}, and the collection is not"
        )
    found = {}
    for row in _rows(content):
        held = sorted(held_by(record, row["item"]).get(0, ()))
        if held and held[0] > 0 and held[-1] - held[0] + 1 == len(held):
            found[own.lowest + held[0] - 1, own.lowest + held[-1] - 1] = row_name(record, row["item"])
    if not found:
        raise NotTheSame("the release has no range of whole numbers")
    return found
