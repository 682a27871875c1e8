r"""The joint law with the most entropy that has the estimated tables; records from it.

1. Where no effect at all is told from noise, there is no law: "no signal". Else each effect is multiplied by
   1 - 1/ratio^2, ratio being its size against the noise (tables.py), and left out where that is negative: most of what
   is noise goes, and what is clear stays as it is. A law may also be *strict*: of the effects that are told alone. It
   invents nothing, and what is weak and true is lost.
2. The tables that remain are made possible together (ldp_server/oracles/records/together/joint.py), and a thousandth
   of an even table is added, so that no cell is impossible.
3. The law p over all cells of the record starts even. For one table after the other it is multiplied by the table over
   that of p. This is iterative proportional fitting: multiplicative weights with exact steps. If any law has all these
   tables, it ends at the one with the most entropy, in which nothing goes together that the tables do not say.
4. N records are drawn at N places at equal distances along the sums of p, with one random start, and shuffled. A cell
   has N p records, rounded up or down, so that the records' tables are nearer to those of p than those of N users are.

The law has as many numbers as the record has cells, so that a record of more than 2^23 cells is refused: fewer fields
can be named. All of this is post-processing of estimates: it uses no privacy.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ldp_client.errors import InvalidSpec
from ldp_client.protocol.domain import Record
from ldp_server.answers.synthetic.tables import FieldsSignal, TablesAnswer
from ldp_server.oracles.base import Floats, TooFewReports
from ldp_server.oracles.records.parts import Places, centred, marginal
from ldp_server.oracles.records.pooled import subsets
from ldp_server.oracles.records.together.joint import all_possible

__all__ = ["MOST_RECORDS", "MOST_RECORD_CELLS", "JointLaw", "cleaned", "fitted"]

MOST_RECORD_CELLS = 1 << 23
MOST_RECORDS = 10_000_000
_EVEN = 1e-3
_PASSES = 60
_STILL = 2e-3
"""Of all users, in the wrong cells of a table: far less than the tables' own errors."""

Telling = Callable[[str, float], None]


@dataclass(frozen=True)
class JointLaw:
    """A law of whole records."""

    record: Record
    """Of the fields that it has."""
    shares: Floats
    """With the fields as axes; they add up to 1."""
    left_out: tuple[tuple[str, ...], ...]
    """The sets of fields whose effect was left out."""

    def table(self, fields: Sequence[str]) -> Floats:
        """Return the share of each cell; the first field changes fastest."""
        places = tuple(sorted(self.record.names.index(name) for name in fields))
        kept = marginal(self.shares, tuple(range(self.shares.ndim)), places)
        return kept.transpose([places.index(self.record.names.index(name)) for name in fields]).ravel(order="F")

    def drawn(self, records: int, seed: int | None = None) -> npt.NDArray[np.intp]:
        """Return the index of each field of so many records, a line for each field."""
        if not 1 <= records <= MOST_RECORDS:
            raise InvalidSpec(f"the number of records is from 1 to {MOST_RECORDS:,}")
        rng = np.random.default_rng(seed)
        sums = np.cumsum(self.shares.ravel())
        places = (np.arange(records) + rng.random()) / records * sums[-1]
        cells = np.minimum(np.searchsorted(sums, places, side="right"), len(sums) - 1)
        return np.array(np.unravel_index(rng.permutation(cells), self.shares.shape))


def fitted(
    record: Record,
    found: TablesAnswer,
    fields: Sequence[str] = (),
    *,
    strict: bool = False,
    progress: Telling = lambda _stage, _part: None,
) -> JointLaw:
    """Fit a law to all tables, or to those of some fields."""
    part = _part(record, found, fields)
    if part.size > MOST_RECORD_CELLS:
        raise InvalidSpec(
            f"records of these fields have {part.size:,} different contents, and a law is fitted to at most "
            f"{MOST_RECORD_CELLS:,}: name fewer fields"
        )
    part, possible = cleaned(record, found, fields, strict=strict)
    told = {frozenset(one.fields): _factor(one, strict) for one in found.signals}
    effects = sorted({subset for places in possible for subset in subsets(places)}, key=lambda one: (len(one), one))
    named = [tuple(part.names[place] for place in subset) for subset in effects]
    left = tuple(names for names in named if not told.get(frozenset(names), 0.0))
    return JointLaw(part, _proportional(part.sizes, possible, progress), left)


def cleaned(
    record: Record, found: TablesAnswer, fields: Sequence[str] = (), *, strict: bool = False
) -> tuple[Record, dict[Places, Floats]]:
    """Return the fields that tables tell about, and these tables without noise (steps 1 and 2)."""
    part = _part(record, found, fields)
    if not any(one.told for one in found.signals if set(one.fields) <= set(part.names)):
        raise TooFewReports(
            f"no signal: with {found.reports:,} reports no table of these fields is told from one whose cells are all "
            "alike, and records would be invented. More users, fewer fields or coarser ones are needed"
        )
    told = {frozenset(one.fields): _factor(one, strict) for one in found.signals}
    return part, all_possible(found.reports, part.sizes, _shrunk(record, part, found, told))


def _part(record: Record, found: TablesAnswer, fields: Sequence[str]) -> Record:
    known = {name for one in found.tables for name in one.fields}
    part = record.part(fields) if fields else record.part([name for name in record.names if name in known])
    unseen = [name for name in part.names if name not in known]
    if unseen:
        raise InvalidSpec(f"no table tells about the field {unseen[0]!r} yet: leave it out")
    return part


def _factor(one: FieldsSignal, strict: bool) -> float:
    return 0.0 if one.ratio <= 1 or (strict and not one.told) else 1 - 1 / one.ratio**2


def _shrunk(
    record: Record, part: Record, found: TablesAnswer, told: Mapping[frozenset[str], float]
) -> dict[Places, Floats]:
    """The tables of these fields alone, without what is not told; none of them lies in another one."""
    tables: dict[Places, Floats] = {}
    for one in found.tables:
        names = [name for name in part.names if name in one.fields]
        if not names:
            continue
        sizes = [record.sizes[record.names.index(name)] for name in one.fields]
        cells = np.array(one.estimates).reshape(sizes, order="F")
        own = tuple(part.names.index(name) for name in one.fields if name in part.names)
        kept = cells.sum(axis=tuple(i for i, name in enumerate(one.fields) if name not in part.names))
        order = np.argsort(own)
        places = tuple(sorted(own))
        tables[places] = _without(part, places, kept.transpose(order), told, found.reports)
    return {one: table for one, table in tables.items() if not any(set(one) < set(other) for other in tables)}


def _without(part: Record, places: Places, table: Floats, told: Mapping[frozenset[str], float], users: int) -> Floats:
    """The sum of the effects of a table, each as far as it is told."""
    result = np.full(table.shape, users / table.size)
    for subset in subsets(places):
        factor = told.get(frozenset(part.names[place] for place in subset), 0.0)
        if factor:
            shape = [part.sizes[place] if place in subset else 1 for place in places]
            effect = centred(marginal(table, places, subset)).reshape(shape)
            result = result + factor * effect / (table.size // math.prod(shape))
    return result


def _proportional(sizes: Sequence[int], tables: Mapping[Places, Floats], progress: Telling) -> Floats:
    """The law with the most entropy that has these tables."""
    axes = tuple(range(len(sizes)))
    targets = []
    for places, table in tables.items():
        shares = table / table.sum()
        shape = [sizes[axis] if axis in places else 1 for axis in axes]
        targets.append((places, ((1 - _EVEN) * shares + _EVEN / shares.size).reshape(shape)))
    law = np.full(tuple(sizes), 1 / math.prod(sizes))
    for number in range(_PASSES):
        progress("fitting a law to the tables", number / _PASSES)
        moved = 0.0
        for places, target in targets:
            now = law.sum(axis=tuple(axis for axis in axes if axis not in places), keepdims=True)
            factor = target / np.maximum(now, 1e-300)
            law *= factor
            moved = max(moved, float(np.abs(now - target).sum()))
        if moved < _STILL:
            break
    progress("fitting a law to the tables", 1.0)
    law /= law.sum()
    return law
