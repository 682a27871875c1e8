"""A column of a CSV file as a sample: a domain, and how many people hold each index. Nothing of it is ever logged."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from ldp_client.errors import InvalidSpec
from ldp_client.protocol.domain import Attributes, Categories, Domain, Integers, Item
from ldp_server.answers.foreign import read_counts
from ldp_server.planning import QuestionKind

__all__ = ["Sample", "read_sample"]

_AND = " + "
_NUMBER = re.compile(r"\s*-?[0-9]{1,18}\s*")
_NUMBERS = (QuestionKind.AVERAGE, QuestionKind.QUANTILES, QuestionKind.RANGES)
_SETS = (QuestionKind.ATTRIBUTES, QuestionKind.PAIRS)
_MOST = 1 << 20


@dataclass(frozen=True)
class Sample:
    """What people of a sample hold."""

    domain: Domain
    counts: tuple[float, ...]
    """For each index of the domain, `none` first."""


def read_sample(file: Path, column: str, kind: QuestionKind, between: tuple[int, int] | None = None) -> Sample:
    """Read a column for a kind of answer. An empty cell is `none`.

    Numbers: a whole number in each line; `between` is the domain (otherwise from the smallest to the largest), and
    numbers outside it are `none`. Attributes: the names that hold, with " + " between them. Otherwise any texts.
    """
    if kind is QuestionKind.HEAVY_HITTERS:
        raise InvalidSpec("a plan of heavy hitters does not depend on a sample: leave --data out")
    counts = read_counts(file, column)
    if not sum(counts.values()):
        raise InvalidSpec(f"{file} has no lines below its header")
    if kind in _NUMBERS:
        return _numbers(counts, between)
    if kind in _SETS:
        return _sets(counts)
    names = sorted(name for name in counts if name)
    if not names:
        raise InvalidSpec("the column is empty")
    return _sample(Categories(tuple(names)), {name or None: count for name, count in counts.items()})


def _numbers(counts: Mapping[str, int], between: tuple[int, int] | None) -> Sample:
    filled = {text: count for text, count in counts.items() if text.strip()}
    if not filled or not all(_NUMBER.fullmatch(text) for text in filled):
        raise InvalidSpec("the column has a cell that is no whole number: round the numbers first")
    found: dict[Item, int] = {None: sum(counts.values()) - sum(filled.values())}
    for text, count in filled.items():
        found[int(text)] = found.get(int(text), 0) + count
    values = [int(text) for text in filled]
    first, last = between if between is not None else (min(values), max(values))
    if last - first < 1 or last - first >= _MOST:
        raise InvalidSpec(
            f"a domain of numbers has 2 to {_MOST:,} of them: give --integers FIRST:LAST, or divide by a step"
        )
    return _sample(Integers(first, last - first + 1), found)


def _sets(counts: Mapping[str, int]) -> Sample:
    sets = {text: frozenset(filter(None, text.split(_AND))) for text in counts}
    names = sorted(frozenset().union(*sets.values()))
    domain = Attributes(tuple(names))
    merged: dict[Item, int] = {}
    for text, count in counts.items():
        merged[sets[text]] = merged.get(sets[text], 0) + count
    return _sample(domain, merged)


def _sample(domain: Domain, held: Mapping[Item, int]) -> Sample:
    found = [0.0] * domain.size
    for item, count in held.items():
        found[domain.index(item)] += count
    return Sample(domain, tuple(found))
