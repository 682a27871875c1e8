"""One attribute out of k, drawn by the device's coins, answered by binary randomized response at the full
epsilon.

A report says something about one attribute only, but with all of the budget. For epsilon up to about 2 this is better
than composed response. Two words: the first draws the attribute j = word * k >> 64, whatever the item is; the second
answers. Report = 2 j + answer.

Privacy. Given j, the report is binary randomized response of one bit of the item: epsilon-LDP with exactly
the response's epsilon.

Estimation. With n_j reports about attribute j, the binary estimate (C_j - n_j q)/(p - q) is scaled by n/n_j.
Its variance is about k n e/(e-1)^2 plus the sampling of the users, f (1 - f/n) (k - 1). Pairs are never seen
together.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import ClassVar, Self

from ldp_client.errors import InvalidSpec
from ldp_client.mechanisms.base import WORD_BITS, Example, Randomizer, scaled
from ldp_client.mechanisms.randomized_response import Response
from ldp_client.mechanisms.shared.pair_law import PairLaw
from ldp_client.protocol.domain import MAX_ATTRIBUTES, Attributes, Domain
from ldp_client.protocol.epsilon import Epsilon

__all__ = ["SampledAttribute"]


@dataclass(frozen=True)
class SampledAttribute(Randomizer):
    """Reports one attribute, drawn at random, at the full epsilon."""

    epsilon: Epsilon
    size: int
    word_bits: int = WORD_BITS
    k: int = field(init=False)
    response: Response = field(init=False, repr=False, compare=False)
    name: ClassVar[str] = "sampled-attribute"

    def __post_init__(self) -> None:
        k = self.size.bit_length() - 1
        if self.size != 1 << k or not 1 <= k <= MAX_ATTRIBUTES:
            raise InvalidSpec(f"sampled-attribute takes an attributes domain of 1 to {MAX_ATTRIBUTES} names")
        object.__setattr__(self, "k", k)
        object.__setattr__(self, "response", Response(self.epsilon, 2, self.word_bits))

    @classmethod
    def build(cls, epsilon: Epsilon, domain: Domain, seed: bytes, parameters: Mapping[str, int]) -> Self:
        del seed, parameters  # it has no parameters and uses no public randomness
        if not isinstance(domain, Attributes):
            raise InvalidSpec("sampled-attribute takes an attributes domain")
        return cls(epsilon, domain.size)

    @classmethod
    def examples(cls) -> Sequence[Example]:
        return (
            Example("1", Attributes(("x", "y", "z")), word_bits=6),
            Example("2", Attributes(("x",)), word_bits=5),
            Example("2", Attributes(tuple("vwxyz")), word_bits=6),
            Example("1", Attributes(("x", "y", "z"))),
            Example("1", Attributes(tuple("vwxyz"))),
            Example("3", Attributes(tuple("vwxyz"))),
        )

    @property
    def words(self) -> int:
        return 2

    @property
    def bound(self) -> int:
        return 2 * self.k

    def randomize(self, index: int, words: Sequence[int]) -> int:
        chosen = words[0] * self.k >> self.word_bits
        return 2 * chosen + self.response.choose(words[1], index >> chosen & 1)

    def probability(self, index: int, report: int) -> Fraction:
        chosen, answer = divmod(report, 2)
        return scaled(chosen, self.k, self.word_bits) * self.response.probability(index >> chosen & 1, answer)

    @property
    def ratio(self) -> Fraction:
        return self.response.ratio

    @property
    def pair_laws(self) -> Sequence[PairLaw]:
        """The pair that differs in all attributes; which one was drawn is public."""
        return (self.response.different,)

    def parameters(self) -> Mapping[str, int]:
        return {}
