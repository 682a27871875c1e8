"""PrivateExpanderSketch: heavy hitters of a domain far too large to list, from one report each (Theorem 3.13).

The cells of a team are those of protocol/expander_code.py: a piece of the item's Reed-Solomon codeword beside the
team's hash of the item and its neighbours' hashes. The server finds the cells with large estimates and combines those
that belong to one item (ldp_server/heavy_hitters); team_sketch.py says what a report is and why it is private.

Two forms:

- the practical one (`oracle_rows` = 0): one report at the whole epsilon. A cell is a hash of the item, so the same
  reports estimate its frequency, f(x) = sum over m of fhat_m(cell_m(x)), with the variance n v of the inner response;
- the paper's (`oracle_rows` > 0): two reports at epsilon/2, one for the cells and one through Hashtogram
  (hashtogram.py) for the item itself. The graph has degree 3 or more, and the pointers are hashes of the item.
  Report = (cell report) * B' + (Hashtogram report), six words. Given the public seed the two are independent, so their
  ratios multiply: e^(epsilon/2) twice.

`none` is an element like any other: it is a block, it has cells, and its frequency is found like any other's.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache
from typing import ClassVar, Self

from ldp_client.errors import InvalidSpec
from ldp_client.mechanisms.base import WORD_BITS, Example
from ldp_client.mechanisms.hashtogram import Hashtogram
from ldp_client.mechanisms.linear_hash import MAX_CELLS, LinearHash
from ldp_client.mechanisms.shared.pair_law import PairLaw, together
from ldp_client.mechanisms.shared.team_sketch import TeamSketch, check_teams
from ldp_client.protocol.domain import Domain, Integers, Strings
from ldp_client.protocol.epsilon import Epsilon
from ldp_client.protocol.expander_code import ExpanderCode, ExpanderShape

__all__ = ["ExpanderSketch", "halved"]


def _numbers(teams: int, chunk_bits: int, hash_bits: int, degree: int, **others: int) -> dict[str, int]:
    """Return all parameters of a spec, 0 where they are not given."""
    first = {"teams": teams, "chunk_bits": chunk_bits, "hash_bits": hash_bits, "degree": degree}
    return dict.fromkeys(_PARAMETERS, 0) | first | others


def halved(epsilon: Epsilon) -> Epsilon:
    """Return exactly half of an epsilon."""
    return Epsilon.parse(format(Decimal(epsilon.text) / 2, "f"))


_PARAMETERS = (
    *("teams", "chunk_bits", "hash_bits", "degree", "attempt", "q", "t", "bucket_bits"),
    *("oracle_rows", "oracle_q", "oracle_t", "symbol_pointers"),
)
_DEGREE = 3
"""The least degree of the paper's form. Two lists that miss an item cut a cycle in two: it is no expander."""
_code = lru_cache(maxsize=16)(ExpanderCode)


@dataclass(frozen=True)
class ExpanderSketch(TeamSketch):
    """The client's half of PrivateExpanderSketch."""

    epsilon: Epsilon
    size: int
    seed: bytes = field(repr=False)
    teams: int
    chunk_bits: int
    hash_bits: int
    degree: int
    attempt: int
    q: int
    t: int
    bucket_bits: int = 0
    oracle_rows: int = 0
    oracle_q: int = 0
    oracle_t: int = 0
    symbol_pointers: int = 0
    word_bits: int = WORD_BITS
    code: ExpanderCode = field(init=False, repr=False, compare=False)
    inner: LinearHash = field(init=False, repr=False, compare=False)
    sketch: ExpanderSketch | None = field(init=False, repr=False, compare=False)
    """In the paper's form, the first of the two reports, at half of epsilon."""
    oracle: Hashtogram | None = field(init=False, repr=False, compare=False)
    """In the paper's form, the second."""
    name: ClassVar[str] = "expander-sketch"

    def __post_init__(self) -> None:
        if self.symbol_pointers not in (0, 1):
            raise InvalidSpec("symbol_pointers is 0 or 1")
        code = _code(self.seed, (self.size - 1).bit_length(), self._shape())
        if not 2 <= self.q <= MAX_CELLS or not 1 <= self.t <= 24 or self.q**self.t < code.cells:
            raise InvalidSpec(f"{code.cells} cells do not fit into {self.q}^{self.t} (at most {MAX_CELLS})")
        half = halved(self.epsilon) if self.oracle_rows else self.epsilon
        inner = LinearHash(half, self.q**self.t, self.q, self.t, self.word_bits)
        check_teams(self.teams, inner)
        sketch, oracle = self._two_reports(half)
        for name, value in (("code", code), ("inner", inner), ("sketch", sketch), ("oracle", oracle)):
            object.__setattr__(self, name, value)

    def _shape(self) -> ExpanderShape:
        return ExpanderShape(
            self.teams,
            self.chunk_bits,
            self.hash_bits,
            self.degree,
            self.attempt,
            self.bucket_bits,
            bool(self.symbol_pointers),
        )

    def _two_reports(self, half: Epsilon) -> tuple[ExpanderSketch | None, Hashtogram | None]:
        """Return the two reports of the paper's form; nothing in the practical form."""
        if not self.oracle_rows:
            if self.oracle_q or self.oracle_t:
                raise InvalidSpec("oracle_q and oracle_t belong to a second report: set oracle_rows, or leave them 0")
            return None, None
        if self.degree < _DEGREE or self.symbol_pointers:
            raise InvalidSpec(f"with oracle_rows, degree is at least {_DEGREE} and symbol_pointers is 0")
        sketch = replace(self, epsilon=half, oracle_rows=0, oracle_q=0, oracle_t=0)
        parameters = (self.oracle_rows, self.oracle_q, self.oracle_t)
        oracle = Hashtogram(half, self.size, self.seed, *parameters, self.word_bits)
        if sketch.bound * oracle.bound > 1 << 64:
            raise InvalidSpec("the two reports together have more than 64 bits")
        return sketch, oracle

    @classmethod
    def build(cls, epsilon: Epsilon, domain: Domain, seed: bytes, parameters: Mapping[str, int]) -> Self:
        return cls(epsilon, domain.size, seed, **parameters)

    @classmethod
    def examples(cls) -> Sequence[Example]:
        small = _numbers(3, 2, 1, 2, q=2, t=5)
        digits = _numbers(3, 2, 1, 2, q=3, t=3, symbol_pointers=1)
        usual = _numbers(5, 8, 2, 2, q=3, t=9)
        few = _numbers(4, 2, 1, 3, attempt=2, q=2, t=6, oracle_rows=1, oracle_q=2, oracle_t=1)
        paper = _numbers(8, 8, 2, 3, attempt=17, q=3, t=11, bucket_bits=1, oracle_rows=5, oracle_q=5, oracle_t=4)
        return (
            Example("1", Integers(0, 15), small, 4),
            Example("2", Integers(0, 12), digits, 4),
            Example("2", Integers(0, 2), few, 3),
            Example("1", Integers(0, 10), digits),
            Example("2", Integers(0, 9), few | {"attempt": 10, "q": 3, "t": 4, "oracle_q": 3}),
            Example("1", Integers(0, (1 << 30) - 1), usual),
            Example("2", Strings(11), _numbers(12, 8, 2, 2, q=7, t=5, symbol_pointers=1)),
            Example("2", Integers(0, (1 << 30) - 1), paper),
        )

    def cell(self, index: int, team: int) -> int:
        return self.code.cell(index, team)

    @property
    def cells(self) -> int:
        return self.code.cells

    @property
    def words(self) -> int:
        return 3 if self.oracle is None else 6

    @property
    def bound(self) -> int:
        return super().bound * (1 if self.oracle is None else self.oracle.bound)

    def randomize(self, index: int, words: Sequence[int]) -> int:
        report = super().randomize(index, words)
        if self.oracle is None:
            return report
        return report * self.oracle.bound + self.oracle.randomize(index, words[3:])

    def probability(self, index: int, report: int) -> Fraction:
        if self.oracle is None:
            return super().probability(index, report)
        first, second = divmod(report, self.oracle.bound)
        return super().probability(index, first) * self.oracle.probability(index, second)

    @property
    def ratio(self) -> Fraction:
        return self.inner.ratio * (1 if self.oracle is None else self.oracle.ratio)

    @property
    def pair_laws(self) -> Sequence[PairLaw]:
        """In the paper's form that of two reports. Given what one of them says, it scales both terms of the other's L.

        So the third rule of pair_law.py holds for each of the two: (a u - b u, a v - b v) and (a u - b v, a v - b u)
        have the same sum, and a u - b v is the largest of the four for all a, b >= 0.
        """
        if self.sketch is None or self.oracle is None:
            return super().pair_laws
        return (together(self.sketch.pair_laws[0], self.oracle.pair_laws[0]),)

    def parameters(self) -> Mapping[str, int]:
        return {name: getattr(self, name) for name in _PARAMETERS}
