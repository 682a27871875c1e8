"""How many users fulfil conditions on the fields of their records, such as "age: 2..5; dark: yes".

A condition names values of some fields; `none` stands for a field without an answer. With `otherwise` everybody else is
counted: "any of these fields" is everybody but those who hold none of them. Each count is a roll-up with the error of
the sum (ldp_server/answers/records.py), and all counts of an answer are about the same reports.

The curator answers the same conditions about volunteers (ldp_server/curator/workloads/matrix).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from ldp_client.collection import Collection
from ldp_client.errors import InvalidSpec
from ldp_client.protocol.domain import Domain, FieldItem, Integers, Item, Record, YesNo
from ldp_server.answers.columns import Column, Columns
from ldp_server.answers.estimates import Coverage, Estimate, Estimates, given_items
from ldp_server.answers.records import COUNTED, RecordTable
from ldp_server.oracles.base import Oracle, Unsupported

__all__ = ["MOST_CONDITIONS", "Condition", "condition_of_text", "conditions_answer", "read_condition", "text_indexes"]

MOST_CONDITIONS = 1000
"""Of one answer."""
_MOST_VALUES, _MOST_LISTED = 1 << 16, 1 << 20
"""Of one range, and of all conditions of an answer."""
_YES, _NO = ("yes", "true", "1"), ("no", "false", "0")

Held = dict[int, frozenset[int]]
"""The numbers of the fields that matter, and the indexes of the values of each that count."""


@dataclass(frozen=True)
class Condition:
    """Who is counted, and what an answer calls them."""

    name: str
    where: Mapping[str, Sequence[FieldItem]]
    """The values of each named field that count; None is its `none`."""
    otherwise: bool = False
    """Everybody else is counted instead."""


def text_indexes(domain: Domain) -> dict[Item, int]:
    """Return the index of each text that a file may have for a value of a field."""
    if isinstance(domain, YesNo):
        return {name: domain.index(value) for names, value in ((_YES, True), (_NO, False)) for name in names}
    found: dict[Item, int] = {}
    for index in range(1, domain.size):
        item = domain.item(index)
        found[str(item)] = index
        if isinstance(domain, Integers):
            found[item] = index
    return found


def read_condition(record: Record, text: str) -> tuple[str, Held]:
    """Read a condition, such as "age: 2..5, 8; dark: yes". Return its name, and what it is about."""
    held: Held = {}
    said = []
    for part in text.split(";"):
        name, colon, values = part.partition(":")
        if not colon or name.strip() not in record.names:
            raise InvalidSpec('a query names fields with values, such as "age: 2..5; dark: yes"')
        place = record.names.index(name.strip())
        if place in held:
            raise InvalidSpec(f"a query names each field once; {name.strip()!r} is there twice")
        listed = [value.strip() for value in values.split(",")]
        held[place] = frozenset(index for value in listed for index in _indexes(record, place, value))
        said.append(f"{name.strip()}: {', '.join(listed)}")
    return "; ".join(said), held


def _indexes(record: Record, place: int, value: str) -> range:
    field = record.fields[place]
    index = _index(field.domain, value)
    if index or value == "none" or (isinstance(field.domain, YesNo) and value in _NO):
        return range(index, index + 1)
    first, dots, last = value.partition("..")
    if dots and isinstance(field.domain, Integers):
        begin, end = _index(field.domain, first), _index(field.domain, last)
        if 0 < begin <= end < begin + _MOST_VALUES:
            return range(begin, end + 1)
    raise InvalidSpec(f'a query names values of the field {field.name!r}, "none", or a range of them such as 2..5')


def _index(domain: Domain, value: str) -> int:
    """Return the index of a value as a text; 0 if there is none. A domain of numbers may be too large to be listed."""
    if isinstance(domain, YesNo):
        return domain.index(value in _YES) if value in (*_YES, *_NO) else 0
    if not isinstance(domain, Integers):
        return domain.index(value)
    return domain.index(int(value)) if re.fullmatch("0|-?[1-9][0-9]{0,19}", value) else 0


def condition_of_text(domain: Domain, text: str) -> Condition:
    """Return the condition that a line says about a collection's records."""
    if not isinstance(domain, Record):
        raise Unsupported("conditions are asked of a domain of records; this collection has none")
    name, held = read_condition(domain, text)
    where = {
        domain.names[place]: [_value(domain.fields[place].domain, index) for index in sorted(values)]
        for place, values in held.items()
    }
    return Condition(name, where)


def _value(domain: Domain, index: int) -> FieldItem:
    found: FieldItem = domain.item(index)  # type: ignore[assignment]  # a field's items are text, integers or yes/no
    return found


def conditions_answer(
    collection: Collection,
    oracle: Oracle,
    given: Sequence[Condition | str],
    *,
    confidence: float = 0.95,
    coverage: Coverage = Coverage.EACH,
    threshold: float | None = None,
    every_look: bool = False,
) -> Estimates:
    """Estimate how many users fulfil each condition; a text is read as `condition_of_text` does."""
    if not 0 < confidence < 1:
        raise InvalidSpec("confidence lies strictly between 0 and 1, such as 0.95")
    conditions = _checked(collection, oracle, given)
    each = 1 - (1 - confidence) / (len(conditions) if coverage is Coverage.TOGETHER else 1)
    (named,) = COUNTED.names
    found = []
    for one in conditions:
        table = RecordTable(collection, (), one.where)
        asked: list[Item] = [None if one.otherwise else named]
        view = table.oracle(oracle)
        found.append(
            given_items(table.collection, view, asked, confidence=each, threshold=threshold, every_look=every_look)
        )
    rows = _named_rows(conditions, found, verdicts=threshold is not None)
    first = replace(found[0], everything_else=None, more_for_half=None)
    return replace(first, rows=rows, confidence=confidence, coverage=coverage)


def _checked(collection: Collection, oracle: Oracle, given: Sequence[Condition | str]) -> list[Condition]:
    if not 1 <= len(given) <= MOST_CONDITIONS:
        raise InvalidSpec(f"ask for 1 to {MOST_CONDITIONS:,} conditions")
    if not isinstance(collection.domain, Record):
        raise Unsupported(f"{oracle.randomizer.name} answers no conditions on fields here: ask a collection of records")
    found = [condition_of_text(collection.domain, one) if isinstance(one, str) else one for one in given]
    if sum(len(values) for one in found for values in one.where.values()) > _MOST_LISTED:
        raise InvalidSpec(f"the conditions name more than {_MOST_LISTED:,} values: ask for fewer")
    if len({one.name for one in found}) != len(found):
        raise InvalidSpec("each condition has a name of its own")
    return found


def _named_rows(conditions: Sequence[Condition], found: Sequence[Estimates], *, verdicts: bool) -> Columns[Estimate]:
    """Return the one row of each answer, with its condition's name as the item."""
    rows = [one.rows[0] for one in found]
    columns: dict[str, Column] = {
        name: np.array([getattr(row, name) for row in rows], np.float64)
        for name in ("estimate", "standard_error", "low", "high")
    }
    columns["item"] = [one.name for one in conditions]
    if verdicts:
        columns["verdict"] = [row.verdict for row in rows]
    return Columns(Estimate, columns)
