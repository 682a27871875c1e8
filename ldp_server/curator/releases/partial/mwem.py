"""A synthetic table of d attributes of 0 and 1, from pairs of them (MWEM, with disjoint pairs in each round).

The table A is a distribution over all 2^d records, at first uniform; n is the number of people. In each of T rounds,
with e = epsilon_0 / sqrt(2 T):

    1. choose l disjoint pairs of attributes with probability proportional to e^(e score), where the score is the sum
       over the pairs of |n A(pair) - count(pair)|, and pair means: both are 1
    2. each count gets discrete Gaussian noise of scale 1 / e
    3. A(u) becomes proportional to A(u) e^(1/2 sum over the pairs that u has of (noisy / n - A(pair)))

The average of A over the rounds is released, as counts of n people. n A(pair) is rounded to 1 / 1024, which is known
from what is released already; so scores are exact integers of that size, and one person moves them exactly as counts.

    for one attribute     a record's attribute is in one of the disjoint pairs at most: the score moves by 1, the
                          exponential mechanism has the range 2 e and costs e^2 / 2, the noise costs e^2 / 2. T rounds:
                          rho = epsilon_0^2 / 2
    for a whole record    the score moves by l: l^2 e^2 / 2, and the noise l e^2 / 2. T rounds: rho = (l^2 + l)
                          epsilon_0^2 / 4

(Algorithm 1, Theorem 12, which states l^2 / 2 for a record.) All sets of l disjoint pairs are listed, so the
exponential mechanism is exact. What Theorem 12 says about accuracy assumes that the l pairs of a round act one after
the other, which they do not; so no error is promised. Measured figures are in docs/curator.md.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from ldp_client.errors import InvalidSpec
from ldp_client.privacy.rounding import fraction_up
from ldp_server.curator.draws import Draws, gaussian_scale
from ldp_server.curator.people import Record
from ldp_server.curator.prices import CentralPrice
from ldp_server.curator.releases.base import CentralMechanism, Outcome, ReleasedRow
from ldp_server.curator.releases.partial.bits import bits_of, check_bits, texts_of

__all__ = ["PairTable", "packings", "table_counts"]

Reals = npt.NDArray[np.float64]
Pair = tuple[int, int]
_GRAIN = 1024
_MOST_BITS, _MOST_PACKINGS = 12, 20_000


def packings(bits: int, pairs: int) -> list[tuple[Pair, ...]]:
    """Return all sets of so many disjoint pairs of attributes."""

    def after(free: tuple[int, ...], left: int) -> Iterator[tuple[Pair, ...]]:
        if not left:
            yield ()
        elif len(free) >= 2 * left:
            first, *rest = free
            for second in rest:
                others = tuple(place for place in rest if place != second)
                for more in after(others, left - 1):
                    yield ((first, second), *more)
            yield from after(tuple(rest), left)

    return list(after(tuple(range(bits)), pairs))


@dataclass(frozen=True)
class PairTable(CentralMechanism):
    """A table of attributes that agrees with the pairs of these people."""

    kind: ClassVar[str] = "pair-table"
    bits: int
    """d."""
    rho: Fraction
    pairs: int = 1
    """l."""
    rounds: int = 20
    """T."""

    def __post_init__(self) -> None:
        check_bits(self.bits)
        if self.bits > _MOST_BITS or not 1 <= self.pairs <= self.bits // 2 or not 1 <= self.rounds <= 1000:
            raise InvalidSpec(f"--bits: at most {_MOST_BITS}; disjoint pairs: 1 to half of that; rounds: 1 to 1,000")
        if len(packings(self.bits, self.pairs)) > _MOST_PACKINGS:
            raise InvalidSpec("there are too many sets of disjoint pairs: take fewer pairs (--k)")

    @property
    def price(self) -> CentralPrice:
        return CentralPrice(rho=self.rho, attribute_rho=self.rounds * self._squared)

    @property
    def _squared(self) -> Fraction:
        """e^2."""
        return 2 * self.rho / (self.rounds * (self.pairs**2 + self.pairs))

    @property
    def about(self) -> str:
        one = fraction_up(self.rounds * self._squared)
        return f"for two records that differ in one attribute: rho = {one:.6g}"

    def run(self, records: Sequence[Record], draws: Draws) -> Outcome:
        counts = table_counts(bits_of(records, self.bits))
        table = self.fitted(counts, draws) * len(records)
        texts = texts_of(_cells(self.bits))
        rows = tuple(ReleasedRow(text, count) for text, count in zip(texts, _whole(table, len(records)), strict=True))
        return Outcome(rows, f"a synthetic table: its pairs of attributes are near those of these people; {self.about}")

    def fitted(self, counts: npt.NDArray[np.int64], draws: Draws) -> Reals:
        """Return the released distribution, for a table of counts."""
        people, cells = int(counts.sum()), _cells(self.bits)
        sets = packings(self.bits, self.pairs)
        held = {pair: (cells[:, pair[0]] & cells[:, pair[1]]).astype(np.float64) for one in sets for pair in one}
        truth = {pair: round(float(has @ counts)) for pair, has in held.items()}
        sigma, scale = gaussian_scale(1, self._squared / 2), fraction_up(_GRAIN / _root_down(self._squared))
        table, total = np.full(len(cells), 1 / len(cells)), np.zeros(len(cells))
        for _ in range(self.rounds):
            guessed = {pair: round(_GRAIN * people * float(has @ table)) for pair, has in held.items()}
            off = {pair: abs(guessed[pair] - _GRAIN * count) for pair, count in truth.items()}
            chosen = sets[draws.exponential([sum(off[pair] for pair in one) for one in sets], scale)]
            noisy = draws.gaussian([truth[pair] for pair in chosen], sigma)
            moves = np.zeros(len(cells))
            for pair, count in zip(chosen, noisy, strict=True):
                moves += held[pair] * (min(max(count / people, 0), 1) - float(held[pair] @ table)) / 2
            table = table * np.exp(moves)
            table /= table.sum()
            total += table
        return total / self.rounds


def _root_down(value: Fraction) -> Fraction:
    """Return a number whose square is at most this."""
    found = Fraction(math.sqrt(value))
    while found**2 > value:
        found *= Fraction(2**50 - 1, 2**50)
    return found


def _cells(bits: int) -> npt.NDArray[np.uint8]:
    return np.asarray(np.arange(1 << bits)[:, None] >> np.arange(bits)[None, ::-1] & 1, np.uint8)


def table_counts(rows: npt.NDArray[np.uint8]) -> npt.NDArray[np.int64]:
    """Return how many people have each record, in the order of binary numbers."""
    places = rows.astype(np.int64) @ (1 << np.arange(rows.shape[1])[::-1])
    return np.bincount(places, minlength=1 << rows.shape[1])


def _whole(table: Reals, people: int) -> list[int]:
    """Return whole counts with the right sum: the largest remainders are rounded up."""
    low = np.floor(table).astype(np.int64)
    left = people - int(low.sum())
    order = np.argsort(low - table, kind="stable")
    low[order[:left]] += 1
    return [int(count) for count in low]
