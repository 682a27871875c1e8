"""Seconds that a release of a million records takes, in one thread: counting, drawing and intervals."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

import numpy as np

from benchmarks.row import Row, cpu_seconds, row
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

__all__ = ["rows"]

PEOPLE, CELLS = 1_000_000, 10_000
ONE, DELTA, TENTH = Fraction(1), Fraction(1, 10**6), Fraction(1, 10)


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
    draws = ExactDraws()
    for name, mechanism in kinds:
        seconds = cpu_seconds(lambda made=mechanism: made.run(people, draws), 3)  # type: ignore[misc]
        yield row(f"{PEOPLE:,} records, {CELLS:,} listed items: {name}", seconds, "s", "<= 2")
    thresholds = LaplaceThresholds(tuple(range(0, 10**6, 1000)), ONE)
    seconds = cpu_seconds(lambda: thresholds.run(numbers, draws), 3)
    yield row(f"{PEOPLE:,} records, 1,000 cuts: thresholds", seconds, "s", "<= 2")
    yield from _ranges(people, numbers, draws)
    for bits in (48, 64):
        median = ExponentialQuantile(Fraction(1, 2), bits, ONE)
        seconds = cpu_seconds(lambda made=median: made.run(numbers, draws), 3)  # type: ignore[misc]
        yield row(f"{PEOPLE:,} records, a range of 2^{bits + 1}: median", seconds, "s", "<= 2")


def _ranges(people: list[Record], numbers: list[Record], draws: ExactDraws) -> Iterator[Row]:
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
        seconds = cpu_seconds(lambda made=mechanism, read=columns: made.run_columns(read, draws), 3)  # type: ignore[misc]
        yield row(f"{PEOPLE:,} records: {name}", seconds, "s", "<= 2")
    rows = np.random.default_rng(5).integers(0, 2, (100_000, 64)).astype(np.uint8)
    texts = FrequentStrings(64, share, ONE)
    seconds = cpu_seconds(lambda: texts.counted(rows, draws), 3)
    yield row("100,000 texts of 64 characters: frequent texts", seconds, "s")
