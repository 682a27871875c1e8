"""The unique-list-recoverable code of Definition 3.5 and Theorem 3.6, with its decoder.

`encode(x)` is the word of pairs (y, z) with y = h_m(x) and z = (symbol_m, h of m's neighbours). `decode` gets a list
L_m of pairs for every coordinate m, no two in a list with the same y, and returns every x whose word agrees with at
least (1 - alpha) M of the lists, in spite of the other entries, and O(list size) items altogether.

Decoding (appendix B, over the graph of layered_graph.py): an item that is in most lists is a copy of the expander with
a few vertices missing. Few edges leave it, and no cut divides it along few edges. Each component of the graph is
decoded: the vertices in it spell a word, the coordinates with no vertex or with several are erasures, and Reed-Solomon
decoding corrects the rest. When that gives an item that at least half of the coordinates *in this very set* agree with,
the item is returned and its vertices are taken away. Otherwise the set is split at its sparsest cut and both sides are
tried. What is left is tried once more with weaker links: two entries that name the same vertex belong together too,
even where that vertex is missing or wrong. They join an item that bad coordinates have cut into pieces.

Every item returned takes at least M/2 vertices with it, of the at most l M there are. So at most 2 l are returned,
whatever the lists hold.

Which alpha is allowed: with e lists wrong and s lists missing, the word itself is decoded if 2e + s <= M - k, and the
item's remaining vertices must be connected. A cycle falls apart where two lists miss an item; a graph of degree 3 or
more stays in one piece up to the Reed-Solomon radius (docs/heavy-hitters.md has the measured recall). The theorem's
constants need a large M.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from ldp_client.protocol.expander_code import ExpanderCode
from ldp_server.arrays.team_cells import BulkExpanderCode
from ldp_server.heavy_hitters.paper.layered_graph import LayeredGraph, Pair

__all__ = ["MAX_LIST", "UniqueListRecoverableCode"]

MAX_LIST = 1 << 14
"""Lists are cut to this length, so that the work is bounded for every input."""

Ints = npt.NDArray[np.int64]


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
        graph = LayeredGraph(self, [pairs[:MAX_LIST] for pairs in lists])
        found: dict[int, None] = {}
        left = self._take(graph, graph.components(), found)
        self._take(graph, graph.linked(left), found)
        return list(found)

    def _take(self, graph: LayeredGraph, stack: list[Ints], found: dict[int, None]) -> Ints:
        """Read every set of the stack, or its parts; add the blocks to `found`; return the vertices of no block."""
        taken: list[Ints] = [np.empty(0, np.int64)]
        while stack:
            piece = stack.pop()
            if len(graph.entered(piece)) < self.code.teams / 2:
                continue
            block, agreeing = self._read(graph, piece)
            if block is None:
                stack += graph.split(piece)
                continue
            if graph.agreement(block) >= self.agreement:
                found[block] = None
            taken.append(agreeing)
            stack += graph.parts(np.setdiff1d(piece, agreeing))
        return np.setdiff1d(np.arange(len(graph.teams)), np.concatenate(taken))

    def _read(self, graph: LayeredGraph, piece: Ints) -> tuple[int | None, Ints]:
        """The block that a vertex set spells, if at least half of the coordinates in it agree, and those vertices.

        The whole set is read first. If that fails, its vertices of degree d/2 or more are read, because junk may be
        joined to the others by single edges.
        """
        strong = graph.entered(piece[graph.degrees(piece) >= self.code.degree / 2])
        piece = graph.entered(piece)
        for vertices in (piece, strong) if len(strong) < len(piece) else (piece,):
            block = self._spelled(graph, vertices)
            if block is not None:
                agreeing = np.intersect1d(piece, graph.vertices_of(block))
                if 2 * len(agreeing) >= self.code.teams:
                    return block, agreeing
        return None, piece[:0]

    def _spelled(self, graph: LayeredGraph, vertices: Ints) -> int | None:
        """The block of the word that the vertices spell; a team with several of them is an erasure."""
        word: list[int | None] = [None] * self.code.teams
        votes = np.bincount(graph.teams[vertices], minlength=self.code.teams)
        for vertex in vertices:
            team = int(graph.teams[vertex])
            if votes[team] == 1:
                word[team] = int(graph.symbols[vertex])
        message = self.bulk.reed_solomon.decode(word)
        return None if message is None else self.code.block(message)
