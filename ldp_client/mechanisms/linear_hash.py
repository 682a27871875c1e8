r"""Linear-hash response over F_q: a random linear function of the item, answered by q-ary randomized response.

The domain is embedded in F_q^t (q^t at least its size): an index is the vector of its base-q digits, the lowest first.
q is a prime, 4 or 8 (protocol/fields.py). All that follows holds over any field. A report is made of two words:

1. The first draws a, uniform among the points of the projective space: the vectors of F_q^t whose highest non-zero
   digit is 1. There are P = (q^t - 1)/(q - 1) of them. Point number j has that digit at place s, where
   start_s = (q^s - 1)/(q - 1) is the largest start that is at most j. It is the vector with value q^s + (j - start_s).
   j = word * P >> 64 is within P/2^64 of uniform, and has the same law for every item.
2. The second draws y, the q-ary randomized response (randomized_response.py) to h = <a, x>, the inner product in F_q.
   A lie is any of the q - 1 other elements, by its number.

Report = j q + y, in [0, P q): about t log2 q bits.

Why points and not all vectors: a report (a, y) supports the items {x : <a, x> = y}, and for every non-zero c the report
(c a, c y) supports the same ones. Of the q - 1 vectors c a one has 1 as its highest non-zero digit, because every
non-zero element has an inverse. So c can be fixed without loss. Reports get log2(q - 1) bits shorter, and the server
counts in P q cells, about q^t.

Privacy. a does not depend on the item, and given a, y is q-ary randomized response of h(x): for any two items
the probabilities of (a, y) have the ratio of two of its weights. So the mechanism is epsilon-LDP with exactly the
response's epsilon, whatever the field and the embedding are.

Estimation. S(x) counts the reports with <a, x> = y. A holder of x supports it with probability p (the response's
truth). The holder of another x' does so with probability p where <a, x - x'> = 0, which is so for the points of a
hyperplane, c = (q^(t-1) - 1)/(q^t - 1) of all, and else with probability (1 - p)/(q - 1). So with s = c p + (1-c)
(1-p)/(q-1), f(x) = (S(x) - n s)/(p - s) is unbiased, and its variance is (f p(1-p) + (n-f) s(1-s))/(p-s)^2. In a
large domain that is (e + q - 1)^2/(4 e (q - 1)) times n 4e/(e-1)^2, the best known; it is least at q = e^epsilon + 1.
The powers are there for 1.0024 instead of 1.0237 with q = 3 at epsilon 1, and 1.0007 instead of 1.0109 with q = 7 at
epsilon 2. Of further powers of primes none gains more than 0.8% at any epsilon.

q = 2 is a row of a Hadamard matrix and one randomized bit: the explicit histogram inside Hashtogram (Theorem 3.8).

Timing. For a prime q the inner product is one multiplication of two integers with the digits in fields of equal width
(a ascending, x descending; the field in the middle of the product is the inner product), the same steps for every
index. An index of few digits, such as that of `none`, takes less time: docs/privacy.md says what a clock tells, and to
whom. For q = 2, 4 and 8 it is one, two or three parities of numbers below 2^24.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache
from typing import ClassVar, Self

from ldp_client.errors import InvalidSpec
from ldp_client.mechanisms.base import WORD_BITS, Example, Randomizer, scaled
from ldp_client.mechanisms.randomized_response import MAX_ANSWERS, Response
from ldp_client.mechanisms.shared.pair_law import PairLaw, mixed
from ldp_client.protocol.domain import Categories, Domain, Integers
from ldp_client.protocol.epsilon import Epsilon
from ldp_client.protocol.fields import BINARY, BinaryVectors, is_field

__all__ = ["MAX_CELLS", "LinearHash"]

MAX_CELLS = 1 << 24
"""The most elements that F_q^t may have: as many as a server can list."""
_TABLE_SIZE = 1024


@lru_cache(maxsize=32)
def _digit_fields(q: int, digits: int, width: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """For every number below q^digits: its base-q digits in fields of `width` bits, ascending and descending."""
    ascending, descending = [0], [0]
    for place in range(digits):
        up, down = place * width, (digits - 1 - place) * width
        ascending = [(d << up) + low for d in range(q) for low in ascending]
        descending = [(d << down) + low for d in range(q) for low in descending]
    return tuple(ascending), tuple(descending)


@dataclass(frozen=True)
class LinearHash(Randomizer):
    """Linear-hash response on [0, size), embedded in F_q^t."""

    epsilon: Epsilon
    size: int
    q: int
    t: int
    word_bits: int = WORD_BITS
    response: Response = field(init=False, repr=False, compare=False)
    points: int = field(init=False, repr=False, compare=False)
    """P, how many linear functions a report may use."""
    binary: BinaryVectors | None = field(init=False, repr=False, compare=False)
    """How inner products are worked out where q is a power of 2."""
    _starts: tuple[int, ...] = field(init=False, repr=False, compare=False)
    _fields: tuple[tuple[int, ...], tuple[int, ...]] = field(init=False, repr=False, compare=False)
    _chunk: int = field(init=False, repr=False, compare=False)
    _chunk_bits: int = field(init=False, repr=False, compare=False)
    _chunk_range: range = field(init=False, repr=False, compare=False)
    _middle: int = field(init=False, repr=False, compare=False)
    _mask: int = field(init=False, repr=False, compare=False)
    name: ClassVar[str] = "linear-hash"

    def __post_init__(self) -> None:
        q, t = self.q, self.t
        if not 2 <= q <= MAX_ANSWERS or not 1 <= t <= 24 or q**t > MAX_CELLS or not is_field(q):
            raise InvalidSpec(
                f"linear hash takes a prime q (or q = 4 or 8) and a t with q^t at most {MAX_CELLS}, "
                f"not q = {q}, t = {t}"
            )
        if not 2 <= self.size <= q**t:
            raise InvalidSpec(f"a domain of {self.size} elements does not fit into {q}^{t} = {q**t} cells")
        width = (t * (q - 1) ** 2).bit_length()
        digits = 1
        while q ** (digits + 1) <= _TABLE_SIZE and digits < t:
            digits += 1
        chunks = -(-t // digits)
        values = {
            "response": Response(self.epsilon, q, self.word_bits),
            "points": (q**t - 1) // (q - 1),
            "binary": BinaryVectors(BINARY[q], t) if q in BINARY else None,
            "_starts": tuple((q**s - 1) // (q - 1) for s in range(t)),
            "_fields": _digit_fields(q, digits, width) if q <= _TABLE_SIZE else (range(q), range(q)),
            "_chunk": q**digits,
            "_chunk_bits": digits * width,
            "_chunk_range": range(chunks),
            "_middle": (chunks * digits - 1) * width,
            "_mask": (1 << width) - 1,
        }
        for name, value in values.items():
            object.__setattr__(self, name, value)

    @classmethod
    def build(cls, epsilon: Epsilon, domain: Domain, seed: bytes, parameters: Mapping[str, int]) -> Self:
        del seed  # it uses no public randomness
        return cls(epsilon, domain.size, parameters["q"], parameters["t"])

    @classmethod
    def examples(cls) -> Sequence[Example]:
        return (
            Example("1", Integers(1, 3), {"q": 2, "t": 2}, 6),
            Example("1", Integers(1, 6), {"q": 2, "t": 3}, 6),
            Example("2", Integers(1, 8), {"q": 3, "t": 2}, 7),
            Example("1", Integers(1, 4), {"q": 5, "t": 2}, 7),
            Example("0.1", Integers(1, 2), {"q": 3, "t": 1}, 8),
            Example("1", Integers(1, 15), {"q": 4, "t": 2}, 6),
            Example("0.5", Integers(1, 40), {"q": 4, "t": 3}, 5),
            Example("2", Integers(1, 7), {"q": 8, "t": 1}, 7),
            Example("2", Integers(1, 63), {"q": 8, "t": 2}, 5),
            Example("1", Categories(tuple("abcd")), {"q": 3, "t": 2}),
            Example("2", Categories(tuple("abcd")), {"q": 2, "t": 3}),
            Example("1", Categories(tuple("abcdefg")), {"q": 4, "t": 2}),
            Example("2", Categories(tuple("abcdefghij")), {"q": 8, "t": 2}),
            Example("1", Integers(1, 499), {"q": 4, "t": 5}),
            Example("2", Integers(1, 499), {"q": 8, "t": 3}),
            Example("1", Integers(1, 499), {"q": 2, "t": 9}),
            Example("1", Integers(1, 499), {"q": 3, "t": 6}),
            Example("2", Integers(1, 499), {"q": 7, "t": 4}),
            Example("4", Integers(1, 499), {"q": 53, "t": 2}),
        )

    @property
    def words(self) -> int:
        return 2

    @property
    def bound(self) -> int:
        return self.points * self.q

    def point(self, number: int) -> int:
        """Return the vector, as a number in base q, that is point `number`."""
        place = bisect_right(self._starts, number) - 1
        high: int = self.q**place
        return high + number - self._starts[place]

    def product(self, vector: int, cell: int) -> int:
        """Return the inner product of two vectors, an element of F_q."""
        if self.q == 2:
            return (vector & cell).bit_count() & 1
        if self.binary is not None:
            return self.binary.product(vector, cell)
        ascending, descending = self._fields
        size, bits = self._chunk, self._chunk_bits
        left = right = 0
        for i in self._chunk_range:
            left |= ascending[vector % size] << i * bits
            right = right << bits | descending[cell % size]
            vector //= size
            cell //= size
        return (left * right >> self._middle & self._mask) % self.q

    def respond(self, cell: int, point_word: int, answer_word: int) -> int:
        """Return the report for one element of F_q^t: the whole mechanism, for use inside others too."""
        number = point_word * self.points >> self.word_bits
        answer = self.response.choose(answer_word, self.product(self.point(number), cell))
        return number * self.q + answer

    def randomize(self, index: int, words: Sequence[int]) -> int:
        return self.respond(index, words[0], words[1])

    def probability(self, index: int, report: int) -> Fraction:
        number, answer = divmod(report, self.q)
        answer_law = self.response.probability(self.product(self.point(number), index), answer)
        return scaled(number, self.points, self.word_bits) * answer_law

    @property
    def ratio(self) -> Fraction:
        return self.response.ratio

    @property
    def pair_laws(self) -> Sequence[PairLaw]:
        """For every pair, the points of a hyperplane, and no others, give both items the same answer."""
        orthogonal = (self.q ** (self.t - 1) - 1) // (self.q - 1)
        agree = orthogonal * Fraction((1 << self.word_bits) // self.points, 1 << self.word_bits)
        return (mixed(((1 - agree, self.response.different), (agree, self.response.same))),)

    @property
    def support(self) -> tuple[Fraction, Fraction]:
        """(p, s): how likely a report supports the cell it was made from, and any other cell."""
        p, q, t = self.response.p, self.q, self.t
        c = Fraction(q ** (t - 1) - 1, q**t - 1)
        return p, c * p + (1 - c) * (1 - p) / (q - 1)

    def parameters(self) -> Mapping[str, int]:
        return {"q": self.q, "t": self.t}
