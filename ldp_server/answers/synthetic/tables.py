r"""All tables of a question at once, and which sets of fields have a signal above the noise.

The effect of a set S of fields is what their table says beyond the tables of all smaller sets
(ldp_server/oracles/records/parts.py). It has d = prod of (s_i - 1) free numbers. If there is no effect, its estimate
has the mean square d v, v the variance of one of them; and with an effect e, at most |e|^2 + d v, whoever holds what.
So |estimate|^2/(d v) says how large the signal is against the noise, and 1 is none.

An effect is *told* if that ratio is too large for chi^2_d/d (as a normal law, Wilson and Hilferty 1931). The limit is
that of Benjamini and Hochberg (1995) for all m effects: with the probabilities of such ratios in rising order, the k
smallest are told for the largest k at which the k-th is at most k/(10 m). So of the effects that are told, a tenth are
noise on average, and a question without any effect has one in one of ten cases.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ldp_client.collection import Collection
from ldp_client.protocol.domain import Record
from ldp_server.oracles.base import Floats, Oracle, TooFewReports, Unsupported
from ldp_server.oracles.independence.judge import accepted
from ldp_server.oracles.independence.result import INDEPENDENT, Independence
from ldp_server.oracles.laws.normal import normal_tail
from ldp_server.oracles.records.parts import Places
from ldp_server.oracles.records.pooled import Pooling, subsets
from ldp_server.oracles.records.products import ProductTables
from ldp_server.oracles.records.together.joint import MOST_JOINT
from ldp_server.oracles.records.view import all_tables

__all__ = ["FieldsSignal", "FieldsTable", "TablesAnswer", "tables_answer"]

_INVENTED = 0.1


@dataclass(frozen=True)
class FieldsTable:
    """The estimates of one table."""

    fields: tuple[str, ...]
    """In the record's order."""
    estimates: tuple[float, ...]
    """Raw; the first field changes fastest."""


@dataclass(frozen=True)
class FieldsSignal:
    """What a set of fields says beyond all smaller sets of them."""

    fields: tuple[str, ...]
    ratio: float
    """The mean square of the estimated effect, over what noise alone gives: 1 is no signal."""
    told: bool
    """Whether it is told from noise."""


@dataclass(frozen=True)
class TablesAnswer:
    """All tables of a question that are part of no other one."""

    reports: int
    tables: tuple[FieldsTable, ...]
    signals: tuple[FieldsSignal, ...]
    independence: Independence = INDEPENDENT


def tables_answer(collection: Collection, oracle: Oracle) -> TablesAnswer:
    """Return all tables of a collection of records; `Unsupported` where there are none, or too many cells."""
    record = collection.domain
    if not isinstance(record, Record):
        raise Unsupported("tables of fields are asked of a domain of records; this collection has none")
    honest, seen = accepted(oracle)
    if not honest.reports:
        raise TooFewReports("this collection has no reports yet")
    pooled = all_tables(honest, record)
    cells = sum(math.prod(record.sizes[place] for place in one) for one in pooled.largest)
    if cells > MOST_JOINT:
        raise Unsupported(f"the tables of this collection have more than {MOST_JOINT:,} cells: ask for one at a time")
    if not pooled.largest:
        raise TooFewReports("nobody was asked about fields together yet: more users are needed")
    tables = tuple(
        FieldsTable(_names(record, one), tuple(pooled.table(one).ravel(order="F").tolist())) for one in pooled.largest
    )
    return TablesAnswer(honest.reports, tables, _signals(record, pooled, seen.widened), seen)


def _signals(record: Record, pooled: Pooling | ProductTables, widened: float) -> tuple[FieldsSignal, ...]:
    every = sorted({subset for one in pooled.largest for subset in subsets(one)}, key=lambda one: (len(one), one))
    ratios, chances = [], []
    for subset in every:
        free = math.prod(record.sizes[place] - 1 for place in subset)
        noise = free * pooled.variance(subset) * widened
        ratios.append(float(np.square(pooled.effect(subset)).sum()) / noise)
        deviation = 2 / (9 * free)
        chances.append((ratios[-1] ** (1 / 3) - 1 + deviation) / math.sqrt(deviation))
    told = _told(normal_tail(np.array(chances)))
    return tuple(
        FieldsSignal(_names(record, subset), ratio, bool(one))
        for subset, ratio, one in zip(every, ratios, told, strict=True)
    )


def _told(chances: Floats) -> npt.NDArray[np.bool_]:
    """Which effects are told from noise, by the probabilities that noise is as large."""
    rising, number = np.sort(chances), len(chances)
    kept = np.flatnonzero(rising <= _INVENTED * np.arange(1, number + 1) / number)
    return chances <= (rising[kept[-1]] if len(kept) else -1.0)


def _names(record: Record, places: Places) -> tuple[str, ...]:
    return tuple(record.names[place] for place in places)
