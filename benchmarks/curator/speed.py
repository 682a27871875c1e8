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
from ldp_server.curator.releases.mode import Mode
from ldp_server.curator.releases.quantile import ExponentialQuantile
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
    for bits in (48, 64):
        median = ExponentialQuantile(Fraction(1, 2), bits, ONE)
        seconds = cpu_seconds(lambda made=median: made.run(numbers, draws), 3)  # type: ignore[misc]
        yield row(f"{PEOPLE:,} records, a range of 2^{bits + 1}: median", seconds, "s", "<= 2")
