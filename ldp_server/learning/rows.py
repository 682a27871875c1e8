"""Rows of known features: read from CSV or Parquet, and turned into numbers.

A column of numbers is a feature by itself, moved to mean 0 and spread 1. Any other column has a feature for each of its
values: 1 where the row has it, else 0. Values that the rows to learn from do not have count as none of them.

A report stands in a column of its own: a whole number, or the report's bytes (`0x` and hexadecimal digits in CSV, a
column of bytes in Parquet). No error says what stands in a cell: it says the column and the line.
"""

from __future__ import annotations

import csv
import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ldp_client.collection import Collection
from ldp_client.errors import InvalidSpec, LdpError, unread
from ldp_server.arrays.packing import unpack
from ldp_server.oracles.base import Floats

__all__ = ["Column", "Encoding", "FeatureColumn", "read_columns", "reports_of"]

Column = Sequence[Any]
"""The cells of a column, one for each row: texts, numbers or bytes; None or "" is an empty one."""

_MOST_ROWS = 5_000_000
_MOST_COLUMNS = 1000


def read_columns(file: Path) -> dict[str, Column]:
    """Read a file of rows by its columns: Parquet if its name ends in .parquet, else CSV with a line of names."""
    found = _parquet(file) if file.suffix == ".parquet" else _csv(file)
    if not found or not len(next(iter(found.values()))):
        raise InvalidSpec(f"{file} has no rows")
    if len(found) > _MOST_COLUMNS:
        raise InvalidSpec(f"{file} has more than {_MOST_COLUMNS} columns: leave out what is no feature")
    return found


def _csv(file: Path) -> dict[str, Column]:
    try:
        with file.open(encoding="utf-8-sig", newline="") as stream:
            lines = csv.reader(stream, strict=True)
            names = [name.strip() for name in next(lines, [])]
            if len(set(names)) != len(names) or not all(names):
                raise InvalidSpec(f"{file} begins with a line of names, each of them once")
            rows = list(_lines(lines, len(names)))
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        why = unread(error, "it is CSV with a line of names, in UTF-8, or Parquet")
        raise InvalidSpec(f"cannot read {file}: {why}") from None
    return dict(zip(names, map(list, zip(*rows, strict=True)), strict=True)) if rows else {}


def _lines(lines: Iterator[list[str]], width: int) -> Iterator[list[str]]:
    for number, line in enumerate(lines, 2):
        if number > _MOST_ROWS:
            raise InvalidSpec(f"the file has more than {_MOST_ROWS:,} rows: take some of them")
        if not line:
            continue
        if len(line) != width:
            raise InvalidSpec(f"row {number - 1} of the file has {len(line)} cells, and there are {width} names")
        yield [cell.strip() for cell in line]


def _parquet(file: Path) -> dict[str, Column]:
    try:
        import pyarrow.parquet  # noqa: PLC0415 - an extra
    except ModuleNotFoundError:
        raise InvalidSpec(
            "rows in Parquet need pyarrow: pip install 'hearsay[parquet]'; or write them as CSV"
        ) from None
    try:
        with pyarrow.parquet.ParquetFile(file) as opened:
            if opened.metadata.num_rows > _MOST_ROWS:
                raise InvalidSpec(f"the file has more than {_MOST_ROWS:,} rows: take some of them")
            table = opened.read()
    except (OSError, pyarrow.ArrowException) as error:
        why = unread(error, "it is no Parquet file that can be opened")
        raise InvalidSpec(f"cannot read {file}: {why}") from None
    return {name: table.column(name).to_pylist() for name in table.column_names}


def reports_of(collection: Collection, name: str, cells: Column) -> npt.NDArray[np.intp]:
    """Return the reports in a column of rows as numbers; each is one that this question may have."""
    made = collection.randomizer
    found = np.empty(len(cells), np.intp)
    for place, cell in enumerate(cells):
        try:
            found[place] = _report(cell, made.report_bytes, made.bound)
        except (ValueError, TypeError, OverflowError, LdpError):
            raise InvalidSpec(
                f"row {place + 1} has no report of this question in the column {name!r}: a whole number from 0 to "
                f"{made.bound - 1}, or {made.report_bytes} byte{'s' * (made.report_bytes != 1)} (0x and hexadecimal "
                "digits in CSV)"
            ) from None
    return found


def _report(cell: Any, width: int, bound: int) -> int:
    if isinstance(cell, str) and cell[:2].lower() == "0x":
        cell = bytes.fromhex(cell[2:])
    if isinstance(cell, bytes):
        (report,) = unpack(cell, width, bound).tolist()
        return int(report)
    number = int(cell) if isinstance(cell, str) and cell.isascii() and cell.isdigit() else cell
    if not isinstance(number, int) or isinstance(number, bool) or not 0 <= number < bound:
        raise ValueError
    return number


@dataclass(frozen=True)
class FeatureColumn:
    """How a column becomes features: a number with its mean and spread, or a feature for each of some values."""

    name: str
    mean: float = 0.0
    spread: float = 1.0
    values: tuple[str, ...] | None = None
    """None: the column has numbers."""

    @property
    def features(self) -> int:
        return 1 if self.values is None else len(self.values)

    @classmethod
    def of(cls, name: str, cells: Column, most: int) -> FeatureColumn:
        """Look at the cells of the rows to learn from; `most` is how many values a column of texts has at most."""
        numbers = _numbers(cells)
        if numbers is not None:
            empty = np.flatnonzero(np.isnan(numbers))
            if len(empty):
                raise InvalidSpec(
                    f"the column {name!r} has numbers, and {len(empty):,} cells without one: fill them, or leave the "
                    "column out (--features)"
                )
            with np.errstate(over="ignore", invalid="ignore"):
                mean, spread = float(numbers.mean()), float(numbers.std())
            if not math.isfinite(mean) or not math.isfinite(spread):
                raise InvalidSpec(f"the numbers of the column {name!r} are too large: divide them")
            return cls(name, mean, spread or 1.0)
        counts = Counter(map(_text, cells))
        if len(counts) > most:
            raise InvalidSpec(
                f"the column {name!r} has {len(counts):,} different values, more than {most}: leave it out "
                "(--features), join values, or allow more (--most)"
            )
        return cls(name, values=tuple(sorted(counts)))

    def matrix(self, cells: Column) -> Floats:
        """Return a line of features for each row."""
        if self.values is None:
            numbers = _numbers(cells)
            if numbers is None or np.isnan(numbers).any():
                raise InvalidSpec(f"every cell of the column {self.name!r} is a number")
            with np.errstate(over="ignore"):
                moved = np.asarray((numbers - self.mean) / self.spread)
            if not np.isfinite(moved).all():
                raise InvalidSpec(f"the numbers of the column {self.name!r} are too large: divide them")
            return moved[:, None]
        place = {value: i for i, value in enumerate(self.values)}
        at = np.array([place.get(_text(cell), -1) for cell in cells])
        return np.asarray((at[:, None] == np.arange(len(self.values))).astype(np.float64))


@dataclass(frozen=True)
class Encoding:
    """How rows become features."""

    columns: tuple[FeatureColumn, ...]

    @classmethod
    def of(cls, columns: Mapping[str, Column], most: int) -> Encoding:
        return cls(tuple(FeatureColumn.of(name, cells, most) for name, cells in columns.items()))

    def matrix(self, columns: Mapping[str, Column]) -> Floats:
        """Return the features of rows, which have all these columns."""
        missing = [one.name for one in self.columns if one.name not in columns]
        if missing:
            raise InvalidSpec(f"the rows have no column {missing[0]!r}; they have {', '.join(columns)}")
        return np.hstack([one.matrix(columns[one.name]) for one in self.columns])


def _text(cell: Any) -> str:
    return "" if cell is None else str(cell)


def _numbers(cells: Column) -> Floats | None:
    """The cells as numbers, an empty one as not a number; None if some cell is no finite number."""
    found = np.empty(len(cells))
    for place, cell in enumerate(cells):
        if cell is None or cell == "":
            found[place] = math.nan
            continue
        try:
            found[place] = float(cell) if isinstance(cell, str | int | float) else math.nan
        except ValueError:
            return None
        if not math.isfinite(found[place]):
            return None
    return None if np.isnan(found).all() else found
