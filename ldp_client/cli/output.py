"""Write lines, tables and JSON to standard output."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from fractions import Fraction

from ldp_client.trust.policy import decimal_text

__all__ = ["say", "say_json", "say_table"]


def say(line: str) -> None:
    """Write one line."""
    sys.stdout.write(line + "\n")


def say_json(data: object) -> None:
    """Write one line of JSON."""
    say(json.dumps(data, ensure_ascii=False, default=_plain))


def _plain(value: object) -> object:
    if isinstance(value, Fraction):
        return decimal_text(value)
    raise TypeError(type(value).__name__)


def say_table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Write a table of text."""
    widths = [max(len(row[i]) for row in (head, *rows)) for i in range(len(head))]
    for row in (head, tuple("-" * width for width in widths), *rows):
        say("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())
