"""The unique-list-recoverable code of Definition 3.5 and Theorem 3.6, with its decoder.

`encode(x)` is the word of pairs (y, z) with y = h_m(x) and z = (symbol_m, h of m's neighbours). `decode` gets a list
L_m of pairs for every coordinate m, no two in a list with the same y, and returns every x whose word agrees with at
least (1 - alpha) M of the lists, in spite of the other entries, and O(list size) items altogether.

Decoding (appendix B): a vertex for every (m, y); an entry suggests an edge to each of its neighbours' (n, h_n); an edge
is drawn when both ends suggest it. An item that is in most lists is a copy of the expander with a few vertices missing:
few edges leave it, and no cut divides it along few edges. Each component of the graph is decoded: the vertices in it
spell a word, the coordinates with no vertex or with several are erasures, and Reed-Solomon decoding corrects the rest.
When that gives an item that at least half of the coordinates *in this very set* agree with, the item is returned and
its vertices are taken away; otherwise the set is split at its sparsest cut and both sides are tried. Every item
returned takes at least M/2 vertices with it, of the at most l M there are, so at most 2 l are returned, whatever the
lists hold.

Which alpha is allowed: with e lists wrong and s lists missing, the word itself is decoded if 2e + s <= M - k, and the
item's remaining vertices must be connected. The theorem's constants need a large M. The sketches have M from 5 to 64;
docs/heavy-hitters.md shows the measured curve of recall against alpha there.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from ldp_client.protocol.expander_code import ExpanderCode
from ldp_server.arrays.team_cells import BulkExpanderCode
from ldp_server.heavy_hitters.paper.spectral_clusters import best_cut, components

__all__ = ["MAX_LIST", "UniqueListRecoverableCode"]

MAX_LIST = 1 << 14
"""Lists are cut to this length, so that the work is bounded for every input."""

Ints = npt.NDArray[np.int64]
Pair = tuple[int, int]


class UniqueListRecoverableCode:
    """(alpha, l, 2l)-unique-list-recoverable: Enc and Dec of Definition 3.5 over an expander sketch's code."""

    def __init__(self, code: ExpanderCode, alpha: float = 0.25) -> None:
        if not 0 <= alpha < 0.5:
            raise ValueError("alpha is at least 0 and below 1/2")
        self.code = code
        self.bulk = BulkExpanderCode(code)
        self.alpha = alpha
        self.agreement = code.teams - int(alpha * code.teams + 1e-9)
        """How many lists an item must be in to be returned."""
        self._symbol_mask = (1 << code.chunk_bits) - 1
        self._hash_mask = (1 << code.hash_bits) - 1

    def encode(self, block: int) -> tuple[Pair, ...]:
        """Enc(x): (y, z) for every coordinate, of a permuted block."""
        return tuple(self.split(self.code.cell_of_block(block, m)) for m in range(self.code.teams))

    def split(self, cell: int) -> Pair:
        """A cell without its bucket as (y, z)."""
        c, y = self.code.chunk_bits, self.code.hash_bits
        rest = cell >> c + y & ((1 << self.code.degree * y) - 1)
        return cell >> c & self._hash_mask, rest << c | cell & self._symbol_mask

    def decode(self, lists: Sequence[Sequence[Pair]]) -> list[int]:
        """Dec: the blocks whose words agree with at least (1 - alpha) M of the lists."""
        graph = _Graph(self, lists)
        found: dict[int, None] = {}
        stack = components(len(graph.teams), graph.edges)
        while stack:
            piece = stack.pop()
            block = None
            if len(piece) >= self.code.teams / 2:
                block, agreeing = self._read(graph, piece)
                if block is not None:
                    if graph.agreement(block) >= self.agreement:
                        found[block] = None
                    stack += graph.parts(np.setdiff1d(piece, agreeing))
                    continue
                stack += graph.split(piece)
        return list(found)

    def _read(self, graph: _Graph, piece: Ints) -> tuple[int | None, Ints]:
        """The block that a vertex set spells, if at least half of the coordinates in it agree, and those vertices."""
        degree = graph.degrees(piece)
        strong = piece[degree >= self.code.degree / 2]
        word: list[int | None] = [None] * self.code.teams
        votes = np.bincount(graph.teams[strong], minlength=self.code.teams)
        for vertex in strong:
            team = int(graph.teams[vertex])
            if votes[team] == 1:
                word[team] = int(graph.symbols[vertex])
        message = self.bulk.reed_solomon.decode(word)
        if message is None:
            return None, piece[:0]
        block = self.code.block(message)
        if block is None:
            return None, piece[:0]
        own = graph.vertices_of(block)
        agreeing = np.intersect1d(piece, own)
        return (block, agreeing) if 2 * len(agreeing) >= self.code.teams else (None, piece[:0])


class _Graph:
    """The layered graph of some lists."""

    def __init__(self, owner: UniqueListRecoverableCode, lists: Sequence[Sequence[Pair]]) -> None:
        code = owner.code
        if len(lists) != code.teams:
            raise ValueError("there is one list for every coordinate")
        self._owner = owner
        self._index: dict[tuple[int, int], int] = {}
        teams: list[int] = []
        entries: list[int] = []
        for m, pairs in enumerate(lists):
            for y, z in pairs[:MAX_LIST]:
                if (m, y) not in self._index:  # the definition's promise; a second entry for a y is ignored
                    self._index[m, y] = len(teams)
                    teams.append(m)
                    entries.append(z)
        self._entries = entries
        self.teams: Ints = np.array(teams, np.int64)
        self.symbols: Ints = np.array([z & (1 << code.chunk_bits) - 1 for z in entries], np.int64)
        self.edges = self._draw(entries)

    def _draw(self, entries: list[int]) -> Ints:
        code = self._owner.code
        mask = (1 << code.hash_bits) - 1
        suggested = set()
        for (m, _), vertex in self._index.items():
            for slot, neighbour in enumerate(code.expander.neighbours[m]):
                y = entries[vertex] >> code.chunk_bits + slot * code.hash_bits & mask
                other = self._index.get((neighbour, y))
                if other is not None:
                    suggested.add((vertex, other))
        return np.array([(a, b) for a, b in suggested if a < b and (b, a) in suggested], np.int64).reshape(-1, 2)

    def vertices_of(self, block: int) -> Ints:
        """The vertices whose entries are the block's."""
        word = self._owner.encode(block)
        own = [self._index.get((m, y), -1) for m, (y, _) in enumerate(word)]
        return np.array([v for v, (_, z) in zip(own, word, strict=True) if v >= 0 and self._entries[v] == z], np.int64)

    def agreement(self, block: int) -> int:
        """How many lists hold the block's entry."""
        return len(self.vertices_of(block))

    def _inside(self, piece: Ints) -> tuple[Ints, Ints]:
        """The edges within a set, and the same in the set's own numbering."""
        place = np.full(len(self.teams), -1, np.int64)
        place[piece] = np.arange(len(piece))
        ends = place[self.edges]
        inside = (ends >= 0).all(axis=1)
        return self.edges[inside], ends[inside]

    def degrees(self, piece: Ints) -> Ints:
        """Each vertex's edges within the set."""
        return np.bincount(self._inside(piece)[1].ravel(), minlength=len(piece))

    def parts(self, piece: Ints) -> list[Ints]:
        """The components of a set."""
        return [piece[part] for part in components(len(piece), self._inside(piece)[1])]

    def split(self, piece: Ints) -> list[Ints]:
        """The two sides of the sparsest cut of a set, each as its components."""
        side, _ = best_cut(len(piece), self._inside(piece)[1])
        if side.all() or not side.any():
            return []
        return [*self.parts(piece[side]), *self.parts(piece[~side])]
