"""The tree code: the cell of an item at each level. mechanisms/tree_sketch.py says what it is for."""

from __future__ import annotations

from ldp_client.errors import InvalidSpec
from ldp_client.protocol import tags
from ldp_client.protocol.hashing import PairwiseHash
from ldp_client.protocol.permutation import BlockPermutation

__all__ = ["MAX_LEVELS", "TreeCode"]

MAX_LEVELS = 256


class TreeCode:
    """Gives the cell of an index at each level. Everything in it is public."""

    def __init__(
        self, seed: bytes, label: str, bits: int, *, first_bits: int, step_bits: int, check_levels: int, cell_bits: int
    ) -> None:
        if bits < 2:
            raise InvalidSpec("a tree takes a domain of at least 3 elements; use randomized-response")
        if not 1 <= cell_bits <= 24:
            raise InvalidSpec("a tree's cells have 1 to 24 bits")
        if not 1 <= first_bits <= min(cell_bits, bits) or not 1 <= step_bits <= cell_bits:
            raise InvalidSpec("first_bits and step_bits are at least 1 and fit into the cell; first_bits fits the item")
        if not 0 <= check_levels <= 16:
            raise InvalidSpec("check_levels is 0 to 16")
        starts = [0, *range(first_bits, bits, step_bits), *[bits] * check_levels]
        ends = [*starts[1:], bits]
        if len(starts) > MAX_LEVELS:
            raise InvalidSpec(f"a tree has at most {MAX_LEVELS} levels, not {len(starts)}")
        self.bits, self.cell_bits, self.teams = bits, cell_bits, len(starts)
        self.starts: tuple[int, ...] = tuple(starts)
        """How many bits of the block come before each level's payload."""
        self.widths: tuple[int, ...] = tuple(end - start for start, end in zip(starts, ends, strict=True))
        """How many bits each level's payload has."""
        self.permutation = BlockPermutation(seed, tags.tree_permutation(label), bits)
        self.hashes: tuple[PairwiseHash | None, ...] = tuple(
            PairwiseHash(seed, tags.tree_level(label, g), start, 1 << cell_bits - width) if start else None
            for g, (start, width) in enumerate(zip(starts, self.widths, strict=True))
        )

    def cell(self, index: int, level: int) -> int:
        """The cell of an element of the domain at a level."""
        return self.cell_of_block(self.permutation.forward(index), level)

    def cell_of_block(self, block: int, level: int) -> int:
        """The cell of a permuted block at a level."""
        start, width, hash_ = self.starts[level], self.widths[level], self.hashes[level]
        payload = block >> start & ((1 << width) - 1)
        return payload if hash_ is None else payload | hash_(block & ((1 << start) - 1)) << width
