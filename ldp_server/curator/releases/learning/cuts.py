"""Below which threshold numbers have the label 1: of all thresholds of a range, or of a given list.

The score of a threshold k is how many people agree with it: label 1 and a number below k, or label 0 and one not below.
One record moves each score by at most 1.

`CutLearner`, any threshold of a range. Without a delta: the exponential mechanism, epsilon-private. With one:
RecConcave (concave.py), (epsilon, delta)-private, if its error is smaller. The score is quasi-concave, and its largest
value is everybody, m, if some threshold is right for all; this is the promise. (LearnThresholds, Theorem 3.18; its
constants with 3 N mechanisms ask for 2.2 million people at 32 bits.) RecConcave's error does not depend on the bits but
for a logarithm. With labels that contradict each other it stays private and may name a bad threshold; the exponential
mechanism is then good as well: its error is counted from the best threshold.

`ListedCutLearner`, a threshold of a list that was made without the records, such as from public people without labels
(a semi-private learner, Section 6.2): the exponential mechanism, epsilon-private, with an error of at most
(2 / epsilon) ln(|list| / beta) more than the best in the list.

Before the draw each score is raised to at least best - 2 error, or m - 2 error for RecConcave. The best score moves by
1 as each score does, so this moves no score further.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from ldp_client.errors import InvalidSpec
from ldp_server.curator.draws import Draws, selection_scale
from ldp_server.curator.people import Record, whole_numbers
from ldp_server.curator.prices import CentralPrice
from ldp_server.curator.releases.base import BETA, Outcome, ReleasedRow
from ldp_server.curator.releases.learning.labelled import LabelledMechanism, the_only
from ldp_server.curator.releases.ranges.concave import ConcaveSearch, best_search
from ldp_server.curator.releases.ranges.quantiles import SMALL_NUMBER, check_range
from ldp_server.curator.releases.ranges.steps import Stretch

__all__ = ["CutLearner", "ListedCutLearner", "agreements", "check_cuts", "scores_at"]

MOST_CUTS = 100_000


@dataclass(frozen=True)
class CutLearner(LabelledMechanism):
    """A threshold between -2^bits and 2^bits."""

    kind: ClassVar[str] = "learn-threshold"
    bits: int
    epsilon: Fraction
    delta: Fraction | None = None

    def __post_init__(self) -> None:
        check_range(self.bits, self.delta)

    @property
    def price(self) -> CentralPrice:
        if self.search().depth == 1:
            return CentralPrice.selection(self.epsilon)
        return CentralPrice.pure(self.epsilon, self.delta or Fraction(0))

    def search(self) -> ConcaveSearch:
        """Return the mechanism with its budgets: of two, the one with the smaller error."""
        return best_search(2 << self.bits, self.epsilon, self.delta, 1, BETA)

    @property
    def smallest(self) -> int:
        return 2 * self.search().error + 1

    def learn(self, attributes: Sequence[Sequence[Record]], labels: Sequence[bool], draws: Draws) -> Outcome:
        search = self.search()
        reach = (1 << self.bits) - 1
        numbers = whole_numbers(the_only(self.kind, attributes), "the column")
        if min(numbers) < -reach or max(numbers) > reach:
            numbers = [min(max(number, -reach), reach) for number in numbers]
        values, scores = agreements(numbers, labels)
        promise = len(numbers) if search.depth > 1 else int(scores.max())
        score = _stretches(values, np.maximum(scores, promise - 2 * search.error), (-reach, reach + 1))
        cut = search.solve(score, promise, draws)
        if cut is None:
            return Outcome((), "nothing: if some threshold is right for all, this happens with probability 5% at most")
        note = "numbers below this have the label 1; with probability 95% it is wrong for at most "
        note += f"{search.error:,} people" + (
            ", if some threshold is right for all" if search.depth > 1 else " more than the best threshold"
        )
        return Outcome((ReleasedRow(cut),), note)


@dataclass(frozen=True)
class ListedCutLearner(LabelledMechanism):
    """A threshold of a list."""

    kind: ClassVar[str] = "learn-cut"
    cuts: tuple[int, ...]
    epsilon: Fraction

    def __post_init__(self) -> None:
        check_cuts(self.cuts)

    @property
    def price(self) -> CentralPrice:
        return CentralPrice.selection(self.epsilon)

    @property
    def error(self) -> int:
        """How many more people than with the best threshold may be wrong, with probability 95%."""
        return math.ceil(2 / float(self.epsilon) * math.log(len(self.cuts) / BETA))

    @property
    def smallest(self) -> int:
        return 2 * self.error + 1

    def learn(self, attributes: Sequence[Sequence[Record]], labels: Sequence[bool], draws: Draws) -> Outcome:
        numbers = whole_numbers(the_only(self.kind, attributes), "the column")
        scores = scores_at(self.cuts, *agreements(numbers, labels))
        index = draws.exponential(scores, selection_scale(self.epsilon))
        note = (
            f"numbers below this have the label 1; with probability 95% it is wrong for at most {self.error:,} people "
            "more than the best threshold of the list"
        )
        return Outcome((ReleasedRow(self.cuts[index]),), note)


def check_cuts(cuts: Sequence[int]) -> None:
    """Check a list of thresholds."""
    if not 1 <= len(cuts) <= MOST_CUTS or any(a >= b for a, b in pairwise(cuts)):
        raise InvalidSpec(f"cuts: give 1 to {MOST_CUTS:,} whole numbers, each larger than the one before")


def agreements(numbers: Sequence[int], labels: Sequence[bool]) -> tuple[list[int], npt.NDArray[np.int64]]:
    """Return the values in growing order, and how many agree with the threshold before them all, and behind each."""
    signs = np.where(np.array(labels, bool), 1, -1)
    if min(numbers) > -SMALL_NUMBER and max(numbers) < SMALL_NUMBER:
        found, place = np.unique(np.array(numbers, np.int64), return_inverse=True)
        values: list[int] = found.tolist()
    else:
        values = sorted(set(numbers))
        where = {value: at for at, value in enumerate(values)}
        place = np.array([where[number] for number in numbers])
    moves = np.bincount(place, np.where(signs > 0, 1, 0), len(values)) - np.bincount(place, signs < 0, len(values))
    scores = np.concatenate([[0], np.cumsum(moves)]).astype(np.int64) + int((signs < 0).sum())
    return values, scores


def scores_at(cuts: Sequence[int], values: Sequence[int], scores: npt.NDArray[np.int64]) -> list[int]:
    """Return the score of each threshold: numbers below it have the label 1."""
    found, place = [], 0
    for cut in cuts:
        while place < len(values) and values[place] < cut:
            place += 1
        found.append(int(scores[place]))
    return found


def _stretches(values: Sequence[int], scores: npt.NDArray[np.int64], ends: tuple[int, int]) -> list[Stretch]:
    """Return the scores of all thresholds as stretches; a threshold behind value v is v + 1 or more."""
    changes = [0, *(np.flatnonzero(np.diff(scores)) + 1).tolist()]
    firsts = [ends[0] if place == 0 else values[place - 1] + 1 for place in changes]
    behind = [*firsts[1:], ends[1] + 1]
    return [
        Stretch(first, end - first, int(scores[place]))
        for first, end, place in zip(firsts, behind, changes, strict=True)
    ]
