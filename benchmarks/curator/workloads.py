"""Tables of many fields: MWEM, parities and noisy tables on the four shapes of the papers; their audits.

The papers' data are not part of this project. The stand-ins have the same numbers of people and of yes/no fields:
three kinds of people, each with its own frequency of each field, drawn anew for each run. `mean error` is the mean
absolute error of a cell over all tables of two fields, as a share of the people.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from benchmarks.curator import wrong
from benchmarks.curator.outcomes import OutcomeLaw, largest_loss, law_of
from benchmarks.row import Options, Row, row
from ldp_client.protocol.domain import Field, Record, YesNo
from ldp_server.curator.laws import laplace_half_width, laplace_law, laplace_tail
from ldp_server.curator.noise import ExactDraws
from ldp_server.curator.people import Record as Held
from ldp_server.curator.workloads.average import LaplaceAverage
from ldp_server.curator.workloads.fourier import LaplaceFourier, parities_of
from ldp_server.curator.workloads.knorm.cube import CubeNoise
from ldp_server.curator.workloads.mwem import MwemTables
from ldp_server.curator.workloads.tables import LaplaceTables, WorkloadMechanism
from ldp_server.curator.workloads.universe import Workload, pairs

__all__ = ["SHAPES", "binary", "errors", "people", "rows", "shifted", "stretch_loss"]

SHAPES = (("mildew", 70, 6), ("czech", 1_841, 6), ("rochdale", 665, 8), ("nltcs", 21_574, 16))
"""Name, people, yes/no fields."""
EPSILONS = (Fraction(1, 10), Fraction(1))


def binary(fields: int) -> Record:
    """Return a record of yes/no fields."""
    return Record(tuple(Field(f"f{k}", YesNo(none_is_no=True)) for k in range(fields)))


def people(rng: np.random.Generator, count: int, fields: int) -> list[Held]:
    """Three kinds of people, each with its own frequency of each field."""
    kinds = rng.choice(3, count, p=(0.5, 0.3, 0.2))
    held = rng.random((count, fields)) < rng.beta(0.6, 0.6, (3, fields))[kinds]
    return [*(held @ (1 << np.arange(fields))).tolist()]


def errors(work: Workload, records: Sequence[Held], made: WorkloadMechanism | None) -> float:
    """Return the mean error of a cell; without a mechanism, that of fields that are independent and known exactly."""
    histogram = work.histogram(records)
    truth = np.concatenate([work.of_cells(table, histogram) for table in range(len(work.tables))])
    if made is None:
        bits = work.record.sizes
        held = histogram.reshape(bits, order="F")
        shares = np.array([held.sum(axis=tuple(_but(k, len(bits))))[1] for k in range(len(bits))])
        p = shares / len(records)
        pieces = [np.outer([1 - p[b], p[b]], [1 - p[a], p[a]]).ravel() for a, b in work.places]
        found = np.concatenate(pieces) * len(records)
    else:
        found = np.array([one.count for one in made.run(records, ExactDraws()).rows], np.float64)
    return float(np.abs(found - truth).mean()) / len(records)


def _but(axis: int, axes: int) -> list[int]:
    return [one for one in range(axes) if one != axis]


def rows(options: Options) -> Iterator[Row]:
    """Yield the rows."""
    yield from _audits()
    for name, count, fields in SHAPES:
        work = Workload(binary(fields), pairs(binary(fields)))
        runs = (3 if fields == 16 else 10) * (3 if options.full else 1)
        for epsilon in EPSILONS:
            kinds = (LaplaceTables(work, epsilon), LaplaceFourier(work, epsilon), MwemTables(work, epsilon))
            found = np.array([_one(work, kinds, count, fields, run) for run in range(runs)]).mean(axis=0)
            yield from _shape(f"{name} ({count:,} x {fields}), epsilon {float(epsilon):g}", found)


def _one(work: Workload, kinds: Sequence[WorkloadMechanism], count: int, fields: int, run: int) -> list[float]:
    records = people(np.random.default_rng([21, run]), count, fields)
    return [*(errors(work, records, made) for made in kinds), errors(work, records, None)]


def _shape(name: str, found: Sequence[float]) -> Iterator[Row]:
    tables, fourier, mwem, independent = found
    yield row(f"{name}: mean error, tables", tables, "")
    yield row(f"{name}: mean error, fourier", fourier, "")
    yield row(f"{name}: mean error, mwem", mwem, "")
    yield row(f"{name}: mean error, fields known exactly and taken to be independent", independent, "")
    few = name.startswith("mildew") or name == "rochdale (665 x 8), epsilon 0.1"
    crossed = "<= 1" if few else ">= 1" if name.endswith("epsilon 1") else None
    yield row(f"{name}: mwem over fourier", mwem / fourier, "", crossed)


def _audits() -> Iterator[Row]:
    """The realised loss over the declared one, from all outcomes of all draws; and the printed variants."""
    pair = Workload(binary(2), (("f0", "f1"),))
    for made, name, target in (
        (LaplaceFourier(pair, Fraction(9)), "audit, LaplaceFourier: realised epsilon / declared", "<= 1.001"),
        (wrong.AddRemoveFourier(pair, Fraction(9)), "control, parities for add/remove: realised / declared", ">= 1.2"),
    ):
        laws = [_parities(made, cell) for cell in range(4)]
        yield row(name, _realised(laws) / 9, "", target)
    kept = stretch_loss(1, 1000, printed=False)
    yield row("audit, OnlineTables: realised / declared, 1,000 cells near", kept, "", "<= 1.001")
    printed = stretch_loss(1, 1000, printed=True)
    yield row("control, pure PMW as printed, 1,000 cells near: realised / declared", printed, "", ">= 1.5")
    cube, laplace = CubeNoise(8, Fraction(1)).half_width(0.05), laplace_half_width(8.0, 0.05)
    yield row("8 overlapping counts, epsilon 1: half-width, cube over Laplace", cube / laplace, "", "<= 0.6")
    average = LaplaceAverage(0, 10, Fraction(4))
    for sums, name, target in (
        (average, "audit, LaplaceAverage: realised epsilon / declared", "<= 1.001"),
        (
            wrong.SumAlone(0, 10, Fraction(4)),
            "control, an average with half of its scales: realised / declared",
            ">= 1.2",
        ),
    ):
        yield row(name, shifted(sums) / 4, "", target)


def _parities(made: LaplaceFourier, cell: int) -> OutcomeLaw:
    return law_of(lambda draws: tuple(made._noisy(parities_of([cell], made.subsets), draws)), 1e-5)


def _realised(laws: Sequence[OutcomeLaw]) -> float:
    return max(largest_loss(one, other) for one, other in itertools.combinations(laws, 2))


def shifted(made: LaplaceAverage) -> float:
    """Return the largest loss of an average: of independent Laplace draws it is the sum of shift over scale."""
    values = [*range(made.lowest, made.highest + 1), None]
    worst = 0.0
    for one, other in itertools.product(values, values):
        sums = [_sums(made, value) for value in (one, other)]
        worst = max(worst, sum(abs(a - b) / scale for a, b, scale in zip(*sums, made.scales, strict=True)))
    return worst


def _sums(made: LaplaceAverage, value: int | None) -> tuple[int, int, int]:
    if value is None:
        return 0, 0, 0
    z = 2 * value - made.lowest - made.highest
    return 1, z, z * z


def stretch_loss(epsilon: float, near: int, *, printed: bool) -> float:
    """Return the largest loss of "near" so many times and then "far", by integration over the noises.

    |c - g| is 0 for one data set and 1 for the other, at every cell that is near; at the last one it is the other way
    round. With `printed` the value that was compared is released, and the largest loss is that over all values.
    """
    return max(_stretch(epsilon, near, ends, printed) for ends in (((0, 1), (1, 0)), ((1, 0), (0, 1))))


def _stretch(epsilon: float, near: int, ends: tuple[tuple[int, int], tuple[int, int]], printed: bool) -> float:
    bars = np.arange(-60, 400)
    scale, asked = 2 / epsilon, 4 / epsilon
    threshold = round(6 * scale)
    weights = [math.log(laplace_law(scale, int(bar) - threshold)) for bar in bars]
    below = {z: np.array([math.log1p(-laplace_tail(asked, int(bar) - z)) for bar in bars]) for z in (0, 1)}
    if printed:
        values = range(threshold - 20, threshold + 200, 20)
        told = [[_of_value(weights, near * below[a], bars, value, b, asked) for value in values] for a, b in ends]
        return max(abs(a - b) for a, b in zip(told[0], told[1], strict=True))
    above = {z: np.array([math.log(laplace_tail(asked, int(bar) - z)) for bar in bars]) for z in (0, 1)}
    one, other = (np.logaddexp.reduce(weights + near * below[a] + above[b]) for a, b in ends)
    return abs(float(one - other))


def _of_value(weights: Sequence[float], before: Any, bars: Any, value: int, apart: int, asked: float) -> float:
    """The logarithm of the probability that the last value is this one, and not below the bar."""
    far = np.where(bars <= value, math.log(laplace_law(asked, value - apart)), -np.inf)
    return float(np.logaddexp.reduce(weights + before + far))
