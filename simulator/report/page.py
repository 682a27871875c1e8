"""A report: one HTML page that needs nothing else, and its tables as CSV files beside it.

Plots are in the page as SVG, and so are the styles. The page loads nothing from elsewhere. Every file is written under
another name first and then renamed, the page last, so that a page that exists is complete.
"""

from __future__ import annotations

import csv
import html
import io
import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ldp_client.errors import InvalidSpec
from ldp_server.tables.plots.canvas import have_plots
from simulator.report.values import heading, plain, shown

__all__ = ["Report", "Section", "Table", "check_folder", "write_whole"]

_CSS = """
body { font: 16px/1.5 system-ui, sans-serif; color: #1a1a1a; background: #fff; max-width: 60rem; margin: 2rem auto;
       padding: 0 1rem; }
h1 { font-size: 1.6rem; margin-bottom: .2rem; } h2 { font-size: 1.2rem; margin-top: 2.2rem; }
p.lead { color: #444; } svg { max-width: 100%; height: auto; }
.scroll { overflow-x: auto; } table { border-collapse: collapse; font-size: .9rem; font-variant-numeric: tabular-nums; }
th, td { padding: .25rem .7rem; border-bottom: 1px solid #ddd; text-align: right; white-space: nowrap; }
th { border-bottom: 2px solid #888; } th:first-child, td:first-child { text-align: left; }
code { background: #f3f3f3; padding: .1rem .3rem; overflow-wrap: anywhere; }
@media print { body { margin: 0; max-width: none; } h2 { break-after: avoid; } svg, table { break-inside: avoid; } }
"""
_MISSING = "Plots need matplotlib: pip install 'hearsay[plots]'. The tables are complete."
SHOWN_ROWS = 200


@dataclass(frozen=True)
class Table:
    """Rows with named columns; the CSV file has the table's name. The page shows the first 200 rows, the file all."""

    name: str
    rows: Sequence[Mapping[str, Any]]

    @property
    def columns(self) -> list[str]:
        return list(dict.fromkeys(name for row in self.rows for name in row))

    def csv(self) -> str:
        stream = io.StringIO()
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerow(self.columns)
        writer.writerows([[plain(row.get(name)) for name in self.columns] for row in self.rows])
        return stream.getvalue()

    def html(self) -> str:
        head = "".join(f"<th>{html.escape(heading(name))}</th>" for name in self.columns)
        body = "".join(
            "<tr>" + "".join(f"<td>{html.escape(shown(row.get(name)))}</td>" for name in self.columns) + "</tr>"
            for row in self.rows[:SHOWN_ROWS]
        )
        file = f"{self.name}.csv"
        cut = len(self.rows) > SHOWN_ROWS
        note = f"The first {SHOWN_ROWS} of {len(self.rows)} rows; all of them: " if cut else "The table as a file: "
        return (
            f'<div class="scroll"><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'
            f'<p>{note}<a href="{html.escape(file)}">{html.escape(file)}</a></p>'
        )


@dataclass(frozen=True)
class Section:
    """A part of a page: a heading, a text, a plot and the table behind it."""

    title: str
    text: str = ""
    plot: Callable[[], str] | None = None
    """Draws an SVG; called when the page is written."""
    table: Table | None = None


@dataclass
class Report:
    """A page and its tables."""

    title: str
    lead: str
    command: str
    sections: list[Section] = field(default_factory=list)

    def html(self) -> str:
        parts = [
            f"<h1>{html.escape(self.title)}</h1>",
            f'<p class="lead">{html.escape(self.lead)}</p>',
            f"<p>Made by <code>{html.escape(self.command)}</code></p>",
        ]
        plots = have_plots()
        if not plots:
            parts.append(f"<p><strong>{html.escape(_MISSING)}</strong></p>")
        for section in self.sections:
            parts.append(f"<h2>{html.escape(section.title)}</h2>")
            if section.text:
                parts.append(f"<p>{html.escape(section.text)}</p>")
            if plots and section.plot is not None:
                parts.append(f"<figure>{section.plot()}</figure>")
            if section.table is not None:
                parts.append(section.table.html())
        body = "\n".join(parts)
        return (
            '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
            '<meta name="viewport" content="width=device-width, initial-scale=1">'
            f"<title>{html.escape(self.title)}</title><style>{_CSS}</style></head>\n<body>\n{body}\n</body></html>\n"
        )

    def write(self, folder: Path) -> Path:
        """Write the tables, then the page; return the page's path."""
        check_folder(folder)
        for section in self.sections:
            if section.table is not None:
                write_whole(folder / f"{section.table.name}.csv", section.table.csv())
        page = folder / "index.html"
        write_whole(page, self.html())
        return page


def check_folder(folder: Path) -> None:
    """Make the folder, or say why that fails."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InvalidSpec(f"cannot write a report to {folder}: {error.strerror}") from None
    if not os.access(folder, os.W_OK):
        raise InvalidSpec(f"cannot write a report to {folder}: no permission")


def write_whole(path: Path, data: str | bytes) -> None:
    """Write a file under another name, then rename it, so that it is never there in part."""
    part = path.with_name(f".{path.name}.part")
    try:
        part.write_bytes(data.encode() if isinstance(data, str) else data)
        part.replace(path)
    except OSError as error:
        with suppress(OSError):
            part.unlink()
        raise InvalidSpec(f"cannot write {path}: {error.strerror}") from None
