"""The code of PrivateExpanderSketch: which cell of which team an item falls into.

    block     = permutation(index)                               `bits` bits, bits = the domain's
    symbol_m  = Reed-Solomon codeword of the block, position m   `chunk_bits` bits; k = ceil(bits/chunk_bits) carry data
                (data symbol j is the block's next floor((bits + k - 1 - j) / k) bits, from the lowest)
    h_m       = a hash of `hash_bits` bits, n1 ... nd the neighbours of m in the expander

There are two forms. The paper's, with *item pointers*, is the construction of Larsen et al. (Theorem 3.6):

    h_m       = pairwise-independent hash of the block
    b         = (8 bits)-wise independent hash of the block      `bucket_bits` bits, perhaps none
    cell_m    = symbol_m | h_m | h_n1 | ... | h_nd | b           the symbol in the lowest bits

The practical one, with *symbol pointers*, hashes each team's symbol instead of the item:

    h_m       = pairwise-independent hash of symbol_m
    cell_m    = symbol_m | h_n1 | ... | h_nd

In both forms the h of the neighbours are pointers: cells of different teams that belong to one item agree on them. This
is how a decoder finds which cells belong together. A hash of the item can only be checked once the whole item is known,
so it rules nothing out while a decoder searches. A hash of a symbol is checked as soon as the symbol's team is joined,
and the team's own hash need not be sent. Two items collide in h_m with probability 2^-y, or 1 where their symbols are
equal; the theorem allows any fixed functions h_m.

In the paper's form `h` and `b` hash the permuted block, a bijective image of the item: the families' independence is
the same, and a decoder that has found a whole block checks the hashes before it inverts the permutation.

Where the block is shorter than k chunks, the lengths of the data symbols differ by at most one bit, and their missing
upper bits are zero. The padding comes *after* the permutation and is spread over the symbols, so that the decoder knows
some bits of every data team while it searches (measured against one short symbol: 0.1 in the smallest frequency found).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ldp_client.errors import InvalidSpec
from ldp_client.protocol import tags
from ldp_client.protocol.expander import Expander
from ldp_client.protocol.hashing import KWiseHash, PairwiseHash
from ldp_client.protocol.permutation import BlockPermutation
from ldp_client.protocol.reed_solomon import ReedSolomon

__all__ = ["ExpanderCode", "ExpanderShape"]

_MAX_CELL_BITS = 62
"""A decoder holds a cell in one word. A sketch allows fewer: its cells must fit into q^t."""
_MIN_BITS = 2


@dataclass(frozen=True)
class ExpanderShape:
    """The numbers of a code that the spec gives."""

    teams: int
    chunk_bits: int
    hash_bits: int
    degree: int
    attempt: int = 0
    bucket_bits: int = 0
    symbol_pointers: bool = False

    def __post_init__(self) -> None:
        if not 1 <= self.chunk_bits <= 16:
            raise InvalidSpec(f"chunk_bits is 1 to 16, not {self.chunk_bits}")
        if not 1 <= self.hash_bits <= 16 or not 0 <= self.bucket_bits <= 16:
            raise InvalidSpec("hash_bits is 1 to 16 and bucket_bits 0 to 16")
        if self.symbol_pointers and self.bucket_bits:
            raise InvalidSpec("bucket_bits must be 0 with symbol_pointers: buckets belong to the paper's form")
        if self.cell_bits > _MAX_CELL_BITS:
            raise InvalidSpec(f"a cell has at most {_MAX_CELL_BITS} bits, not {self.cell_bits}")

    @property
    def pointer_shift(self) -> int:
        """The place of the lowest bit of the first neighbour's hash in a cell."""
        return self.chunk_bits + (0 if self.symbol_pointers else self.hash_bits)

    @property
    def cell_bits(self) -> int:
        return self.pointer_shift + self.degree * self.hash_bits + self.bucket_bits

    def data(self, bits: int) -> int:
        """Return how many symbols carry a block of `bits` bits; `InvalidSpec` if the teams are too few or too many."""
        if bits < _MIN_BITS:
            raise InvalidSpec("an expander sketch takes a domain of at least 3 elements; use randomized-response")
        data, most = -(-bits // self.chunk_bits), min(64, 1 << self.chunk_bits)
        if not data <= self.teams <= most:
            raise InvalidSpec(
                f"items of {bits} bits in chunks of {self.chunk_bits} need {data} to {most} teams, not {self.teams}"
            )
        return data


class ExpanderCode:
    """Gives the cell of an index in each team. Everything in it is public."""

    def __init__(self, seed: bytes, bits: int, shape: ExpanderShape) -> None:
        self.shape, self.bits, self.data = shape, bits, shape.data(bits)
        self.teams, self.chunk_bits, self.hash_bits = shape.teams, shape.chunk_bits, shape.hash_bits
        self.degree, self.bucket_bits, self.symbol_pointers = shape.degree, shape.bucket_bits, shape.symbol_pointers
        self.pointer_shift, self.cell_bits = shape.pointer_shift, shape.cell_bits
        self.widths = tuple((bits + self.data - 1 - j) // self.data for j in range(self.data))
        """How many bits each data symbol has, at most `chunk_bits`."""
        self.starts = tuple(sum(self.widths[:j]) for j in range(self.data))
        self._fields = tuple((start, (1 << width) - 1) for start, width in zip(self.starts, self.widths, strict=True))
        self.permutation = BlockPermutation(seed, tags.EXPANDER_PERMUTATION, bits)
        self.reed_solomon = ReedSolomon(shape.chunk_bits, self.data, shape.teams)
        self.expander = Expander(seed, tags.EXPANDER_GRAPH, shape.teams, shape.degree, shape.attempt)
        hashed = shape.chunk_bits if shape.symbol_pointers else bits
        self.hashes = tuple(
            PairwiseHash(seed, tags.expander_hash(m), hashed, 1 << shape.hash_bits) for m in range(shape.teams)
        )
        buckets = 1 << shape.bucket_bits
        self.bucket_hash = KWiseHash(seed, tags.EXPANDER_BUCKET, bits, 8 * bits, buckets) if buckets > 1 else None

    @property
    def cells(self) -> int:
        """How many cells each team has."""
        return 1 << self.cell_bits

    def cell(self, index: int, team: int) -> int:
        """The cell of an element of the domain in a team."""
        return self.cell_of_block(self.permutation.forward(index), team)

    def cell_of_block(self, block: int, team: int) -> int:
        """The cell of a permuted block in a team."""
        if self.symbol_pointers:
            return self._by_symbols(block, team)
        shift = self.pointer_shift
        cell = self._symbol(block, team) | self.hashes[team](block) << self.chunk_bits
        for neighbour in self.expander.neighbours[team]:
            cell |= self.hashes[neighbour](block) << shift
            shift += self.hash_bits
        if self.bucket_hash is not None:
            cell |= self.bucket_hash(block) << shift
        return cell

    def _by_symbols(self, block: int, team: int) -> int:
        cell, shift = self._symbol(block, team), self.pointer_shift
        for neighbour in self.expander.neighbours[team]:
            cell |= self.hashes[neighbour](self._symbol(block, neighbour)) << shift
            shift += self.hash_bits
        return cell

    def _symbol(self, block: int, team: int) -> int:
        if team < self.data:
            start, mask = self._fields[team]
            return block >> start & mask
        return self.reed_solomon.symbol(self.message(block), team)

    def message(self, block: int) -> tuple[int, ...]:
        """The data symbols of a permuted block."""
        return tuple([block >> start & mask for start, mask in self._fields])

    def block(self, message: Sequence[int]) -> int | None:
        """The permuted block that has these data symbols; None if a symbol is too wide for its part."""
        if any(symbol >> width for symbol, width in zip(message, self.widths, strict=True)):
            return None
        return sum(symbol << start for symbol, start in zip(message, self.starts, strict=True))
