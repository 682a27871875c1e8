"""Tables, JSON and progress bars on the terminal."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from ldp_server.answers.to_json import dump
from ldp_server.answers.words import item_text, moment, number_of, signed, whole
from ldp_server.oracles.independence.result import Independence

__all__ = [
    "busy",
    "item_text",
    "lines",
    "moment",
    "number_of",
    "print_json",
    "progress_bar",
    "properties",
    "show_warnings",
    "signed",
    "table",
    "whole",
]

_ENDLESS = 100_000
"""The width of a file or a pipe, where nothing is wrapped or cut."""


def print_json(shape: Mapping[str, Any]) -> None:
    """Print one JSON object on a line of its own."""
    sys.stdout.write(dump(shape) + "\n")


def table(title: str, columns: Sequence[tuple[str, str]], rows: Iterable[Sequence[str]], caption: str = "") -> None:
    """Print a table. `columns` are names and alignments. Cells that do not fit the terminal are wrapped, never cut."""
    out = Table()
    for name, side in columns:
        out.add_column(name, justify="right" if side == "right" else "left", overflow="fold")
    _print(title, out, rows)
    if caption:
        lines(caption)


def properties(title: str, rows: Iterable[tuple[str, str]]) -> None:
    """Print names and values, one pair on each line."""
    out = Table(show_header=False)
    out.add_column(no_wrap=True)
    out.add_column(overflow="fold")
    _print(title, out, rows)


def _print(title: str, out: Table, rows: Iterable[Sequence[str]]) -> None:
    for row in rows:
        out.add_row(*(escape(cell) for cell in row))
    console = Console(highlight=False)
    if not console.is_terminal:
        console = Console(highlight=False, width=_ENDLESS)
    lines(title)
    console.print(out)


def lines(*texts: str) -> None:
    """Print plain lines."""
    console = Console(highlight=False, soft_wrap=True, markup=False)
    for text in texts:
        console.print(text)


@contextmanager
def busy(text: str, *, quiet: bool = False) -> Iterator[Callable[[str], None]]:
    """Show on standard error that work goes on. The function that is given sets the text."""
    console = Console(stderr=True, highlight=False)
    if quiet or not console.is_terminal:
        yield lambda _: None
        return
    with console.status(escape(text)) as status:
        yield lambda news: status.update(escape(news))


@contextmanager
def progress_bar(text: str, *, quiet: bool = False) -> Iterator[Callable[[str, float], None]]:
    """Show a bar on standard error. The function that is given sets its text and the part that is done, from 0 to 1."""
    console = Console(stderr=True, highlight=False)
    columns = (TextColumn("{task.description}", markup=False), BarColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True, disable=quiet or not console.is_terminal) as bar:
        task = bar.add_task(text, total=1.0)
        yield lambda stage, fraction: bar.update(task, description=stage, completed=fraction)


def show_warnings(found: Independence) -> None:
    """Print what is wrong with an answer's reports."""
    lines(*(f"Warning: {warning}" for warning in found.warnings))
