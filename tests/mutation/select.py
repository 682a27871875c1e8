"""Which mutants are tried, on which tests, in which order."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from pathlib import Path

from tests.mutation.operators import Mutant
from tests.mutation.reach import VECTORS, Reach

__all__ = ["fitting", "order", "sample"]


def sample(found: Sequence[Mutant], count: int, seed: int) -> list[Mutant]:
    """A uniform sample: the mutants whose keys have the smallest hashes, in the order of the hashes.

    So a smaller sample is the beginning of a larger one, and a mutant stays in it while other files change.
    """
    return sorted(found, key=lambda m: hashlib.sha256(f"{seed}/{m.key}".encode()).digest())[:count]


def order(reach: Reach, mutant: Mutant, kills: Counter[str], everywhere: bool = False) -> list[str]:
    """The tests that reach the mutant's lines, or anything of its module, the most promising first.

    Tests that killed a mutant of the file before come first, then those of the module, of its package, the golden
    vectors, and all others; the fastest first in each class.
    """
    module = f"/test_{Path(mutant.file).stem}.py::"
    package = f"/{Path(mutant.file).parent.name}/"

    def place(test: str) -> tuple[int, int, float, str]:
        marks = (module, package, VECTORS)
        near = next((number for number, mark in enumerate(marks) if mark in f"/{test}"), len(marks))
        return -kills[test], near, reach.seconds.get(test, 1.0), test

    tests = reach.module(mutant.file) if everywhere else reach.tests(mutant.file, mutant.line, mutant.last)
    return sorted(tests, key=place)


def fitting(
    tests: Iterable[str], reach: Reach, budget: float, done: Collection[str] = (), files: int = 10**9
) -> list[str]:
    """As many of the tests as take `budget` seconds together, in at most so many files; those in `done` are left out.

    The first one always fits.
    """
    chosen: list[str] = []
    opened: set[str] = set()
    total = 0.0
    for test in tests:
        file, seconds = test.split("::")[0], reach.seconds.get(test, 1.0)
        fits = total + seconds <= budget and (file in opened or len(opened) < files)
        if test not in done and (fits or not chosen):
            chosen.append(test)
            opened.add(file)
            total += seconds
    return chosen
