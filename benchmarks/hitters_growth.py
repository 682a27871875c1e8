"""placeholder"""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks.row import Options, Row


def growth_rows(options: Options) -> Iterator[Row]:
    yield from ()
