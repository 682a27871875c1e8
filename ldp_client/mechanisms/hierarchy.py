"""A tree over the integers, for quantiles and ranges: one level, drawn by the device, at the full epsilon.

The domain's c integers are the leaves of a tree with `branching` b: level l = 1 ... L has ceil(c / b^(L-l))
cells of b^(L-l) neighbouring integers each, and one cell for `none`. A report is made of three words: the
first draws a level l = word * L >> 64, whatever the item is. The other two make the linear-hash response
(linear_hash.py) of the item's cell there (0 for none, else 1 + (index - 1) // b^(L-l)), over F_q with the
fewest digits that hold the level's cells. Reports are numbered level by level, the coarsest first.

Privacy. Given the level, the report is a linear-hash response of a function of the item: epsilon-LDP.

Estimation. Each level counts its n_l users' cells; scaled by n/n_l they estimate everybody's. A range of
integers is at most 2 (b - 1) cells of each level, and the levels are made to agree
(ldp_server/oracles/hierarchy.py). At eps = 1 with 1,000 integers this makes the error of a range 0.56 times as large.
A quantile is where the estimated number of users below crosses the wanted share.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import ClassVar, Self

from ldp_client.errors import InvalidSpec
from ldp_client.mechanisms.base import WORD_BITS, Example, Randomizer, scaled
from ldp_client.mechanisms.linear_hash import MAX_CELLS, LinearHash
from ldp_client.mechanisms.shared.pair_law import PairLaw, mixed
from ldp_client.protocol.domain import Domain, Integers
from ldp_client.protocol.epsilon import Epsilon
from ldp_client.protocol.fields import is_field

__all__ = ["MAX_BRANCHING", "Hierarchy", "design", "level_cells"]

MAX_BRANCHING = 1024


def level_cells(count: int, branching: int) -> tuple[int, ...]:
    """Return how many cells each level has, the coarsest first."""
    cells = [count]
    while cells[-1] > branching:
        cells.append(-(-cells[-1] // branching))
    return tuple(reversed(cells))


@dataclass(frozen=True)
class Hierarchy(Randomizer):
    """Reports one level of a tree over the integers, for quantiles and ranges."""

    epsilon: Epsilon
    size: int
    branching: int
    q: int
    word_bits: int = WORD_BITS
    levels: tuple[LinearHash, ...] = field(init=False, repr=False, compare=False)
    widths: tuple[int, ...] = field(init=False, repr=False, compare=False)
    """How many integers a cell of each level holds."""
    starts: tuple[int, ...] = field(init=False, repr=False, compare=False)
    """The first report of each level, and one past the last."""
    name: ClassVar[str] = "hierarchy"

    def __post_init__(self) -> None:
        if not 2 <= self.branching <= MAX_BRANCHING or not 3 <= self.size <= MAX_CELLS:
            raise InvalidSpec(
                f"hierarchy takes a branching of 2 to {MAX_BRANCHING} and 2 to {MAX_CELLS - 1} integers; "
                "for a wider range, let the app divide its numbers by a step"
            )
        if not is_field(self.q):
            raise InvalidSpec("hierarchy takes a prime q, or q = 4 or 8")
        cells = level_cells(self.size - 1, self.branching)
        levels = tuple(self._level(count + 1) for count in cells)
        starts = [0]
        for level in levels:
            starts.append(starts[-1] + level.bound)
        # At most 24 levels of fewer than 2^25 reports each: always below the 2^32 that a server counts.
        widths = tuple(self.branching ** (len(levels) - 1 - i) for i in range(len(levels)))
        for name, value in (("levels", levels), ("starts", tuple(starts)), ("widths", widths)):
            object.__setattr__(self, name, value)

    def _level(self, cells: int) -> LinearHash:
        t = 1
        while self.q**t < cells:
            t += 1
        return LinearHash(self.epsilon, cells, self.q, t, self.word_bits)

    @classmethod
    def build(cls, epsilon: Epsilon, domain: Domain, seed: bytes, parameters: Mapping[str, int]) -> Self:
        del seed  # it uses no public randomness
        if not isinstance(domain, Integers):
            raise InvalidSpec("hierarchy takes an integers domain")
        return cls(epsilon, domain.size, parameters["branching"], parameters["q"])

    @classmethod
    def examples(cls) -> Sequence[Example]:
        return (
            Example("1", Integers(0, 5), {"branching": 2, "q": 3}, 4),
            Example("1", Integers(0, 3), {"branching": 3, "q": 2}, 4),
            Example("2", Integers(0, 9), {"branching": 3, "q": 5}, 5),
            Example("1", Integers(0, 5), {"branching": 2, "q": 4}, 4),
            Example("1", Integers(0, 10), {"branching": 4, "q": 3}),
            Example("2", Integers(0, 10), {"branching": 4, "q": 8}),
            Example("1", Integers(0, 7), {"branching": 7, "q": 2}),
            Example("1", Integers(0, 500), design("1", 500)),
            Example("3", Integers(0, 500), design("3", 500)),
        )

    @property
    def words(self) -> int:
        """One word for the level, two for the response."""
        return 3

    @property
    def bound(self) -> int:
        return self.starts[-1]

    def cell(self, level: int, index: int) -> int:
        """Return the cell of an index at a level; 0 for none."""
        return (1 + (index - 1) // self.widths[level]) * (index > 0)

    def randomize(self, index: int, words: Sequence[int]) -> int:
        level = words[0] * len(self.levels) >> self.word_bits
        return self.starts[level] + self.levels[level].respond(self.cell(level, index), words[1], words[2])

    def probability(self, index: int, report: int) -> Fraction:
        level = bisect_right(self.starts, report) - 1
        inner = self.levels[level].probability(self.cell(level, index), report - self.starts[level])
        return scaled(level, len(self.levels), self.word_bits) * inner

    @property
    def ratio(self) -> Fraction:
        return max(level.ratio for level in self.levels)

    @property
    def pair_laws(self) -> Sequence[PairLaw]:
        """The pair of `none` and an integer, which have different cells at every level; the level is public."""
        count = len(self.levels)
        drawn = (scaled(level, count, self.word_bits) for level in range(count))
        return (mixed((chance, level.pair_laws[0]) for chance, level in zip(drawn, self.levels, strict=True)),)

    def parameters(self) -> Mapping[str, int]:
        return {"branching": self.branching, "q": self.q}


def design(epsilon: Epsilon | str, count: int) -> dict[str, int]:
    """Return branching and q for a range of `count` integers.

    q is the size of a field next to e^epsilon + 1, the best for a linear hash. With L levels a prefix is at most b - 1
    cells of each level. Each of these cells has L times the variance that it would have if all users reported about its
    level. So b is chosen to make L^2 (b - 1) least.
    """
    budget = epsilon if isinstance(epsilon, Epsilon) else Epsilon.parse(epsilon)
    if not 2 <= count < MAX_CELLS:
        raise InvalidSpec(f"hierarchy takes 2 to {MAX_CELLS - 1} integers")
    branching = min(range(2, 33), key=lambda b: (len(level_cells(count, b)) ** 2 * (b - 1), b))
    wanted = min(math.exp(float(budget)) + 1, 4093)
    q = min((p for p in range(2, 4096) if is_field(p)), key=lambda p: abs(p - wanted))
    while _cells(q, count) > MAX_CELLS:
        q = next(p for p in range(q - 1, 1, -1) if is_field(p))
    return {"branching": branching, "q": q}


def _cells(q: int, count: int) -> int:
    cells = q
    while cells < count + 1:
        cells *= q
    return cells
