"""What every attack has: a name, a sentence, and the rows it gives."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from benchmarks.row import Row

__all__ = ["Attack"]


@dataclass(frozen=True)
class Attack:
    """One attack. Its name is given to `--only`, and begins the names of its rows."""

    name: str
    what: str
    run: Callable[[], Iterator[Row]]
