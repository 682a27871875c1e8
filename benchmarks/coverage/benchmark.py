"""Coverage of every kind of interval and verdict that answers state, and how wide the intervals are.

A row `held` has the share of claims that were true, with Wilson's 95% interval of that share. The claim is 95%, and
a row misses if its interval lies below 94%. A row `width` compares with the narrowest valid intervals (frequencies.py
says which), a row `bias` says how far the point value is off on average.

The default has a part of the grid and takes two or three minutes; `--full` has all of it and takes about an hour. Two
variables of the environment make it shorter. COVERAGE_PART=2/4 measures every fourth cell, from the second on, so that
a long run can be done in parts; any two parts are mixed alike. COVERAGE_RUNS=0.1 makes a tenth of the runs, but
at least 20 in each cell.
"""

from __future__ import annotations

import itertools
import os
import zlib
from collections.abc import Iterator

from benchmarks.coverage import frequencies, hitters, people
from benchmarks.row import Options, Row

__all__ = ["cells", "run"]

SIZES = (50, 1000, 65_536)
USERS = (1000, 30_000, 1_000_000)
EPSILONS = ("0.3", "1", "3", "10")
_RUNS = {50: 1000, 1000: 500, 65_536: 100}
_RUNS_OF_MANY = {50: 250, 1000: 150, 65_536: 50}
"""With a million users, where reports are made one by one."""
_IN_SHORT = ("randomized-response", "subset-selection")
_HASHTOGRAM = 60
_LEAST = 20

Cell = frequencies.Setting | people.PeopleCell | hitters.SketchCell


def _runs(setting: frequencies.Setting) -> int:
    runs = _RUNS[setting.size]
    if setting.users > 100_000 and setting.mechanism not in _IN_SHORT:
        runs = _RUNS_OF_MANY[setting.size]
    parameters = dict(setting.parameters)
    if parameters.get("q", 1) ** parameters.get("t", 1) > 1 << 20:
        return _LEAST  # a decoding takes seconds
    return min(runs, _HASHTOGRAM) if setting.mechanism == "hashtogram" else runs


def _part_of_the_grid() -> Iterator[tuple[frequencies.Setting, int]]:
    """Return one crowd of each question, so that each mechanism and each crowd occurs at each epsilon."""
    for size, users, runs in ((50, 1000, 300), (1000, 30_000, 200), (65_536, 30_000, 24)):
        for turn, epsilon in enumerate(EPSILONS):
            for place, setting in enumerate(frequencies.settings(size, users, epsilon)):
                if place % 4 == (turn + place // 4) % 4:
                    yield setting, runs


def _settings(*, full: bool) -> Iterator[tuple[frequencies.Setting, int]]:
    if not full:
        yield from _part_of_the_grid()
        return
    for size, users, epsilon in itertools.product(SIZES, USERS, EPSILONS):
        for setting in frequencies.settings(size, users, epsilon):
            yield setting, _runs(setting)


def cells(*, full: bool) -> list[tuple[Cell, int]]:
    """Return all cells with their numbers of runs, in an order that has nothing to do with their settings."""
    part = float(os.environ.get("COVERAGE_RUNS", "1"))
    found: list[tuple[Cell, int]] = [*_settings(full=full), *people.cells(full=full), *hitters.cells(full=full)]
    found.sort(key=lambda one: zlib.crc32(one[0].name.encode()))
    return [(cell, max(min(runs, _LEAST), round(runs * part))) for cell, runs in found]


def run(options: Options) -> Iterator[Row]:
    """Measure the cells, or the part of them that COVERAGE_PART names."""
    place, parts = (int(number) for number in os.environ.get("COVERAGE_PART", "1/1").split("/"))
    for cell, runs in cells(full=options.full)[place - 1 :: parts]:
        yield from cell.measure(runs)
