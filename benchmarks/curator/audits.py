"""Exact audits: the realised loss of each release on all small data sets, and the printed variants that are caught.

The law of each mechanism is listed by running its own code on every outcome of its draws (outcomes.py).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction

from benchmarks.curator import wrong
from benchmarks.curator.outcomes import Laws, every_law, law_of, smallest_delta, worst_delta, worst_divergence
from benchmarks.row import Row, row
from ldp_server.curator.people import Record
from ldp_server.curator.releases.base import CentralMechanism
from ldp_server.curator.releases.gap_max import GapMax, GaussianGapMax, ObviousAnswer
from ldp_server.curator.releases.histogram import GaussianHistogram, LaplaceHistogram
from ldp_server.curator.releases.mode import Mode
from ldp_server.curator.releases.sinh_normal import SinhNormal, largest_ratio
from ldp_server.curator.releases.stability import StabilityHistogram
from ldp_server.curator.releases.top import GaussianTop, LaplaceTop

__all__ = ["realised_epsilon", "rows"]

TWO, THREE = ("a", "b"), ("a", "b", "c")
FOUR, ONE, DELTA = Fraction(4), Fraction(1), Fraction(1, 50)
NEARLY = 1e-7
"""More than what is cut off from the noise."""

AUDITED: tuple[tuple[CentralMechanism, tuple[Record, ...], int], ...] = (
    (LaplaceHistogram(TWO, FOUR), TWO, 2),
    (StabilityHistogram(FOUR, DELTA), TWO, 4),
    (LaplaceTop(TWO, 1, FOUR), TWO, 3),
    (GapMax(TWO, FOUR), TWO, 4),
    (ObviousAnswer(THREE, ONE), THREE, 6),
    (Mode(FOUR, DELTA), TWO, 6),
)
CONCENTRATED: tuple[tuple[CentralMechanism, tuple[Record, ...], int], ...] = (
    (GaussianHistogram(TWO, ONE), TWO, 2),
    (GaussianTop(TWO, 1, Fraction(2)), TWO, 2),
    (GaussianGapMax(TWO, ONE), TWO, 4),
)
PRINTED: tuple[tuple[CentralMechanism, tuple[Record, ...], int], ...] = (
    (wrong.AddRemoveHistogram(TWO, FOUR), TWO, 2),
    (wrong.AddRemoveStability(FOUR, DELTA), TWO, 8),
    (wrong.PrintedObviousAnswer(THREE, ONE), THREE, 9),
)


def realised_epsilon(laws: Laws, items: tuple[Record, ...], delta: float) -> float:
    """Return the smallest epsilon that holds at delta for all neighbours, to three digits."""
    low, high = 0.0, 20.0
    while high - low > 1e-3:
        middle = (low + high) / 2
        low, high = (low, middle) if worst_delta(laws, items, middle) <= delta + NEARLY else (middle, high)
    return high


def rows() -> Iterator[Row]:
    """Yield a row for each audit: realised over declared."""
    for mechanism, items, people in AUDITED:
        declared, delta = float(mechanism.price.epsilon or 0), float(mechanism.price.delta)
        found = realised_epsilon(every_law(mechanism, items, people), items, delta)
        yield row(f"audit, {type(mechanism).__name__}: realised epsilon / declared", found / declared, "", "<= 1.001")
    for mechanism, items, people in CONCENTRATED:
        laws, rho = every_law(mechanism, items, people, 1e-12), float(mechanism.price.rho or 0)
        found = max(worst_divergence(laws, items, order) / order for order in (1.1, 2.0, 4.0))
        yield row(f"audit, {type(mechanism).__name__}: realised rho / declared", found / rho, "", "<= 1.000001")
    for small, omega in ((Fraction(1, 20), Fraction(2236, 1000)), (Fraction(1, 10), Fraction(20))):
        found = largest_ratio(SinhNormal.calibrated(small, omega), float(omega)) / float(small)
        name = f"audit, sinh-normal, rho = {float(small)}, omega = {float(omega)}: realised rho / declared"
        yield row(name, found, "", "<= 1")
    yield from _printed()


def _printed() -> Iterator[Row]:
    for mechanism, items, people in PRINTED:
        declared, delta = float(mechanism.price.epsilon or 0), float(mechanism.price.delta)
        found = worst_delta(every_law(mechanism, items, people), items, declared) - delta
        yield row(f"control, {type(mechanism).__name__}: delta above the declared one", found, "", ">= 0.01")
    printed = wrong.PrintedMode(ONE, Fraction(1, 10**6))
    neighbours = (["a"] * 14, [*["a"] * 13, "b"])
    one, other = (law_of(lambda draws, data=data: bool(printed.run(data, draws).rows)) for data in neighbours)  # type: ignore[misc]
    found = smallest_delta(one, other, 1.0)
    yield row("control, A_dist as printed, counts (14, 0) and (13, 1): delta at epsilon 1", found, "", ">= 0.3")
    narrow = largest_ratio(SinhNormal(A=8 * 1.25, sigma=math.sqrt(16 / 0.01)), 1.25) / 0.005
    yield row("control, sinh-normal at the printed side condition: realised rho / declared", narrow, "", ">= 1.5")
