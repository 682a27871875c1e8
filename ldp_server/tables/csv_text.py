"""An answer as CSV: UTF-8, a first line with the names of the columns, one row a line, texts in quotes.

The columns are those of table.py. A number has all its digits, `inf` is infinity, and an empty cell is unknown. A list
is a JSON list.

A spreadsheet takes a cell that begins with =, +, - or @ for a formula, and items come from strangers. So a text that
begins with one of these signs, their full-width forms, a tab or a line break gets an apostrophe in front, which
spreadsheets show as text. A text that begins with an apostrophe gets one more. `csv_rows` takes them away again.
Numbers are written as they are. All texts are in quotes, so that a program that takes other signs than the comma for
the end of a cell finds no cell inside an item either.

The metadata of a file `answer.csv` is `answer.csv-metadata.json` beside it, as the W3C's "CSV on the Web" has it.
"""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from ldp_server.tables.items import ITEM, KIND, item_of
from ldp_server.tables.table import AnswerTable, ColumnKind, TableColumn

__all__ = ["METADATA_SUFFIX", "csv_metadata", "csv_rows", "csv_text"]

METADATA_SUFFIX = "-metadata.json"
_RISKY = tuple("=+-@\t\r\n＝＋－＠'")
_DATATYPES = {
    ColumnKind.NUMBER: "double",
    ColumnKind.INTEGER: "integer",
    ColumnKind.FLAG: "boolean",
    ColumnKind.TEXT: "string",
    ColumnKind.TEXTS: "json",
}


def csv_text(table: AnswerTable) -> str:
    """Return a table as CSV."""
    out = io.StringIO()
    writer = csv.writer(out, quoting=csv.QUOTE_NONNUMERIC, lineterminator="\n")
    writer.writerow(table.names)
    writer.writerows(zip(*(_cells(column) for column in table.columns), strict=True))
    return out.getvalue()


def _cells(column: TableColumn) -> Sequence[Any]:
    if column.kind is ColumnKind.TEXT:
        return [_guarded(value) for value in column.values]
    if column.kind is ColumnKind.TEXTS:
        return [None if value is None else json.dumps(value, ensure_ascii=False) for value in column.values]
    if column.kind is ColumnKind.NUMBER:
        numbers = np.asarray(column.values, np.float64) + 0.0  # no minus before a 0
        return [None if math.isnan(value) else value for value in numbers.tolist()]
    return list(column.values)


def _guarded(text: str | None) -> str | None:
    return f"'{text}" if text is not None and text.startswith(_RISKY) else text


def csv_rows(text: str) -> Iterable[dict[str, Any]]:
    """Yield the rows of a CSV text that `csv_text` wrote; texts are as they were, and `item` is the item itself."""
    for row in csv.DictReader(io.StringIO(text, newline="")):
        found: dict[str, Any] = {name: cell.removeprefix("'") for name, cell in row.items()}
        if KIND in found:
            kind = found[KIND]
            found[ITEM] = None if kind == "everything else" else item_of(kind, found[ITEM])
        yield found


def csv_metadata(table: AnswerTable, name: str) -> str:
    """Return the metadata of a CSV file with this name, as JSON in the form of "CSV on the Web"."""
    columns = [
        {"name": column.name, "titles": column.name, "datatype": _DATATYPES[column.kind]} for column in table.columns
    ]
    about = {
        "@context": "http://www.w3.org/ns/csvw",
        "url": name,
        "tableSchema": {"columns": columns},
        "notes": [table.metadata.as_dict()],
    }
    return json.dumps(about, ensure_ascii=False, indent=2) + "\n"
