"""The tree sketch: heavy hitters of long items from one report each, by a tree code over the teams.

After Amalladinne, Chamberland and Narayanan's coded compressed sensing. A team is a level. The item's index goes
through the seed-keyed permutation of its block; the block is cut, from its lowest bits, into payloads of `first_bits`,
then `step_bits` each, the last one what is left; `check_levels` further levels have no payload at all. The cell of
level g is

    payload_g | h_g(payloads before g) << (width of payload_g)

with a pairwise-independent hash h_g that fills the cell up to `cell_bits`. The server extends partial items level by
level, checks each extension at once by the hash, and ranks them by all their levels together
(ldp_server/heavy_hitters/search/tree.py). Every bit of a cell can be checked during the search, so long items are found
nearer to the limit than by the expander sketch. But the search has one order and no restart, and the paper's worst-case
argument does not apply, because this is not PrivateExpanderSketch. team_sketch.py says what a report is and why it is
private.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import ClassVar, Self

from ldp_client.errors import InvalidSpec
from ldp_client.mechanisms.base import WORD_BITS, Example
from ldp_client.mechanisms.linear_hash import MAX_CELLS, LinearHash
from ldp_client.mechanisms.shared.team_sketch import TeamSketch, check_teams
from ldp_client.protocol.domain import Domain, Integers
from ldp_client.protocol.epsilon import Epsilon
from ldp_client.protocol.tree_code import TreeCode

__all__ = ["TreeSketch"]


@lru_cache(maxsize=16)
def _code(
    seed: bytes, label: str, bits: int, first_bits: int, step_bits: int, check_levels: int, cell_bits: int
) -> TreeCode:
    return TreeCode(
        seed,
        label,
        bits,
        first_bits=first_bits,
        step_bits=step_bits,
        check_levels=check_levels,
        cell_bits=cell_bits,
    )


@dataclass(frozen=True)
class TreeSketch(TeamSketch):
    """The client's half of the tree sketch."""

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
    name: ClassVar[str] = "tree-sketch"

    def __post_init__(self) -> None:
        bits = (self.size - 1).bit_length()
        code = _code(self.seed, self.name, bits, self.first_bits, self.step_bits, self.check_levels, self.cell_bits)
        if not 2 <= self.q <= MAX_CELLS or not 1 <= self.t <= 24 or self.q**self.t < 1 << self.cell_bits:
            raise InvalidSpec(f"{1 << self.cell_bits} cells do not fit into {self.q}^{self.t} (at most {MAX_CELLS})")
        inner = LinearHash(self.epsilon, self.q**self.t, self.q, self.t, self.word_bits)
        check_teams(code.teams, inner)
        for name, value in (("code", code), ("teams", code.teams), ("inner", inner)):
            object.__setattr__(self, name, value)

    @classmethod
    def build(cls, epsilon: Epsilon, domain: Domain, seed: bytes, parameters: Mapping[str, int]) -> Self:
        return cls(epsilon, domain.size, seed, **parameters)

    @classmethod
    def examples(cls) -> Sequence[Example]:
        small = {"first_bits": 2, "step_bits": 1, "cell_bits": 3, "q": 3, "t": 2}
        usual = {"first_bits": 10, "step_bits": 8, "cell_bits": 12, "q": 3, "t": 8, "check_levels": 1}
        return (
            Example("1", Integers(0, 15), small | {"check_levels": 1}, 4),
            Example("1", Integers(0, 10), small | {"check_levels": 1}),
            Example("1", Integers(0, (1 << 30) - 1), usual),
        )

    def cell(self, index: int, team: int) -> int:
        return self.code.cell(index, team)

    @property
    def cells(self) -> int:
        return 1 << self.cell_bits

    def parameters(self) -> Mapping[str, int]:
        names = ("first_bits", "step_bits", "cell_bits", "q", "t", "check_levels")
        return {name: getattr(self, name) for name in names}
