"""Frequent texts of 0 and 1 with their counts, at a price for each attribute.

The list of tree.py costs epsilon / 2 for one attribute. Then each listed text gets its count with discrete Laplace
noise of scale 4 / epsilon: two counts move by 1 if one person's text changes, however much, so this costs epsilon / 2.

    for one attribute     epsilon
    for a whole record    d epsilon / 2 + epsilon / 2: a change of d characters is d changes of one

(Theorem 15 prints noise of scale 2 / epsilon for the counts, which costs epsilon, and 3 / epsilon for the tree.)

With probability 95% every text that a share nu of the people have is listed, and all intervals hold. Smaller data sets
are refused. The plain histogram of all 2^d texts, with noise of scale 2 / epsilon and a threshold that no empty text
passes, needs (2 / epsilon)(d ln 2 + 3) / nu people and protects whole records at epsilon: it needs fewer people up to
some hundred characters (`plain_people`). With a delta, `items` is better still, and needs no list either.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np

from ldp_client.errors import InvalidSpec
from ldp_server.curator.draws import Draws, laplace_scale
from ldp_server.curator.laws import laplace_half_width
from ldp_server.curator.people import Record
from ldp_server.curator.prices import CentralPrice
from ldp_server.curator.releases.base import BETA, CentralMechanism, Outcome, ReleasedRow, clipped
from ldp_server.curator.releases.partial.bits import Bits, bits_of, check_bits
from ldp_server.curator.releases.partial.tree import TreeNoise, frequent_texts, needed_people, tree_noise

__all__ = ["FrequentStrings", "check_share", "plain_people"]


@dataclass(frozen=True)
class FrequentStrings(CentralMechanism):
    """All texts of so many characters that a share of the people have."""

    kind: ClassVar[str] = "frequent-texts"
    bits: int
    """d."""
    share: Fraction
    """nu."""
    epsilon: Fraction
    calibrated: bool = False

    def __post_init__(self) -> None:
        check_bits(self.bits)
        check_share(self.share)

    @property
    def price(self) -> CentralPrice:
        whole = self.epsilon * (self.bits + 1) / 2
        return CentralPrice(whole, Fraction(0), whole * whole / 2, attribute=self.epsilon)

    @property
    def tree(self) -> TreeNoise:
        """The noise of the list."""
        return tree_noise(self.epsilon / 2, self.share, self.bits, calibrated=self.calibrated)

    @property
    def scale(self) -> float:
        """Of the noise of the counts."""
        return laplace_scale(4, self.epsilon)

    @property
    def smallest(self) -> int:
        return needed_people(self.tree, self.share, self.bits, BETA / 2)

    def run(self, records: Sequence[Record], draws: Draws) -> Outcome:
        rows = self.counted(bits_of(records, self.bits), draws)
        note = (
            f"with probability 95% every text that {math.ceil(self.share * len(records)):,} people have is listed, and "
            "all intervals hold at once"
        )
        return Outcome(rows, note)

    def counted(self, rows: Bits, draws: Draws) -> tuple[ReleasedRow, ...]:
        """Return the listed texts with their counts, the largest first."""
        found = frequent_texts(rows, self.tree, self.share, draws)
        if not found.texts:
            return ()
        counts = np.bincount(found.places[found.places >= 0], minlength=len(found.texts))
        noisy = draws.laplace(counts.tolist(), self.scale)
        width = laplace_half_width(self.scale, BETA / 2 / len(noisy))
        listed = sorted(zip(found.texts, noisy, strict=True), key=lambda one: (-one[1], one[0]))
        return tuple(clipped(text, count, width, len(rows)) for text, count in listed)


def check_share(share: Fraction) -> None:
    """Check nu."""
    if not Fraction(1, 1000) <= share <= Fraction(1, 4):
        raise InvalidSpec("--share lies between 0.001 and 0.25")


def plain_people(bits: int, share: Fraction, epsilon: Fraction) -> int:
    """Return how many people the plain histogram of all texts needs."""
    return math.ceil(2 / float(epsilon) * (bits * math.log(2) - math.log(BETA)) / float(share))
