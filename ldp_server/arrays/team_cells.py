"""The cells of sketches on arrays: the twins of the client's codes, and the way back from pieces to indexes.

A code reads a permuted block as a row of fields (a Reed-Solomon code's data symbols, a tree's payloads): an array of
shape (n, fields), the lowest first. Decoders combine pieces to such rows, which are called messages.
"""

from __future__ import annotations

import itertools
import math
from abc import ABC, abstractmethod
from collections.abc import Iterable
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from ldp_client.mechanisms.expander_sketch import ExpanderSketch
from ldp_client.mechanisms.hashtogram import Hashtogram
from ldp_client.mechanisms.shared.team_sketch import TeamSketch
from ldp_client.mechanisms.tree_sketch import TreeSketch
from ldp_client.protocol.expander_code import ExpanderCode
from ldp_client.protocol.hashing import limb_count
from ldp_client.protocol.permutation import BlockPermutation
from ldp_client.protocol.tree_code import TreeCode
from ldp_server.arrays.hashing import Indexes, kwise, limb, pairwise, pairwise_own
from ldp_server.arrays.permutation import forward, inverse
from ldp_server.arrays.reed_solomon import BulkReedSolomon

__all__ = [
    "BulkCells",
    "BulkCode",
    "BulkExpanderCode",
    "BulkHashes",
    "BulkTreeCode",
    "Messages",
    "bulk_cells",
    "bulk_code",
    "cells_of_teams",
]

Messages = npt.NDArray[np.int64]
Cells = npt.NDArray[np.int64]

_LOW32 = np.uint64(0xFFFFFFFF)
_FEW_TEAMS = 8
"""Up to so many teams, all sets of them are tested for near-copies."""


def _pack(fields: Messages, starts: tuple[int, ...], bits: int) -> Indexes:
    """Rows of fields as blocks of `bits` bits."""
    count = limb_count(bits)
    limbs = np.zeros((len(fields), count + 2), np.uint64)
    for j, start in enumerate(starts):
        place, shift = divmod(start, 32)
        wide = fields[:, j].astype(np.uint64) << np.uint64(shift)
        limbs[:, place] |= wide & _LOW32
        limbs[:, place + 1] |= wide >> np.uint64(32)
    if bits <= 64:
        return limbs[:, 0] | limbs[:, 1] << np.uint64(32)
    return limbs[:, :count].astype(np.uint32)


def _field(blocks: Indexes, start: int, width: int) -> npt.NDArray[np.uint64]:
    """The `width` <= 32 bits of every block from bit `start` on."""
    place, shift = divmod(start, 32)
    last = blocks.shape[1] if blocks.ndim == 2 else 2
    wide = limb(blocks, place)
    if place + 1 < last:
        wide = wide | limb(blocks, place + 1) << np.uint64(32)
    return (wide >> np.uint64(shift)) & np.uint64((1 << width) - 1)


def _low_bits(blocks: Indexes, bits: int) -> Indexes:
    """The lowest `bits` bits of every block, in the form of indexes of that many bits."""
    if blocks.ndim == 1:
        return blocks if bits >= 64 else blocks & np.uint64((1 << bits) - 1)
    count = limb_count(bits)
    cut = blocks[:, :count].astype(np.uint32)
    if bits % 32:
        cut[:, -1] &= np.uint32((1 << bits % 32) - 1)
    if bits > 64:
        return cut
    return limb(cut, 0) | limb(cut, 1) << np.uint64(32) if count == 2 else limb(cut, 0)


class BulkCells(ABC):
    """The cells of many items in every team of a sketch."""

    teams: int

    @abstractmethod
    def permuted(self, indexes: Indexes) -> Indexes:
        """Return what `block_cells` reads: indexes, as permuted blocks where the sketch has a permutation."""

    @abstractmethod
    def block_cells(self, blocks: Indexes, team: int) -> Cells:
        """Return the cells of permuted blocks in one team."""

    def own_cells(self, indexes: Indexes, teams: npt.NDArray[np.int64]) -> Cells:
        blocks = self.permuted(indexes)
        out = np.empty(len(indexes), np.int64)
        for team in range(self.teams):
            own = np.flatnonzero(teams == team)
            out[own] = self.block_cells(blocks[own], team)
        return out


class BulkHashes(BulkCells):
    """Hashtogram's cells: a hash of the index for each team."""

    def __init__(self, randomizer: Hashtogram) -> None:
        self.teams = randomizer.teams
        self._hashes = tuple(randomizer.hash(team) for team in range(randomizer.teams))

    def permuted(self, indexes: Indexes) -> Indexes:
        return indexes

    def block_cells(self, blocks: Indexes, team: int) -> Cells:
        return pairwise(self._hashes[team], blocks).astype(np.int64)

    def own_cells(self, indexes: Indexes, teams: npt.NDArray[np.int64]) -> Cells:
        return pairwise_own(self._hashes, teams.astype(np.intp), indexes).astype(np.int64)


class BulkCode(BulkCells):
    """A sketch's code on arrays that can be inverted: messages are put together from cells."""

    bits: int
    cell_bits: int
    permutation: BlockPermutation
    starts: tuple[int, ...]
    """The place of each field of a message in the block."""
    widths: tuple[int, ...]

    @abstractmethod
    def padding(self, team: int) -> int:
        """Return the bits that are 0 in every cell that an element has in this team."""

    def near_copies(self) -> list[tuple[list[int], float]]:
        """Ways in which another element can share cells with a given one: the teams left to tell them apart, and the
        natural logarithm of how many such elements there are on average, which may be below 0.
        """
        return []

    def permuted(self, indexes: Indexes) -> Indexes:
        return forward(self.permutation, indexes)

    def messages(self, indexes: Indexes) -> Messages:
        """Indexes as rows of fields."""
        return self.fields(self.permuted(indexes))

    def fields(self, blocks: Indexes) -> Messages:
        """Permuted blocks as rows of fields."""
        out = np.empty((len(blocks), len(self.starts)), np.int64)
        for j, (start, width) in enumerate(zip(self.starts, self.widths, strict=True)):
            out[:, j] = _field(blocks, start, width)
        return out

    def blocks(self, messages: Messages) -> Indexes:
        """Rows of fields as permuted blocks."""
        return _pack(messages, self.starts, self.bits)

    def indexes(self, messages: Messages) -> Indexes:
        """Rows of fields as indexes of the domain's numbering (some may lie beyond its size)."""
        return inverse(self.permutation, self.blocks(messages))

    def cells(self, messages: Messages) -> Cells:
        """The cells of every team, shape (n, M)."""
        blocks = self.blocks(messages)
        return np.stack([self.block_cells(blocks, team) for team in range(self.teams)], axis=1)


class BulkExpanderCode(BulkCode):
    """The cells of ldp_client/protocol/expander_code.py; a message is the k data symbols."""

    def __init__(self, code: ExpanderCode) -> None:
        self.code = code
        self.teams, self.bits, self.permutation = code.teams, code.bits, code.permutation
        self.cell_bits = code.cell_bits
        self.reed_solomon = BulkReedSolomon(code.reed_solomon)
        self.starts, self.widths = code.starts, code.widths

    def near_copies(self) -> list[tuple[list[int], float]]:
        """The sets of teams whose cells another element can share, counted as bits that are left free.

        An element that shares the cells of the teams S has their symbols: `widths[m]` bits for a data symbol, whose
        padding is zero in every element, and `chunk_bits` for a parity symbol. It also has the hashes in those cells,
        `hash_bits` for every team outside S that one of S names. All other bits are free. Two elements share at most
        data - 1 symbols, so in at least teams - data + 1 teams they differ. Returned are all S of so few teams; beyond
        8 teams those that leave up to three teams more than the least number, single teams, pairs and runs.
        """
        code = self.code
        out = []
        for shared in self._shared_sets():
            named = {n for m in shared for n in code.expander.neighbours[m]}
            named = named - shared if code.symbol_pointers else named | shared
            symbols = sum(self.widths[m] if m < code.data else code.chunk_bits for m in shared)
            free = self.bits - symbols - len(named) * code.hash_bits
            out.append(([m for m in range(self.teams) if m not in shared], free * math.log(2)))
        return out

    def padding(self, team: int) -> int:
        return (1 << self.code.chunk_bits) - (1 << self.widths[team]) if team < self.code.data else 0

    def _shared_sets(self) -> list[set[int]]:
        """The sets of teams that an element can share with another one, as `near_copies` says."""
        teams, data = range(self.teams), self.code.data
        sizes: Iterable[int] = range(1, data)
        if self.teams > _FEW_TEAMS:
            sizes = sorted({1, 2, *range(max(1, data - 3), data)} & set(sizes))
        out = {frozenset(s) for size in sizes for s in itertools.combinations(teams, size)}
        if self.teams > _FEW_TEAMS:
            order = 2 * self._walk()
            out |= {frozenset(order[i : i + n]) for n in range(3, data) for i in teams}
        return [set(s) for s in sorted(out, key=lambda s: (len(s), sorted(s)))]

    def _walk(self) -> list[int]:
        """The teams along the expander's first cycle."""
        order = [0]
        while len(order) < self.teams and self.code.expander.neighbours[order[-1]][0] not in order:
            order.append(self.code.expander.neighbours[order[-1]][0])
        return order

    def fits(self, messages: Messages) -> npt.NDArray[np.bool_]:
        """Return which rows have zeros in the padding."""
        return np.asarray((messages >> np.array(self.widths) == 0).all(axis=1))

    def _assemble(self, symbols: Cells, hashes: dict[int, Cells], buckets: Cells | None, team: int) -> Cells:
        code = self.code
        cells = symbols if code.symbol_pointers else symbols | hashes[team] << code.chunk_bits
        shift = code.pointer_shift
        for neighbour in code.expander.neighbours[team]:
            cells = cells | hashes[neighbour] << shift
            shift += code.hash_bits
        return cells if buckets is None else cells | buckets << shift

    def symbol_hashes(self, symbols: Cells, team: int) -> Cells:
        return pairwise(self.code.hashes[team], symbols.astype(np.uint64)).astype(np.int64)

    def _hashes(self, blocks: Indexes, words: dict[int, Cells], teams: tuple[int, ...]) -> dict[int, Cells]:
        if self.code.symbol_pointers:
            return {m: self.symbol_hashes(words[m], m) for m in teams}
        return {m: pairwise(self.code.hashes[m], blocks).astype(np.int64) for m in teams}

    def _buckets(self, blocks: Indexes) -> Cells | None:
        hash_ = self.code.bucket_hash
        return None if hash_ is None else kwise(hash_, blocks).astype(np.int64)

    def block_cells(self, blocks: Indexes, team: int) -> Cells:
        fields = zip(self.starts, self.widths, strict=True)
        data = np.stack([_field(blocks, start, width) for start, width in fields], axis=1).astype(np.int64)
        near = (team, *self.code.expander.neighbours[team])
        wanted = near if self.code.symbol_pointers else (team,)
        words = {m: self.reed_solomon.symbols(data, m) for m in wanted}
        return self._assemble(words[team], self._hashes(blocks, words, near), self._buckets(blocks), team)

    def cells(self, messages: Messages) -> Cells:
        blocks = self.blocks(messages)
        encoded = self.reed_solomon.encode(messages)
        words = {m: encoded[:, m] for m in range(self.teams)}
        hashes = self._hashes(blocks, words, tuple(range(self.teams)))
        buckets = self._buckets(blocks)
        return np.stack([self._assemble(words[m], hashes, buckets, m) for m in range(self.teams)], axis=1)


class BulkTreeCode(BulkCode):
    """The cells of ldp_client/protocol/tree_code.py; a message is the payloads of the levels that have one."""

    def __init__(self, code: TreeCode) -> None:
        self.code = code
        self.teams, self.bits, self.permutation = code.teams, code.bits, code.permutation
        self.cell_bits = code.cell_bits
        levels = [g for g, width in enumerate(code.widths) if width]
        self.starts = tuple(code.starts[g] for g in levels)
        self.widths = tuple(code.widths[g] for g in levels)

    def near_copies(self) -> list[tuple[list[int], float]]:
        """Elements that share all payloads before a level share all cells before it; others share single cells."""
        starts, one_cell = self.code.starts, max(0, self.bits - self.code.cell_bits)
        prefixes = [
            (list(range(level, self.teams)), (self.bits - starts[level]) * math.log(2))
            for level in range(1, len(self.starts))
        ]
        teams = range(self.teams)
        return prefixes + [([m for m in teams if m != shared], one_cell * math.log(2)) for shared in teams]

    def no_payloads(self, count: int) -> Indexes:
        """Return blocks of which nothing is known: all their bits are 0."""
        if self.bits <= 64:
            return np.zeros(count, np.uint64)
        return np.zeros((count, limb_count(self.bits)), np.uint32)

    def with_payloads(self, blocks: Indexes, payloads: Cells, level: int) -> Indexes:
        """Write the payload of a level into blocks whose bits are 0 from there on, in place."""
        start = self.starts[level]
        if blocks.ndim == 1:
            blocks |= payloads.astype(np.uint64) << np.uint64(start)
            return blocks
        place, shift = divmod(start, 32)
        wide = payloads.astype(np.uint64) << np.uint64(shift)
        blocks[:, place] |= (wide & _LOW32).astype(np.uint32)
        if shift + self.widths[level] > 32:
            blocks[:, place + 1] |= (wide >> np.uint64(32)).astype(np.uint32)
        return blocks

    def padding(self, team: int) -> int:
        return 0 if self.code.hashes[team] else (1 << self.cell_bits) - (1 << self.code.widths[team])

    def prefix_hashes(self, blocks: Indexes, level: int) -> Cells:
        """h_level of what comes before that level, of blocks whose bits are 0 from there on."""
        hash_ = self.code.hashes[level]
        if hash_ is None:
            return np.zeros(len(blocks), np.int64)
        return pairwise(hash_, blocks).astype(np.int64)

    def block_cells(self, blocks: Indexes, team: int) -> Cells:
        start, width, hash_ = self.code.starts[team], self.code.widths[team], self.code.hashes[team]
        payload = _field(blocks, start, width).astype(np.int64) if width else np.zeros(len(blocks), np.int64)
        if hash_ is None:
            return payload
        return payload | pairwise(hash_, _low_bits(blocks, start)).astype(np.int64) << width


@lru_cache(maxsize=8)
def _bulk(code: ExpanderCode | TreeCode) -> BulkExpanderCode | BulkTreeCode:
    return BulkExpanderCode(code) if isinstance(code, ExpanderCode) else BulkTreeCode(code)


def bulk_code(randomizer: TeamSketch) -> BulkExpanderCode | BulkTreeCode:
    """Return the array form of a sketch's code."""
    if not isinstance(randomizer, ExpanderSketch | TreeSketch):
        raise TypeError(f"{randomizer.name} is no sketch of teams")
    return _bulk(randomizer.code)


@lru_cache(maxsize=8)
def _bulk_hashes(randomizer: Hashtogram) -> BulkHashes:
    return BulkHashes(randomizer)


def bulk_cells(randomizer: TeamSketch) -> BulkCells:
    """Return the cells of a sketch on arrays."""
    return _bulk_hashes(randomizer) if isinstance(randomizer, Hashtogram) else bulk_code(randomizer)


def cells_of_teams(randomizer: TeamSketch, indexes: Indexes, teams: npt.NDArray[np.int64]) -> Cells:
    """Return each index's cell in its own team."""
    return bulk_cells(randomizer).own_cells(indexes, teams)
