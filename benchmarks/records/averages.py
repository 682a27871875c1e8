"""The average of a number in each cell of a table: its variance, and how often its intervals hold the truth."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from benchmarks.row import Row, cpu_seconds, row
from ldp_client.mechanisms.records.averaged_table import AveragedTable, design
from ldp_client.protocol.domain import Field, Integers, Record
from ldp_client.protocol.epsilon import Epsilon
from ldp_server.arrays.packing import pack
from ldp_server.oracles import oracle_for
from ldp_server.oracles.records.averages import CellSums
from simulator import crowd

__all__ = ["averages"]

_CELLS, _REACH, _USERS, _TRIALS = 40, 100, 20_000, 300

Values = npt.NDArray[np.int64]


def _sums(mechanism: AveragedTable, cells: Values, numbers: Values) -> CellSums:
    """What reports of the same users say of each cell, in all trials: a line for each cell of each trial."""
    indexes = np.asarray(cells + mechanism.record.strides[1] * (numbers + 1), np.uint64)
    downs, ups = [], []
    for seed in range(_TRIALS):
        oracle = oracle_for(mechanism)
        for reports in crowd.simulate(mechanism, indexes, seed):
            oracle.accumulate(pack(reports, mechanism.report_bytes))
        found = oracle.sums()  # type: ignore[attr-defined]  # of an averaged table
        downs.append(found.downs)
        ups.append(found.ups)
    return CellSums(float(len(cells)), found.law, np.concatenate(downs), np.concatenate(ups))


def averages() -> Iterator[Row]:
    """For a cell with a tenth of the users: everybody at an end of the range, half at each end, all in the middle."""
    record = Record((Field("cell", Integers(1, _CELLS)), Field("number", Integers(0, _REACH + 1))))
    places = np.arange(_USERS)
    cells = np.where(places % 10 == 0, 7, 8 + places % 33)
    title = f"average in a cell with a tenth of {_USERS:,} users, {_CELLS} cells"
    for epsilon in ("1", "4"):
        mechanism = AveragedTable(Epsilon(epsilon), record, **design(epsilon, record, "number"))
        e = math.exp(float(epsilon))
        scale = 4 * e / (e - 1) ** 2 / (_USERS * 0.1**2)
        shapes = {
            "all at an end": np.zeros(_USERS, np.int64),
            "half at each end": places // 10 % 2 * _REACH,
            "all in the middle": np.full(_USERS, _REACH // 2),
        }
        for name, numbers in shapes.items():
            sums = _sums(mechanism, cells, numbers)
            truth = float(numbers[cells == 7].mean() / _REACH)
            mine = CellSums(sums.reports, sums.law, sums.downs[7 :: _CELLS + 1], sums.ups[7 :: _CELLS + 1])
            error = (mine.ups - truth * (mine.ups + mine.downs)) / (_USERS * 0.1)
            said = f"{title}, eps={epsilon}, {name}"
            yield row(
                f"{said}: variance over v/(n f^2)",
                float(np.mean(error**2)) / scale,
                "",
                "<= 1.1" if epsilon == "1" else None,
            )
            found = mine.means(0.025)
            held = np.mean((found.low <= truth + 1e-9) & (found.high >= truth - 1e-9))
            yield row(f"{said}: 95% intervals that hold the truth", float(held), "", ">= 0.92")
    taken = cpu_seconds(lambda: CellSums(sums.reports, sums.law, sums.downs[:41], sums.ups[:41]).means(0.025), 1)
    yield row("intervals of the averages of 41 cells", 1000 * taken, "ms")
