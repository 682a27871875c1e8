"""Tables for people, JSON for scripts."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from ldp_client.protocol.domain import Item
from ldp_server.answers.to_json import dump

__all__ = ["busy", "item_text", "lines", "moment", "print_json", "table", "whole"]


def print_json(shape: Mapping[str, Any]) -> None:
    """One JSON object on a line of its own."""
    sys.stdout.write(dump(shape) + "\n")


def table(title: str, columns: Sequence[tuple[str, str]], rows: Iterable[Sequence[str]], caption: str = "") -> None:
    """A table; `columns` are names and sides."""
    out = Table(title=escape(title), caption=escape(caption), title_justify="left", caption_justify="left")
    for name, side in columns:
        out.add_column(name, justify="right" if side == "right" else "left", overflow="fold")
    for row in rows:
        out.add_row(*(escape(cell) for cell in row))
    Console(highlight=False).print(out)


def lines(*texts: str) -> None:
    """Plain lines."""
    console = Console(highlight=False, soft_wrap=True, markup=False)
    for text in texts:
        console.print(text)


def item_text(item: Item) -> str:
    """An item in a table: what cannot be printed is shown as escapes."""
    if item is None:
        return "(none)"
    if isinstance(item, bytes):
        return repr(item)
    if isinstance(item, str):
        return item if item.isprintable() and item else repr(item)
    return str(item)


@contextmanager
def busy(text: str, *, quiet: bool = False) -> Iterator[Callable[[str], None]]:
    """Something that turns while long work goes on, on standard error; the function given renews its text."""
    console = Console(stderr=True, highlight=False)
    if quiet or not console.is_terminal:
        yield lambda _: None
        return
    with console.status(escape(text)) as status:
        yield lambda news: status.update(escape(news))


def whole(value: float) -> str:
    """A number of users: whole, with thousands apart."""
    return f"{round(value):,}"


def moment(seconds: int) -> str:
    """A point in time."""
    if not seconds:
        return "-"
    try:
        return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M UTC")
    except (ValueError, OverflowError):
        return f"{seconds} s"
