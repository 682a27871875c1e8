"""The prefix tree: heavy hitters of a large domain level by level, the well-known way, for comparison and for choice.

A team is a level. The item's index goes through the seed-keyed permutation of its block (so that structured items
load the tree evenly), and level g reports the block's first `first_bits + g step_bits` bits, the last level all of
it: directly while such prefixes fit into the q^t cells, and through a pairwise-independent hash when they do not.
team_sketch.py says what a report is and why it is private. The server extends the best prefixes level by level
(ldp_server/heavy_hitters/prefix.py); a miss at any level loses the item, and its frequency is estimated by the last
level's users alone.
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

__all__ = ["MAX_LEVELS", "PrefixTree", "level_hash", "tree_permutation"]

MAX_LEVELS = 256


@lru_cache(maxsize=MAX_LEVELS)
def level_hash(seed: bytes, level: int, bits: int, cells: int) -> PairwiseHash:
    """The hash of one level's prefixes."""
    return PairwiseHash(seed, f"prefix-tree/level/{level}", bits, cells)


@lru_cache(maxsize=16)
def tree_permutation(seed: bytes, bits: int) -> BlockPermutation:
    """The permutation of the tree's blocks."""
    return BlockPermutation(seed, "prefix-tree/permutation", bits)


@dataclass(frozen=True)
class PrefixTree(TeamSketch):
    """The client's half of the prefix tree."""

    epsilon: Epsilon
    size: int
    seed: bytes = field(repr=False)
    first_bits: int
    step_bits: int
    q: int
    t: int
    word_bits: int = WORD_BITS
    bits: int = field(init=False, repr=False, compare=False)
    lengths: tuple[int, ...] = field(init=False, repr=False, compare=False)
    """The prefix length of each level, the last one `bits`."""
    teams: int = field(init=False, repr=False, compare=False)
    inner: LinearHash = field(init=False, repr=False, compare=False)
    permutation: BlockPermutation = field(init=False, repr=False, compare=False)
    name: ClassVar[str] = "prefix-tree"

    def __post_init__(self) -> None:
        bits = (self.size - 1).bit_length()
        if bits < 2:
            raise InvalidSpec("a prefix tree wants a domain of at least 3 elements; randomized response fits less")
        if not 1 <= self.first_bits <= min(24, bits) or not 1 <= self.step_bits <= 12:
            raise InvalidSpec("a prefix tree has first_bits of 1 to 24, within the item, and step_bits of 1 to 12")
        lengths = (*range(self.first_bits, bits, self.step_bits), bits)
        if len(lengths) > MAX_LEVELS:
            raise InvalidSpec(f"a prefix tree has at most {MAX_LEVELS} levels, not {len(lengths)}")
        if not 2 <= self.q <= MAX_CELLS or not 1 <= self.t <= 24:
            raise InvalidSpec(f"a prefix tree takes a prime q and a t with q^t at most {MAX_CELLS}")
        if self.q**self.t < 1 << self.first_bits:
            raise InvalidSpec("the first level's prefixes must fit into the cells")
        inner = LinearHash(self.epsilon, self.q**self.t, self.q, self.t, self.word_bits)
        check_teams(len(lengths), inner)
        values = {
            "bits": bits,
            "lengths": lengths,
            "teams": len(lengths),
            "inner": inner,
            "permutation": tree_permutation(self.seed, bits),
        }
        for name, value in values.items():
            object.__setattr__(self, name, value)

    @classmethod
    def build(cls, epsilon: Epsilon, domain: Domain, seed: bytes, parameters: Mapping[str, int]) -> Self:
        """Make the randomizer that a spec describes."""
        return cls(epsilon, domain.size, seed, **parameters)

    def direct(self, level: int) -> bool:
        """Whether a level's prefixes are cells themselves."""
        return 1 << self.lengths[level] <= self.inner.size

    def prefix_cell(self, prefix: int, level: int) -> int:
        """The cell of a prefix."""
        if self.direct(level):
            return prefix
        return level_hash(self.seed, level, self.lengths[level], self.inner.size)(prefix)

    def cell(self, index: int, team: int) -> int:
        """The cell of a domain element at a level."""
        return self.prefix_cell(self.permutation.forward(index) >> self.bits - self.lengths[team], team)

    def parameters(self) -> Mapping[str, int]:
        """The numbers of the spec."""
        return {"first_bits": self.first_bits, "step_bits": self.step_bits, "q": self.q, "t": self.t}
