r"""A place on a map, two integers x and y: one of three grids is drawn by the device; its cell is answered.

Items are records of two fields of integers, with R_x and R_y of them. Counted from 0, a place (x, y) lies

    in column  floor(x g_x / R_x)  of g_x  = `columns`,
    in row     floor(y g_y / R_y)  of g_y  = `rows`,
    in tile   floor(x h_x / R_x) + h_x floor(y h_y / R_y)  of h_x h_y,  h_x = `across`, h_y = `down`.

h_x divides g_x and h_y divides g_y, so that each tile consists of whole columns and rows.

Distribution. A report takes 1 + m words, m the most that a response takes. The grids have the weights `lines`, `lines`
and `tiles`, W in all. The first word u draws r = u W >> 64: columns below `lines`, rows below 2 `lines`, else tiles.
It is free of the item. The following words answer the cell, counted from 1, with all of epsilon: by randomized response
among the cells and `none` where the grid's q is 0, else by linear hash over F_q with the least t for which they fit.
Who lacks one of the two numbers is nowhere on the map: element 0 of every grid. Report = the number of all reports of
earlier grids + the response.

Privacy. Which grid it is does not depend on the item and can be read off the report. Given the grid, the report is the
response to a function of the item, so the ratio of its probabilities under any two items is at most that of the
response, at most e_low <= e^epsilon. Places in the same cells of all three grids have the same law.

Estimation. n_j users drew grid j, and (n/n_j) times the response's estimate is unbiased for all users. The three grids
are made to agree by least squares (ldp_server/oracles/records/sampled_grid). With V the variance of a count for each
user, an area of m tiles has the variance m V n / (share of the users who draw tiles) or less, and of a tile that is cut
by an area's side nobody knows which part of its users is inside. So few users get a coarse grid: noise and cut tiles
then err about as much. `design` takes the sizes of hybrid grids (Yang et al., VLDB 2021), with e = e^epsilon and n
users

    columns and rows   cube root of (2n/3) (e-1)^2 0.7^2 / (4 e)
    tiles to a side   square root of 0.06 (e-1) sqrt(n/(3 e))

rounded to powers of two, and gives half of the users to the tiles, not a third.

Limits. 1 to 1,024 columns and rows, 1 to 64 tiles to a side; no more than there are integers. Weights up to 2^16.

Timing. The cells of all three grids are found for every item, by as many divisions. CPython is not constant time.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import accumulate
from typing import Any, ClassVar, Self

from ldp_client.errors import InvalidSpec
from ldp_client.mechanisms.base import WORD_BITS, Example, Randomizer
from ldp_client.mechanisms.linear_hash import MAX_CELLS, LinearHash
from ldp_client.mechanisms.randomized_response import RandomizedResponse
from ldp_client.mechanisms.shared.pair_law import PairLaw, mixed
from ldp_client.protocol.domain import Domain, Field, Integers, Record
from ldp_client.protocol.epsilon import Epsilon
from ldp_client.protocol.fields import is_field

__all__ = ["MAX_LINES", "MAX_TILES", "SampledGrid", "design"]

MAX_LINES, MAX_TILES = 1024, 64
_MAX_WEIGHT = 1 << 16


@dataclass(frozen=True)
class SampledGrid(Randomizer):
    """Reports the cell of a place in one of three grids, drawn at random, at the full epsilon."""

    epsilon: Epsilon
    record: Record
    columns: int
    rows: int
    across: int
    down: int
    lines: int
    tiles: int
    lines_q: int
    tiles_q: int
    word_bits: int = WORD_BITS
    size: int = field(init=False, repr=False)
    responses: tuple[RandomizedResponse | LinearHash, ...] = field(init=False, repr=False, compare=False)
    """Those of columns, rows and tiles."""
    starts: tuple[int, ...] = field(init=False, repr=False, compare=False)
    """The first report of each grid, and one past the last."""
    counts: tuple[int, int] = field(init=False, repr=False, compare=False)
    """R_x and R_y."""
    _words: int = field(init=False, repr=False, compare=False)
    name: ClassVar[str] = "sampled-grid"

    def __post_init__(self) -> None:
        kinds = [one.domain for one in self.record.fields]
        counts = tuple(one.count for one in kinds if isinstance(one, Integers))
        if len(kinds) != 2 or len(counts) != 2:
            raise InvalidSpec("sampled-grid takes a record of two fields, both of integers")
        _check(self, counts)
        cells = ((self.columns, self.lines_q), (self.rows, self.lines_q), (self.across * self.down, self.tiles_q))
        responses = tuple(_response(self.epsilon, 1 + one, q, self.word_bits) for one, q in cells)
        values = {
            "size": self.record.size,
            "responses": responses,
            "starts": tuple(accumulate((one.bound for one in responses), initial=0)),
            "counts": counts,
            "_words": 1 + max(one.words for one in responses),
        }
        for name, value in values.items():
            object.__setattr__(self, name, value)

    @classmethod
    def build(cls, epsilon: Epsilon, domain: Domain, seed: bytes, parameters: Mapping[str, Any]) -> Self:
        del seed  # it uses no public randomness
        if not isinstance(domain, Record):
            raise InvalidSpec("sampled-grid takes a record domain")
        return cls(epsilon, domain, *(parameters[name] for name in _NAMES))

    @classmethod
    def examples(cls) -> Sequence[Example]:
        small = Record((Field("x", Integers(0, 4)), Field("y", Integers(-1, 2))))
        odd = Record((Field("x", Integers(0, 7)), Field("y", Integers(3, 5))))
        wide = Record((Field("x", Integers(0, 40)), Field("y", Integers(0, 40))))
        return (
            Example("1", small, _parameters(2, 2, 1, 2, 1, 2, 0, 0), 6),
            Example("2", small, _parameters(4, 2, 2, 1, 3, 1, 2, 0), 4),
            Example("2", small, _parameters(1, 1, 1, 2, 0, 1, 0, 3), 4),
            Example("1", odd, _parameters(6, 4, 3, 2, 1, 2, 3, 0)),
            Example("2", odd, _parameters(4, 4, 2, 4, 5, 1, 0, 8)),
            Example("1", wide, design("1", wide, 20_000)),
            Example("3", odd, _parameters(1, 1, 2, 2, 0, 1, 0, 0)),
        )

    @property
    def words(self) -> int:
        """One word for the grid, and as many as the longest response takes."""
        return self._words

    @property
    def bound(self) -> int:
        return self.starts[-1]

    def elements(self, index: int) -> tuple[int, int, int]:
        """Return the elements of a place in columns, rows and tiles; 0 in each of them for no place."""
        y, x = divmod(index, self.counts[0] + 1)
        there = int(x > 0 and y > 0)
        x, y = x - (x > 0), y - (y > 0)
        tile = x * self.across // self.counts[0] + self.across * (y * self.down // self.counts[1])
        found = (x * self.columns // self.counts[0], y * self.rows // self.counts[1], tile)
        return (there * (found[0] + 1), there * (found[1] + 1), there * (found[2] + 1))

    def drawn(self, r: int) -> int:
        """Return the grid for a number below the sum of the weights."""
        return (r >= self.lines) + (r >= 2 * self.lines)

    def randomize(self, index: int, words: Sequence[int]) -> int:
        if len(words) != self._words:
            raise IndexError("as many words as `words` says, whichever grid is drawn")
        grid = self.drawn(words[0] * self.total >> self.word_bits)
        response = self.responses[grid]
        return self.starts[grid] + response.randomize(self.elements(index)[grid], words[1 : 1 + response.words])

    @property
    def total(self) -> int:
        """W, the sum of the weights."""
        return 2 * self.lines + self.tiles

    def chance(self, grid: int) -> Fraction:
        """Return the exact probability that a device draws this grid."""
        ends = (0, self.lines, 2 * self.lines, self.total)
        first, after = (-(-(end << self.word_bits) // self.total) for end in ends[grid : grid + 2])
        return Fraction(after - first, 1 << self.word_bits)

    def probability(self, index: int, report: int) -> Fraction:
        grid = sum(report >= start for start in self.starts[1:-1])
        own = self.responses[grid].probability(self.elements(index)[grid], report - self.starts[grid])
        return self.chance(grid) * own

    @property
    def ratio(self) -> Fraction:
        return max(one.ratio for grid, one in enumerate(self.responses) if self.chance(grid))

    @property
    def pair_laws(self) -> Sequence[PairLaw]:
        """An imagined pair of places that differ in every grid; which was drawn is public."""
        laws = ((self.chance(grid), one.pair_laws[0]) for grid, one in enumerate(self.responses))
        return (mixed((chance, law) for chance, law in laws if chance),)

    def parameters(self) -> Mapping[str, int]:
        return {name: getattr(self, name) for name in _NAMES}


_NAMES = ("columns", "rows", "across", "down", "lines", "tiles", "lines_q", "tiles_q")


def _parameters(*numbers: int) -> dict[str, int]:
    return dict(zip(_NAMES, numbers, strict=True))


def _check(made: SampledGrid, counts: tuple[int, ...]) -> None:
    sides = ((made.columns, made.across, counts[0]), (made.rows, made.down, counts[1]))
    for lines, tiles, most in sides:
        if not 1 <= tiles <= min(most, MAX_TILES) or not 1 <= lines <= min(most, MAX_LINES):
            raise InvalidSpec(
                f"a side of the map has 1 to {MAX_LINES} columns or rows and 1 to {MAX_TILES} tiles, and no more of "
                "them than there are integers"
            )
        if made.lines and lines % tiles:
            raise InvalidSpec(
                "each tile has whole columns and rows: `columns` is a multiple of `across`, `rows` of `down`"
            )
    if not 0 <= made.lines <= _MAX_WEIGHT or not 1 <= made.tiles <= _MAX_WEIGHT:
        raise InvalidSpec(f"the weight of lines is 0 to {_MAX_WEIGHT}, that of tiles 1 to {_MAX_WEIGHT}")
    if not made.lines and (made.columns, made.rows, made.lines_q) != (1, 1, 0):
        raise InvalidSpec("without a weight of lines there is one column and one row, and lines_q is 0")


def _response(epsilon: Epsilon, elements: int, q: int, word_bits: int) -> RandomizedResponse | LinearHash:
    if not q:
        return RandomizedResponse(epsilon, elements, word_bits)
    t = 1
    while q >= 2 and q**t < elements:
        t += 1
    return LinearHash(epsilon, elements, q, t, word_bits)


def design(epsilon: Epsilon | str, record: Record, users: int) -> dict[str, int]:
    """Return the grids for so many users: their sizes follow from users and epsilon, and fit into the fields."""
    budget = epsilon if isinstance(epsilon, Epsilon) else Epsilon.parse(epsilon)
    counts = [one.domain.count for one in record.fields if isinstance(one.domain, Integers)]
    if len(counts) != 2 or len(record.fields) != 2:
        raise InvalidSpec("a map takes a record of two fields, both of integers")
    e = math.exp(float(budget))
    lines = (2 * users / 3 * (e - 1) ** 2 * 0.49 / (4 * e)) ** (1 / 3)
    tiles = math.sqrt(0.06 * (e - 1) * math.sqrt(users / 3 / e))
    sides = [(_side(max(lines, tiles), min(count, MAX_LINES)), _side(tiles, min(count, MAX_TILES))) for count in counts]
    (columns, across), (rows, down) = sides
    lines_q, tiles_q = _best_q(budget, max(columns, rows)), _best_q(budget, across * down)
    return _parameters(columns, rows, across, down, 1, 2, lines_q, tiles_q)


def _side(wanted: float, most: int) -> int:
    """The power of two nearest to what is wanted, at least two, and at most `most`."""
    found = 1 << max(1, round(math.log2(max(1.0, wanted))))
    while found > most:
        found >>= 1
    return found


def _best_q(epsilon: Epsilon, cells: int) -> int:
    """The response with the least variance for a cell that few are in: 0 is randomized response."""
    e = math.exp(float(epsilon))
    direct = (e + cells - 1) / (e - 1) ** 2
    fields = [q for q in range(2, int(min(4093.0, 2 * e + 8)) + 1) if is_field(q)]
    q = min(fields, key=lambda one: _hashed(e, cells + 1, one))
    return q if _hashed(e, cells + 1, q) < direct else 0


def _hashed(e: float, elements: int, q: int) -> float:
    t = 1
    while q**t < elements:
        t += 1
    if q**t > MAX_CELLS:
        return math.inf
    p, near = e / (e + q - 1), (q ** (t - 1) - 1) / (q**t - 1)
    s = near * p + (1 - near) * (1 - p) / (q - 1)
    return float(s * (1 - s) / (p - s) ** 2)
