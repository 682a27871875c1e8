"""An answer as an Arrow table and as Parquet, with its metadata in the schema. This needs the extra `parquet`.

Integers that do not fit 64 bits are decimals without a fraction. The type of a column follows from the collection's
domain, not from the values, so that the answers of one collection fit together.
"""

from __future__ import annotations

from decimal import Decimal
from typing import Any, BinaryIO

from ldp_server.tables.extras import library
from ldp_server.tables.table import AnswerTable, ColumnKind, TableColumn

__all__ = ["DECIMAL_DIGITS", "arrow_table", "integer_type", "write_parquet"]

DECIMAL_DIGITS = 38
_ARROW = "Arrow and Parquet"


def integer_type(column: TableColumn) -> str:
    """Return the type of a column of integers: int64, uint64 or decimal."""
    low, high = column.bounds or (0, 0)
    if low >= -(1 << 63) and high < 1 << 63:
        return "int64"
    return "uint64" if low >= 0 and high < 1 << 64 else "decimal"


def arrow_table(table: AnswerTable) -> Any:
    """Return a pyarrow.Table whose schema has the metadata, with keys such as `hearsay.epsilon`."""
    pa = library("pyarrow", "parquet", _ARROW)
    arrays = [_array(pa, column) for column in table.columns]
    return pa.Table.from_arrays(arrays, names=list(table.names), metadata=table.metadata.as_texts())


def _array(pa: Any, column: TableColumn) -> Any:
    if column.kind is ColumnKind.INTEGER and integer_type(column) == "decimal":
        cells = [None if value is None else Decimal(int(value)) for value in column.values]
        return pa.array(cells, pa.decimal128(DECIMAL_DIGITS, 0))
    types = {
        ColumnKind.NUMBER: pa.float64(),
        ColumnKind.FLAG: pa.bool_(),
        ColumnKind.TEXT: pa.string(),
        ColumnKind.TEXTS: pa.list_(pa.string()),
    }
    kind = types.get(column.kind) or getattr(pa, integer_type(column))()
    return pa.array(column.values, kind, from_pandas=column.kind is ColumnKind.NUMBER)  # not a number: null


def write_parquet(table: AnswerTable, file: BinaryIO) -> None:
    """Write a table as Parquet to an open binary file."""
    made = arrow_table(table)
    library("pyarrow.parquet", "parquet", _ARROW).write_table(made, file, compression="zstd")
