"""Work on many rows by halves, side by side if there are threads.

Without threads the halves are the same, so the result is, too. NumPy lets other threads run while it works.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

__all__ = ["by_halves"]

T = TypeVar("T")
_FEW = 1 << 11


def by_halves(work: Callable[[slice], T], rows: int, threads: ThreadPoolExecutor | None) -> list[T]:
    """Return the results for the first and the second half of so many rows; one result for a few rows."""
    if rows < _FEW:
        return [work(slice(0, rows))]
    return list((threads.map if threads else map)(work, (slice(0, rows // 2), slice(rows // 2, rows))))
