"""What docs/anonymity.md claims: the rows of all parts."""

from __future__ import annotations

import importlib
from collections.abc import Iterator

from benchmarks.row import Options, Row

__all__ = ["PARTS", "run"]

PARTS = ("sealing", "opening", "digests", "blanket", "tokens", "relay", "linkage")
"""The modules of this folder that make rows."""


def run(options: Options) -> Iterator[Row]:
    """Give the rows of the parts that are asked for with --only, or of all."""
    for part in PARTS:
        if not options.only or part in options.only:
            yield from importlib.import_module(f"benchmarks.anonymity.{part}").run(options)
