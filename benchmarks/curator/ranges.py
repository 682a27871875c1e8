"""Huge ranges, learners, and texts of attributes: what each needs, beside the classical mechanism for the same task."""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction

import numpy as np

from benchmarks.row import Options, Row, row
from ldp_server.curator.laws import laplace_half_width
from ldp_server.curator.noise import ExactDraws
from ldp_server.curator.releases.learning.cuts import CutLearner
from ldp_server.curator.releases.learning.labels import LabelCutLearner
from ldp_server.curator.releases.partial.bits import Bits, texts_of
from ldp_server.curator.releases.partial.strings import FrequentStrings, plain_people
from ldp_server.curator.releases.quantile import ExponentialQuantile
from ldp_server.curator.releases.ranges.concave import ConcaveSearch, concave_search
from ldp_server.curator.releases.ranges.quantiles import RecursiveQuantile
from ldp_server.curator.releases.ranges.steps import Stretch, joined
from ldp_server.curator.releases.sanitizing.points import PointSanitizer
from ldp_server.curator.releases.stability import StabilityHistogram

__all__ = ["rows"]

ONE, HALF, DELTA, TENTH = Fraction(1), Fraction(1, 2), Fraction(1, 10**6), Fraction(1, 10)
DRAWS = ExactDraws()


def rows(options: Options) -> Iterator[Row]:
    """Yield the rows."""
    rng = np.random.default_rng(4)
    yield from _narrow_gap(rng, 60 if options.full else 20)
    yield from _medians()
    yield from _all_items(rng)
    yield from _labels(rng, 200 if options.full else 60)
    yield from _texts(rng, 10 if options.full else 3)


def _narrow_gap(rng: np.random.Generator, runs: int) -> Iterator[Row]:
    """Thresholds with all people at the two sides of a gap of a few values: at most a tenth of them wrong."""
    people = 4000
    for bits, plain_target in ((256, ">= 0.9"), (1000, ">= 0.9"), (2000, "<= 0.1"), (4000, "<= 0.1"), (8000, "<= 0.1")):
        for name, search, target in (
            ("RecConcave", concave_search(1 << bits, ONE, DELTA), ">= 0.9"),
            ("the exponential mechanism", concave_search(1 << bits, ONE, Fraction(0), depth=1), plain_target),
        ):
            right = sum(_right_side(rng, search, bits, people) for _ in range(runs)) / runs
            yield row(
                f"threshold, {people:,} people, {bits:,} bits, {runs} runs: right for 90% with {name}",
                right,
                "",
                target,
            )
    for bits in (64, 8000):
        needed = (
            CutLearner(bits, ONE, DELTA).search().error if bits > 64 else concave_search(1 << bits, ONE, DELTA).error
        )
        yield row(f"threshold, {bits:,} bits: people for an error of a tenth, RecConcave by its bound", 10 * needed, "")
    crossing = 10 * concave_search(1 << 1400, ONE, DELTA).error / (4 * math.log(2))
    yield row("threshold, gap of a few values: bits at which both need as many people", crossing, "", ">= 1000")
    yield row("threshold, gap of a few values: the same, from above", crossing, "", "<= 2000")


def _right_side(rng: np.random.Generator, search: ConcaveSearch, bits: int, people: int) -> bool:
    place, gap = int.from_bytes(rng.bytes(bits // 8), "big") >> 1, 1 << int(rng.integers(1, 4))
    score = [
        Stretch(0, place, people // 2),
        Stretch(place, gap, people),
        Stretch(place + gap, (1 << bits) - place - gap, people // 2),
    ]
    found = search.solve(joined(score, -people), people, DRAWS)
    return found is not None and place <= found < place + gap


def _medians() -> Iterator[Row]:
    """The rank error of a median that holds with 95%, for numbers of all magnitudes."""
    for bits in (64, 256, 1024, 4096, 8192):
        recursive = RecursiveQuantile(HALF, bits, ONE, DELTA)
        yield row(f"median, {bits:,} bits: ranks off, RecConcave (95%)", recursive.ranks, "people")
        plain = ExponentialQuantile(HALF, bits, ONE).ranks
        yield row(f"median, {bits:,} bits: ranks off, the exponential mechanism (95%)", plain, "people")
    crossing = next(b for b in range(64, 8192) if _better(b))
    yield row("median, numbers of all magnitudes: bits from which RecConcave's bound is better", crossing, "")


def _better(bits: int) -> bool:
    return RecursiveQuantile(HALF, bits, ONE, DELTA).ranks < ExponentialQuantile(HALF, bits, ONE).ranks


def _all_items(rng: np.random.Generator) -> Iterator[Row]:
    """Items up to a tenth of the people, Zipf: the largest error of all, beside the stability histogram."""
    made = PointSanitizer(TENTH, ONE, DELTA)
    yield row("all-items, share 0.1, epsilon 1, delta 1e-6: people that it needs", made.smallest, "", "<= 200000")
    records = [f"i{k}" for k in np.minimum(rng.zipf(1.3, made.smallest), 20_000).tolist()]
    truth = dict(zip(*np.unique(records, return_counts=True), strict=True))
    for name, release, target in (
        ("all-items", made, "<= 0.1"),
        ("baseline, stability histogram", StabilityHistogram(ONE, DELTA), None),
    ):
        found = {found.item: found.count for found in release.run(records, DRAWS).rows}
        worst = max(abs(int(count) - (found.get(str(item)) or 0)) for item, count in truth.items()) / len(records)
        yield row(f"{name}, Zipf 1.3 over 20,000 items: largest error of a share", worst, "", target)


def _labels(rng: np.random.Generator, runs: int) -> Iterator[Row]:
    """A threshold from public numbers: right for 95% of the people, with central noise and with randomized labels."""
    made = LabelCutLearner(ONE)
    for people in (200, 400):
        central = local = 0
        for _ in range(runs):
            numbers = rng.integers(0, 1 << 30, people)
            labels = numbers < (1 << 29)
            (found,) = made.learn([numbers.tolist()], labels.tolist(), DRAWS).rows
            central += float(np.mean((numbers < int(str(found.item or 0))) != labels)) <= 0.05
            told = labels ^ (rng.random(people) < 1 / (1 + math.e))
            cuts = np.sort(numbers)
            agreeing = [int(((numbers < cut) == told).sum()) for cut in cuts]
            local += float(np.mean((numbers < cuts[int(np.argmax(agreeing))]) != labels)) <= 0.05
        yield row(
            f"labels alone private, {people} people, epsilon 1: 95% right, {runs} runs", central / runs, "", ">= 0.8"
        )
        yield row(f"the same with randomized labels: 95% right, {runs} runs", local / runs, "")


def planted(rng: np.random.Generator, people: int, bits: int, share: Fraction) -> tuple[Bits, list[str]]:
    """Return random texts of which four are held by a share of the people each, and these four."""
    rows_of, held = rng.integers(0, 2, (people, bits)).astype(np.uint8), math.ceil(people * share)
    texts = rng.integers(0, 2, (4, bits)).astype(np.uint8)
    for place, text in enumerate(texts):
        rows_of[place * held : (place + 1) * held] = text
    return rows_of, texts_of(texts)


def _texts(rng: np.random.Generator, runs: int) -> Iterator[Row]:
    """Frequent texts of 0 and 1, epsilon 1 for an attribute, nu = .05."""
    share = Fraction(1, 20)
    for bits in (64, 256, 1024):
        for calibrated in (False, True):
            made = FrequentStrings(bits, share, ONE, calibrated)
            name = "exact loss" if calibrated else "the lemma's noise"
            found = 0
            for _ in range(runs):
                people, texts = planted(rng, made.smallest, bits, share)
                found += {one.item for one in made.counted(people, DRAWS)} >= set(texts)
            yield row(f"tree, {bits:,} characters, {name}: all planted found, {runs} runs", found / runs, "", ">= 0.9")
            yield row(f"tree, {bits:,} characters, {name}: people needed", made.smallest, "")
        yield row(f"plain histogram, {bits:,} characters: people needed", plain_people(bits, share, ONE), "")
        width = laplace_half_width(FrequentStrings(bits, share, ONE).scale, 0.05)
        yield row(f"tree, {bits:,} characters: interval of one count, half", width, "people")
