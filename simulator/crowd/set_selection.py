"""Many sets of elements at once, the twin of ldp_client/mechanisms/set_selection.py."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ldp_client.mechanisms.set_selection import SetSelection
from ldp_server.arrays.hashing import Indexes, limb
from ldp_server.arrays.subsets import ranks_of, scaled, subsets

__all__ = ["held_elements", "held_items", "randomize"]

U64 = npt.NDArray[np.uint64]
Places = npt.NDArray[np.bool_]
Counts = npt.NDArray[np.int64]

_LOW32, _32, _LIMB = np.uint64(0xFFFFFFFF), np.uint64(32), 32
_CHUNK = 1 << 13
"""Users worked on at a time: a table of their elements has up to 256 lines."""


def held_items(k: int, indexes: Indexes) -> Places:
    """Return a line for each item: who holds it."""
    found = np.empty((k, len(indexes)), np.bool_)
    for start in range(0, k, _LIMB):
        part = limb(indexes, start // _LIMB)
        for place in range(start, min(k, start + _LIMB)):
            found[place] = part >> np.uint64(place - start) & np.uint64(1)
    return found


def held_elements(randomizer: SetSelection, indexes: Indexes, starts: U64) -> Places:
    """Return a line for each element: who holds it, with the words that say where the run of a cut set begins."""
    k, most = randomizer.items, randomizer.most
    items = held_items(k, indexes)
    held = items.sum(axis=0)
    factor = held.astype(np.uint64)
    start = ((starts >> _32) * factor + ((starts & _LOW32) * factor >> _32) >> _32).astype(np.intp)
    cut = held > most
    stay: Counts = np.where(cut, most - 1, held)
    seen: Counts = np.cumsum(items, axis=0) - items
    kept = items & ((seen - start) % np.maximum(held, 1) < stay)
    fillers = ~cut & (np.arange(most)[:, None] < most - held)
    return np.concatenate((kept, fillers, cut[None, :]))


def _reports(randomizer: SetSelection, indexes: Indexes, words: U64) -> U64:
    last = randomizer.elements - randomizer.most
    members = held_elements(randomizer, indexes, words[:, 3])
    ranks = np.where(
        words[:, 0] < np.uint64(randomizer.truth),
        np.uint64(randomizer.others) + scaled(words[:, 1], words[:, 2], randomizer.holding),
        scaled(words[:, 1], words[:, 2], randomizer.others),
    )
    drawn = subsets(randomizer.elements, np.full(len(words), randomizer.d, np.intp), ranks)
    own: Counts = np.cumsum(members, axis=0) - members
    moved = np.where(members, last + own, np.arange(randomizer.elements)[:, None] - own)
    return ranks_of(np.take_along_axis(drawn, moved, axis=0), randomizer.d)


def randomize(randomizer: SetSelection, indexes: Indexes, words: U64) -> U64:
    """Return every user's report."""
    parts = range(0, len(words), _CHUNK)
    found = [_reports(randomizer, indexes[i : i + _CHUNK], words[i : i + _CHUNK]) for i in parts]
    return np.concatenate(found) if found else np.zeros(0, np.uint64)
