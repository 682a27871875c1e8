"""Items, numbers of users and moments in words, for tables and pages."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime

from ldp_client.protocol.domain import FieldItem, Item, as_set

__all__ = ["item_text", "moment", "number_of", "signed", "visible", "whole"]


def item_text(item: Item) -> str:
    """Write an item for a table. What cannot be printed, and the text "none", are shown in quotes."""
    if item is None:
        return "none"
    if isinstance(item, bytes):
        return repr(item)
    if isinstance(item, str):
        return item if item.isprintable() and item not in {"", "none"} else repr(item)
    if isinstance(item, Mapping):
        return ", ".join(f"{visible(name)}={_held(held)}" for name, held in item.items())
    return str(item) if isinstance(item, int) else visible(" + ".join(sorted(as_set(item)))) or "no attribute"


def _held(held: FieldItem) -> str:
    return {True: "yes", False: "no"}[held] if isinstance(held, bool) else item_text(held)


def visible(text: str) -> str:
    """Write text so that every character of it is seen: line breaks, bidi marks and the like become escapes."""
    if text.isprintable():
        return text
    return "".join(one if one.isprintable() else one.encode("unicode_escape").decode("ascii") for one in text)


def whole(value: float) -> str:
    """Write a number of users as a whole number with separators of thousands."""
    return f"{round(value):,}"


def number_of(count: float, noun: str) -> str:
    """Write a count with its noun, in the plural unless it is one."""
    return f"{whole(count)} {noun}{'' if round(count) == 1 else 's'}"


def signed(difference: float) -> str:
    """Write a difference of shares as a percentage with its sign; nothing is "-0.0%"."""
    return f"{round(difference, 3) + 0.0:+.1%}"


def moment(seconds: int | None) -> str:
    """Write a date and time; a dash if there is none."""
    if not seconds:
        return "-"
    try:
        return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M UTC")
    except (ValueError, OverflowError, OSError):
        return f"{seconds} s"
