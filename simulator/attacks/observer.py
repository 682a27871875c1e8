"""An observer who can tell which reports come from the same user, and guesses that user's item.

For these mechanisms every report multiplies the odds of each item that it supports by the same number. The most likely
item is therefore the one that most of the user's reports support.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ldp_client.errors import InvalidSpec
from ldp_client.mechanisms.base import Randomizer
from ldp_client.mechanisms.hashtogram import Hashtogram
from ldp_client.mechanisms.linear_hash import LinearHash
from ldp_client.mechanisms.randomized_response import RandomizedResponse
from ldp_client.mechanisms.subset_selection import SubsetSelection
from ldp_server.arrays.hashing import pairwise_own
from ldp_server.arrays.subsets import subsets
from simulator import crowd
from simulator.crowd.linear_hash import points, products

__all__ = ["Observer", "supports"]

U64 = npt.NDArray[np.uint64]
_FIRST_BLOCK = 1 << 41
"""Blocks of coins from here on belong to the observed users."""


class Observer:
    """Guesses the items of users who never change their item, from all their reports so far."""

    def __init__(self, randomizer: Randomizer, held: U64, seed: int) -> None:
        self._randomizer, self._held, self._seed = randomizer, held, seed
        self._items = np.arange(1, randomizer.size, dtype=np.uint64)
        self._fresh = np.zeros((len(held), len(self._items)), np.int32)
        self.first_right = self.fresh_right = 0.0

    def see(self, day: int) -> None:
        """Add each user's new report of this day. The guess from the first report alone is kept from day 1."""
        words = crowd.draw_words(self._seed, _FIRST_BLOCK + day, len(self._held), self._randomizer.words)
        self._fresh += supports(self._randomizer, crowd.randomize(self._randomizer, self._held, words), self._items)
        self.fresh_right = self._right(self._fresh)
        if day == 1:
            self.first_right = self.fresh_right

    def _right(self, scores: npt.NDArray[np.int32]) -> float:
        """The share of users whose item is the best guess; a tie counts in equal parts."""
        best = scores == scores.max(axis=1, keepdims=True)
        mine = self._held.astype(np.intp) - 1
        chances = np.where(mine >= 0, best[np.arange(len(mine)), np.maximum(mine, 0)] / best.sum(axis=1), 0.0)
        return float(chances.mean())


def supports(randomizer: Randomizer, reports: U64, indexes: U64) -> npt.NDArray[np.bool_]:
    """Return the matrix of whether report i supports indexes[j]."""
    if isinstance(randomizer, RandomizedResponse):
        return np.asarray(reports[:, None] == indexes[None, :])
    if isinstance(randomizer, LinearHash):
        return _linear(randomizer, reports, np.broadcast_to(indexes, (len(reports), len(indexes))))
    if isinstance(randomizer, Hashtogram):
        teams, inner = np.divmod(reports, np.uint64(randomizer.inner.bound))
        hashes = tuple(randomizer.hash(team) for team in range(randomizer.teams))
        repeated = np.tile(indexes, len(reports))
        cells = pairwise_own(hashes, np.repeat(teams, len(indexes)).astype(np.intp), repeated)
        return _linear(randomizer.inner, inner, cells.reshape(len(reports), len(indexes)))
    if isinstance(randomizer, SubsetSelection):
        held = subsets(randomizer.size, np.full(len(reports), randomizer.d, np.intp), reports)
        return held[indexes.astype(np.intp)].T
    raise InvalidSpec(f"an observer of {randomizer.name} is not simulated: choose a mechanism for frequencies")


def _linear(mechanism: LinearHash, reports: U64, cells: U64) -> npt.NDArray[np.bool_]:
    numbers, answers = np.divmod(reports, np.uint64(mechanism.q))
    vectors = np.repeat(points(mechanism, numbers), cells.shape[1])
    found = products(mechanism, vectors, np.ascontiguousarray(cells).ravel()).reshape(cells.shape)
    return np.asarray(found == answers[:, None])
