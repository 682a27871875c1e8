"""Losses and distances of named types, and the map that follows from an estimated table of the types.

A file has a first line with names and a line for each type: its name, then numbers. The names of types are those that
`ldp-server estimate --fields` shows for the cells of the table.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ldp_client.decisions import DecisionMap
from ldp_client.errors import InvalidSpec, unread
from ldp_server.answers.estimates import Estimates
from ldp_server.answers.words import item_text, visible
from ldp_server.fairness.bias import checked_distances, earth_mover, transport_interval
from ldp_server.fairness.decisions import FairMap, affirmative_map, fair_map, whole_map
from ldp_server.oracles.base import Floats

__all__ = ["MapOutcome", "NamedTable", "made_map", "named_table", "read_named", "shares_of"]

_SHOWN = 4
_FORM = "a line of names, then lines of a type and its numbers"


@dataclass(frozen=True)
class NamedTable:
    """Numbers with the names of their lines and columns."""

    lines: tuple[str, ...]
    columns: tuple[str, ...]
    values: Floats

    def ordered(self, lines: Sequence[str], columns: Sequence[str]) -> Floats:
        """Return the numbers in another order of the same names."""
        if set(lines) != set(self.lines) or set(columns) != set(self.columns):
            raise InvalidSpec("losses and distances name the same types, each in one line")
        at, where = ([mine.index(name) for name in theirs] for mine, theirs in
                     ((self.lines, lines), (self.columns, columns)))  # fmt: skip
        return np.asarray(self.values[np.ix_(at, where)])


@dataclass(frozen=True)
class MapOutcome:
    """What a map costs, and where it was written: the output of `ldp-server fair-map --json`."""

    file: str
    types: int
    decisions: tuple[str, ...]
    reports: int
    loss: float
    """The mean loss of the map, over the people who are counted."""
    free: float
    """Where every type gets its own best decision."""
    alike: float
    """Where all types get the same chances."""
    moved: float | None = None
    """With groups: the mean distance by which the first group's people are moved onto the second's."""
    bias: float | None = None
    """With groups: the largest gap that treating similar types alike allows, an earth mover's distance."""
    bias_low: float | None = None
    bias_high: float | None = None


def read_named(file: Path) -> NamedTable:
    """Read a table with names."""
    try:
        text = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        why = unread(error, _FORM)
        raise InvalidSpec(f"cannot read {file}: {why}") from None
    return named_table(text, str(file))


def named_table(text: str, file: str) -> NamedTable:
    """Return the table that a text says; `file` is what an error names."""
    try:
        rows = [row for row in csv.reader(io.StringIO(text, newline="")) if row]
        values = np.array([[float(cell) for cell in row[1:]] for row in rows[1:]])
    except (ValueError, csv.Error):
        raise InvalidSpec(f"cannot read {file}: {_FORM}") from None
    if len(rows) < 3 or values.shape != (len(rows) - 1, len(rows[0]) - 1) or not np.isfinite(values).all():
        raise InvalidSpec(f"{file} has a line of names, then a line for each of two or more types with as many numbers")
    lines, columns = tuple(row[0].strip() for row in rows[1:]), tuple(name.strip() for name in rows[0][1:])
    if len(set(lines)) != len(lines) or len(set(columns)) != len(columns):
        raise InvalidSpec(f"{file} names something twice")
    return NamedTable(lines, columns, values)


def shares_of(answer: Estimates, types: Sequence[str]) -> Mapping[str, tuple[float, float, float]]:
    """Return how many users each type has: made possible, and the ends of its interval."""
    known = {item_text(row.item): row for row in answer.rows}
    missing = [name for name in types if name not in known]
    if missing:
        raise InvalidSpec(
            f"{len(missing)} of the types are no cells of the table, such as {visible(missing[0])!r}; its cells are "
            f"{', '.join(list(known)[:_SHOWN])}{' ...' if len(known) > _SHOWN else ''}"
        )
    return {name: (known[name].consistent or 0.0, known[name].low, known[name].high) for name in types}


def made_map(
    answer: Estimates,
    loss: NamedTable,
    distances: NamedTable,
    first: Sequence[str] = (),
    parity: float = 0.0,
) -> tuple[DecisionMap, FairMap, tuple[float, float, float] | None]:
    """Return the map for devices, what it costs, and with a first group the bias with its range."""
    types = loss.lines
    held = shares_of(answer, types)
    d = checked_distances(distances.ordered(types, types), types)
    people = np.array([held[name][0] for name in types])
    if not first:
        found = fair_map(people, loss.values, d)
        return whole_map((types, loss.columns), found, d), found, None
    if not set(first) <= set(types) or set(first) == set(types):
        raise InvalidSpec("the first group has some of the types of the losses, and not all")
    mine = np.array([name in set(first) for name in types])
    groups = np.where(mine, people, 0.0), np.where(mine, 0.0, people)
    if not all(group.sum() > 0 for group in groups):
        raise InvalidSpec("one of the groups is below the noise: nothing says how its types are spread")
    # A type that seems to have nobody still belongs to its group.
    groups = tuple(np.where(own, np.maximum(people, 1e-9 * people.sum()), 0.0) for own in (mine, ~mine))  # type: ignore[assignment]
    found = affirmative_map(groups, loss.values, d, parity)
    return whole_map((types, loss.columns), found), found, _bias(groups, held, types, d)


def _bias(
    groups: tuple[Floats, Floats], held: Mapping[str, tuple[float, float, float]], types: Sequence[str], d: Floats
) -> tuple[float, float, float]:
    near = np.minimum(d, 1.0)
    found = earth_mover(*groups, near)
    ends = []
    for group in groups:
        low, high = (np.array([held[name][i] if group[x] else 0.0 for x, name in enumerate(types)]) for i in (1, 2))
        rest_high, rest_low = high.sum() - high, low.sum() - low
        ends.append((low / np.maximum(low + rest_high, 1e-300), high / np.maximum(high + rest_low, 1e-300)))
    least, most = transport_interval((ends[0], ends[1]), found, near)
    return found.distance, least, most
