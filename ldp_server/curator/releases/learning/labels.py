"""A threshold where the numbers are public and the labels alone are private.

The candidates are the thresholds between the public numbers: at most `CANDIDATES` of them, so that between two there
are about equally many people. Changing one person's label moves each threshold's agreements by at most 1, and the
candidates not at all. So the exponential mechanism over them is epsilon-private **for two data sets that differ in one
label** (Theorem 6.2 of Beimel, Nissim, Stemmer, for thresholds; it takes a sample of the people for the candidates,
because it bounds the error for others). It says nothing about a change of the number: whoever knows that the number is
not public must not use it. A data set whose budget is about whole records refuses the release.

Use. With probability 95% the threshold is wrong for at most (2 / epsilon) ln(candidates / 0.05) people more than the
best candidate, and the best candidate for at most the people between two candidates more than the best threshold.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from ldp_server.curator.draws import Draws, selection_scale
from ldp_server.curator.people import Record, whole_numbers
from ldp_server.curator.prices import CentralPrice
from ldp_server.curator.releases.base import BETA, Outcome, ReleasedRow
from ldp_server.curator.releases.learning.cuts import agreements, scores_at
from ldp_server.curator.releases.learning.labelled import LabelledMechanism, the_only
from ldp_server.curator.releases.ranges.quantiles import in_growing_order

__all__ = ["LabelCutLearner"]

CANDIDATES = 1000


@dataclass(frozen=True)
class LabelCutLearner(LabelledMechanism):
    """A threshold between public numbers, from private labels."""

    kind: ClassVar[str] = "learn-labels"
    epsilon: Fraction

    @property
    def price(self) -> CentralPrice:
        return CentralPrice(label=self.epsilon)

    @property
    def about(self) -> str:
        return "this is about two data sets that differ in one label: all other columns are taken to be public"

    @property
    def error(self) -> int:
        """How many more people than with the best candidate may be wrong, with probability 95%."""
        return math.ceil(2 / float(self.epsilon) * math.log((CANDIDATES + 2) / BETA))

    @property
    def smallest(self) -> int:
        return 2 * self.error + 1

    def learn(self, attributes: Sequence[Sequence[Record]], labels: Sequence[bool], draws: Draws) -> Outcome:
        numbers = whole_numbers(the_only(self.kind, attributes), "the column")
        ordered = in_growing_order(numbers)
        step = -(-len(ordered) // CANDIDATES)
        cuts = sorted({ordered[0], *ordered[::step], ordered[-1] + 1})
        scores = scores_at(cuts, *agreements(numbers, labels))
        index = draws.exponential(scores, selection_scale(self.epsilon))
        note = (
            f"numbers below this have the label 1; with probability 95% it is wrong for at most {self.error:,} people "
            f"more than the best of {len(cuts):,} thresholds between the public numbers"
        )
        return Outcome((ReleasedRow(cuts[index]),), note)
