"""An answer as a piece of an HTML page, as notebooks show it. It needs no script, no style sheet and no other file."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape

from ldp_server.tables.items import ITEM, KIND
from ldp_server.tables.table import AnswerTable, ColumnKind
from ldp_server.tables.words import COVERAGE_WORDS, item_words, number, percent, printable

__all__ = ["html_text"]

MOST_ROWS = 60


def html_text(table: AnswerTable) -> str:
    """Return the first rows of a table with the question, what the intervals mean, and the privacy statement.

    Every text of the collection is escaped, control characters too, and an item cannot turn the direction of the text
    after it.
    """
    about = table.metadata
    meaning = f"{about.reports:,} reports; {percent(about.confidence)} intervals"
    parts = [
        f"<p><strong>{_text(about.question)}</strong></p>",
        "<table>",
        f"<caption>{meaning}: {COVERAGE_WORDS.get(about.coverage, _text(about.coverage))}</caption>",
        "".join(("<thead><tr>", *(f'<th scope="col">{_text(name)}</th>' for name in _shown(table)), "</tr></thead>")),
        "<tbody>",
        *_rows(table),
        "</tbody></table>",
    ]
    more = len(table) - MOST_ROWS
    if more > 0:
        parts.append(f"<p>{more:,} more rows: to_frame(), to_csv() and to_parquet() have all.</p>")
    lines = "".join(f"<p>{_text(line)}</p>" for line in about.statement)
    parts.append(f"<details><summary>Privacy statement</summary>{lines}</details>")
    return f"<div>{''.join(parts)}</div>"


def _shown(table: AnswerTable) -> list[str]:
    return [name.replace("_", " ") for name in table.names if name != KIND]


def _rows(table: AnswerTable) -> Iterator[str]:
    kinds = {column.name: column.kind for column in table.columns}
    for row in table.rows(MOST_ROWS):
        cells = dict(zip(table.names, row, strict=True))
        if ITEM in cells:
            cells[ITEM] = item_words(cells.pop(KIND), cells[ITEM])
        yield f"<tr>{''.join(_cell(name, cell, kinds[name]) for name, cell in cells.items())}</tr>"


def _cell(name: str, cell: object, kind: ColumnKind) -> str:
    if name == ITEM or kind is ColumnKind.TEXT:
        return f"<td><bdi>{'' if cell is None else _text(str(cell))}</bdi></td>"
    if kind is ColumnKind.TEXTS:
        return f"<td><bdi>{_text(' + '.join(cell))}</bdi></td>" if isinstance(cell, tuple | list) else "<td></td>"
    if isinstance(cell, int):
        return f'<td style="text-align: right">{cell:,}</td>'
    return f'<td style="text-align: right">{number(cell) if isinstance(cell, float) else ""}</td>'


def _text(text: str) -> str:
    return escape(printable(text))
