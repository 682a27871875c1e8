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
from ldp_server.curator.releases.partial.mwem import PairTable, table_counts
from ldp_server.curator.releases.partial.points import TextLearner
from ldp_server.curator.releases.partial.prefixes import PrefixLearner
from ldp_server.curator.releases.partial.projection import ProjectedConjunctions, projected
from ldp_server.curator.releases.partial.shares import TextShares
from ldp_server.curator.releases.partial.strings import FrequentStrings, plain_people
from ldp_server.curator.releases.quantile import ExponentialQuantile
from ldp_server.curator.releases.ranges.concave import ConcaveSearch, concave_search
from ldp_server.curator.releases.ranges.quantiles import RecursiveQuantile
from ldp_server.curator.releases.ranges.steps import Stretch, joined
from ldp_server.curator.releases.sanitizing.numbers import NumberSanitizer
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
    yield from _rules(rng, 20 if options.full else 6)
    yield from _tables(rng, 10 if options.full else 3)


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

    thresholds = NumberSanitizer(TENTH, 64, ONE, DELTA)
    people = thresholds.smallest
    yield row("all-thresholds, share 0.1, 64 bits: people that it needs", people, "", "<= 30000")
    numbers = np.sort(rng.integers(0, 1 << 62, people) >> rng.integers(0, 60, people))
    found_rows = thresholds.run(numbers.tolist(), DRAWS).rows
    values = np.repeat([int(str(one.item)) for one in found_rows], [one.count or 0 for one in found_rows])
    cuts = np.unique(np.concatenate([numbers, values, numbers + 1, values + 1]))
    off = np.abs(np.searchsorted(numbers, cuts) - np.searchsorted(np.sort(values), cuts)).max() / people
    yield row(
        "all-thresholds, numbers of all magnitudes: largest error of a share below a threshold", off, "", "<= 0.1"
    )


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

    for calibrated in (False, True):
        name = "exact loss" if calibrated else "the lemma's noise"
        crossing = next(b for b in range(65, 1024) if _fewer(b, share, calibrated=calibrated))
        yield row(f"tree, {name}: characters from which it needs fewer people than the plain histogram", crossing, "")


def _fewer(bits: int, share: Fraction, *, calibrated: bool) -> bool:
    return FrequentStrings(bits, share, ONE, calibrated).smallest < plain_people(bits, share, ONE)


def _rules(rng: np.random.Generator, runs: int) -> Iterator[Row]:
    """Rules about texts, epsilon 1 for an attribute, and the distribution of texts."""
    for bits in (64, 256):
        text = TextLearner(bits, Fraction(1, 5), ONE)
        made = PrefixLearner(bits, Fraction(1, 5), ONE)
        yield row(f"learn-text, {bits} characters, a fifth of the people: people needed", text.smallest, "")
        yield row(f"learn-text-threshold, {bits} characters, a fifth may be wrong: people needed", made.smallest, "")
        right = 0
        for _ in range(runs):
            people = rng.integers(0, 2, (made.smallest, bits)).astype(np.uint8)
            texts = texts_of(people)
            z = sorted(texts)[len(texts) // 3]
            labels = [one >= z for one in texts]
            found = made.learn([texts], labels, DRAWS).rows
            wrong = (
                sum((one >= str(found[0].item)) != label for one, label in zip(texts, labels, strict=True))
                if found
                else 0
            )
            right += bool(found) and wrong <= made.share * len(texts)
        yield row(
            f"learn-text-threshold, {bits} characters: as good as promised, {runs} runs", right / runs, "", ">= 0.9"
        )
    kinds = rng.integers(0, 2, (60, 64)).astype(np.uint8)
    chances = 1 / np.arange(1, 61)
    made_shares = TextShares(64, ONE)
    for many in (20_000, 80_000):
        held = rng.choice(60, many, p=chances / chances.sum())
        rows_of = made_shares.finest(many).counted(kinds[held], DRAWS)
        shares = np.bincount(held, minlength=60) / many
        told = {str(one.item): (one.count or 0) / many for one in rows_of}
        off = sum((share - told.get(text, 0.0)) ** 2 for share, text in zip(shares, texts_of(kinds), strict=True))
        yield row(f"text-shares, 64 characters, {many:,} people: squared errors together", off, "")


def _tables(rng: np.random.Generator, runs: int) -> Iterator[Row]:
    """Consistent counts of few people; a table from pairs. epsilon_0 = .5: rho = .125 for one attribute."""
    bits, people = 12, 50
    counts = ProjectedConjunctions(bits, 3, HALF)
    raw = near = 0.0
    for _ in range(runs):
        held = (rng.random((people, bits)) < rng.random(bits)).astype(np.uint8)
        truth = np.array([held[:, list(one)].all(1).sum() for one in counts.sets])
        noisy = np.array(DRAWS.gaussian(truth.tolist(), counts.sigma)) / people
        raw += float(np.mean((noisy - truth / people) ** 2)) / runs
        near += float(np.mean((projected(noisy, bits, counts.sets) - truth / people) ** 2)) / runs
    yield row("projected-counts, 12 attributes, 3 at once, 50 people: mean squared error, noisy", raw, "")
    yield row("the same made consistent", near, "", "<= 0.01")
    held = np.zeros((2000, 8), np.uint8)
    for place in range(8):
        held[:, place] = rng.random(2000) < 0.3 + 0.3 * (held[:, place - 1] if place else 0)
    cells = np.arange(256)[:, None] >> np.arange(8)[None, ::-1] & 1
    pairs = [(a, b) for a in range(8) for b in range(a)]
    shares = np.array([float((held[:, a] & held[:, b]).mean()) for a, b in pairs])
    for many, rho, rounds in ((1, Fraction(1, 8), 100), (4, Fraction(5, 4), 50)):
        worst = 0.0
        for _ in range(runs):
            table = PairTable(8, rho, many, rounds).fitted(table_counts(held), DRAWS)
            found = np.array([float((cells[:, a] & cells[:, b]) @ table) for a, b in pairs])
            worst += float(np.abs(found - shares).max()) / runs
        name = f"pair-table, 8 attributes, 2,000 people, {many} pairs a round, {rounds} rounds: largest error of a pair"
        yield row(name, worst, "", "<= 0.1")
    yield row("baseline, the table that knows nothing: largest error of a pair", float(np.abs(shares - 0.25).max()), "")
