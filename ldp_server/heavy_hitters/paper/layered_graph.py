"""The layered graph of a list decoding (appendix B): a vertex for every (coordinate m, hash value y) of the lists.

An entry (y, z) of the list L_m names a vertex (n, h_n) in each neighbour n of m. An edge is drawn when both ends name
each other. `linked` adds *hubs*: one for every (n, h) that entries name without being named back. A hub has no symbol.
It joins the entries that name it, so it stands for a vertex of theirs that is missing or wrong.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Protocol

import numpy as np
import numpy.typing as npt

from ldp_client.protocol.expander_code import ExpanderCode
from ldp_server.heavy_hitters.paper.spectral_clusters import best_cut, components

__all__ = ["Encoder", "LayeredGraph", "Pair"]

Ints = npt.NDArray[np.int64]
Pair = tuple[int, int]


class Encoder(Protocol):
    """The code whose lists the graph is of."""

    code: ExpanderCode

    def encode(self, block: int) -> tuple[Pair, ...]: ...


class LayeredGraph:
    """The graph of some lists; vertices from `len(teams)` on are hubs."""

    def __init__(self, owner: Encoder, lists: Sequence[Sequence[Pair]]) -> None:
        code = owner.code
        if len(lists) != code.teams:
            raise ValueError("there is one list for every coordinate")
        self._owner = owner
        self._index: dict[Pair, int] = {}
        teams: list[int] = []
        entries: list[int] = []
        for m, pairs in enumerate(lists):
            for y, z in pairs:
                if (m, y) not in self._index:  # the definition's promise; a second entry for a y is ignored
                    self._index[m, y] = len(teams)
                    teams.append(m)
                    entries.append(z)
        self._entries = entries
        self.teams: Ints = np.array(teams, np.int64)
        self.symbols: Ints = np.array([z & (1 << code.chunk_bits) - 1 for z in entries], np.int64)
        self.count = len(teams)
        """Vertices and hubs."""
        self.edges, self._alone = self._draw()

    def _named(self, m: int, entry: int) -> list[Pair]:
        """The (coordinate, hash value) that an entry names."""
        code = self._owner.code
        mask = (1 << code.hash_bits) - 1
        rest = entry >> code.chunk_bits
        return [(n, rest >> slot * code.hash_bits & mask) for slot, n in enumerate(code.expander.neighbours[m])]

    def _draw(self) -> tuple[Ints, list[tuple[int, Pair]]]:
        """The edges, and the names that nobody returns, with the vertex that has them."""
        named = [
            (vertex, pair) for (m, _), vertex in self._index.items() for pair in self._named(m, self._entries[vertex])
        ]
        suggested = {(vertex, self._index[pair]) for vertex, pair in named if pair in self._index}
        mutual = {(a, b) for a, b in suggested if (b, a) in suggested}
        alone = [(vertex, pair) for vertex, pair in named if (vertex, self._index.get(pair, -1)) not in mutual]
        return np.array([(a, b) for a, b in mutual if a < b], np.int64).reshape(-1, 2), alone

    def components(self) -> list[Ints]:
        """The components of the whole graph."""
        return components(self.count, self.edges)

    def linked(self, left: Ints) -> list[Ints]:
        """Add hubs between the vertices that are left; return the components of these."""
        stays = set(left.tolist())
        hubs: defaultdict[Pair, list[int]] = defaultdict(list)
        for vertex, pair in self._alone:
            if vertex in stays:
                hubs[pair].append(vertex)
        shared = [vertices for vertices in hubs.values() if len(vertices) > 1]
        edges = [(vertex, self.count + i) for i, vertices in enumerate(shared) for vertex in vertices]
        added = np.arange(self.count, self.count + len(shared))
        self.count += len(shared)
        self.edges = np.concatenate([self.edges, np.array(edges, np.int64).reshape(-1, 2)])
        return self.parts(np.concatenate([left, added])) if shared else []

    def entered(self, piece: Ints) -> Ints:
        """Leave out the hubs."""
        return piece[piece < len(self.teams)]

    def vertices_of(self, block: int) -> Ints:
        """The vertices whose entries are the block's."""
        word = self._owner.encode(block)
        own = [self._index.get((m, y), -1) for m, (y, _) in enumerate(word)]
        return np.array([v for v, (_, z) in zip(own, word, strict=True) if v >= 0 and self._entries[v] == z], np.int64)

    def agreement(self, block: int) -> int:
        """How many lists hold the block's entry."""
        return len(self.vertices_of(block))

    def _inside(self, piece: Ints) -> Ints:
        """The edges within a set, in the set's own numbering."""
        place = np.full(self.count, -1, np.int64)
        place[piece] = np.arange(len(piece))
        ends = place[self.edges]
        return np.asarray(ends[(ends >= 0).all(axis=1)])

    def degrees(self, piece: Ints) -> Ints:
        """Each vertex's edges within the set."""
        return np.bincount(self._inside(piece).ravel(), minlength=len(piece))

    def parts(self, piece: Ints) -> list[Ints]:
        """The components of a set."""
        return [piece[part] for part in components(len(piece), self._inside(piece))]

    def split(self, piece: Ints) -> list[Ints]:
        """The two sides of the sparsest cut of a set, each as its components."""
        side, _ = best_cut(len(piece), self._inside(piece))
        if side.all() or not side.any():
            return []
        return [*self.parts(piece[side]), *self.parts(piece[~side])]
