"""Answers to queries about the yes/no fields of a live collection: which share holds any, or all, of some fields.

A query is a count of the slice `AnyOf.counted`, asked like any other: for a conjunction the slice itself, for a
disjunction everybody else. So the interval of a disjunction is that of the slice, taken from all reports.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations

from ldp_client.errors import InvalidSpec
from ldp_client.protocol.domain import Domain, Record, YesNo
from ldp_server.answers.estimates import Coverage, Estimates
from ldp_server.answers.words import visible
from ldp_server.learning.queries import AnyOf
from ldp_server.oracles.base import Unsupported

__all__ = ["AskedShare", "QueriesAnswer", "asked_share", "checked", "sets_of", "told_confidence"]

_MOST = 500


@dataclass(frozen=True)
class AskedShare:
    """Which share of the users who reported fulfils a query."""

    query: str
    fields: tuple[str, ...]
    every: bool
    """All of the fields, or any of them."""
    estimate: float
    """Unbiased; noise may take it below 0 or above 1."""
    standard_error: float
    low: float
    high: float
    reports: int


@dataclass(frozen=True)
class QueriesAnswer:
    """The answers to several queries: the output of `ldp-server ask --json`."""

    collection_id: bytes
    question: str
    confidence: float
    coverage: Coverage
    rows: tuple[AskedShare, ...]


def sets_of(domain: Domain, width: int, every: bool, fields: Sequence[str] = ()) -> list[AnyOf]:
    """Return all sets of so many yes/no fields: of those that are named, or of all."""
    if not isinstance(domain, Record):
        raise Unsupported("queries about fields are asked of a domain of records; this collection has none")
    named = domain.part(fields).fields if fields else domain.fields
    held = [field.name for field in named if isinstance(field.domain, YesNo)]
    if fields and len(held) < len(named):
        other = next(field.name for field in named if not isinstance(field.domain, YesNo))
        raise InvalidSpec(f"{other!r} is no field of yes and no: a query is about those")
    if not 1 <= width <= len(held):
        raise InvalidSpec(f"a set has 1 to {len(held)} of the {len(held)} yes/no fields")
    _check_number(math.comb(len(held), width))
    return checked((AnyOf(frozenset(one), every) for one in combinations(held, width)), domain)


def checked(queries: Iterable[AnyOf], domain: Domain) -> list[AnyOf]:
    """Return queries that can be asked: of yes/no fields of the record, each once, not too many."""
    found = list(dict.fromkeys(queries))
    if not found:
        raise InvalidSpec("ask something: --any A,B, --all A,B, or --width N")
    _check_number(len(found))
    for one in found:
        for field in domain.part(sorted(one.fields)).fields if isinstance(domain, Record) else ():
            if not isinstance(field.domain, YesNo):
                raise InvalidSpec(f"{field.name!r} is no field of yes and no: a query is about those")
    return found


def _check_number(queries: int) -> None:
    if queries > _MOST:
        raise InvalidSpec(f"these are {queries:,} queries, more than {_MOST}: name some fields, or a smaller width")


def told_confidence(confidence: float, queries: int, together: bool) -> float:
    """Return the confidence to ask for each query with, so that all intervals hold together (union bound)."""
    return 1 - (1 - confidence) / queries if together else confidence


def asked_share(query: AnyOf, counted: Estimates) -> AskedShare:
    """Return the share that follows from the count of the query's slice."""
    (row,), n = counted.rows, counted.reports
    ends = row.estimate / n, row.low / n, row.high / n
    value, low, high = ends if query.every else (1 - ends[0], 1 - ends[2], 1 - ends[1])
    names = tuple(sorted(query.fields))
    words = f"{'all' if query.every else 'any'} of {', '.join(map(visible, names))}"
    return AskedShare(words, names, query.every, value, row.standard_error / n, max(0.0, low), min(1.0, high), n)
