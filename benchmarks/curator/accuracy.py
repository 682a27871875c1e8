"""How well a release names and counts, beside the classical mechanism for the same task."""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction

import numpy as np

from benchmarks.row import Options, Row, row
from ldp_server.curator.laws import exponential_law, gaussian_half_width, laplace_half_width
from ldp_server.curator.noise import ExactDraws
from ldp_server.curator.releases.gap_max import GapMax, ObviousAnswer
from ldp_server.curator.releases.histogram import GaussianHistogram, LaplaceHistogram, SinhHistogram
from ldp_server.curator.releases.mode import Mode
from ldp_server.curator.releases.stability import StabilityHistogram

__all__ = ["rows"]

ONE, DELTA = Fraction(1), Fraction(1, 10**6)
VOLUNTEERS = 1000


def rows(options: Options) -> Iterator[Row]:
    """Yield the rows."""
    yield from _mode(4000 if options.full else 600)
    yield from _lists()
    yield from _largest_errors()
    yield from _selection(400 if options.full else 100)


def _mode(runs: int) -> Iterator[Row]:
    """1,000 volunteers with strings of 64 bits: half of the rest hold one item, and the modal item leads by 33."""
    mode, draws = Mode(ONE, DELTA), ExactDraws()
    yield row("mode, epsilon 1, delta 1e-6: lead named with 95%, of 1,000 volunteers", mode.lead / 10, "%", "<= 3.3")
    second = 100
    records = [*["first"] * (second + mode.lead), *["second"] * second]
    records += [f"{k:016x}" for k in range(VOLUNTEERS - len(records))]
    named = sum(bool(mode.run(records, draws).rows) for _ in range(runs)) / runs
    yield row(f"mode: named at that lead, {runs} runs", named, "", ">= 0.93")
    for bits in (32, 64, 256):
        lead = 2 * (bits * math.log(2) + math.log(1 / 0.05))
        yield row(f"mode, baseline: lead of the exponential mechanism over {bits} bits, by its bound", lead, "people")


def _lists() -> Iterator[Row]:
    made = StabilityHistogram(ONE, DELTA)
    width = laplace_half_width(made.scale, 0.05 / VOLUNTEERS)
    certain = made.threshold + width + 1
    yield row("items, epsilon 1, delta 1e-6: held by so many, listed with 95% all at once", certain, "people")
    half = made.threshold + 1
    yield row("items: held by so many, listed with one half", half, "people")


def _largest_errors() -> Iterator[Row]:
    """The largest of many counts' errors, at 95%, at rho = .1: Laplace, Gaussian, and sinh-normal up to order 2.236."""
    rho, omega = Fraction(1, 10), Fraction(2237, 1000)
    gaussian, sinh = GaussianHistogram(("a", "b"), rho), SinhHistogram(("a", "b"), rho, omega)
    laplace = LaplaceHistogram(("a", "b"), Fraction(math.isqrt(2 * 10**11), 10**6))  # epsilon^2 / 2 = rho
    for cells, target in ((10**3, "<= 12"), (10**6, "<= 14"), (10**12, "<= 16")):
        beta = 0.05 / cells
        yield row(f"{cells:.0e} counts, rho .1: largest error, Laplace", laplace_half_width(laplace.scale, beta), "")
        yield row(f"{cells:.0e} counts, rho .1: largest error, Gaussian", gaussian_half_width(gaussian.sigma, beta), "")
        name = f"{cells:.0e} counts, rho .1 up to order 2.236: largest error, sinh-normal"
        yield row(name, sinh.noise.half_width(beta), "", target)


def _selection(runs: int) -> Iterator[Row]:
    """1,000 candidates of which one leads: how often each mechanism names it, at epsilon 1."""
    items, draws = tuple(f"i{k}" for k in range(1000)), ExactDraws()
    for gap in (15, 25, 35):
        records = [*[items[0]] * (gap + 5), *(item for item in items[1:] for _ in range(5))]
        scores = [gap + 5, *[5] * 999]
        chosen = exponential_law(scores, 2.0)[0]
        yield row(f"1,000 candidates, gap {gap}: named by the exponential mechanism (its law)", chosen, "")
        for name, made in (("gap-max", GapMax(items, ONE)), ("obvious-answer", ObviousAnswer(items, ONE))):
            found = np.mean([made.run(records, draws).rows[0].item == items[0] for _ in range(runs)])
            yield row(f"1,000 candidates, gap {gap}: named by {name}, {runs} runs", float(found), "")
