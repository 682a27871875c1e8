"""Tables of the fields of records: which table is asked for, and whom it counts.

A question about a domain of records names fields. Its items are then the cells of the table of these fields, so that
ldp_server/answers/estimates.py answers it like any other: every cell, given cells, the largest ones. `where` is a
slice: only users who hold one of the named values of each named field are counted. A slice over several values is a
roll-up, with the error of the sum. `where` without fields counts those whom it names, beside everybody else.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from ldp_client.collection import Collection
from ldp_client.errors import InvalidSpec
from ldp_client.protocol.domain import Categories, Domain, FieldItem, FieldItems, Item, Record, YesNo
from ldp_server.answers.estimates import Estimates
from ldp_server.answers.words import item_text
from ldp_server.oracles.base import Oracle, Unsupported
from ldp_server.oracles.independence.judge import accepted
from ldp_server.oracles.records.sources import AskedTable
from ldp_server.oracles.records.view import FieldsView, drawn_view, table_view

__all__ = ["COUNTED", "RecordTable", "Where", "record_of_text", "table_domain", "where_of_lines"]

Where = Mapping[str, Iterable[FieldItem]]
"""The values of each named field that count; None is its `none`."""

COUNTED = Categories(("those asked for",))
"""The domain of a count: those who are asked for, and everybody else as its `none`."""

_SHOWN = 5
_MOST_VALUES = 1 << 16


def table_domain(domain: Domain, fields: Sequence[str], where: Sequence[str]) -> Domain:
    """Return the domain of the cells of a table: the collection's own where no table is asked for."""
    if not fields and not where:
        return domain.counted
    if not isinstance(domain, Record):
        raise Unsupported("tables of fields are asked of a domain of records; this collection has none")
    return domain.part(fields) if fields else COUNTED


class RecordTable:
    """A table of some fields of a collection's records, counted for a slice of the users."""

    def __init__(self, collection: Collection, fields: Sequence[str], where: Where | None = None) -> None:
        self.fields = tuple(fields)
        given = {name: list(values) for name, values in (where or {}).items()}
        record = collection.domain
        if not isinstance(record, Record) or not (self.fields or given):
            raise Unsupported(
                f"{collection.randomizer.name} gives no tables of fields here: name some fields of a domain of records"
            )
        domain = table_domain(record, self.fields, tuple(given))
        slices = record.part(given).fields if given else ()
        self.where = tuple(_words(field.name, given[field.name]) for field in slices)
        self._record = record
        self._asked = AskedTable(
            record,
            tuple(record.names.index(name) for name in self.fields),
            tuple(
                (record.names.index(field.name), frozenset(_values(field.name, field.domain, given[field.name])))
                for field in slices
            ),
        )
        self.collection = replace(collection, domain=domain)
        """The collection with the cells of the table for its items."""

    def oracle(self, oracle: Oracle, *, alone: bool = False) -> FieldsView:
        """Return the table out of the reports, without those that no honest device sent.

        With `alone` only drawn tables with all its fields count, so that others are independent of it (`drawn_view`).
        """
        honest, seen = accepted(oracle)
        found = (drawn_view if alone else table_view)(honest, self._record, self._asked)
        found.judgement = found, seen
        return found

    @property
    def counted(self) -> tuple[Item, ...]:
        """The one item that is asked for where no fields are named."""
        return () if self.fields else COUNTED.names

    def named(self, found: Estimates) -> Estimates:
        """Return an answer that says which table it is about."""
        return replace(found, fields=self.fields, where=self.where)


def _values(name: str, domain: Domain, given: Sequence[FieldItem]) -> Iterable[int]:
    if not given:
        raise InvalidSpec(f"name at least one value of {name!r} that counts")
    for value in given:
        told = value == "yes" if isinstance(domain, YesNo) and value in ("yes", "no") else value
        try:
            index = domain.index(told)
        except TypeError as error:
            raise InvalidSpec(f"a value of {name!r} that counts: {error}") from None
        if not index and told is not None and not isinstance(told, bool):
            raise InvalidSpec(f"a value of {name!r} that counts is outside the field's domain")
        yield index


def _words(name: str, given: Sequence[FieldItem]) -> str:
    """Say a slice in words; many values are not all named."""
    if len(given) > 1 and all(type(one) is int for one in given):
        ordered = sorted(one for one in given if isinstance(one, int))
        if ordered[-1] - ordered[0] + 1 == len(set(ordered)):
            return f"{name} from {ordered[0]} to {ordered[-1]}"
    shown = [{True: "yes", False: "no"}[one] if isinstance(one, bool) else item_text(one) for one in given[:_SHOWN]]
    return f"{name}: {' or '.join(shown)}" + (f" or {len(given) - _SHOWN} more" if len(given) > _SHOWN else "")


def where_of_lines(lines: Iterable[str], source: str) -> dict[str, list[FieldItem]]:
    """Return the values of fields that count, a line a value; `source` is what an error names."""
    found: dict[str, list[FieldItem]] = {}
    for line in lines:
        name, equals, value = (part.strip() for part in line.partition("="))
        if not name or not equals:
            raise InvalidSpec(f"{source}: a line of a slice is FIELD = VALUE, or FIELD = FIRST..LAST for integers")
        between = re.fullmatch(r"(-?[0-9]{1,20})(?:\.\.(-?[0-9]{1,20}))?", value)
        values = found.setdefault(name, [])
        if between is None:
            values.append(None if value == "none" else value)
        else:
            first, last = int(between[1]), int(between[2] or between[1])
            if last - first >= _MOST_VALUES:
                raise InvalidSpec(f"{source}: a range of a slice has at most {_MOST_VALUES:,} integers")
            values.extend(range(first, last + 1))
    return found


def record_of_text(text: str) -> Item:
    """Return the record, or the cell, that a JSON object says."""
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict) or not all(one is None or isinstance(one, str | int) for one in found.values()):
        raise InvalidSpec('a record is written as a JSON object with the names of its fields, such as {"age": 30}')
    return FieldItems(found)
