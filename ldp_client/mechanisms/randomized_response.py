r"""k-ary randomized response: give the true answer with probability e/(e + k - 1), else one of the others.

The integer law. One word u, uniform on [0, N), N = 2^64. Let e_low be the rational lower bound of e^epsilon. The truth
has T words, each of the k - 1 lies has W words, and r words are left over; leftover word i says answer i mod k,
*whatever the truth is*:

    u in [0, T)            the truth x
    u in [T, T + (k-1) W)  lie number j = (u - T) mod (k-1): answer j below x, answer j + 1 from x on
    the last r words       answer (u - T - (k-1) W) mod k

The second line has W words for every j. So with s_y = r // k + [y < r mod k], exactly:

    Pr[y | x] = (W + s_y + [y = x] (T - W)) / N.

Privacy. The ratio of Pr[y | x] to Pr[y | x'] is largest for y = x, where it is (T + s_y)/(W + s_y) <= T/W.
Two forms, both with T/W <= e_low <= e^epsilon by construction:
- plain, r = 0: W = ceil(N / (e_low + k - 1)), T = N - (k-1) W. As (e_low + k - 1) W >= N, T <= e_low W.
- spread: W = floor(N / (e_low + k - 1)), T = floor(e_low W), r = N - T - (k-1) W >= 0.
The plain form loses up to (k-1)/T of the ratio, which for k = 2^20 and a small epsilon would be 6e-8; the spread form
loses about r/(k W). The plain form is used where its ratio is below e_low by less than a part of 1/sqrt(N), so the
realised epsilon is within 1e-9 of the declared one for every k up to 2^20 and every epsilon from 0.01 to 20.

Estimation. E[C_y] = n (W + s_y)/N + f_y (T - W)/N, so f_y = (C_y - n q_y)/(p - q) with q_y = (W + s_y)/N and
p - q = (T - W)/N is exactly unbiased; its variance is (f p(1-p) + (n-f) q(1-q))/(p-q)^2.

Timing. Truth, lie and leftover answer are all computed, then one is selected. The time of CPython's integers depends on
their number of digits and on their sign, and its comparisons branch. So every sum here is kept above N: it has as many
digits whatever the word is. The number of the lie has the same law whether it is used or not. The selection is by the
sum's top digit, 1 or 2. `python -m benchmarks oracles` measures the difference in time that is left.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import ClassVar, Self

from ldp_client.errors import InvalidSpec
from ldp_client.mechanisms.base import WORD_BITS, Example, Randomizer
from ldp_client.mechanisms.shared.pair_law import PairLaw, uniform
from ldp_client.protocol.domain import Categories, Domain, Integers
from ldp_client.protocol.epsilon import Epsilon

__all__ = ["MAX_ANSWERS", "RandomizedResponse", "Response"]

MAX_ANSWERS = 1 << 20


class Response:
    """The core: one answer out of k, randomized by one word. Other mechanisms are built around it."""

    __slots__ = (
        "_after_lies",
        "_after_truth",
        "_lies",
        "_to_lie",
        "_to_spare",
        "epsilon",
        "k",
        "lie",
        "spare",
        "truth",
        "word_bits",
    )

    def __init__(self, epsilon: Epsilon, k: int, word_bits: int = WORD_BITS) -> None:
        if not 2 <= k <= MAX_ANSWERS:
            raise InvalidSpec(f"randomized response takes 2 to {MAX_ANSWERS} answers, not {k}")
        self.epsilon = epsilon
        self.k = k
        self.word_bits = word_bits
        total = 1 << word_bits
        e_low = epsilon.e_low
        lie = -(-total // (e_low + k - 1))
        truth = total - (k - 1) * lie
        if (e_low * lie - truth) * (1 << word_bits // 2) > e_low * lie:
            lie = total // (e_low + k - 1)
            truth = int(e_low * lie)
        self.truth = truth
        """T, how many words tell the truth."""
        self.lie = lie
        """W, how many words tell each lie."""
        self.spare = total - truth - (k - 1) * lie
        """r, how many words are left over."""
        if not 0 < lie < truth <= e_low * lie or self.spare < 0:
            raise InvalidSpec(f"{word_bits} random bits are too few for {k} answers at epsilon {epsilon}")
        self._prepare()

    def _prepare(self) -> None:
        """Work out the offsets of `choose`: what the law subtracts, modulo the divisor, plus a multiple beyond N."""
        total, self._lies = 1 << self.word_bits, self.k - 1
        self._to_lie = -self.truth % self._lies - (-total // self._lies) * self._lies
        self._to_spare = (self.spare - total) % self.k - (-total // self.k) * self.k
        self._after_truth = 2 * total - self.truth
        self._after_lies = self.spare

    def choose(self, word: int, truth: int) -> int:
        """Return the answer to give when the true one is `truth`."""
        lie = (word + self._to_lie) % self._lies
        if self.spare:  # a property of the collection, not of the item
            spare = (word + self._to_spare) % self.k
            chosen = (word + self._after_truth >> self.word_bits) + (word + self._after_lies >> self.word_bits)
            return (0, truth, lie + (lie >= truth), spare)[chosen]
        return (0, truth, lie + (lie >= truth))[word + self._after_truth >> self.word_bits]

    def weight(self, truth: int, answer: int) -> int:
        """How many of the 2^word_bits words make `truth` say `answer`."""
        spread = self.spare // self.k + (answer < self.spare % self.k)
        return spread + (self.truth if answer == truth else self.lie)

    def probability(self, truth: int, answer: int) -> Fraction:
        """The exact probability that `truth` says `answer`."""
        return Fraction(self.weight(truth, answer), 1 << self.word_bits)

    @property
    def ratio(self) -> Fraction:
        """The exact largest ratio of an answer's probabilities; at most e_low."""
        least = self.spare // self.k
        return Fraction(self.truth + least, self.lie + least)

    @property
    def different(self) -> PairLaw:
        """The pair law of two different truths (pair_law.py): some truth lies at every answer."""
        least = self.lie + self.spare // self.k
        return uniform(Fraction(least, 1 << self.word_bits), self.ratio, 1, self.k - 2)

    @property
    def same(self) -> PairLaw:
        """The pair law of twice the same truth."""
        least = self.lie + self.spare // self.k
        return uniform(Fraction(least, 1 << self.word_bits), self.ratio, 0, self.k - 1, 1)

    @property
    def p(self) -> Fraction:
        """The probability of the truth, averaged over the answers."""
        return Fraction(self.truth * self.k + self.spare, self.k << self.word_bits)

    @property
    def q(self) -> Fraction:
        """The probability of one lie, averaged over the answers."""
        return Fraction(self.lie * self.k + self.spare, self.k << self.word_bits)


@dataclass(frozen=True)
class RandomizedResponse(Randomizer):
    """k-ary randomized response on a whole domain: `none` and every item is one answer."""

    epsilon: Epsilon
    size: int
    word_bits: int = WORD_BITS
    response: Response = field(init=False, repr=False, compare=False)
    name: ClassVar[str] = "randomized-response"

    def __post_init__(self) -> None:
        if self.size > MAX_ANSWERS:
            raise InvalidSpec(
                f"randomized response takes a domain of at most {MAX_ANSWERS - 1} items; use hashtogram or a sketch"
            )
        object.__setattr__(self, "response", Response(self.epsilon, self.size, self.word_bits))

    @classmethod
    def build(cls, epsilon: Epsilon, domain: Domain, seed: bytes, parameters: Mapping[str, int]) -> Self:
        del seed, parameters  # it has no parameters and uses no public randomness
        return cls(epsilon, domain.size)

    @classmethod
    def examples(cls) -> Sequence[Example]:
        return (
            Example("1", Integers(1, 1), word_bits=6),
            Example("1", Integers(1, 2), word_bits=10),
            Example("0.1", Integers(1, 4), word_bits=7),
            Example("2", Integers(1, 10), word_bits=6),
            Example("2", Integers(1, 6), word_bits=12),
            Example("1", Integers(1, 1)),
            Example("0.5", Categories(tuple("abcdefghijk"))),
            Example("3", Categories(tuple("abcd"))),
        )

    @property
    def words(self) -> int:
        return 1

    @property
    def bound(self) -> int:
        return self.size

    def randomize(self, index: int, words: Sequence[int]) -> int:
        return self.response.choose(words[0], index)

    def probability(self, index: int, report: int) -> Fraction:
        return self.response.probability(index, report)

    @property
    def ratio(self) -> Fraction:
        return self.response.ratio

    @property
    def pair_laws(self) -> Sequence[PairLaw]:
        return (self.response.different,)

    def parameters(self) -> Mapping[str, int]:
        return {}
