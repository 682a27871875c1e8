"""From which text of 0 and 1 on the label is 1, in the order of binary numbers, at a price for each attribute.

A prefix polarizes if many people with it have the label 0 and many the label 1; pol(p) is the smaller of the two
counts. Some text z is right for all, so every prefix with both labels is one of z. One record moves counts by 1, and so
the largest pol of each length, whatever changes in the record.

    1. ones + Z, scale 8 / epsilon. Nearly all labels alike: a text at one of the ends                      epsilon / 8
    2. the longest length l whose largest pol is about 1.5 gamma n or more: it falls with the length, so K =
       lg(d + 1) steps of a binary search find it, each with noise of scale 8 K / epsilon                   epsilon / 8
    3. frequent texts (strings.py) of the first l characters and the label, nu = gamma: the prefix p with the
       largest pol                                                                                          epsilon / 2
    4. of p00...0, p10...0 and p11...1, one by the exponential mechanism over how many people agree         epsilon / 4

For one attribute, of which the label is one, this costs epsilon; for a whole record 2/4 epsilon and what step 3 costs.
(Lemma 32 and Theorem 33. Printed, step 1's ends are swapped, and step 2's cutoff of 1.5 gamma in step 3 loses
prefixes.)

Use. gamma = .45 alpha. With probability 95%: step 1 stops if one label has fewer than 2 gamma n people, and then errs
for at most alpha n. Step 2 finds an l with pol >= gamma n at l, and at most 2 gamma n at l + 1. Step 3 lists p0 and p1
of a prefix with pol >= gamma n, and one with a pol above 0 is a prefix of z. z lies behind p0 or p1; as neither has a
pol above 2 gamma n, one of the three texts errs for at most 2 gamma n, and step 4 for at most alpha n / 10 more.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from ldp_client.errors import InvalidSpec
from ldp_server.curator.draws import Draws, laplace_scale, selection_scale
from ldp_server.curator.laws import laplace_half_width
from ldp_server.curator.people import Record
from ldp_server.curator.prices import CentralPrice
from ldp_server.curator.releases.base import BETA, Outcome, ReleasedRow
from ldp_server.curator.releases.learning.labelled import LabelledMechanism, the_only
from ldp_server.curator.releases.partial.bits import Bits, bits_of, check_bits
from ldp_server.curator.releases.partial.strings import FrequentStrings

__all__ = ["PrefixLearner", "polarization"]

Labels = npt.NDArray[np.uint8]


@dataclass(frozen=True)
class PrefixLearner(LabelledMechanism):
    """A text from which on the label is 1."""

    kind: ClassVar[str] = "learn-text-threshold"
    bits: int
    share: Fraction
    """alpha."""
    epsilon: Fraction
    calibrated: bool = False

    def __post_init__(self) -> None:
        check_bits(self.bits)
        if not Fraction(1, 100) <= self.share <= Fraction(1, 2):
            raise InvalidSpec("--share lies between 0.01 and 0.5")

    @property
    def gamma(self) -> Fraction:
        """Which share of the people a prefix must have with each label."""
        return self.share * Fraction(9, 20)

    @property
    def steps(self) -> int:
        """K."""
        return self.bits.bit_length()

    def texts(self, length: int) -> FrequentStrings:
        """Return the release of step 3 for prefixes of a length, with the label."""
        return FrequentStrings(length + 1, self.gamma, self.epsilon / 2, self.calibrated)

    @property
    def price(self) -> CentralPrice:
        whole = self.epsilon / 2 + (self.texts(self.bits).price.epsilon or 0)
        return CentralPrice(whole, Fraction(0), whole * whole / 2, attribute=self.epsilon)

    @property
    def _ends(self) -> tuple[float, int]:
        """Scale and half-width of step 1."""
        scale = laplace_scale(8, self.epsilon)
        return scale, laplace_half_width(scale, BETA / 8)

    @property
    def _search(self) -> tuple[float, int]:
        scale = laplace_scale(8 * self.steps, self.epsilon)
        return scale, laplace_half_width(scale, BETA / 8 / self.steps)

    @property
    def smallest(self) -> int:
        made = self.texts(self.bits)
        width = laplace_half_width(made.scale, BETA / 2 * float(self.gamma) / 8)
        choice = 8 / float(self.epsilon) * math.log(3 / (BETA / 8))
        least = (
            2 * self._search[1] / float(self.gamma),
            20 * self._ends[1] / float(self.share),
            (2 * width + 1) / float(self.gamma),
            10 * choice / float(self.share),
        )
        return max(made.smallest, math.ceil(max(least)))

    def learn(self, attributes: Sequence[Sequence[Record]], labels: Sequence[bool], draws: Draws) -> Outcome:
        rows = bits_of(the_only(self.kind, attributes), self.bits)
        found = self._found(rows, np.array(labels, np.uint8), draws)
        if found is None:
            return Outcome((), "nothing: if a text is right for all, this happens with probability 5% at most")
        note = (
            "from this text on (as a binary number) the label is 1; with probability 95% it is wrong for at most "
            f"{math.ceil(self.share * len(labels)):,} people, if some text is right for all"
        )
        return Outcome((ReleasedRow(found),), note)

    def _found(self, rows: Bits, labels: Labels, draws: Draws) -> str | None:
        people, (scale, width) = len(labels), self._ends
        (ones,) = draws.laplace([int(labels.sum())], scale)
        few = math.ceil(2 * self.gamma * people) + width
        if ones <= few:
            return "1" * self.bits
        if ones >= people - few:
            return "0" * self.bits
        length = self._length(rows, labels, draws)
        prefix = self._prefix(rows[:, :length], labels, draws) if length else ""
        if prefix is None or length == self.bits:
            return prefix
        rest = self.bits - length - 1
        texts = [prefix + "0" + "0" * rest, prefix + "1" + "0" * rest, prefix + "1" * (rest + 1)]
        scores = [_agreeing(rows, labels, text) for text in texts]
        return texts[draws.exponential(scores, selection_scale(self.epsilon / 4))]

    def _length(self, rows: Bits, labels: Labels, draws: Draws) -> int:
        """Step 2: the last length that passed."""
        low, high = 0, self.bits + 1
        while high - low > 1:
            middle = (low + high) // 2
            (noisy,) = draws.laplace([polarization(rows[:, :middle], labels)], self._search[0])
            low, high = (middle, high) if 2 * noisy >= 3 * self.gamma * len(labels) else (low, middle)
        return low

    def _prefix(self, rows: Bits, labels: Labels, draws: Draws) -> str | None:
        """Step 3."""
        found = self.texts(rows.shape[1]).counted(np.column_stack([rows, labels]), draws)
        counts = {str(row.item): row.count or 0 for row in found}
        both = [text[:-1] for text in counts if text.endswith("0") and text[:-1] + "1" in counts]
        return max(both, key=lambda text: min(counts[text + "0"], counts[text + "1"]), default=None)


def _groups(rows: Bits) -> npt.NDArray[np.int64]:
    """Return a number for each person, equal for equal rows."""
    packed = np.ascontiguousarray(np.packbits(rows, axis=1))
    kinds = packed.view(np.dtype((np.void, packed.shape[1]))).ravel()
    return np.asarray(np.unique(kinds, return_inverse=True)[1], np.int64)


def polarization(rows: Bits, labels: Labels) -> int:
    """Return the largest pol of all these prefixes."""
    groups = _groups(rows)
    counts = np.bincount(2 * groups + labels, minlength=2 * (int(groups.max()) + 1)).reshape(-1, 2)
    return int(counts.min(axis=1).max())


def _agreeing(rows: Bits, labels: Labels, text: str) -> int:
    """Return how many people a threshold is right for."""
    packed = np.packbits(rows, axis=1).tobytes()
    wide = -(-rows.shape[1] // 8)
    end = np.packbits(np.array(list(text), np.uint8)).tobytes()
    above = np.array([packed[at : at + wide] >= end for at in range(0, len(packed), wide)])
    return int((above == (labels == 1)).sum())
