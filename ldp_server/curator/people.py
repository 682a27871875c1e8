"""A data set as a file: one row for each person, one column for each attribute.

Neighbouring data sets differ in the record of one person. So a person who has two rows is refused: what is charged for
a release would then cover half of what that person gave. An empty cell, or null, is `none`. All records are read as
text; a release of numbers reads them from there.

No error names a value. A row is named by its number.
"""

from __future__ import annotations

import csv
import hashlib
import hmac
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ldp_client.errors import InvalidSpec
from ldp_server.tables.extras import library

__all__ = ["PeopleFile", "Record", "read_people", "whole_numbers"]

Record = str | int | None
"""What one person holds in one column."""
_MOST_PEOPLE = 50_000_000
_BLOCK = 1 << 20


@dataclass(frozen=True, repr=False)
class PeopleFile:
    """The columns that a release needs, in the order of the rows."""

    people: int
    columns: dict[str, list[Record]]
    fingerprint: bytes
    """A keyed digest of the file: under which name is this content known?"""
    used: Callable[[], None] = lambda: None
    """Called before a release about these people is stored: from then on it may exist."""

    def __repr__(self) -> str:
        return f"PeopleFile({self.people:,} people, {len(self.columns)} columns)"


def read_people(path: Path, columns: Sequence[str], person: str | None, key: bytes) -> PeopleFile:
    """Read these columns of a CSV or Parquet file. `person` names the column that tells people apart.

    With None the caller vouches that each row is another person.
    """
    wanted = [*dict.fromkeys([*columns, *([person] if person else [])])]
    try:
        before = _stamp(path)
        found = _parquet(path, wanted) if path.suffix == ".parquet" else _csv(path, wanted)
        digest = hmac.new(key, digestmod=hashlib.sha256)
        with path.open("rb") as file:
            while block := file.read(_BLOCK):
                digest.update(block)
        if _stamp(path) != before:
            raise InvalidSpec(f"{path} was changed while it was read: release it when nobody writes to it")
    except OSError as error:
        raise InvalidSpec(f"cannot read {path}: {error.strerror}") from None
    people = len(found[wanted[0]])
    if not 1 <= people <= _MOST_PEOPLE:
        raise InvalidSpec(f"{path} has {people:,} rows: a data set has 1 to {_MOST_PEOPLE:,} people")
    if person is not None:
        _one_row_each(path, person, found[person])
    return PeopleFile(people, {name: found[name] for name in columns}, digest.digest())


def _stamp(path: Path) -> tuple[int, int, int]:
    """What changes if a file does: the ledger must not know other content than is released."""
    found = path.stat()
    return found.st_ino, found.st_size, found.st_mtime_ns


def _one_row_each(path: Path, person: str, names: list[Record]) -> None:
    if None in names:
        raise InvalidSpec(f"{path}: row {names.index(None) + 1:,} has no {person!r}: every row names its person")
    again = len(names) - len(set(names))
    if again:
        raise InvalidSpec(
            f"{path}: {again:,} rows are second rows of a person (column {person!r}): keep one row for each person"
        )


def _missing(path: Path, wanted: Sequence[str], there: Sequence[str]) -> InvalidSpec | None:
    """Say which column is missing. The columns that are there stay unnamed: without a header they would be a record."""
    for name in wanted:
        if there.count(name) != 1:
            many = "no" if name not in there else "more than one"
            return InvalidSpec(f"{path} has {many} column {name!r} (its first row has to name the columns)")
    return None


def _csv(path: Path, wanted: Sequence[str]) -> dict[str, list[Record]]:
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            rows = csv.reader(file, strict=True)
            header = next(rows, [])
            if (missing := _missing(path, wanted, header)) is not None:
                raise missing
            places = [header.index(name) for name in wanted]
            found: list[list[Record]] = [[] for _ in wanted]
            for number, row in enumerate(rows, 1):
                if len(row) != len(header):
                    raise InvalidSpec(f"{path}: row {number:,} has {len(row)} cells, the header has {len(header)}")
                for cells, place in zip(found, places, strict=True):
                    cells.append(row[place] or None)
    except (UnicodeDecodeError, csv.Error):
        raise InvalidSpec(f"{path} is not a CSV file in UTF-8 with a header (a .parquet file is named so)") from None
    return dict(zip(wanted, found, strict=True))


def _parquet(path: Path, wanted: Sequence[str]) -> dict[str, list[Record]]:
    pyarrow = library("pyarrow", "parquet", "a Parquet file")
    parquet = library("pyarrow.parquet", "parquet", "a Parquet file")
    try:
        with path.open("rb") as file:
            there = parquet.read_schema(file).names
            if (missing := _missing(path, wanted, there)) is not None:
                raise missing
            file.seek(0)
            read = parquet.read_table(file, columns=list(wanted))
    except pyarrow.ArrowException:
        raise InvalidSpec(f"{path} is not a Parquet file, or damaged") from None
    return {name: _records(path, name, read.column(name)) for name in wanted}


def _records(path: Path, name: str, column: Any) -> list[Record]:
    types = library("pyarrow.types", "parquet", "a Parquet file")
    kind = column.type.value_type if types.is_dictionary(column.type) else column.type
    if not (types.is_integer(kind) or types.is_string(kind) or types.is_large_string(kind) or types.is_null(kind)):
        raise InvalidSpec(f"{path}: column {name!r} holds {kind}; text and integers can be released")
    text = column.cast("string")
    found: list[Record] = [record or None for record in text.to_pylist()]
    return found


def whole_numbers(records: Sequence[Record], name: str) -> list[int]:
    """Return a column as whole numbers; raise InvalidSpec for a cell that is none, also an empty one."""
    try:
        return list(map(int, records))  # type: ignore[arg-type] # an empty cell is a TypeError, which is meant
    except (TypeError, ValueError):
        found = []
    for number, record in enumerate(records, 1):
        try:
            found.append(int(record if record is not None else ""))
        except ValueError:
            raise InvalidSpec(
                f"row {number:,}, column {name!r}: not a whole number. This release is about whole numbers, one for "
                "each person"
            ) from None
    return found
