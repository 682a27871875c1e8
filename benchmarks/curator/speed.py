"""Seconds that a release of a million records takes, in one thread: counting, drawing and intervals.

Each stands beside the seconds that Python's own counter of texts takes for the same million records, in the same run.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from fractions import Fraction
from functools import partial

import numpy as np

from benchmarks.curator.workloads import binary
from benchmarks.row import Row, cpu_seconds, row
from ldp_client.protocol.domain import Field, Integers
from ldp_client.protocol.domain import Record as Fields
from ldp_server.curator.noise import ExactDraws
from ldp_server.curator.people import Record
from ldp_server.curator.releases.base import CentralMechanism
from ldp_server.curator.releases.choosing import Choosing
from ldp_server.curator.releases.gap_max import GapMax, ObviousAnswer
from ldp_server.curator.releases.histogram import GaussianHistogram, LaplaceHistogram, SinhHistogram
from ldp_server.curator.releases.learning.counted import CountedCutLearner
from ldp_server.curator.releases.learning.cuts import CutLearner, ListedCutLearner
from ldp_server.curator.releases.learning.labels import LabelCutLearner
from ldp_server.curator.releases.learning.points import PointLearner
from ldp_server.curator.releases.learning.rectangles import RectangleLearner
from ldp_server.curator.releases.mode import Mode
from ldp_server.curator.releases.partial.strings import FrequentStrings
from ldp_server.curator.releases.quantile import ExponentialQuantile
from ldp_server.curator.releases.ranges.quantiles import InteriorPoint, RecursiveQuantile
from ldp_server.curator.releases.sanitizing.numbers import NumberSanitizer
from ldp_server.curator.releases.sanitizing.points import PointSanitizer
from ldp_server.curator.releases.stability import StabilityHistogram
from ldp_server.curator.releases.thresholds import LaplaceThresholds
from ldp_server.curator.releases.top import GaussianTop, LaplaceTop
from ldp_server.curator.workloads.asking.sets import AnyOfSets
from ldp_server.curator.workloads.average import LaplaceAverage
from ldp_server.curator.workloads.fourier import LaplaceFourier
from ldp_server.curator.workloads.knorm.counts import KNormCounts
from ldp_server.curator.workloads.matrix.answers import LinearAnswers
from ldp_server.curator.workloads.matrix.plans import Price
from ldp_server.curator.workloads.matrix.queries import LinearQueries, ranges_of, table_queries
from ldp_server.curator.workloads.mwem import MwemTables
from ldp_server.curator.workloads.online import OnlineTables
from ldp_server.curator.workloads.tables import LaplaceTables
from ldp_server.curator.workloads.universe import Workload, pairs

__all__ = ["rows"]

PEOPLE, CELLS = 1_000_000, 10_000
ONE, DELTA, TENTH = Fraction(1), Fraction(1, 10**6), Fraction(1, 10)


_COUNTER = "seconds of Python's counter over these texts"


class _Speed:
    """Makes rows: seconds with their ratio to the counter's."""

    def __init__(self, people: list[Record]) -> None:
        self._yardstick = cpu_seconds(lambda: Counter(people), 3)

    def row(self, name: str, work: Callable[[], object], target: str | None = "<= 2") -> Row:
        return row(name, cpu_seconds(work, 3), "s", target, (_COUNTER, self._yardstick))


def rows() -> Iterator[Row]:
    """Yield the seconds of each kind of release."""
    rng = np.random.default_rng(3)
    people: list[Record] = [f"i{k}" for k in np.minimum(rng.zipf(1.3, PEOPLE), 10**6).tolist()]
    numbers: list[Record] = [str(k) for k in rng.integers(0, 10**6, PEOPLE).tolist()]
    listed = tuple(f"i{k}" for k in range(1, CELLS + 1))
    kinds: tuple[tuple[str, CentralMechanism], ...] = (
        ("histogram, Laplace", LaplaceHistogram(listed, ONE)),
        ("histogram, Gaussian", GaussianHistogram(listed, TENTH)),
        ("histogram, sinh-normal", SinhHistogram(listed, TENTH, Fraction(3))),
        ("unknown items", StabilityHistogram(ONE, DELTA)),
        ("top 10, permute-and-flip", LaplaceTop(listed, 10, ONE)),
        ("top 10, exponential mechanism", GaussianTop(listed, 10, TENTH)),
        ("gap-max", GapMax(listed, ONE)),
        ("obvious answer", ObviousAnswer(listed, ONE)),
        ("mode", Mode(ONE, DELTA)),
        ("frequent item", Choosing(TENTH, ONE, DELTA)),
    )
    draws, speed = ExactDraws(), _Speed(people)
    for name, mechanism in kinds:
        yield speed.row(f"{PEOPLE:,} records, {CELLS:,} listed items: {name}", partial(mechanism.run, people, draws))
    thresholds = LaplaceThresholds(tuple(range(0, 10**6, 1000)), ONE)
    yield speed.row(f"{PEOPLE:,} records, 1,000 cuts: thresholds", partial(thresholds.run, numbers, draws))
    yield from _ranges(people, numbers, draws, speed)
    for bits in (48, 64):
        median = ExponentialQuantile(Fraction(1, 2), bits, ONE)
        yield speed.row(f"{PEOPLE:,} records, a range of 2^{bits + 1}: median", partial(median.run, numbers, draws))
    yield from _fields(rng, draws, speed)


def _ranges(people: list[Record], numbers: list[Record], draws: ExactDraws, speed: _Speed) -> Iterator[Row]:
    """The releases about huge ranges, all items, and learners."""
    half, share = Fraction(1, 2), Fraction(1, 20)
    young: list[Record] = [str(int(int(str(number)) < 400_000)) for number in numbers]
    third: list[Record] = [str(int(item == "i3")) for item in people]
    inside: list[Record] = [str(int(200_000 < int(str(number)) < 600_000)) for number in numbers]
    kinds: tuple[tuple[str, CentralMechanism, list[list[Record]]], ...] = (
        ("median of 4,096 bits", RecursiveQuantile(half, 4096, ONE, DELTA), [numbers]),
        ("interior point of 4,096 bits", InteriorPoint(4096, ONE, DELTA), [numbers]),
        ("all items, share 0.1", PointSanitizer(TENTH, ONE, DELTA), [people]),
        ("any two items, share 0.1", PointSanitizer(TENTH, ONE, DELTA, 2), [people]),
        ("all thresholds, share 0.1", NumberSanitizer(TENTH, 64, ONE, DELTA), [numbers]),
        ("learn an item", PointLearner(ONE, DELTA), [people, third]),
        ("learn a threshold of 64 bits", CutLearner(64, ONE), [numbers, young]),
        ("learn a threshold of 1,024 bits", CutLearner(1024, ONE, DELTA), [numbers, young]),
        ("learn one of 1,000 cuts", ListedCutLearner(tuple(range(0, 10**6, 1000)), ONE), [numbers, young]),
        ("learn from counts", CountedCutLearner(tuple(range(0, 10**6, 1000)), ONE), [numbers, young]),
        ("learn from private labels", LabelCutLearner(ONE), [numbers, young]),
        ("learn a box of two columns", RectangleLearner(2, 64, ONE), [numbers, numbers, inside]),
    )
    for name, mechanism, columns in kinds:
        mechanism.check(PEOPLE)
        yield speed.row(f"{PEOPLE:,} records: {name}", partial(mechanism.run_columns, columns, draws))
    rows = np.random.default_rng(5).integers(0, 2, (100_000, 64)).astype(np.uint8)
    texts = FrequentStrings(64, share, ONE)
    seconds = cpu_seconds(lambda: texts.counted(rows, draws), 3)
    yield row("100,000 texts of 64 characters: frequent texts", seconds, "s")


def _fields(rng: np.random.Generator, draws: ExactDraws, speed: _Speed) -> Iterator[Row]:
    """The releases about several fields, from cells that are read already; strategies are found before."""
    fields, ages = binary(8), Fields((Field("age", Integers(0, 63)),))
    work = Workload(fields, pairs(fields))
    cells: list[Record] = [*rng.integers(0, fields.size, PEOPLE).tolist()]
    ranges = LinearAnswers(LinearQueries(ages, tuple(ranges_of(ages, "age"))), Price(rho=Fraction(1, 2)))
    linear = LinearAnswers(LinearQueries(fields, tuple(table_queries(fields, pairs(fields)))), Price(epsilon=ONE))
    years: list[Record] = [*rng.integers(0, ages.size, PEOPLE).tolist()]
    held: list[Record] = [f"i{cell}" for cell in cells]
    nested = tuple(tuple(f"i{place}" for place in range(end)) for end in (32, 64, 128, 192))
    kinds: tuple[tuple[str, CentralMechanism, list[Record]], ...] = (
        ("average", LaplaceAverage(0, 100, ONE), [min(int(str(year)), 100) for year in years]),
        ("all pairs of 8 fields: tables", LaplaceTables(work, ONE), cells),
        ("all pairs of 8 fields: fourier", LaplaceFourier(work, ONE), cells),
        ("all pairs of 8 fields: mwem", MwemTables(work, ONE), cells),
        ("all pairs of 8 fields, 40 updates: online", OnlineTables(work, ONE, 40), cells),
        ("all pairs of 8 fields: linear, Laplace", linear, cells),
        ("all ranges of 63 values: linear, Gaussian", ranges, years),
        ("4 nested groups: overlapping, their polytope", KNormCounts(nested, ONE), held),
        ("sets of up to 3 of 8 fields: any-of, counts", AnyOfSets(fields, ONE, 3), cells),
        ("the same: any-of, thresholds", AnyOfSets(fields, ONE, 3, "thresholds", 40), cells),
    )
    for name, mechanism, records in kinds:
        mechanism.check(PEOPLE)
        yield speed.row(f"{PEOPLE:,} records, {name}", partial(mechanism.run, records, draws), None)
