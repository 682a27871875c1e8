"""What docs/anonymity.md claims: the rows of all parts."""

from __future__ import annotations

import importlib
from collections.abc import Iterator

from benchmarks.row import Options, Row

__all__ = ["PARTS", "run"]

PARTS = ("blanket",)
"""The modules of this folder that make rows."""


def run(options: Options) -> Iterator[Row]:
    """Give the rows of all parts."""
    for part in PARTS:
        yield from importlib.import_module(f"benchmarks.anonymity.{part}").run(options)
