"""Tables for people, JSON for scripts."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from ldp_client.protocol.domain import Item
from ldp_client.protocol.v1 import analyst_pb2 as pb
from ldp_server.worker.items import from_wire

__all__ = ["item_json", "item_text", "lines", "moment", "print_json", "table", "whole"]


def print_json(value: Any) -> None:
    """One JSON document on standard output."""
    sys.stdout.write(json.dumps(value, ensure_ascii=False) + "\n")


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


def item_json(message: pb.Item) -> str | int | dict[str, str] | None:
    """An item in JSON: text as a string, integers as numbers, other bytes as {"hex": ...}."""
    item = from_wire(message)
    return {"hex": item.hex()} if isinstance(item, bytes) else item


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
