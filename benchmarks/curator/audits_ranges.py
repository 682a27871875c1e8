"""Exact audits of the releases about huge ranges, of the sanitizers, the learners, and those about attributes.

Each is run by its own code over all outcomes of its draws, on neighbouring data sets that are hard for it. `realised`
is the smallest epsilon that holds at the declared delta for these pairs, in both directions.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from benchmarks.curator import wrong
from benchmarks.curator.concave_law import concave_law, moved_scores, needed_delta
from benchmarks.curator.outcomes import OutcomeLaw, law_of, smallest_delta
from benchmarks.row import Row, row
from ldp_server.curator.draws import Draws, laplace_scale
from ldp_server.curator.people import Record
from ldp_server.curator.releases.base import CentralMechanism
from ldp_server.curator.releases.choosing import Choosing
from ldp_server.curator.releases.learning.cuts import CutLearner, ListedCutLearner
from ldp_server.curator.releases.learning.labels import LabelCutLearner
from ldp_server.curator.releases.learning.points import PointLearner
from ldp_server.curator.releases.learning.rectangles import RectangleLearner
from ldp_server.curator.releases.mode import GRAIN
from ldp_server.curator.releases.partial.mwem import PairTable
from ldp_server.curator.releases.partial.projection import ProjectedConjunctions
from ldp_server.curator.releases.partial.rules import RobustRule
from ldp_server.curator.releases.partial.strings import FrequentStrings
from ldp_server.curator.releases.partial.tree import TreeNoise, tree_levels, tree_loss
from ldp_server.curator.releases.quantile import ExponentialQuantile
from ldp_server.curator.releases.ranges.concave import ConcaveSearch, concave_search
from ldp_server.curator.releases.ranges.quantiles import InteriorPoint, RecursiveQuantile
from ldp_server.curator.releases.sanitizing.numbers import NumberSanitizer
from ldp_server.curator.releases.sanitizing.points import PointSanitizer

__all__ = ["Audit", "all_audits", "realised", "rows"]

ONE, TWO, HALF = Fraction(1), Fraction(2), Fraction(1, 2)
Columns = Sequence[Sequence[Record]]
CUT_OFF = 1e-7


@dataclass(frozen=True)
class Audit:
    """A mechanism, pairs of neighbouring data sets, and which noise is only ever compared with a threshold."""

    mechanism: CentralMechanism
    pairs: tuple[tuple[Columns, Columns], ...]
    thresholds: Mapping[float, int]
    epsilon: Fraction
    delta: Fraction = Fraction(0)

    def laws(self) -> Iterator[tuple[OutcomeLaw, OutcomeLaw]]:
        """Yield the laws of each pair."""
        for one, other in self.pairs:
            yield self._law(one), self._law(other)

    def _law(self, columns: Columns) -> OutcomeLaw:
        def run(draws: Draws) -> Hashable:
            return tuple(one.item for one in self.mechanism.run_columns(columns, draws).rows)

        return law_of(run, 1e-8, self.thresholds)


def realised(audit: Audit) -> float:
    """Return the smallest epsilon that holds at the audit's delta, to three digits."""
    laws = [pair for both in audit.laws() for pair in (both, both[::-1])]
    low, high = 0.0, 2 * float(audit.epsilon)
    while high - low > 1e-3 * float(audit.epsilon):
        middle = (low + high) / 2
        worst = max(smallest_delta(one, other, middle) for one, other in laws)
        low, high = (low, middle) if worst <= float(audit.delta) + CUT_OFF else (middle, high)
    return high


def _numbers(*sets: Sequence[Record]) -> tuple[tuple[Columns, Columns], ...]:
    return tuple(([one], [other]) for one, other in itertools.combinations(sets, 2))


def _labelled(rest: Sequence[tuple[Record, int]], *last: tuple[Record, int]) -> tuple[tuple[Columns, Columns], ...]:
    """Data sets that differ in the last person."""
    made: list[Columns] = [
        [[number for number, _ in [*rest, one]], [label for _, label in [*rest, one]]] for one in last
    ]
    return tuple((one, other) for one, other in itertools.combinations(made, 2))


def all_audits() -> dict[str, Audit]:
    """Return the audits by name."""
    return {**_ranges(), **_selections(), **_learners()}


def _ranges() -> dict[str, Audit]:
    return {
        "quantile": _pure(ExponentialQuantile(HALF, 2, ONE), _numbers([0, 0, 3], [0, 3, 3], [0, -3, 3])),
        "recursive-quantile, 31 values": _pure(
            RecursiveQuantile(HALF, 4, ONE, Fraction(1, 1000)), _numbers([0, 0, 12], [0, 12, 12])
        ),
        "interior-point, 31 values": _pure(
            InteriorPoint(bits=4, epsilon=ONE, delta=Fraction(1, 1000)), _numbers([0, 0, 12], [0, 12, 12])
        ),
        "all-thresholds": _pure(NumberSanitizer(HALF, 2, TWO), _numbers([-3, 0, 2], [-3, 2, 2], [-3, -3, 2])),
    }


def _selections() -> dict[str, Audit]:
    """Counts on both sides of what is compared with a threshold."""
    point = PointSanitizer(Fraction(9, 10), Fraction(3), Fraction(1, 100))
    choosing, many = point.choosing(), point.smallest
    least = math.ceil(choosing.share * many / 2)
    rest: list[Record] = [*["a"] * least, *["b"] * least, *[None] * (many - 2 * least - 1)]
    frequent = Choosing(HALF, Fraction(8), Fraction(1, 100))
    mode = PointLearner(Fraction(4), Fraction(1, 50))
    last: tuple[Record, ...] = ("a", "b", "c", None)
    return {
        "frequent-item": Audit(
            frequent,
            _numbers(*([*["a"] * 7, *["b"] * 6, *[None] * 13, one] for one in last)),
            {frequent.scale: math.ceil(frequent.share * 27 / 2)},
            frequent.epsilon,
            frequent.delta,
        ),
        "all-items (which are named)": Audit(
            point,
            _numbers(*([*rest, one] for one in last)),
            {choosing.scale: least, laplace_scale(1, choosing.epsilon): 0},
            point.epsilon,
            point.delta,
        ),
        "learn-item": Audit(
            mode, _labelled([("a", 1)] * 3, ("a", 1), ("b", 1), ("a", 0)), {}, mode.epsilon, mode.delta
        ),
    }


def _learners() -> dict[str, Audit]:
    rest: list[tuple[Record, int]] = [(0, 1), (1, 0)]
    box = RectangleLearner(1, 2, Fraction(12))
    held = box.side().error + box.margin
    rule = RobustRule(2, ("1,0,0", "0,1,0"), ONE, (0, 1))
    told = (*_labelled([("11", 1)], ("00", 0), ("01", 0)), *_labelled([("11", 1)], ("01", 0), ("01", 1)))
    return {
        "learn-threshold": _pure(CutLearner(2, ONE), _labelled(rest, (-3, 0), (3, 1), (3, 0))),
        "learn-cut": _pure(ListedCutLearner((-1, 1, 3), ONE), _labelled(rest, (0, 1), (0, 0), (2, 1))),
        "learn-labels, one label": _pure(LabelCutLearner(ONE), _labelled(rest, (3, 0), (3, 1))),
        "learn-box": Audit(
            box,
            _labelled([(1, 1)] * held, (1, 1), (1, 0), (-3, 1), (3, 1)),
            {laplace_scale(1, box.epsilon / 3): held + 1},
            box.epsilon,
        ),
        "robust-rule, one attribute": _pure(rule, told, {1.0: 1}),
    }


def _pure(
    mechanism: CentralMechanism,
    pairs: tuple[tuple[Columns, Columns], ...],
    thresholds: Mapping[float, int] | None = None,
) -> Audit:
    price = mechanism.price
    for epsilon in (price.label, price.attribute, price.epsilon):
        if epsilon is not None:
            return Audit(mechanism, pairs, thresholds or {}, epsilon, price.delta)
    raise AssertionError("an audit of a pure epsilon needs one")


def rows() -> Iterator[Row]:
    """Yield a row for each audit, and for what is printed."""
    for name, audit in all_audits().items():
        found = realised(audit) / float(audit.epsilon)
        yield row(f"audit, {name}: realised epsilon / declared", found, "", "<= 1.001")
    yield from _concave()
    yield from _trees()
    yield from _tables()


def _concave() -> Iterator[Row]:
    search, rng = concave_search(64, ONE, Fraction(1, 1000)), np.random.default_rng(5)
    laws = []
    for _ in range(40):
        peak = int(search.threshold / GRAIN * rng.uniform(0.8, 1.2))
        one, other = moved_scores(rng, 64, peak)
        laws.append((concave_law(search, one, peak), concave_law(search, other, peak)))
    least, most = 0.0, 2.0
    while most - least > 1e-3:
        middle = (least + most) / 2
        private = max(needed_delta(*both, middle) for both in laws) <= float(search.delta)
        least, most = (least, middle) if private else (middle, most)
    yield row("audit, RecConcave, 64 values, 40 pairs: realised epsilon / declared", most, "", "<= 1.001")
    printed = wrong.PrintedConcaveSearch(**vars(search))
    made: ConcaveSearch
    for name, made, target in (("audit, ", search, "<= 1"), ("control, A_dist as printed in ", printed, ">= 1.5")):
        worst = 0.0
        for gap in range(2, 2 * search.threshold // GRAIN):
            passed = [made_passes(made, lead) for lead in (gap, gap - 2)]
            # gaps of at most 2 name different blocks in the two data sets: nothing else must hide what is named there
            hidden = passed[1] if gap > 2 else 0.0
            worst = max(worst, passed[0] - math.exp(float(made.naming)) * hidden)
        yield row(
            f"{name}RecConcave's naming of a block: delta / declared", worst / float(made.naming_delta), "", target
        )


def made_passes(made: ConcaveSearch, gap: int) -> float:
    """Return the probability that a block with this lead is named."""
    law = law_of(
        lambda draws: draws.laplace([GRAIN * gap], made.scale)[0] >= made.threshold, 1e-12, {made.scale: made.threshold}
    )
    return law.chances.get(True, 0.0)


def _trees() -> Iterator[Row]:
    """The loss of the tree for one attribute, exact: over all histories of the two texts that change."""
    for bits in (2, 64, 1024):
        for calibrated in (False, True):
            made = FrequentStrings(bits, Fraction(1, 20), ONE, calibrated)
            name = f"frequent-texts, {bits:,} characters{', calibrated' if calibrated else ''}"
            yield row(
                f"audit, {name}: realised epsilon of the list / declared", 2 * tree_loss(made.tree, bits), "", "<= 1"
            )
    printed = TreeNoise(3.0, math.ceil(3 * math.log(320)))
    found = 2 * tree_loss(printed, 64)
    yield row(f"control, tree as printed, {tree_levels(64)} levels: realised epsilon / declared", found, "", ">= 1.5")


class _First(Draws):
    """Adds no noise, and notes what it would be added to, and the scores and the scale of the first selection."""

    def __init__(self) -> None:
        self.noisy: list[int] = []
        self.scores: list[int] = []
        self.scale = 0.0

    def laplace(self, values: Sequence[int], scale: float) -> list[int]:
        raise NotImplementedError

    def gaussian(self, values: Sequence[int], sigma: float) -> list[int]:
        self.noisy += values
        self.scale = self.scale or sigma
        return list(values)

    def select(self, scores: Sequence[int], scale: float) -> int:
        raise NotImplementedError

    def exponential(self, scores: Sequence[int], scale: float) -> int:
        self.scores, self.scale = self.scores or list(scores), self.scale or scale
        return 0

    def uniform(self, count: int) -> int:
        raise NotImplementedError


def _seen(mechanism: CentralMechanism, records: Sequence[Record]) -> _First:
    found = _First()
    mechanism.run(records, found)
    return found


def _tables() -> Iterator[Row]:
    """Of counts: the squared move over 2 sigma^2. Of a table: the range of its first choice, over 2 l e."""
    counts, rho = ProjectedConjunctions(5, 2, ONE), 0.0
    texts = ["".join(text) for text in itertools.product("01", repeat=5)]
    seen = [_seen(counts, [text, "00000"]) for text in texts]
    for one, other in itertools.combinations(seen, 2):
        moved = sum((a - b) ** 2 for a, b in zip(one.noisy, other.noisy, strict=True))
        rho = max(rho, moved / (2 * one.scale**2))
    yield row("audit, projected-counts: realised rho / declared", rho, "", "<= 1")
    for pairs in (1, 2):
        table, range_of = PairTable(5, ONE, pairs, 4), 0.0
        e = math.sqrt(2 / (4 * (pairs**2 + pairs)))
        firsts = [_seen(table, ["00000"] * 3 + [text]) for text in texts]
        for one, other in itertools.combinations(firsts, 2):
            moves = [a - b for a, b in zip(one.scores, other.scores, strict=True)]
            range_of = max(range_of, (max(moves) - min(moves)) / one.scale)
        name = f"audit, pair-table, {pairs} pairs a round: range of a choice / declared"
        yield row(name, range_of / (2 * pairs * e), "", "<= 1.000001")
