"""Users with several fields report, and every table is compared with the truth."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
import numpy.typing as npt

from ldp_client.collection import Collection
from ldp_client.protocol.domain import Record
from ldp_server.answers.synthetic.fit import cleaned
from ldp_server.answers.synthetic.tables import tables_answer
from ldp_server.arrays.packing import pack
from ldp_server.oracles import Oracle, oracle_for
from ldp_server.oracles.base import TooFewReports, two_sided
from ldp_server.oracles.records.parts import marginal
from ldp_server.oracles.records.sources import AskedTable
from ldp_server.oracles.records.view import table_view
from ldp_server.planning.protected import EVERY_FIELD, ProtectedGoal, draft_protected
from ldp_server.planning.tables import design_tables, tables_of
from simulator import crowd
from simulator.attacks.records import malicious_records
from simulator.population.records import RecordPopulation
from simulator.shapes import RecordsRun, TableError

__all__ = ["Liars", "RecordsFound", "go_together", "rarest", "rms", "run"]

Floats = npt.NDArray[np.float64]
_CONFIDENCE = 0.95
_HARDLY = 0.01
_LIARS_FROM = 1 << 40
"""Blocks of coins from here on belong to malicious users."""


@dataclass(frozen=True)
class Liars:
    """Malicious users, who come on top of the others and all stand for one record, or against it."""

    share: float = 0.0
    """Of the number of users."""
    attack: str = "promote"

    def among(self, users: int) -> int:
        return max(1, round(self.share * users)) if self.share else 0


@dataclass(frozen=True)
class _Way:
    """How the users are asked, and what it was compared with."""

    collection: Collection
    form: str
    tables: int
    compared: dict[str, float]
    """The planned error of each way."""


@dataclass(frozen=True)
class RecordsFound:
    """What a simulation of records found."""

    shape: RecordsRun
    tables: tuple[TableError, ...]
    fields: tuple[str, ...]
    together: Floats
    """How much two fields go together (Cramer's V), of all pairs that were asked; else not a number."""
    estimated: Floats
    """The same from the estimates, noise left out."""


def go_together(table: Floats) -> float:
    """Return Cramer's V of a table of two fields: 0 if they are independent, 1 if one tells the other.

    Values that hardly anybody holds do not count as values, so that an estimate of nearly 0 is as good as 0.
    """
    shares = table / table.sum()
    apart = np.outer(shares.sum(axis=1), shares.sum(axis=0))
    known = apart > 0
    square = float((np.square(shares - apart)[known] / apart[known]).sum())
    return math.sqrt(square / max(1, min(int((shares.sum(axis=axis) > _HARDLY).sum()) for axis in (0, 1)) - 1))


def run(
    population: RecordPopulation,
    epsilon: str,
    workload: str | Sequence[Sequence[str]] = "pairs",
    *,
    field_epsilons: Mapping[str, str] | None = None,
    liars: Liars | None = None,
    seed: int = 1,
    progress: Callable[[int], None] = lambda _: None,
) -> RecordsFound:
    """Let every user report, and compare the tables of the workload with the truth.

    With `field_epsilons` every user answers every field, each at its own, and `epsilon` has no part in it. Liars report
    last: errors are those before.
    """
    record = population.record
    way = _drawn(population, epsilon, workload) if not field_epsilons else _each(population, field_epsilons, workload)
    collection = way.collection
    oracle = oracle_for(collection)
    for reports in crowd.simulate(collection.randomizer, population.indexes, seed):
        oracle.accumulate(pack(reports, collection.randomizer.report_bytes))
        progress(len(reports))
    asked = tables_of(record, workload)
    rows = tuple(_table(record, oracle, places, population) for places in asked)
    matrices = _together(collection, oracle, population)
    many = liars.among(population.users) if liars else 0
    if liars and many:
        rows = tuple(_moved(rows, asked, collection, oracle, population, liars, seed))
    return RecordsFound(_shape(population, way, rows, many), rows, record.names, *matrices)


def _drawn(population: RecordPopulation, epsilon: str, workload: str | Sequence[Sequence[str]]) -> _Way:
    """One table, drawn by each device."""
    designs = design_tables(population.record, epsilon, workload)
    best = designs[0].parameters
    collection = Collection.create(
        "Simulated?", population.record, "sampled-table", epsilon, opens=0, closes=1, parameters=best
    )
    compared = {one.form: one.standard_error(population.users) for one in designs}
    return _Way(collection, designs[0].form, len(best["tables"]), compared)


def _each(population: RecordPopulation, epsilons: Mapping[str, str], workload: str | Sequence[Sequence[str]]) -> _Way:
    """Every field, at an epsilon of its own."""
    tables = workload if isinstance(workload, str) else tuple(tuple(one) for one in workload)
    goal = ProtectedGoal(population.record, tables, epsilons, users=population.users)
    found = draft_protected("Simulated?", goal, opens=0, closes=1)
    return _Way(found.collection, EVERY_FIELD, len(population.record.names), found.compared)


def _table(record: Record, oracle: Oracle, places: Sequence[int], population: RecordPopulation) -> TableError:
    view = table_view(oracle, record, AskedTable(record, tuple(places)))
    raw, true = view.estimate_all(), population.table(places).ravel(order="F")
    low, high = view.intervals(np.arange(len(raw), dtype=np.uint64), raw, (1 - _CONFIDENCE) / 2)
    errors = view.standard_errors(np.arange(len(raw), dtype=np.uint64), np.maximum(raw, 0.0))
    users = population.users
    return {
        "table": " x ".join(record.names[place] for place in places),
        "cells": len(raw),
        "stated_error": rms(errors) / users,
        "error": rms(raw - true) / users,
        "possible_error": rms(view.possible(raw) - true) / users,
        "largest_error": float(np.abs(raw - true).max()) / users,
        "covered": float(np.mean((low <= true) & (true <= high))),
        "half_interval": float(np.mean(errors)) * two_sided(_CONFIDENCE) / users,
        "moved": 0.0,
    }


def rarest(population: RecordPopulation) -> int:
    """Return the index of the record that has each field's least frequent value: the one that liars are about."""
    record = population.record
    counts = [population.table((place,)).ravel()[:size] for place, size in enumerate(record.sizes)]
    return sum(stride * int(count.argmin()) for stride, count in zip(record.strides, counts, strict=False))


def _moved(
    rows: Sequence[TableError],
    asked: Sequence[Sequence[int]],
    collection: Collection,
    oracle: Oracle,
    population: RecordPopulation,
    liars: Liars,
    seed: int,
) -> Iterator[TableError]:
    """The rows, with how far the liars move the cell of their record. `oracle` counts their reports."""
    record, index, many = population.record, rarest(population), liars.among(population.users)
    held = [index // stride % size for stride, size in zip(record.strides, record.sizes, strict=False)]

    def estimates() -> Iterator[float]:
        for places in asked:
            values = table_view(oracle, record, AskedTable(record, tuple(places))).estimate_all()
            sizes = tuple(record.sizes[place] for place in places)
            yield float(values.reshape(sizes, order="F")[tuple(held[place] for place in places)])

    before = list(estimates())
    for block, start in enumerate(range(0, many, crowd.BLOCK)):
        count = min(crowd.BLOCK, many - start)
        place = _LIARS_FROM + block * (1 << 16)
        reports = malicious_records(collection.randomizer, index, count, liars.attack, seed, place)
        oracle.accumulate(pack(reports, collection.randomizer.report_bytes))
    for row, first, last in zip(rows, before, estimates(), strict=True):
        yield {**row, "moved": (last - first) / many}


def rms(errors: Floats) -> float:
    """Return the root of the mean square."""
    return math.sqrt(float(np.mean(np.square(errors))))


def _together(collection: Collection, oracle: Oracle, population: RecordPopulation) -> tuple[Floats, Floats]:
    """How much the fields of each pair go together: the truth, and the estimate."""
    record = population.record
    fields = len(record.names)
    true, found = (np.full((fields, fields), np.nan) for _ in range(2))
    answer = tables_answer(collection, oracle)
    try:
        part, tables = cleaned(record, answer)
    except TooFewReports:  # no signal: nothing goes together, as far as can be told
        part, tables = record, {}
    for one, other in combinations(range(fields), 2):
        true[one, other] = true[other, one] = go_together(population.table((one, other)))
        wanted = {part.names.index(record.names[place]) for place in (one, other) if record.names[place] in part.names}
        for places, table in tables.items():
            if wanted <= set(places) and len(wanted) == 2:
                pair = marginal(table, places, tuple(sorted(wanted)))
                found[one, other] = found[other, one] = go_together(pair)
    if not tables:
        found = np.where(np.isnan(true), np.nan, 0.0)
    return true, found


def _shape(population: RecordPopulation, way: _Way, rows: Sequence[TableError], malicious: int) -> RecordsRun:
    cells = sum(row["cells"] for row in rows)

    def over_cells(errors: Sequence[float]) -> float:
        return math.sqrt(sum(row["cells"] * error**2 for row, error in zip(rows, errors, strict=True)) / cells)

    return {
        "users": population.users,
        "epsilon": way.collection.epsilon.text,
        "fields": len(population.record.names),
        "form": way.form,
        "tables_drawn": way.tables,
        "report_bits": way.collection.randomizer.report_bits,
        "planned_error": way.compared[way.form],
        "compared": way.compared,
        "error": over_cells([row["error"] for row in rows]),
        "possible_error": over_cells([row["possible_error"] for row in rows]),
        "covered": sum(row["cells"] * row["covered"] for row in rows) / cells,
        "malicious": malicious,
        "tables": list(rows),
    }
