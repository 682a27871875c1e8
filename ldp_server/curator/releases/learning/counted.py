"""From released counts to a rule: a histogram of (bin, label), and the threshold with the fewest errors in it.

The m cuts make m + 1 bins. One record moves two of the 2 (m + 1) counts by 1: discrete Laplace noise of scale
2 / epsilon, epsilon-private. What follows costs nothing: the errors of each cut are the people with the label 0 below
it and those with the label 1 not below it, a sum of m + 1 noisy counts. The cut with the smallest sum is released, with
its errors. (Lemma 5.3 of Beimel, Nissim, Stemmer: a sanitizer for labelled thresholds gives a learner.)

Accuracy. Each sum is within w of the truth, for all cuts at once, with probability 95%; the width is that of a sum of
m + 1 draws (thresholds.py). So the interval of the released cut's errors holds although it was chosen by them, and the
cut is at most 2 w worse than the best. `learn-cut` chooses better, and does not say how many errors there are.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np

from ldp_server.curator.draws import Draws, laplace_scale
from ldp_server.curator.people import Record, whole_numbers
from ldp_server.curator.prices import CentralPrice
from ldp_server.curator.releases.base import BETA, Outcome, clipped
from ldp_server.curator.releases.learning.cuts import check_cuts
from ldp_server.curator.releases.learning.labelled import LabelledMechanism, the_only
from ldp_server.curator.releases.thresholds import laplace_log_mgf, sum_width

__all__ = ["CountedCutLearner"]


@dataclass(frozen=True)
class CountedCutLearner(LabelledMechanism):
    """A threshold of a list, from noisy counts, with its errors."""

    kind: ClassVar[str] = "learn-counted"
    cuts: tuple[int, ...]
    epsilon: Fraction

    def __post_init__(self) -> None:
        check_cuts(self.cuts)

    @property
    def price(self) -> CentralPrice:
        return CentralPrice.pure(self.epsilon)

    @property
    def scale(self) -> float:
        return laplace_scale(2, self.epsilon)

    @property
    def width(self) -> int:
        """The w of the text above."""
        return sum_width(len(self.cuts) + 1, laplace_log_mgf(self.scale), BETA / (2 * len(self.cuts)))

    @property
    def smallest(self) -> int:
        return 2 * self.width + 1

    def learn(self, attributes: Sequence[Sequence[Record]], labels: Sequence[bool], draws: Draws) -> Outcome:
        numbers = whole_numbers(the_only(self.kind, attributes), "the column")
        bins, counts = len(self.cuts) + 1, [0] * (2 * len(self.cuts) + 2)
        for number, label in zip(numbers, labels, strict=True):
            counts[bisect_right(self.cuts, number) + bins * label] += 1
        noisy = np.array(draws.laplace(counts, self.scale)).reshape(2, bins)
        errors = np.cumsum(noisy[0])[:-1] + noisy[1].sum() - np.cumsum(noisy[1])[:-1]
        chosen = int(errors.argmin())
        row = clipped(self.cuts[chosen], int(errors[chosen]), self.width, len(numbers))
        note = (
            "numbers below this have the label 1; the count is for how many people that is wrong. With probability 95% "
            f"it is wrong for at most {2 * self.width:,} more than the best of the cuts"
        )
        return Outcome((row,), note)
