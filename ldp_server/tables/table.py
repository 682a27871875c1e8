"""An answer as named columns of equal length, with what must stay with them: the one form that all others come from.

A row of the table is a row of the answer. How a field of the row becomes a column follows from its annotation:
- an item is two columns, `item` and `kind` (items.py);
- a float, an int, a bool and a str are a column of these; an enum is its value; a tuple of str is a column of lists;
- the fields `begins` and `ends` of a period, seconds since 1970, are texts in ISO 8601 (UTC);
- a field that is None in every row, such as a verdict without a threshold, is no column.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import MISSING, dataclass, fields
from datetime import UTC, datetime
from enum import Enum
from types import UnionType
from typing import Any, Union, cast, get_args, get_origin

import numpy as np
import numpy.typing as npt

from ldp_client.protocol.domain import Domain, Integers, Item
from ldp_server.answers.columns import Columns
from ldp_server.answers.wire import field_hints
from ldp_server.tables.items import ITEM, KIND, item_columns
from ldp_server.tables.metadata import AnswerMetadata

__all__ = ["AnswerTable", "ColumnKind", "TableColumn", "table_of", "table_of_lines"]

Values = Sequence[Any] | npt.NDArray[Any]


class ColumnKind(Enum):
    """What the cells of a column are. Any cell may also be empty."""

    NUMBER = "number"
    INTEGER = "integer"
    FLAG = "boolean"
    TEXT = "string"
    TEXTS = "strings"
    """A list of texts in each cell."""


@dataclass(frozen=True)
class TableColumn:
    """A column; an empty cell is None."""

    name: str
    kind: ColumnKind
    values: Values
    bounds: tuple[int, int] | None = None
    """Of integers: the least and the largest that the column may hold."""


@dataclass(frozen=True)
class AnswerTable:
    """Columns of equal length, and what they are about."""

    columns: tuple[TableColumn, ...]
    metadata: AnswerMetadata

    def __len__(self) -> int:
        return len(self.columns[0].values)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(column.name for column in self.columns)

    def column(self, name: str) -> list[Any]:
        """The cells of a column, as Python's own types."""
        return _plain(next(column.values for column in self.columns if column.name == name))

    def rows(self, most: int | None = None) -> Iterator[tuple[Any, ...]]:
        """The cells of each row, or of the first ones, as Python's own types."""
        return zip(*(_plain(column.values[:most]) for column in self.columns), strict=True)


def table_of(answer: Any, rows: str, extra: Sequence[str], metadata: AnswerMetadata, domain: Domain) -> AnswerTable:
    """Return an answer's rows as columns.

    `rows` is the name of the field with the rows: columns, a tuple, or one object. Each field in `extra` that is not
    None adds a last row: an object like the others, or one that lacks an item and has the field's name as its kind.
    """
    hint, value = field_hints(type(answer))[rows], getattr(answer, rows)
    kind = get_args(hint)[0] if get_origin(hint) in (Columns, tuple) else hint
    listed: Sequence[Any] = value if isinstance(value, Sequence) else (value,)
    more = [(name, getattr(answer, name)) for name in extra if getattr(answer, name) is not None]
    columns: list[TableColumn] = []
    for name, field_hint in field_hints(kind).items():
        values = _column(listed, kind, name)
        if values is None:
            continue
        if field_hint == Item:
            columns += _item_columns(values, kind, more, domain)
        else:
            columns.append(
                _typed(name, field_hint, _with(values, [getattr(one, name, None) for _, one in more]), domain)
            )
    return AnswerTable(tuple(columns), metadata)


def table_of_lines(kind: type, rows: Sequence[tuple[str, Any]], metadata: AnswerMetadata) -> AnswerTable:
    """Return rows of one dataclass, each with the label of the line that it belongs to, as columns."""
    columns = [TableColumn("label", ColumnKind.TEXT, [label for label, _ in rows])]
    for name, hint in field_hints(kind).items():
        values = [getattr(row, name) for _, row in rows]
        if name in _MOMENTS:
            columns.append(TableColumn(name, ColumnKind.TEXT, [_moment_text(value) for value in values]))
        else:
            columns.append(_typed(name, hint, values, None))
    return AnswerTable(tuple(columns), metadata)


_MOMENTS = ("begins", "ends")


def _moment_text(seconds: int) -> str:
    try:
        return datetime.fromtimestamp(seconds, UTC).isoformat()
    except (ValueError, OverflowError, OSError):  # beyond the year 9999
        return f"{seconds} s"


def _column(rows: Sequence[Any], kind: Any, name: str) -> Values | None:
    """Return a field of all rows; None if it is None in all of them, and may be."""
    optional = next(field for field in fields(kind) if field.name == name).default is not MISSING
    if isinstance(rows, Columns):
        return rows.columns.get(name, None if optional else [None] * len(rows))
    values = [getattr(row, name) for row in rows]
    return None if optional and all(value is None for value in values) else values


def _item_columns(values: Values, kind: Any, more: Sequence[tuple[str, Any]], domain: Domain) -> list[TableColumn]:
    extra = [one.item for _, one in more if isinstance(one, kind)]
    items, kinds = item_columns(cast("Sequence[Item]", _with(values, extra)), domain)
    for name, one in more:
        if not isinstance(one, kind):
            items, kinds = [*items, None], [*kinds, name.replace("_", " ")]
    shape = _ITEM_KINDS.get(domain.kind, ColumnKind.TEXT)
    return [
        TableColumn(ITEM, shape, items, _bounds(domain, ()) if shape is ColumnKind.INTEGER else None),
        TableColumn(KIND, ColumnKind.TEXT, kinds),
    ]


_ITEM_KINDS = {"integers": ColumnKind.INTEGER, "attributes": ColumnKind.TEXTS}


def _with(values: Values, more: Sequence[Any]) -> Values:
    return [*values, *more] if more else values


def _typed(name: str, hint: Any, values: Values, domain: Domain | None) -> TableColumn:
    if get_origin(hint) in (Union, UnionType):
        hint = next(one for one in get_args(hint) if one is not type(None))
    if hint is float:
        return TableColumn(name, ColumnKind.NUMBER, np.asarray(values, np.float64))  # None: not a number
    if hint is int:
        return TableColumn(name, ColumnKind.INTEGER, values, _bounds(domain, values))
    if isinstance(hint, type) and issubclass(hint, Enum):
        return TableColumn(name, ColumnKind.TEXT, [None if value is None else value.value for value in values])
    kinds: dict[Any, ColumnKind] = {bool: ColumnKind.FLAG, str: ColumnKind.TEXT, tuple: ColumnKind.TEXTS}
    return TableColumn(name, kinds[get_origin(hint) or hint], values)


def _bounds(domain: Domain | None, values: Values) -> tuple[int, int]:
    """The range of a column of integers: that of the domain, so that all answers of a collection have one type."""
    known = [int(value) for value in values if value is not None]
    if isinstance(domain, Integers):
        known += [domain.lowest, domain.highest]
    return min(known, default=0), max(known, default=0)


def _plain(values: Values) -> list[Any]:
    plain: list[Any] = values.tolist() if isinstance(values, np.ndarray) else list(values)
    return plain
