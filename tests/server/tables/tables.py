"""Tables made by hand, with cells that are chosen and not computed."""

from __future__ import annotations

from ldp_server.tables.metadata import AnswerMetadata
from ldp_server.tables.table import AnswerTable, ColumnKind, TableColumn

__all__ = ["column", "facts", "made"]

KINDS = {bool: ColumnKind.FLAG, int: ColumnKind.INTEGER, float: ColumnKind.NUMBER, str: ColumnKind.TEXT}


def facts(**changed):
    """What a table is about, with some of it changed."""
    known = {
        "question": "Which?", "collection_id": "ab" * 32, "mechanism": "randomized-response", "parameters": {},
        "domain": "categories", "epsilon": "1", "reports_per_device": 1, "period_seconds": None,
        "trust_model": "local", "unit_of_privacy": "one report", "reports": 1234, "confidence": 0.95,
        "coverage": "each", "more": {}, "statement": ("One sentence.", "Another <one>."),
    }  # fmt: skip
    return AnswerMetadata(**(known | changed))


def column(name, values, kind=None, bounds=None):
    """A column; its kind follows from the first cell that is not empty."""
    first = next((value for value in values if value is not None), "")
    found = ColumnKind.TEXTS if isinstance(first, list | tuple) else KINDS[type(first)]
    return TableColumn(name, kind or found, values, bounds)


def made(about=None, /, **columns):
    """A table of these columns."""
    return AnswerTable(tuple(column(name, values) for name, values in columns.items()), about or facts())
