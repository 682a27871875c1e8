"""Read items from standard input or a hidden prompt, never from the command line."""

from __future__ import annotations

import getpass
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from ldp_client.errors import InvalidSpec
from ldp_client.protocol.domain import Attributes, Record, Sets

if TYPE_CHECKING:
    from ldp_client.collection import Collection
    from ldp_client.protocol.domain import Domain, Item

__all__ = ["read_item", "read_items"]

_AND = " + "
"""Between the names of the attributes that hold."""


def read_items(collections: Sequence[Collection]) -> list[Item]:
    """Read one item for each collection, from a prompt or from standard input."""
    if sys.stdin.isatty():
        lines = [getpass.getpass(f"{c.question} (not shown; empty for nothing): ").encode() for c in collections]
    else:
        lines = [line.rstrip(b"\r\n") for line in sys.stdin.buffer.readlines(1 << 20)]
        if len(lines) > len(collections):
            raise InvalidSpec(f"standard input has more lines than there are collections ({len(collections)})")
    lines += [b""] * (len(collections) - len(lines))
    return [read_item(collection, line) for collection, line in zip(collections, lines, strict=True)]


def read_item(collection: Collection, line: bytes) -> Item:
    """Read a line as an item. A line that cannot be read as an item of the domain is reported as None."""
    if not line:
        return None
    if collection.domain.kind == "integers":
        try:
            return int(line) if len(line) <= 32 else None
        except ValueError:
            return None
    if collection.domain.kind == "strings":
        return line
    return _read_text(collection.domain, line.decode("utf-8", "replace"))


def _read_text(domain: Domain, text: str) -> Item:
    if isinstance(domain, Record):
        return _read_record(text)
    if isinstance(domain, Attributes | Sets):
        return frozenset([text] if text in domain.names else text.split(_AND))
    return text


def _read_record(text: str) -> Item:
    """Read a JSON object with the names of the fields."""
    import json

    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None
