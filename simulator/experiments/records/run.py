"""Users with several fields report, and every table is compared with the truth."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
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
from ldp_server.planning.tables import TablesDesign, design_tables, tables_of
from simulator import crowd
from simulator.population.records import RecordPopulation
from simulator.shapes import RecordsRun, TableError

__all__ = ["RecordsFound", "go_together", "run"]

Floats = npt.NDArray[np.float64]
_CONFIDENCE = 0.95
_HARDLY = 0.01


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
    seed: int = 1,
    progress: Callable[[int], None] = lambda _: None,
) -> RecordsFound:
    """Let every user report, and compare the tables of the workload with the truth."""
    record = population.record
    designs = design_tables(record, epsilon, workload)
    collection = Collection.create(
        "Simulated?", record, "sampled-table", epsilon, opens=0, closes=1, parameters=designs[0].parameters
    )
    oracle = oracle_for(collection)
    for reports in crowd.simulate(collection.randomizer, population.indexes, seed):
        oracle.accumulate(pack(reports, collection.randomizer.report_bytes))
        progress(len(reports))
    rows = tuple(_table(record, oracle, places, population) for places in tables_of(record, workload))
    matrices = _together(collection, oracle, population)
    return RecordsFound(_shape(population, designs, rows, collection), rows, record.names, *matrices)


def _table(record: Record, oracle: Oracle, places: Sequence[int], population: RecordPopulation) -> TableError:
    view = table_view(oracle, record, AskedTable(record, tuple(places)))
    raw, true = view.estimate_all(), population.table(places).ravel(order="F")
    low, high = view.intervals(np.arange(len(raw), dtype=np.uint64), raw, (1 - _CONFIDENCE) / 2)
    errors = view.standard_errors(np.arange(len(raw), dtype=np.uint64), np.maximum(raw, 0.0))
    users = population.users
    return {
        "table": " x ".join(record.names[place] for place in places),
        "cells": len(raw),
        "stated_error": _rms(errors) / users,
        "error": _rms(raw - true) / users,
        "possible_error": _rms(view.possible(raw) - true) / users,
        "largest_error": float(np.abs(raw - true).max()) / users,
        "covered": float(np.mean((low <= true) & (true <= high))),
        "half_interval": float(np.mean(errors)) * two_sided(_CONFIDENCE) / users,
    }


def _rms(errors: Floats) -> float:
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


def _shape(
    population: RecordPopulation, designs: Sequence[TablesDesign], rows: Sequence[TableError], collection: Collection
) -> RecordsRun:
    cells = sum(row["cells"] for row in rows)

    def over_cells(errors: Sequence[float]) -> float:
        return math.sqrt(sum(row["cells"] * error**2 for row, error in zip(rows, errors, strict=True)) / cells)

    return {
        "users": population.users,
        "epsilon": collection.epsilon.text,
        "fields": len(population.record.names),
        "form": designs[0].form,
        "tables_drawn": len(designs[0].parameters["tables"]),
        "report_bits": collection.randomizer.report_bits,
        "planned_error": designs[0].standard_error(population.users),
        "compared": {one.form: one.standard_error(population.users) for one in designs},
        "error": over_cells([row["error"] for row in rows]),
        "possible_error": over_cells([row["possible_error"] for row in rows]),
        "covered": sum(row["cells"] * row["covered"] for row in rows) / cells,
        "tables": list(rows),
    }
