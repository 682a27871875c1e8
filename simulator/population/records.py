"""Users with several fields that go together: a file of one's own, or a copula.

**A file.** CSV with a header: a column is a field, a line a user, an empty cell no answer. A column of "yes" and "no"
(or true and false) is a yes/no field. A column of few different whole numbers is a field of integers; one of many is
cut into ranges of about as many users each. Any other column is categories: its most frequent texts, and one for all
others. A column in which nearly every line differs is no field, and is refused. Nothing of the file is ever logged.

**A copula.** Each user has one number that all fields share and one for each field, all normal. A field's number is
sqrt(r) times the shared one plus sqrt(1 - r) times its own, so that two fields correlate by r. The users in rising
order of that number get the field's values, each for its share of them. The shares fall like 1, 1/2, 1/3 ...
"""

from __future__ import annotations

import csv
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from ldp_client.errors import InvalidSpec, unread
from ldp_client.protocol.domain import MAX_FIELDS, Categories, Domain, Field, Integers, Record, YesNo

__all__ = ["RecordPopulation", "correlated", "read_records"]

Values = npt.NDArray[np.int64]

_MOST_LINES = 5_000_000
_NUMBER = re.compile(r"-?[0-9]{1,15}")
_YES_NO = {"yes": True, "true": True, "no": False, "false": False}
_OTHERS = "(all others)"
_LONGEST = 100


@dataclass(frozen=True)
class RecordPopulation:
    """Users and what they hold."""

    record: Record
    values: Values
    """The index of each field, a line for each field and a column for each user."""

    @property
    def users(self) -> int:
        return int(self.values.shape[1])

    @property
    def indexes(self) -> npt.NDArray[np.uint64]:
        """The index of each user's record."""
        strides = np.array(self.record.strides[:-1], np.uint64)
        return np.asarray((self.values.astype(np.uint64) * strides[:, None]).sum(axis=0, dtype=np.uint64))

    def table(self, places: Sequence[int]) -> npt.NDArray[np.float64]:
        """Return how many users are in each cell, with the fields as axes."""
        shape = tuple(self.record.sizes[place] for place in places)
        cells = np.ravel_multi_index(tuple(self.values[place] for place in places), shape)
        return np.bincount(cells, minlength=int(np.prod(shape))).astype(np.float64).reshape(shape)

    def resampled(self, users: int, seed: int) -> RecordPopulation:
        """Return so many users, drawn from these with replacement."""
        drawn = np.random.default_rng(seed).integers(0, self.users, users)
        return RecordPopulation(self.record, self.values[:, drawn])


def correlated(sizes: Sequence[int], users: int, correlation: float, seed: int) -> RecordPopulation:
    """Return users whose fields, of so many values each, correlate by `correlation`."""
    if not 2 <= len(sizes) <= MAX_FIELDS or min(sizes) < 2 or max(sizes) > 1 << 12:
        raise InvalidSpec(f"a record of a simulation has 2 to {MAX_FIELDS} fields of 2 to 4096 values each")
    if not 0 <= correlation <= 1:
        raise InvalidSpec("the correlation is a number from 0 to 1")
    rng = np.random.default_rng(seed)
    shared, values = rng.standard_normal(users), []
    for size in sizes:
        own = np.sqrt(correlation) * shared + np.sqrt(1 - correlation) * rng.standard_normal(users)
        shares = 1 / np.arange(1, size + 1)
        ends = np.rint(np.cumsum(shares / shares.sum()) * users).astype(np.int64)
        line = np.empty(users, np.int64)
        line[np.argsort(own, kind="stable")] = 1 + np.searchsorted(ends, np.arange(users), side="right").clip(
            0, size - 1
        )
        values.append(line)
    fields = tuple(Field(f"field {number}", Integers(1, size)) for number, size in enumerate(sizes, 1))
    return RecordPopulation(Record(fields), np.array(values))


def read_records(file: Path, columns: Sequence[str] = (), most: int | Mapping[str, int] = 12) -> RecordPopulation:
    """Read a file; `most` is how many values a field has at most, besides `none`: of all fields, or of each."""
    cells = _columns(file, columns)
    fields, values = [], []
    for name, column in cells.items():
        domain, line = _field(file, name, column, most if isinstance(most, int) else most[name])
        fields.append(Field(name, domain))
        values.append(line)
    return RecordPopulation(Record(tuple(fields)), np.array(values))


def _columns(file: Path, wanted: Sequence[str]) -> dict[str, list[str]]:
    try:
        with file.open(encoding="utf-8-sig", newline="") as stream:
            rows = csv.reader(stream, strict=True)
            header = [name.strip() for name in next(rows, [])]
            if len(set(header)) != len(header) or not header:
                raise InvalidSpec(f"{file} must begin with a line of column names, each once")
            missing = [name for name in wanted if name not in header]
            if missing:
                raise InvalidSpec(f"{file} has no column {missing[0]!r}; its columns are {', '.join(header)}")
            names = list(wanted) or header
            if not 2 <= len(names) <= MAX_FIELDS:
                raise InvalidSpec(f"a simulation of records takes 2 to {MAX_FIELDS} columns: choose some (--columns)")
            places = [header.index(name) for name in names]
            lines = list(_lines(rows, len(header), places))
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        why = unread(error, "it must be CSV with a header, in UTF-8")
        raise InvalidSpec(f"cannot read {file}: {why}") from None
    if not lines:
        raise InvalidSpec(f"{file} has no lines below its header")
    return dict(zip(names, (list(column) for column in zip(*lines, strict=True)), strict=True))


def _lines(rows: Iterator[list[str]], width: int, places: Sequence[int]) -> Iterator[tuple[str, ...]]:
    for number, row in enumerate(rows, 2):
        if number > _MOST_LINES:
            raise InvalidSpec(f"the file has more than {_MOST_LINES:,} lines: take a sample of them")
        if not row:
            continue
        if len(row) != width:
            raise InvalidSpec(f"line {number} has {len(row)} cells, the header has {width}")
        yield tuple(row[place].strip() for place in places)


def _field(file: Path, name: str, column: list[str], most: int) -> tuple[Domain, Values]:
    """A column as a domain, and the index of each line."""
    counts = Counter(cell for cell in column if cell)
    if len(counts) < 1:
        raise InvalidSpec(f"the column {name!r} of {file} is empty: leave it out (--columns)")
    if len(counts) <= 2 and {cell.lower() for cell in counts} <= _YES_NO.keys():
        yes = YesNo()
        return yes, np.array([yes.index(_YES_NO.get(cell.lower())) for cell in column])
    if all(_NUMBER.fullmatch(cell) for cell in counts):
        return _numbers([int(cell) if cell else None for cell in column], most)
    if len(counts) > most and len(counts) > len(column) / 2:
        raise InvalidSpec(f"nearly every line of the column {name!r} differs: it is no field; leave it out (--columns)")
    common = [cell for cell, _ in counts.most_common(most if len(counts) <= most else most - 1)]
    shown = {cell: cell[:_LONGEST] for cell in common}
    names = tuple(dict.fromkeys(shown.values())) + ((_OTHERS,) if len(counts) > len(common) else ())
    domain = Categories(names)
    number = {cell: domain.index(shown[cell]) for cell in common} | {"": 0}
    other = domain.index(_OTHERS) if len(counts) > len(common) else 0
    return domain, np.array([number.get(cell, other) for cell in column])


def _numbers(column: list[int | None], most: int) -> tuple[Domain, Values]:
    """Integers where there are few, else ranges of about as many users."""
    held = [one for one in column if one is not None]
    low, high = min(held), max(held)
    if high - low < most:
        integers = Integers(low, high - low + 1)
        return integers, np.array([integers.index(one) for one in column])
    ordered = np.sort(np.array(held))
    ends = sorted({int(ordered[min(len(ordered) - 1, len(ordered) * part // most)]) for part in range(1, most)})
    starts = [low, *(end + 1 for end in ends if low < end + 1 <= high)]
    lasts = [start - 1 for start in starts[1:]] + [high]
    domain = Categories(tuple(f"{first} to {last}" for first, last in zip(starts, lasts, strict=True)))
    places = np.searchsorted(np.array(starts), np.array([0 if one is None else one for one in column]), side="right")
    return domain, np.where(np.array([one is None for one in column]), 0, places)
