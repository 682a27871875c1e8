"""The protocol of Theorem 3.3 (Bassily, Nissim, Stemmer, Thakurta), as far as it is compared here.

The users are divided into R copies. A copy has one hash h of the items into Y >= sqrt(n)/beta_0 values, and divides its
users among k chunks of c bits. A user reports h(x) and one chunk of x at epsilon/2, and x itself through Hashtogram at
epsilon/2. For each copy and value of h the server puts the chunks with the largest estimates together, and asks
Hashtogram for the candidates' frequencies.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache

import numpy as np
import numpy.typing as npt

from ldp_client.mechanisms.expander_sketch import halved
from ldp_client.mechanisms.hashtogram import Hashtogram
from ldp_client.mechanisms.linear_hash import LinearHash
from ldp_client.protocol.epsilon import Epsilon
from ldp_client.protocol.hashing import PairwiseHash
from ldp_server.arrays.hashing import Indexes, pairwise
from ldp_server.arrays.packing import pack
from ldp_server.heavy_hitters.run import team_scores
from ldp_server.oracles.hashtogram import HashtogramOracle
from simulator import crowd
from simulator.crowd.linear_hash import respond

__all__ = ["BETA_0", "Rival", "copies_for", "hash_bits_for"]

BETA_0 = 0.25
"""The failure probability of one copy."""
CHUNK = 8

U64 = npt.NDArray[np.uint64]


@lru_cache(maxsize=64)
def _hash(seed: bytes, label: str, bits: int, values: int) -> PairwiseHash:
    return PairwiseHash(seed, label, bits, values)


def copies_for(beta: float) -> int:
    """Return R, so that beta_0^R <= beta."""
    return max(1, math.ceil(math.log(1 / beta) / math.log(1 / BETA_0)))


def hash_bits_for(users: float, copies: int) -> int:
    """Return log2 Y, Y >= sqrt(users of a copy)/beta_0."""
    return math.ceil(math.log2(math.sqrt(users / copies) / BETA_0))


@dataclass(frozen=True)
class Rival:
    """Its parameters and public coins."""

    epsilon: Epsilon
    bits: int
    users: int
    copies: int
    seed: bytes = field(repr=False)

    @property
    def chunks(self) -> int:
        return -(-self.bits // CHUNK)

    @property
    def hash_bits(self) -> int:
        return hash_bits_for(self.users, self.copies)

    @cached_property
    def inner(self) -> LinearHash:
        return LinearHash(halved(self.epsilon), 1 << CHUNK + self.hash_bits, 2, CHUNK + self.hash_bits)

    @cached_property
    def oracle(self) -> Hashtogram:
        return Hashtogram(halved(self.epsilon), 1 << self.bits, self.seed, 11, 2, 16)

    def hash(self, copy: int) -> PairwiseHash:
        return _hash(self.seed, f"rival/{copy}", self.bits, 1 << self.hash_bits)

    @property
    def report_bits(self) -> int:
        first = self.copies * self.chunks * self.inner.bound
        return (first - 1).bit_length() + self.oracle.report_bits

    def randomize(self, index: int, words: Sequence[int]) -> int:
        """The report of a user; six words."""
        place = words[0] * self.copies * self.chunks >> 64
        copy, chunk = divmod(place, self.chunks)
        cell = self.hash(copy)(index) << CHUNK | index >> CHUNK * chunk & (1 << CHUNK) - 1
        first = place * self.inner.bound + self.inner.respond(cell, words[1], words[2])
        return first * self.oracle.bound + self.oracle.randomize(index, words[3:])

    def reports(self, indexes: Indexes, coins: int) -> tuple[npt.NDArray[np.int64], U64]:
        """Return the first and the second halves of many users' reports."""
        places = np.random.default_rng([coins, 1]).integers(0, self.copies * self.chunks, len(indexes))
        hashes = np.stack([pairwise(self.hash(copy), indexes) for copy in range(self.copies)])
        copy, chunk = np.divmod(places, self.chunks)
        symbols = indexes >> (chunk.astype(np.uint64) * np.uint64(CHUNK)) & np.uint64((1 << CHUNK) - 1)
        cells = symbols | hashes[copy, np.arange(len(indexes))] << np.uint64(CHUNK)
        words = crowd.draw_words(coins, 0, len(indexes), 5)
        first = places * self.inner.bound + respond(self.inner, cells, words[:, 0], words[:, 1]).astype(np.int64)
        return first, crowd.randomize(self.oracle, indexes, words[:, 2:])

    def count(self, first: npt.NDArray[np.int64], rest: U64) -> tuple[npt.NDArray[np.uint32], HashtogramOracle]:
        """Count the first halves; return the oracle of the second ones."""
        size = self.copies * self.chunks * self.inner.bound
        second = HashtogramOracle(self.oracle)
        second.accumulate(pack(rest, self.oracle.report_bytes))
        return np.bincount(first, minlength=size).astype(np.uint32), second

    def candidates(self, counts: npt.NDArray[np.uint32]) -> U64:
        """One candidate for each copy and value of its hash."""
        p, s = (float(x) for x in self.inner.support)
        lines = counts.reshape(self.copies, self.chunks, -1)
        out = np.zeros((self.copies, 1 << self.hash_bits), np.uint64)
        for copy in range(self.copies):
            for chunk in range(self.chunks):
                scores = team_scores(lines[copy, chunk], 2, self.inner.t, p, s, self.inner.size).scores
                best = scores.reshape(-1, 1 << CHUNK).argmax(axis=1).astype(np.uint64)
                out[copy] |= best << np.uint64(CHUNK * chunk)
        return np.unique(out & np.uint64((1 << self.bits) - 1))
