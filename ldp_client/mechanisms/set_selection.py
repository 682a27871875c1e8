r"""Set selection: a user holds several of k items; a report is a set of d elements that favours those with one of them.

The mechanism is that of Wang et al., "PrivSet: set-valued data analyses with locale differential privacy" (2018). Three
things are different: the elements that fill up a small set say how small it is, one element says that a set was cut,
and all probabilities are integers.

Elements. There are K = k + m + 1 of them, m the domain's `most`: the items (places 0 to k-1), the fillers 1 to m
(places k to k+m-1), and `more` (place k+m). Every user has exactly m elements:

    s <= m items: all of them, and the fillers 1 to m-s.     s > m items: m-1 of them, and `more`.

So filler j is held by the users with at most m-j items, filler m by those with none, and `more` by those whose set was
cut: the sizes of sets are counted in the same reports. The m-1 items that stay are a run of the s items in the order of
the list, its end followed by its beginning, from an item drawn at random. So each of the s stays with probability
(m-1)/s, up to 2^-64.

Distribution. Of the C(K, d) sets of d elements, A = C(K, d) - C(K-m, d) hold one of the user's m, and B = C(K-m, d)
hold none. Ideally each of the A has e^epsilon = e times the probability of each of the B: one of the A is sent with
probability e A/(e A + B).

The integer law. A report takes four words. Let N = 2^64 and M = 2^128.

1. The first word u decides: one of the A sets if u < T, else one of the B.
2. The next two make one number v of 128 bits. The rank is B + (v A >> 128) for one of the A sets, else v B >> 128.
3. The last word draws where the run begins, r s >> 64. It is read for every set, and matters where s > m.

Put the user's m elements on the last m places, in their order, and all others before them, in theirs. In the order of
ranks (protocol/subsets.py) the largest place decides first, so the B sets with none of the m are exactly the first
ones. Report = the rank of the set, back on its own places. For the same start of the run, exactly

    Pr[S | x] = T w_S / (N M)          if S holds an element of x,  w_S = floor or ceil of M/A
    Pr[S | x] = (N - T) w_S / (N M)    if it holds none,            w_S = floor or ceil of M/B.

Privacy. The ratio of Pr[S | x] to Pr[S | x'] is at most the largest of

    T ceil(M/A) / ((N - T) floor(M/B)),   (N - T) ceil(M/B) / (T floor(M/A)),
    ceil(M/A) / floor(M/A),               ceil(M/B) / floor(M/B),

for two starts of runs, and so for their mixtures. T is the largest integer for which the first is at most e_low <=
e^epsilon, and a spec for which one of the others is larger is refused. Nothing depends on a seed.

Estimation. S(y) counts the reports that hold y. All users have m elements, so for all of them a report holds a given
element of theirs with probability p = (T/N) C(K-1, d-1)/A, and any other with q = (d - m p)/(K - m), since d elements
are in a report. f(y) = (S(y) - n q)/(p - q) is unbiased for the users whose m elements have y (up to 2^-64), with
variance (f p(1-p) + (n-f) q(1-q))/(p - q)^2. `design` takes the d for which this is least. For d = 1 it is what a user
sends who draws one of the m and answers it by randomized response, at the epsilon ln(m (e-1) + 1) that drawing allows.

Limits. K is at most 256: a report takes about 4 K steps of the device's processor. C(K, d) is at most 2^63: a report
then has at most 8 bytes. The best d is reached where K is at most 66, and nearly up to 256 (docs/sets.md).

Timing. Every step looks at all K elements, whatever the set is, and both ranks are worked out before one is taken. What
differs is which places of the rank are looked up: CPython is not constant time.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import ClassVar, Self

from ldp_client.errors import InvalidSpec
from ldp_client.mechanisms.base import WORD_BITS, Example, Randomizer
from ldp_client.mechanisms.shared.favoured import favoured_ratio, favoured_words
from ldp_client.protocol.domain import Domain, Sets
from ldp_client.protocol.epsilon import Epsilon
from ldp_client.protocol.subsets import binomials, rank_of, subset

__all__ = ["MAX_ELEMENTS", "SetSelection", "design", "largest_report"]

MAX_ELEMENTS = 256
_MAX_SETS = 1 << 63


def largest_report(k: int, most: int) -> int:
    """Return the largest d that the limits allow for k items of which a user reports up to `most`."""
    elements = k + most + 1
    if not 2 <= most <= k:
        raise InvalidSpec(f"set-selection takes sets of up to 2 to {k} items, not up to {most}")
    if elements > MAX_ELEMENTS:
        raise InvalidSpec(
            f"set-selection takes names and `most` that add up to {MAX_ELEMENTS - 1} at the largest, not {k + most}: "
            "leave out rare names, or report fewer items of each set"
        )
    return max(d for d in range(1, elements // 2 + 1) if math.comb(elements, d) <= _MAX_SETS)


def _numbers(number: int, count: int, bits: int) -> int:
    """Return how many v below 2^bits have v * count >> bits equal to `number`."""
    return -(-(number + 1 << bits) // count) + (-(number << bits) // count)


@dataclass(frozen=True)
class SetSelection(Randomizer):
    """Reports a set of d elements about a set of items."""

    epsilon: Epsilon
    size: int
    most: int
    d: int
    word_bits: int = WORD_BITS
    truth: int = field(init=False, repr=False, compare=False)
    """T: how many words say a set with an element of the user's."""
    holding: int = field(init=False, repr=False, compare=False)
    """A: how many sets have one."""
    others: int = field(init=False, repr=False, compare=False)
    """B: how many sets have none."""
    name: ClassVar[str] = "set-selection"

    def __post_init__(self) -> None:
        largest = largest_report(self.items, self.most)
        if self.size != 1 << self.items:
            raise InvalidSpec("set-selection takes a domain of sets")
        if not 1 <= self.d <= largest:
            raise InvalidSpec(
                f"set-selection takes a d of 1 to {largest} for {self.items} items and sets of up to {self.most}, "
                f"not {self.d}"
            )
        others = math.comb(self.elements - self.most, self.d)
        values = {"others": others, "holding": math.comb(self.elements, self.d) - others}
        for name, value in values.items():
            object.__setattr__(self, name, value)
        total, numbers, e_low = 1 << self.word_bits, 1 << 2 * self.word_bits, self.epsilon.e_low
        object.__setattr__(self, "truth", favoured_words(e_low, self.holding, self.others, self.word_bits))
        if not 0 < self.truth < total or numbers < max(self.holding, self.others) or self.ratio > e_low:
            raise InvalidSpec(f"{self.word_bits} random bits are too few for sets of {self.d} of {self.elements}")
        rank_of(self.elements, 0)  # makes the tables now, not in the first report

    @classmethod
    def build(cls, epsilon: Epsilon, domain: Domain, seed: bytes, parameters: Mapping[str, int]) -> Self:
        del seed  # it uses no public randomness
        if not isinstance(domain, Sets):
            raise InvalidSpec("set-selection takes a domain of sets")
        return cls(epsilon, domain.size, domain.most, parameters["d"])

    @classmethod
    def examples(cls) -> Sequence[Example]:
        four, eight = Sets(tuple("abcd"), 2), Sets(tuple("abcdefgh"), 3)
        return (
            Example("1", Sets(("a", "b"), 2), {"d": 1}, 4),
            Example("2", Sets(("a", "b", "c"), 2), {"d": 2}, 3),
            Example("1", Sets(("a", "b", "c"), 3), {"d": 1}, 3),
            Example("0.5", four, {"d": 2}, 3),
            Example("2", Sets(tuple("abcd"), 3), {"d": 3}, 3),
            Example("1", Sets(("a", "b", "c"), 2), {"d": 1}),
            Example("2", Sets(tuple("abcd"), 3), {"d": 2}),
            Example("0.5", eight, design("0.5", 8, 3)),
            Example("1", Sets(tuple(f"item {i}" for i in range(30)), 5), design("1", 30, 5)),
            Example("2", Sets(tuple(f"item {i}" for i in range(100)), 3), design("2", 100, 3)),
        )

    @property
    def items(self) -> int:
        """k: how many items are listed."""
        return self.size.bit_length() - 1

    @property
    def elements(self) -> int:
        """K: the items, the fillers and `more`."""
        return self.items + self.most + 1

    @property
    def words(self) -> int:
        return 4

    @property
    def bound(self) -> int:
        return math.comb(self.elements, self.d)

    def members(self, index: int, start: int) -> int:
        """Return the user's m elements, a bit for each place; the run of a cut set begins at its item `start`."""
        held = index.bit_count()
        cut = held > self.most
        stay, found, seen, cycle = (held, self.most - 1)[cut], 0, 0, held or 1
        for place in range(self.items):
            one = index >> place & 1
            found |= (one & ((seen - start) % cycle < stay)) << place
            seen += one
        fillers = (1 << (self.most - held) * (not cut)) - 1
        return found | fillers << self.items | cut << self.elements - 1

    def randomize(self, index: int, words: Sequence[int]) -> int:
        number, last = words[1] << self.word_bits | words[2], self.elements - self.most
        members = self.members(index, words[3] * index.bit_count() >> self.word_bits)
        hit = self.others + (number * self.holding >> 2 * self.word_bits)
        miss = number * self.others >> 2 * self.word_bits
        rank = (0, hit, miss)[words[0] + (2 << self.word_bits) - self.truth >> self.word_bits]
        drawn, sent, own = subset(self.elements, self.d, rank), 0, 0
        for place in range(self.elements):
            one = members >> place & 1
            sent |= (drawn >> (place - own, last + own)[one] & 1) << place
            own += one
        return rank_of(self.elements, sent)

    def probability(self, index: int, report: int) -> Fraction:
        """The mean over the starts of runs, where the set is cut."""
        chosen = subset(self.elements, self.d, report)
        sent = [place for place in range(self.elements) if chosen >> place & 1]
        held = [place for place in range(self.items) if index >> place & 1]
        total = 1 << 3 * self.word_bits
        if len(held) <= self.most:
            fillers = range(self.items, self.items + self.most - len(held))
            return Fraction(self._lines([*held, *fillers], sent), total)
        lines = 0
        for start in range(len(held)):
            run = sorted((held + held)[start : start + self.most - 1])
            words = _numbers(start, len(held), self.word_bits)
            lines += words * self._lines([*run, self.elements - 1], sent)
        return Fraction(lines, total << self.word_bits)

    def _lines(self, members: Sequence[int], sent: Sequence[int]) -> int:
        """How many lines of the first three words give `sent`, for a user with `members`; both are in order."""
        last, moved = self.elements - self.most, []
        for place in sent:
            before = bisect_left(members, place)
            own = before < self.most and members[before] == place
            moved.append(last + before if own else place - before)
        ranks = binomials(self.elements)
        rank = sum(ranks[place][number] for number, place in enumerate(sorted(moved), 1))
        bits = 2 * self.word_bits
        if max(moved) >= last:
            return self.truth * _numbers(rank - self.others, self.holding, bits)
        return ((1 << self.word_bits) - self.truth) * _numbers(rank, self.others, bits)

    @property
    def ratio(self) -> Fraction:
        """A bound of the ratio, reached up to the remainders of the ranks."""
        return favoured_ratio(self.truth, self.holding, self.others, self.word_bits)

    @property
    def support(self) -> tuple[Fraction, Fraction]:
        """(p, q): how likely a report holds an element of its user's, and any other one."""
        p = Fraction(self.truth, 1 << self.word_bits) * math.comb(self.elements - 1, self.d - 1) / self.holding
        return p, (self.d - self.most * p) / (self.elements - self.most)

    @property
    def both(self) -> tuple[Fraction, Fraction]:
        """How likely a report holds two given elements: one of them at least its user's, and none."""
        elements, total = self.elements, 1 << self.word_bits
        pairs = math.comb(elements - 2, self.d - 2) if self.d > 1 else 0
        missed = math.comb(elements - self.most - 2, self.d - 2) if self.d > 1 and elements - self.most > 1 else 0
        truth, lies = Fraction(self.truth, total * self.holding), Fraction(total - self.truth, total * self.others)
        return truth * pairs, truth * (pairs - missed) + lies * missed

    def parameters(self) -> Mapping[str, int]:
        return {"d": self.d}


def design(epsilon: Epsilon | str, k: int, most: int) -> dict[str, int]:
    """Return the d with the least variance of an element's estimate, averaged over all elements."""
    budget = epsilon if isinstance(epsilon, Epsilon) else Epsilon.parse(epsilon)
    share = Fraction(most, k + most + 1)

    def variance(d: int) -> Fraction:
        p, q = SetSelection(budget, 1 << k, most, d).support
        return (share * p * (1 - p) + (1 - share) * q * (1 - q)) / (p - q) ** 2

    return {"d": min(range(1, largest_report(k, most) + 1), key=variance)}
