"""Dummy participation around any mechanism: every device sends one report, about its item or about a random one.

With public probability s = share/2^16 the report is of the device's item, else of an item drawn uniformly from the
whole domain (`none` included), through the very same randomizer. Nobody can see which of them it is. So this hides who
takes part; sending nothing would not.

Privacy. The channel is s P_x + (1-s) R with R the average of all P: every ordered pair of P_x, P_x', R is within the
inner ratio r, so the ratio is at most 1 + s (r - 1): epsilon shrinks to ln(1 + s (e^eps - 1)) at most
(subsampling.py); for binary randomized response it is again randomized response, with p' = s p + (1-s)/2.

Price. The inner estimate is of s f + (1-s) n/size, so it is shifted and divided by s: the signal shrinks by s, the
variance grows by 1/s^2. **The same report at the smaller epsilon is at least as accurate.** Dummies help to hide who
takes part, and when; they do not help accuracy. So specs do not offer them.

Words: those of the inner mechanism, one for the choice, and enough for the dummy that its bias, at most 2^-64 of its
probability, is the same for every item.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import ClassVar, Self

import numpy as np
import numpy.typing as npt

from ldp_client.errors import InvalidSpec
from ldp_client.mechanisms.base import WORD_BITS, Example, Randomizer, scaled
from ldp_client.protocol.domain import Domain
from ldp_client.protocol.epsilon import Epsilon
from ldp_server.arrays.hashing import Indexes
from ldp_server.oracles import frequency_oracle
from ldp_server.oracles.base import Floats

__all__ = ["SHARE_BITS", "DummyParticipation", "DummyParticipationOracle"]

SHARE_BITS = 16


@dataclass(frozen=True)
class DummyParticipation(Randomizer):
    """An inner mechanism whose reports are of the item only with probability share/2^16."""

    inner: Randomizer
    share: int
    word_bits: int = WORD_BITS
    epsilon: Epsilon = field(init=False)
    size: int = field(init=False)
    name: ClassVar[str] = "dummy-participation"

    def __post_init__(self) -> None:
        if not 1 <= self.share <= 1 << SHARE_BITS:
            raise InvalidSpec(f"a share of 1 to {1 << SHARE_BITS} out of {1 << SHARE_BITS} takes part")
        object.__setattr__(self, "epsilon", self.inner.epsilon)
        object.__setattr__(self, "size", self.inner.size)

    @classmethod
    def build(cls, epsilon: Epsilon, domain: Domain, seed: bytes, parameters: Mapping[str, int]) -> Self:
        """No spec describes it (see the module's docstring)."""
        del epsilon, domain, seed, parameters
        raise InvalidSpec("dummy participation is not part of a spec: declare the smaller epsilon instead")

    @classmethod
    def examples(cls) -> Sequence[Example]:
        """None: no spec describes it."""
        return ()

    @property
    def _dummy_words(self) -> int:
        """Enough words for the size and 64 bits more; one where tests shrink them."""
        if self.word_bits < WORD_BITS:
            return 1
        return -(-(self.size - 1).bit_length() // self.word_bits) + 1

    @property
    def words(self) -> int:
        """The words of the inner mechanism, one for the choice, and some for the dummy."""
        return self.inner.words + 1 + self._dummy_words

    @property
    def bound(self) -> int:
        return self.inner.bound

    def randomize(self, index: int, words: Sequence[int]) -> int:
        """Return a report of the item or of the dummy, both worked out."""
        taking_part = words[0] << SHARE_BITS < self.share << self.word_bits
        number = 0
        for word in words[1 : 1 + self._dummy_words]:
            number = number << self.word_bits | word
        dummy = number * self.size >> self.word_bits * self._dummy_words
        inner = words[1 + self._dummy_words :]
        return (self.inner.randomize(dummy, inner), self.inner.randomize(index, inner))[taking_part]

    @property
    def taking_part(self) -> Fraction:
        """s, exactly as realised."""
        words = -(-(self.share << self.word_bits) >> SHARE_BITS)
        return Fraction(words, 1 << self.word_bits)

    def dummy(self, report: int) -> Fraction:
        """R: the exact probability of a report under the dummy; lists the domain."""
        bits = self.word_bits * self._dummy_words
        return sum(
            (scaled(index, self.size, bits) * self.inner.probability(index, report) for index in range(self.size)),
            Fraction(0),
        )

    def probability(self, index: int, report: int) -> Fraction:
        s = self.taking_part
        return s * self.inner.probability(index, report) + (1 - s) * self.dummy(report)

    @property
    def ratio(self) -> Fraction:
        """1 + s (r - 1): a bound, reached where an output's dummies are as rare as its rarest senders."""
        return 1 + self.taking_part * (self.inner.ratio - 1)

    def parameters(self) -> Mapping[str, int]:
        """Return the share; the inner mechanism has its own."""
        return {"share": self.share, **self.inner.parameters()}


class DummyParticipationOracle:
    """Estimates of the inner oracle, less the dummies and divided by the share.

    f = (inner - (1-s) n/size)/s is unbiased because the inner oracle is. Its variance is that of the inner estimate of
    what is there, plus that of who takes part, at most n s (1-s), all over s^2.
    """

    def __init__(self, randomizer: DummyParticipation) -> None:
        self.randomizer = randomizer
        self.inner = frequency_oracle(randomizer.inner)
        self._share = float(randomizer.taking_part)

    @property
    def reports(self) -> int:
        """How many reports have been counted, dummies included: one a device."""
        return self.inner.reports

    def accumulate(self, payload: bytes) -> int:
        return self.inner.accumulate(payload)

    def merge(self, other: DummyParticipationOracle) -> None:
        self.inner.merge(other.inner)

    def _present(self, frequencies: Floats) -> Floats:
        """How many of the reports are about each item, dummies included."""
        return self._share * frequencies + (1 - self._share) * self.reports / self.randomizer.size

    def estimate(self, indexes: Indexes) -> Floats:
        """Raw, unbiased estimates of how many users hold each index."""
        dummies = (1 - self._share) * self.reports / self.randomizer.size
        return (self.inner.estimate(indexes) - dummies) / self._share

    def variance(self, frequencies: npt.ArrayLike) -> Floats:
        """Return the inner variance, plus that of who takes part."""
        f = np.clip(np.asarray(frequencies, np.float64), 0, self.reports)
        s, d = self._share, 1 / self.randomizer.size
        holds, others = s + (1 - s) * d, (1 - s) * d
        lottery = f * holds * (1 - holds) + (self.reports - f) * others * (1 - others)
        spread: Floats = (self.inner.variance(self._present(f)) + lottery) / s**2
        return spread
