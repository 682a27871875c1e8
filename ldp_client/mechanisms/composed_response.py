r"""Composed randomized response: k yes/no attributes answered at once, as one pure mechanism (Theorem 5.1).

Flip every attribute with probability f = flip/2^48 and keep the answer if the number of flips lies in a shell
[low, high]; otherwise answer with a uniform element of all the others, those *outside* the shell around x.
With w_d the probability of one answer y at distance d from x,

    w_d = (1-f)^(k-d) f^d           low <= d <= high
    w_d = rest / (answers outside)  else, rest = 1 - sum over the shell of C(k,d) (1-f)^(k-d) f^d,

Every answer can be at any distance from some set of attributes, so the **exact** epsilon is ln(max w / min w). The
paper's shell is centred at k f, with a width that makes `rest` at most beta. Its bound on the result,
6 eps0 sqrt(k ln(1/beta)), is about four times too large. Here the shell is free, and the exact value decides. `design`
finds the shell and the smallest flip for a wanted epsilon. It gives up the theorem's second property, that with
probability 1 - beta the answer is distributed like k independent ones: its shells have the least variance, and `rest`
is then large, 0.19 to 0.48 for ten attributes at epsilons from 0.5 to 5.

The integer law. One word u, uniform on [0, N), N = 2^64. Each answer at distance d has m_d words: m_d = floor(N w_d) in
the shell, and m = floor((N - sum over the shell of C(k,d) m_d) / (answers outside)) outside it. The words come in order
of distance. Among the answers at distance d, rank = (u - start_d) // m_d names the flipped attributes: the rank-th
subset of d attributes (protocol/subsets.py). The words left over give answer (u - used) mod 2^k, *whatever the truth
is*. So, with s_y of them for answer y,

    Pr[y | x] = (m_d(x,y) + s_y) / N          and the ratio is at most max m / min m,

which must be at most e_low: a spec whose numbers break that is refused.

Estimation. y is x plus noise that depends on its weight alone, so characters are eigenvectors: for a set S of
attributes, E[(-1)^(y . S)] = l_|S| (-1)^(x . S), with l_w = sum over d of (mass of distance d) K_d(w)/C(k,d),
K the Krawtchouk polynomials. Attributes need l_1, pairs l_2, the full table all of them.

Timing. Which attributes are flipped is a function of the word alone; the item enters by one exclusive or.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import accumulate
from typing import ClassVar, Self

from ldp_client.errors import InvalidSpec
from ldp_client.mechanisms.base import WORD_BITS, Example, Randomizer
from ldp_client.mechanisms.shared.pair_law import Atom, PairLaw, merged
from ldp_client.protocol.domain import MAX_ATTRIBUTES, Attributes, Domain
from ldp_client.protocol.epsilon import Epsilon
from ldp_client.protocol.subsets import subset

__all__ = ["ComposedResponse", "design", "krawtchouk", "shell_weights"]

FLIP_BITS = 48


def shell_weights(k: int, low: int, high: int, flip: int, word_bits: int) -> tuple[int, ...]:
    """Return m_d for d = 0 ... k."""
    kept = (1 << FLIP_BITS) - flip
    shift = FLIP_BITS * k - word_bits
    inside = {}
    for d in range(low, high + 1):
        weight = kept ** (k - d) * flip**d
        inside[d] = weight >> shift if shift >= 0 else weight << -shift
    used = sum(math.comb(k, d) * m for d, m in inside.items())
    others = (1 << k) - sum(math.comb(k, d) for d in inside)
    outside = ((1 << word_bits) - used) // others if others else 0
    return tuple(inside.get(d, outside) for d in range(k + 1))


def krawtchouk(k: int, d: int, w: int) -> int:
    """Return K_d(w): the sum of (-1)^(y . S) over all y of weight d, for a set S of w elements."""
    return sum((-1) ** j * math.comb(w, j) * math.comb(k - w, d - j) for j in range(min(d, w) + 1))


@dataclass(frozen=True)
class ComposedResponse(Randomizer):
    """Randomizes all k yes/no attributes in one report."""

    epsilon: Epsilon
    size: int
    low: int
    high: int
    flip: int
    word_bits: int = WORD_BITS
    k: int = field(init=False)
    weights: tuple[int, ...] = field(init=False, repr=False, compare=False)
    """m_d: how many words say each answer at distance d."""
    _starts: tuple[int, ...] = field(init=False, repr=False, compare=False)
    name: ClassVar[str] = "composed-response"

    def __post_init__(self) -> None:
        k = self.size.bit_length() - 1
        if self.size != 1 << k or not 1 <= k <= MAX_ATTRIBUTES:
            raise InvalidSpec(f"composed-response takes an attributes domain of 1 to {MAX_ATTRIBUTES} names")
        if not 0 <= self.low <= self.high <= k or not 0 < self.flip <= 1 << FLIP_BITS - 1:
            raise InvalidSpec("composed-response takes 0 <= low <= high <= k and a flip from 1 to 2^47")
        weights = shell_weights(k, self.low, self.high, self.flip, self.word_bits)
        if min(weights) < 1 or max(weights) > self.epsilon.e_low * min(weights):
            raise InvalidSpec("the shell and flip of this composed-response need more than its epsilon")
        starts = (0, *accumulate(math.comb(k, d) * m for d, m in enumerate(weights)))
        for name, value in (("k", k), ("weights", weights), ("_starts", starts)):
            object.__setattr__(self, name, value)

    @classmethod
    def build(cls, epsilon: Epsilon, domain: Domain, seed: bytes, parameters: Mapping[str, int]) -> Self:
        del seed  # it uses no public randomness
        if not isinstance(domain, Attributes):
            raise InvalidSpec("composed-response takes an attributes domain")
        return cls(epsilon, domain.size, parameters["low"], parameters["high"], parameters["flip"])

    @classmethod
    def examples(cls) -> Sequence[Example]:
        return (
            Example("2", Attributes(tuple("xyz")), {"low": 0, "high": 1, "flip": 118_219_490_218_475}, 12),
            Example("2", Attributes(tuple("xyz")), {"low": 1, "high": 2, "flip": 126_663_739_519_795}, 10),
            Example("4", Attributes(tuple("wxyz")), {"low": 0, "high": 2, "flip": 98_516_241_848_729}, 14),
            Example("4", Attributes(tuple("xy")), {"low": 0, "high": 2, "flip": 56_294_995_342_131}, 12),
            Example("1", Attributes(("x",)), {"low": 0, "high": 0, "flip": 84_442_493_013_196}, 9),
            Example("1", Attributes(tuple("xyz")), {"low": 2, "high": 3, "flip": 1 << FLIP_BITS - 1}, 9),
            Example("2", Attributes(tuple("xyz")), design("2", 3)),
            Example("1", Attributes(tuple("vwxyz")), design("1", 5)),
            Example("4", Attributes(tuple("vwxyz")), design("4", 5)),
        )

    @property
    def words(self) -> int:
        return 1

    @property
    def bound(self) -> int:
        return self.size

    @property
    def spare(self) -> int:
        """How many words are left over."""
        return (1 << self.word_bits) - self._starts[-1]

    def randomize(self, index: int, words: Sequence[int]) -> int:
        """Return the answer for `index`: the item, with the attributes that the word names flipped."""
        word = words[0]
        distance = bisect_right(self._starts, word) - 1
        left = word - self._starts[-1]
        inside = distance <= self.k
        distance = min(distance, self.k)
        flips = subset(self.k, distance, (word - self._starts[distance]) // self.weights[distance] * inside)
        return (left % self.size, index ^ flips)[inside]

    def probability(self, index: int, report: int) -> Fraction:
        spare = self.spare // self.size + (report < self.spare % self.size)
        return Fraction(self.weights[(index ^ report).bit_count()] + spare, 1 << self.word_bits)

    @property
    def ratio(self) -> Fraction:
        """The exact largest ratio. Leftover words make it smaller; the last answers have the fewest of them."""
        spare = self.spare // self.size
        return Fraction(max(self.weights) + spare, min(self.weights) + spare)

    @property
    def pair_laws(self) -> Sequence[PairLaw]:
        """One for every number w of attributes in which two items differ.

        An answer that has i of these w flipped as seen from the first item has w - i flipped as seen from the second;
        j of the other k - w are flipped for both.
        """
        least = self.spare // self.size
        blanket = min(self.weights) + least
        each = Fraction(blanket, 1 << self.word_bits)
        times = [Fraction(weight + least, blanket) for weight in self.weights]
        return tuple(
            merged(
                Atom(each * math.comb(w, i) * math.comb(self.k - w, j), times[i + j], times[w - i + j])
                for i in range(w + 1)
                for j in range(self.k - w + 1)
            )
            for w in range(1, self.k + 1)
        )

    def eigenvalue(self, weight: int) -> Fraction:
        """Return l_w, the eigenvalue of a character of `weight` attributes; the leftover words are not counted."""
        kept = sum(m * krawtchouk(self.k, d, weight) for d, m in enumerate(self.weights))
        return Fraction(kept, 1 << self.word_bits)

    @property
    def beta(self) -> Fraction:
        """The probability of an answer from outside the shell; inside it, this is plain randomized response."""
        shell = sum(math.comb(self.k, d) * self.weights[d] for d in range(self.low, self.high + 1))
        return 1 - Fraction(shell, 1 << self.word_bits)

    def parameters(self) -> Mapping[str, int]:
        return {"low": self.low, "high": self.high, "flip": self.flip}


def design(
    epsilon: Epsilon | str, k: int, *, shell: tuple[int, int] | None = None, pairs: bool = False
) -> dict[str, int]:
    """Return the parameters with the least variance for attributes (or for pairs) at this epsilon.

    For every shell (or the given one) the smallest flip whose exact ratio fits e_low is found by bisection on
    the integers themselves; the one with the largest eigenvalue is returned.
    """
    budget = epsilon if isinstance(epsilon, Epsilon) else Epsilon.parse(epsilon)
    if not 1 <= k <= MAX_ATTRIBUTES:
        raise InvalidSpec(f"composed-response takes 1 to {MAX_ATTRIBUTES} attributes")
    shells = [shell] if shell else [(low, high) for low in range(k + 1) for high in range(low, k + 1)]
    weight = min(2 if pairs else 1, k)
    characters = [krawtchouk(k, d, weight) for d in range(k + 1)]
    best: tuple[int, tuple[int, int, int]] | None = None
    for low, high in shells:
        flip = _smallest_flip(budget, k, low, high)
        if flip is not None:
            weights = shell_weights(k, low, high, flip, WORD_BITS)
            kept = sum(m * character for m, character in zip(weights, characters, strict=True))
            if best is None or kept > best[0]:
                best = kept, (low, high, flip)
    if best is None:
        raise InvalidSpec("no flip makes this shell fit the epsilon")
    return dict(zip(("low", "high", "flip"), best[1], strict=True))


def _smallest_flip(epsilon: Epsilon, k: int, low: int, high: int) -> int | None:
    """Return the smallest flip that fits, by bisection down from 2^47, where a report says nothing about the item."""

    def fits(flip: int) -> bool:
        weights = shell_weights(k, low, high, flip, WORD_BITS)
        return min(weights) >= 1 and max(weights) <= epsilon.e_low * min(weights)

    bad, good = 0, 1 << FLIP_BITS - 1
    if not fits(good):
        return None
    while good - bad > 1:
        middle = (bad + good) // 2
        bad, good = (bad, middle) if fits(middle) else (middle, good)
    return good
