"""The fit of MWEM beside private-PGM's, from the same noisy tables (`python -m benchmarks curator --peers`).

private-PGM is the distribution `mbi`; it is not a dependency, and without it there are no rows. Each library gets the
tables that one release has measured, with their standard errors, and estimates all tables. What is compared is the mean
error of a cell.
"""

from __future__ import annotations

import importlib
import warnings
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from importlib.util import find_spec
from typing import Any

import numpy as np
import numpy.typing as npt

from benchmarks.curator.workloads import SHAPES, binary, people
from benchmarks.row import Row, row
from ldp_server.curator.noise import ExactDraws
from ldp_server.curator.workloads.mwem import MwemTables
from ldp_server.curator.workloads.universe import Workload, pairs

__all__ = ["rows"]

_RUNS, _LONG_RUNS = 12, 2
"""Of 665 people at epsilon 0.1 the errors of two fits differ by a tenth from run to run, in either direction. Sixteen
fields take minutes, and have so many people that two runs are enough."""


def rows() -> Iterator[Row]:
    """Yield a row for each shape and epsilon."""
    if find_spec("mbi") is None:
        return
    for name, count, fields in SHAPES:
        runs = _LONG_RUNS if fields == 16 else _RUNS
        for epsilon in (Fraction(1, 10), Fraction(1)):
            made = MwemTables(Workload(binary(fields), pairs(binary(fields))), epsilon)
            found = np.array([_errors(made, count, fields, run) for run in range(runs)]).mean(axis=0)
            label = f"{name}, epsilon {float(epsilon):g}: error of the fit, ours over private-PGM's"
            few = name == "mildew"  # 70 people: two runs of either fit differ by more than this
            yield row(label, found[0] / found[1], "", None if few else "<= 1.1")


def _errors(made: MwemTables, count: int, fields: int, run: int) -> tuple[float, float]:
    records = people(np.random.default_rng([22, run]), count, fields)
    work = made.workload
    outcome = made.run(records, ExactDraws())
    histogram = work.histogram(records)
    truth = np.concatenate([work.of_cells(table, histogram) for table in range(len(work.tables))])
    ours = np.array([one.count for one in outcome.rows], np.float64)
    theirs = _estimated(work, outcome.details["measured"], count)
    return tuple(float(np.abs(one - truth).mean()) / count for one in (ours, theirs))  # type: ignore[return-value]


def _estimated(work: Workload, measured: Sequence[Mapping[str, Any]], count: int) -> npt.NDArray[np.float64]:
    """Return the counts that private-PGM estimates. Its arrays have the last field moving fastest, ours the first."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        mbi: Any = importlib.import_module("mbi")
        domain = mbi.Domain(list(work.record.names), list(work.record.sizes))
        given = [
            mbi.LinearMeasurement(
                np.array(one["counts"], np.float64).reshape(2, 2, order="F").ravel(),
                tuple(one["fields"]),
                one["standard_error"],
            )
            for one in measured
        ]
        model = mbi.estimation.MirrorDescent().estimate(domain, given, known_total=count, iters=1000)
        tables = [np.asarray(model.project(table).datavector()).reshape(2, 2) for table in work.tables]
    return np.concatenate([table.ravel(order="F") for table in tables])
