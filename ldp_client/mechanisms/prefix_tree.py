"""The prefix tree: heavy hitters of a large domain level by level, for comparison and for those who prefer it.

A team is a level. The item's index goes through the seed-keyed permutation of its block, so that structured items
load the tree evenly. The block is cut, from its lowest bits, into payloads of `first_bits`, then `step_bits` each,
the last one what is left; `check_levels` further levels have no payload at all. The cell of level g is

    payload_g | h_g(payloads before g) << (width of payload_g)

with a pairwise-independent hash h_g that fills the cell up to `cell_bits`: a prefix is told from the others by its
hash, and its extension stands in the clear beside it. team_sketch.py says what a report is and why it is private.

The server extends the best prefixes level by level (ldp_server/heavy_hitters/tree.py). Unlike the expander's, the
tree's search has one order: an item whose first levels were unlucky is lost.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import ClassVar, Self

from ldp_client.errors import InvalidSpec
from ldp_client.mechanisms.base import WORD_BITS
from ldp_client.mechanisms.linear_hash import MAX_CELLS, LinearHash
from ldp_client.mechanisms.team_sketch import TeamSketch, check_teams
from ldp_client.protocol.domain import Domain
from ldp_client.protocol.epsilon import Epsilon
from ldp_client.protocol.hashing import PairwiseHash
from ldp_client.protocol.permutation import BlockPermutation

__all__ = ["MAX_LEVELS", "PrefixTree", "TreeCode"]

MAX_LEVELS = 256
_LABEL = "prefix-tree"


class TreeCode:
    """index -> cell, for each level; everything in it is public."""

    def __init__(
        self, seed: bytes, bits: int, *, first_bits: int, step_bits: int, check_levels: int, cell_bits: int
    ) -> None:
        if bits < 2:
            raise InvalidSpec("a prefix tree wants a domain of at least 3 elements; randomized response fits less")
        if not 1 <= cell_bits <= 24:
            raise InvalidSpec("a prefix tree's cells have 1 to 24 bits")
        if not 1 <= first_bits <= min(cell_bits, bits) or not 1 <= step_bits <= cell_bits:
            raise InvalidSpec("first_bits and step_bits are at least 1 and fit into the cell, and first_bits into the item")
        if not 0 <= check_levels <= 16:
            raise InvalidSpec("check_levels is 0 to 16")
        starts = [0, *range(first_bits, bits, step_bits), *[bits] * check_levels]
        ends = [*starts[1:], bits]
        if len(starts) > MAX_LEVELS:
            raise InvalidSpec(f"a prefix tree has at most {MAX_LEVELS} levels, not {len(starts)}")
        self.bits, self.cell_bits, self.teams = bits, cell_bits, len(starts)
        self.starts: tuple[int, ...] = tuple(starts)
        """How many bits stand before each level's payload."""
        self.widths: tuple[int, ...] = tuple(end - start for start, end in zip(starts, ends, strict=True))
        """How many bits each level's payload has."""
        self.permutation = BlockPermutation(seed, f"{_LABEL}/permutation", bits)
        self.hashes: tuple[PairwiseHash | None, ...] = tuple(
            PairwiseHash(seed, f"{_LABEL}/level/{g}", start, 1 << cell_bits - width) if start else None
            for g, (start, width) in enumerate(zip(starts, self.widths, strict=True))
        )

    def cell(self, index: int, level: int) -> int:
        """The cell of an element of the domain at a level."""
        return self.cell_of_block(self.permutation.forward(index), level)

    def cell_of_block(self, block: int, level: int) -> int:
        """The same for a permuted block."""
        start, width, hash_ = self.starts[level], self.widths[level], self.hashes[level]
        payload = block >> start & ((1 << width) - 1)
        return payload if hash_ is None else payload | hash_(block & ((1 << start) - 1)) << width


@lru_cache(maxsize=16)
def _code(seed: bytes, bits: int, first_bits: int, step_bits: int, check_levels: int, cell_bits: int) -> TreeCode:
    return TreeCode(
        seed, bits, first_bits=first_bits, step_bits=step_bits, check_levels=check_levels, cell_bits=cell_bits
    )


@dataclass(frozen=True)
class PrefixTree(TeamSketch):
    """The client's half of the prefix tree."""

    epsilon: Epsilon
    size: int
    seed: bytes = field(repr=False)
    first_bits: int
    step_bits: int
    cell_bits: int
    q: int
    t: int
    check_levels: int = 0
    word_bits: int = WORD_BITS
    code: TreeCode = field(init=False, repr=False, compare=False)
    teams: int = field(init=False, repr=False, compare=False)
    inner: LinearHash = field(init=False, repr=False, compare=False)
    name: ClassVar[str] = "prefix-tree"

    def __post_init__(self) -> None:
        code = _code(
            self.seed, (self.size - 1).bit_length(), self.first_bits, self.step_bits, self.check_levels, self.cell_bits
        )
        if not 2 <= self.q <= MAX_CELLS or not 1 <= self.t <= 24 or self.q**self.t < 1 << self.cell_bits:
            raise InvalidSpec(f"{1 << self.cell_bits} cells do not fit into {self.q}^{self.t} (at most {MAX_CELLS})")
        inner = LinearHash(self.epsilon, self.q**self.t, self.q, self.t, self.word_bits)
        check_teams(code.teams, inner)
        for name, value in (("code", code), ("teams", code.teams), ("inner", inner)):
            object.__setattr__(self, name, value)

    @classmethod
    def build(cls, epsilon: Epsilon, domain: Domain, seed: bytes, parameters: Mapping[str, int]) -> Self:
        """Make the randomizer that a spec describes."""
        return cls(epsilon, domain.size, seed, **parameters)

    def cell(self, index: int, team: int) -> int:
        """The cell of a domain element at a level."""
        return self.code.cell(index, team)

    def parameters(self) -> Mapping[str, int]:
        """The numbers of the spec."""
        names = ("first_bits", "step_bits", "cell_bits", "q", "t", "check_levels")
        return {name: getattr(self, name) for name in names}
