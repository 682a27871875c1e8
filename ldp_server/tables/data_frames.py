"""An answer as a data frame of pandas or polars, or as a dict of numpy columns."""

from __future__ import annotations

import importlib.util
from decimal import Decimal
from typing import Any, Literal

import numpy as np

from ldp_server.tables.arrow import DECIMAL_DIGITS, arrow_table, integer_type
from ldp_server.tables.extras import library
from ldp_server.tables.table import AnswerTable, ColumnKind, TableColumn

__all__ = ["FRAMES", "FrameLibrary", "data_frame", "installed"]

FrameLibrary = Literal["pandas", "polars", "arrow", "numpy"]
FRAMES: tuple[FrameLibrary, ...] = ("pandas", "polars", "arrow", "numpy")
_EXTRA = "frames"


def installed(name: str) -> bool:
    """Whether a library can be imported."""
    return importlib.util.find_spec(name) is not None


def data_frame(table: AnswerTable, wanted: FrameLibrary | None = None) -> Any:
    """Return a table as a frame of the wanted library, or of the first that is installed: pandas, polars, none."""
    if wanted is None:
        wanted = "pandas" if installed("pandas") else "polars" if installed("polars") else "numpy"
    if wanted == "pandas":
        return _pandas(table)
    if wanted == "polars":
        return _polars(table)
    if wanted == "arrow":
        return arrow_table(table)
    if wanted == "numpy":
        return {column.name: _numpy(column) for column in table.columns}
    raise ValueError(f"a frame is of {', '.join(FRAMES)}, not {wanted!r}")


def _numpy(column: TableColumn) -> Any:
    """Return a column as an array; one of integers with an empty cell, of texts or of lists holds Python's objects."""
    if column.kind is ColumnKind.NUMBER:
        return np.asarray(column.values, np.float64)
    if column.kind is ColumnKind.INTEGER and integer_type(column) != "decimal" and not _has_empty(column):
        return np.asarray(column.values, integer_type(column))
    if column.kind is ColumnKind.FLAG and not _has_empty(column):
        return np.asarray(column.values, bool)
    out = np.empty(len(column.values), object)
    out[:] = _tuples(column)
    return out


def _has_empty(column: TableColumn) -> bool:
    return any(value is None for value in column.values)


def _tuples(column: TableColumn) -> list[Any]:
    """The cells, with lists as tuples, which can be grouped by."""
    if column.kind is not ColumnKind.TEXTS:
        return list(column.values)
    return [None if value is None else tuple(value) for value in column.values]


def _pandas(table: AnswerTable) -> Any:
    pandas = library("pandas", _EXTRA, "a data frame of pandas")
    columns = {column.name: _pandas_column(pandas, column) for column in table.columns}
    frame = pandas.DataFrame(columns)
    frame.attrs.update(table.metadata.as_dict())
    return frame


def _pandas_column(pandas: Any, column: TableColumn) -> Any:
    if column.kind is ColumnKind.INTEGER and integer_type(column) != "decimal" and _has_empty(column):
        return pandas.array(list(column.values), dtype=integer_type(column).replace("int", "Int").replace("u", "U"))
    if column.kind is ColumnKind.TEXT:
        return pandas.array(list(column.values), dtype="str" if _strings(pandas) else object)
    return _numpy(column)


def _strings(pandas: Any) -> bool:
    """Whether this pandas has a type for text of its own."""
    return int(pandas.__version__.partition(".")[0]) >= 3


def _polars(table: AnswerTable) -> Any:
    """Through Arrow's C interface where pyarrow is installed, else column by column."""
    polars = library("polars", _EXTRA, "a data frame of polars")
    if installed("pyarrow"):
        return polars.DataFrame(arrow_table(table))
    return polars.DataFrame([_polars_column(polars, column) for column in table.columns])


def _polars_column(polars: Any, column: TableColumn) -> Any:
    if column.kind is ColumnKind.NUMBER:
        return polars.Series(column.name, np.asarray(column.values, np.float64)).fill_nan(None)
    types = {
        ColumnKind.FLAG: polars.Boolean,
        ColumnKind.TEXT: polars.String,
        ColumnKind.TEXTS: polars.List(polars.String),
    }
    kind, values = types.get(column.kind), list(column.values)
    if column.kind is ColumnKind.INTEGER:
        name = integer_type(column)
        kind = {"int64": polars.Int64, "uint64": polars.UInt64}.get(name, polars.Decimal(DECIMAL_DIGITS, 0))
        values = [
            None if value is None else Decimal(int(value)) if name == "decimal" else int(value) for value in values
        ]
    return polars.Series(column.name, values, dtype=kind)
