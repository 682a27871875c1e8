"""Made-up people whose tables are like those of a release. It reads the release alone, so it costs nothing.

The distribution of highest entropy that fits the released tables (fit.py) is rounded to whole people: every cell of all
fields gets the whole part of its share, and what is left is drawn without replacement, by the fractions. So the tables
of the rows are off by less than those of as many independent draws.

What the release says nothing about is made up: three fields together, where all pairs were released, are as independent
as the pairs allow. Rows are not people, and as many rows as people are no more exact than the release.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import combinations
from typing import Any

import numpy as np
import numpy.typing as npt

from ldp_client.errors import InvalidSpec
from ldp_client.protocol.domain import FieldItem, Record
from ldp_server.answers.merging.asked import OTHER_FORM, held_by, record_of
from ldp_server.curator.workloads.fit import Measured, distribution, fitted, fitted_rows, uniform
from ldp_server.curator.workloads.matrix.queries import LinearQueries, Query
from ldp_server.curator.workloads.online import updated
from ldp_server.curator.workloads.sub_universe import AllCells
from ldp_server.curator.workloads.universe import MOST_CELLS, Cells, Workload

__all__ = ["SYNTHETIC", "fit_of_release", "made_up", "record_of_release"]

SYNTHETIC = ("tables", "fourier", "mwem", "online", "linear", "any-of")
_STEPS = 400
MOST_ROWS = 10_000_000


def record_of_release(content: Mapping[str, Any]) -> Record:
    """Return the fields that a release is about."""
    if content.get("kind") not in SYNTHETIC:
        raise InvalidSpec(f"people are made up from a release of the kinds {', '.join(SYNTHETIC)}")
    try:
        return record_of(content)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        if isinstance(error, InvalidSpec):
            raise
        raise InvalidSpec(OTHER_FORM) from None


def fit_of_release(content: Mapping[str, Any]) -> Cells:
    """Return a distribution over the cells of all fields."""
    record = record_of_release(content)
    if record.size > MOST_CELLS:
        raise InvalidSpec(
            f"these fields have {record.size:,} cells together, and a fit keeps at most {MOST_CELLS:,}: release "
            "fewer fields, or coarser ones"
        )
    try:
        if content["kind"] == "linear":
            return _of_queries(record, content)
        if content["kind"] == "any-of":
            return _of_sets(record, content)
        work = Workload(record, tuple(tuple(one) for one in content["parameters"]["tables"]))
        if content["kind"] == "online":
            return distribution(_replayed(work, content))
        measured = _measured(work, content)
    except (KeyError, TypeError, IndexError, StopIteration, AttributeError, ArithmeticError):
        raise InvalidSpec(OTHER_FORM) from None
    except ValueError as error:
        raise error if isinstance(error, InvalidSpec) else InvalidSpec(OTHER_FORM) from None
    return distribution(fitted(work, measured, uniform(work), _STEPS))


def _of_queries(record: Record, content: Mapping[str, Any]) -> Cells:
    """Return the distribution that fits the answers to queries. Cells that no query tells apart get the same share."""
    queries = [Query("", tuple(sorted(held_by(record, row["item"]).items()))) for row in content["rows"]]
    asked = LinearQueries(record, tuple(queries))
    places = asked.columns_of(np.arange(record.size))
    alike = np.bincount(places, minlength=asked.columns)
    counts = np.array([row["count"] for row in content["rows"]], np.float64)
    errors = np.maximum(np.array(content["details"]["standard_errors"], np.float64), 0.5)
    people = int(content["people"])
    theta = fitted_rows(asked.matrix.astype(np.float64), counts / people, errors / people, np.log(alike), _STEPS)
    return np.asarray((distribution(theta) / alike)[places])


def _of_sets(record: Record, content: Mapping[str, Any]) -> Cells:
    """Return the distribution that fits how many people hold any of the fields of each set."""
    if content["variance"] is None:
        raise InvalidSpec("this release learned its sets from some of them: people are made up where all were asked")
    people, cells, places = int(content["people"]), np.arange(record.size), range(len(record.names))
    width = min(int(content["parameters"]["width"]), len(places))
    sets = [sum(1 << place for place in one) for size in range(1, width + 1) for one in combinations(places, size)]
    counts = np.array([row["count"] for row in content["rows"]], np.float64)
    if len(counts) != len(sets):
        raise ValueError
    rows = np.array([cells & one != 0 for one in sets], np.float64)
    errors = np.full(len(sets), max(float(content["variance"]) ** 0.5, 0.5) / people)
    return distribution(fitted_rows(rows, counts / people, errors, np.zeros(record.size), _STEPS))


def _replayed(work: Workload, content: Mapping[str, Any]) -> Cells:
    """Return the weights that an online release ended with: its updates follow from what it told."""
    if "universe" in content["details"]:
        raise InvalidSpec("this release kept its fit over drawn cells: people are made up where it is over all cells")
    over, rows = AllCells(work), iter(zip(content["rows"], content["details"]["updated"], strict=True))
    theta = over.start()
    for table, length in enumerate(work.lengths):
        for cell in range(length):
            row, told = next(rows)
            if told:
                theta = updated(over, theta, table, cell, row["count"] / content["people"])
    return theta


def _measured(work: Workload, content: Mapping[str, Any]) -> list[Measured]:
    people = int(content["people"])
    if content["kind"] == "mwem":
        tables = {frozenset(table): number for number, table in enumerate(work.tables)}
        return [
            Measured(
                tables[frozenset(one["fields"])],
                np.array(one["counts"], np.float64) / people,
                one["standard_error"] / people,
            )
            for one in content["details"]["measured"]
        ]
    counts = np.array([row["count"] for row in content["rows"]], np.float64)
    if len(counts) != sum(work.lengths):
        raise ValueError
    parts = np.split(counts, np.cumsum(work.lengths)[:-1])
    errors = [table["variance"] ** 0.5 for table in content["details"]["tables"]]
    return [
        Measured(number, part / people, max(error, 0.5) / people)
        for number, (part, error) in enumerate(zip(parts, errors, strict=True))
    ]


def made_up(record: Record, shares: Cells, rows: int, rng: np.random.Generator) -> dict[str, list[FieldItem]]:
    """Return so many rows, as one column for each field."""
    if not 1 <= rows <= MOST_ROWS:
        raise InvalidSpec(f"--rows: 1 to {MOST_ROWS:,}")
    indexes = _rounded(shares, rows, rng)
    rng.shuffle(indexes)
    found: dict[str, list[FieldItem]] = {}
    for field, stride in zip(record.fields, record.strides, strict=False):
        items: list[Any] = [field.domain.item(index) for index in range(field.domain.size)]
        found[field.name] = [items[index] for index in (indexes // stride % field.domain.size).tolist()]
    return found


def _rounded(shares: Cells, rows: int, rng: np.random.Generator) -> npt.NDArray[np.int64]:
    whole = np.floor(shares * rows).astype(np.int64)
    left = rows - int(whole.sum())
    if left:
        rest = shares * rows - whole
        # the largest of exponential draws over the fractions: a sample without replacement
        keys = rng.exponential(size=len(rest)) / np.maximum(rest, 1e-300)
        whole[np.argsort(keys)[:left]] += 1
    return np.repeat(np.arange(len(shares)), whole)
