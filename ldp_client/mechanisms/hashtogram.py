"""Hashtogram: frequencies in a domain far too large to list (Theorem 3.7), and its extension to any prime q.

Public: R rows, each with a pairwise-independent hash h_r of the domain into [0, T), T = q^t, all from the seed. A
report is made of three words: the first draws a row r = word * R >> 64, the other two make the linear-hash response
(linear_hash.py) of the cell h_r(x). Report = r B + (its report), with B the bound of the inner mechanism.

q = 2 is the paper's; a larger q, near e^epsilon + 1, has less variance.

Privacy. The row is drawn without regard to the item; given the row, the report is the linear-hash response of a
function of the item. For any two items the ratio of a report's probabilities is therefore that of two weights of
the q-ary response, or 1 where the hashes meet: epsilon-LDP for every seed, hostile ones included.

Estimation. In row r, with n_r reports, fhat_r(h_r(x)) estimates the holders in the row of all items that share x's
cell. Removing the expected collisions, g_r(x) = T/(T-1) (fhat_r(h_r(x)) - n_r/T), and f(x) = sum over r of g_r(x) is
unbiased over the choice of the hashes, with variance n v + F2/(R T): F2 is the sum of the squared frequencies of the
other items. The hashes are public and stay, so that term does not average out: R T must be large enough.

`none` is an index like any other.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache
from typing import ClassVar, Self

from ldp_client.errors import InvalidSpec
from ldp_client.mechanisms.base import WORD_BITS, Randomizer, scaled
from ldp_client.mechanisms.linear_hash import MAX_CELLS, LinearHash
from ldp_client.protocol.domain import Domain
from ldp_client.protocol.epsilon import Epsilon
from ldp_client.protocol.hashing import PairwiseHash

__all__ = ["MAX_ROWS", "Hashtogram", "row_hash"]

MAX_ROWS = 1 << 12


@lru_cache(maxsize=MAX_ROWS)
def row_hash(seed: bytes, row: int, bits: int, cells: int) -> PairwiseHash:
    """Return the hash of one row."""
    return PairwiseHash(seed, f"hashtogram/row/{row}", bits, cells)


@dataclass(frozen=True)
class Hashtogram(Randomizer):
    """R rows of linear-hash response over hashed cells."""

    epsilon: Epsilon
    size: int
    seed: bytes = field(repr=False)
    rows: int
    q: int
    t: int
    word_bits: int = WORD_BITS
    inner: LinearHash = field(init=False, repr=False, compare=False)
    name: ClassVar[str] = "hashtogram"

    def __post_init__(self) -> None:
        if not 1 <= self.rows <= MAX_ROWS:
            raise InvalidSpec(f"hashtogram takes 1 to {MAX_ROWS} rows, not {self.rows}")
        if self.size < 2:
            raise InvalidSpec("a domain has at least one item")
        if not 2 <= self.q <= MAX_CELLS or not 1 <= self.t <= 24:
            raise InvalidSpec(f"hashtogram takes a prime q and a t with q^t at most {MAX_CELLS}")
        inner = LinearHash(self.epsilon, self.q**self.t, self.q, self.t, self.word_bits)
        if self.rows * inner.bound > 1 << 32:
            raise InvalidSpec(f"{self.rows} rows of {inner.bound} reports are more than a server holds (2^32)")
        object.__setattr__(self, "inner", inner)

    @classmethod
    def build(cls, epsilon: Epsilon, domain: Domain, seed: bytes, parameters: Mapping[str, int]) -> Self:
        """Make the randomizer that a spec describes."""
        return cls(epsilon, domain.size, seed, parameters["rows"], parameters["q"], parameters["t"])

    @property
    def words(self) -> int:
        """One for the row, two for the response."""
        return 3

    @property
    def bound(self) -> int:
        """R B."""
        return self.rows * self.inner.bound

    def hash(self, row: int) -> PairwiseHash:
        """Return h_row."""
        return row_hash(self.seed, row, (self.size - 1).bit_length(), self.inner.size)

    def cell(self, row: int, index: int) -> int:
        """Return h_row(index)."""
        return self.hash(row)(index)

    def randomize(self, index: int, words: Sequence[int]) -> int:
        """Return the report for `index`."""
        row = words[0] * self.rows >> self.word_bits
        return row * self.inner.bound + self.inner.respond(self.cell(row, index), words[1], words[2])

    def probability(self, index: int, report: int) -> Fraction:
        """Return the exact probability of a report: that of its row times that of the response."""
        row, inner = divmod(report, self.inner.bound)
        return scaled(row, self.rows, self.word_bits) * self.inner.probability(self.cell(row, index), inner)

    @property
    def ratio(self) -> Fraction:
        """At most that of the inner response, and equal to it where two items meet different answers."""
        return self.inner.ratio

    def parameters(self) -> Mapping[str, int]:
        """Return rows, q and t."""
        return {"rows": self.rows, "q": self.q, "t": self.t}
