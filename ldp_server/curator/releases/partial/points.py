"""Which text of 0 and 1 has the label 1, if it is one text, at a price for each attribute (the label is one).

The text and its label are one text of d + 1 characters, and frequent ones are counted (strings.py). Of those that end
with the label 1, the one with the largest count is released, if its interval is above 0. This is post-processing.

Use. Let one text have the label 1 and all others 0. With probability 95% all intervals hold and every share of alpha is
listed. Then a text with an interval above 0 is the right one, and it has one if alpha n people have it, since
alpha n > 2 w. If nothing is released, the rule "always 0" is wrong for fewer than alpha n people. (Theorem 31 releases
some text with few people instead of nothing; with nothing the rule is not one of its class, and errs less.)
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np

from ldp_server.curator.draws import Draws
from ldp_server.curator.laws import laplace_half_width
from ldp_server.curator.people import Record
from ldp_server.curator.prices import CentralPrice
from ldp_server.curator.releases.base import BETA, Outcome, ReleasedRow
from ldp_server.curator.releases.learning.labelled import LabelledMechanism, the_only
from ldp_server.curator.releases.partial.bits import bits_of
from ldp_server.curator.releases.partial.strings import FrequentStrings

__all__ = ["TextLearner"]


@dataclass(frozen=True)
class TextLearner(LabelledMechanism):
    """The text that has the label 1."""

    kind: ClassVar[str] = "learn-text"
    bits: int
    share: Fraction
    """alpha."""
    epsilon: Fraction
    calibrated: bool = False

    def __post_init__(self) -> None:
        self.texts()

    def texts(self) -> FrequentStrings:
        """Return the release of texts with their labels."""
        return FrequentStrings(self.bits + 1, self.share, self.epsilon, self.calibrated)

    @property
    def price(self) -> CentralPrice:
        return self.texts().price

    @property
    def smallest(self) -> int:
        made = self.texts()
        width = laplace_half_width(made.scale, BETA / 2 * float(self.share) / 8)
        return max(made.smallest, math.ceil((2 * width + 1) / self.share))

    def learn(self, attributes: Sequence[Sequence[Record]], labels: Sequence[bool], draws: Draws) -> Outcome:
        rows = bits_of(the_only(self.kind, attributes), self.bits)
        together = np.column_stack([rows, np.array(labels, np.uint8)])
        found = self.texts().counted(together, draws)
        ones = [row for row in found if str(row.item).endswith("1") and (row.low or 0) > 0]
        if ones:
            return Outcome((ReleasedRow(str(ones[0].item)[:-1]),), "this text has the label 1, all others 0")
        most = math.ceil(self.share * len(labels))
        note = (
            f"no text: the label is always 0. If one text alone has the label 1, fewer than {most:,} of these people "
            "have it, with probability 95%"
        )
        return Outcome((), note)
