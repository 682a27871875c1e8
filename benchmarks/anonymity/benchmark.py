"""Everything about anonymity: each module of this folder that has `rows` adds its own."""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks.anonymity import sealing
from benchmarks.row import Options, Row

__all__ = ["run"]

PARTS = {"sealing": sealing.rows}


def run(options: Options) -> Iterator[Row]:
    """Measure the parts that are asked for with --only, or all of them."""
    for name, rows in PARTS.items():
        if not options.only or name in options.only:
            yield from rows(options)
