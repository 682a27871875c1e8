"""The distribution of texts of 0 and 1: frequent texts, with the smallest share that the number of people allows.

As strings.py, with the same price: nu is the smallest 1 / j for which `needed_people` is at most the number of people,
which is public. A text that is not listed gets the share 0.

Use. With probability 95% every text of a share nu or more is listed and all intervals hold, half-width w. The shares
that are not listed are below nu and sum to at most 1, so their squares sum to at most nu. So the squared errors of all
2^d shares sum to at most nu + |list| (w / n)^2. nu falls as (log d)(log n) / (epsilon n). (Theorem 34; its counts have
noise of scale 2 / epsilon, for which 4 / epsilon is right, and its nu has the logarithm in the wrong place.)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from ldp_server.curator.draws import Draws
from ldp_server.curator.laws import laplace_half_width
from ldp_server.curator.people import Record
from ldp_server.curator.prices import CentralPrice
from ldp_server.curator.releases.base import BETA, CentralMechanism, Outcome
from ldp_server.curator.releases.partial.bits import bits_of
from ldp_server.curator.releases.partial.strings import FrequentStrings

__all__ = ["TextShares"]

_COARSEST, _FINEST = 4, 1000


@dataclass(frozen=True)
class TextShares(CentralMechanism):
    """Shares of all texts of so many characters."""

    kind: ClassVar[str] = "text-shares"
    bits: int
    epsilon: Fraction
    calibrated: bool = False

    def __post_init__(self) -> None:
        self.texts(_COARSEST)

    def texts(self, parts: int) -> FrequentStrings:
        """Return the release with the share 1 / parts."""
        return FrequentStrings(self.bits, Fraction(1, parts), self.epsilon, self.calibrated)

    @property
    def price(self) -> CentralPrice:
        return self.texts(_COARSEST).price

    @property
    def smallest(self) -> int:
        return self.texts(_COARSEST).smallest

    def finest(self, people: int) -> FrequentStrings:
        """Return the release with the smallest share for so many people."""
        low, high = _COARSEST, _FINEST + 1
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if self.texts(middle).smallest <= people else (low, middle)
        return self.texts(low)

    def run(self, records: Sequence[Record], draws: Draws) -> Outcome:
        people = len(records)
        made = self.finest(people)
        rows = made.counted(bits_of(records, self.bits), draws)
        width = laplace_half_width(made.scale, BETA / 2 / max(1, len(rows)))
        squares = float(made.share) + len(rows) * (width / people) ** 2
        note = (
            f"with probability 95% every text that {float(made.share):.3g} of the people have is listed, all intervals "
            f"hold, and the squared errors of all shares sum to at most {squares:.3g}"
        )
        return Outcome(rows, note)
