"""Hashtogram: frequencies in a domain too large to list (Theorem 3.7), extended to any field F_q.

It is a sketch of teams (team_sketch.py) whose cell is a hash: team m has a pairwise-independent hash h_m of the domain
into [0, T), T = q^t, expanded from the seed, and cell_m(x) = h_m(x). On the wire the number of teams is called `rows`,
the paper's word. `none` is an index like any other.

q = 2 is the paper's. A larger q, near e^epsilon + 1, has less variance.

Privacy. As for every sketch of teams: epsilon-LDP for every seed.

Estimation. In team m, with n_m reports, fhat_m(h_m(x)) estimates the team's holders of all items that share x's cell.
Removing the expected collisions, g_m(x) = T/(T-1) (fhat_m(h_m(x)) - n_m/T). So f(x) = sum over m of g_m(x) is unbiased
over the choice of the hashes, with variance n v + F2/(R T) for R teams. F2 is the sum of the squared frequencies of the
other items. The hashes are public and fixed, so this second term does not average out, and R T must be large enough.
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
from ldp_client.protocol import tags
from ldp_client.protocol.domain import Domain, Integers, Strings
from ldp_client.protocol.epsilon import Epsilon
from ldp_client.protocol.hashing import PairwiseHash

__all__ = ["MAX_TEAMS", "Hashtogram"]

MAX_TEAMS = 1 << 12


@lru_cache(maxsize=MAX_TEAMS)
def _team_hash(seed: bytes, team: int, bits: int, cells: int) -> PairwiseHash:
    return PairwiseHash(seed, tags.hashtogram_team(team), bits, cells)


@dataclass(frozen=True)
class Hashtogram(TeamSketch):
    """Linear-hash response over hashed cells, in `rows` teams."""

    epsilon: Epsilon
    size: int
    seed: bytes = field(repr=False)
    rows: int
    q: int
    t: int
    word_bits: int = WORD_BITS
    teams: int = field(init=False, repr=False, compare=False)
    inner: LinearHash = field(init=False, repr=False, compare=False)
    name: ClassVar[str] = "hashtogram"

    def __post_init__(self) -> None:
        if not 1 <= self.rows <= MAX_TEAMS:
            raise InvalidSpec(f"hashtogram takes 1 to {MAX_TEAMS} rows, not {self.rows}")
        if self.size < 2:
            raise InvalidSpec("a domain has at least one item")
        if not 2 <= self.q <= MAX_CELLS or not 1 <= self.t <= 24:
            raise InvalidSpec(f"hashtogram takes a prime q (or q = 4 or 8) and a t with q^t at most {MAX_CELLS}")
        inner = LinearHash(self.epsilon, self.q**self.t, self.q, self.t, self.word_bits)
        check_teams(self.rows, inner)
        object.__setattr__(self, "teams", self.rows)
        object.__setattr__(self, "inner", inner)

    @classmethod
    def build(cls, epsilon: Epsilon, domain: Domain, seed: bytes, parameters: Mapping[str, int]) -> Self:
        return cls(epsilon, domain.size, seed, parameters["rows"], parameters["q"], parameters["t"])

    @classmethod
    def examples(cls) -> Sequence[Example]:
        return (
            Example("1", Integers(0, 5), {"rows": 2, "q": 2, "t": 2}, 4),
            Example("1", Integers(0, 39), {"rows": 3, "q": 3, "t": 1}, 4),
            Example("2", Integers(0, 2), {"rows": 1, "q": 3, "t": 2}, 5),
            Example("1", Integers(0, 10), {"rows": 2, "q": 4, "t": 1}, 4),
            Example("1", Integers(0, 60), {"rows": 2, "q": 3, "t": 2}),
            Example("2", Integers(0, 60), {"rows": 2, "q": 8, "t": 2}),
            Example("1", Integers(0, 499), {"rows": 4, "q": 3, "t": 7}),
            Example("2", Strings(11), {"rows": 8, "q": 7, "t": 4}),
        )

    def hash(self, team: int) -> PairwiseHash:
        return _team_hash(self.seed, team, (self.size - 1).bit_length(), self.inner.size)

    def cell(self, index: int, team: int) -> int:
        return self.hash(team)(index)

    @property
    def cells(self) -> int:
        return self.inner.size

    def parameters(self) -> Mapping[str, int]:
        return {"rows": self.rows, "q": self.q, "t": self.t}
