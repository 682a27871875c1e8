"""Users who hold several items: made up, or a file of one's own.

**Made up.** The number of a user's items follows given weights. Which items they are is drawn without replacement, each
with a weight that falls like 1, 1/2, 1/3 ... along the list.

**A file.** A line a user, the items of the user with " + " between them; an empty line is a user without one. The most
frequent items are listed, the rest is left out of all sets. Nothing of the file is ever logged.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from ldp_client.errors import InvalidSpec, unread
from ldp_client.protocol.domain import MAX_SET_NAMES
from ldp_server.arrays.hashing import Indexes

__all__ = ["SetPopulation", "made_up", "read_sets"]

_AND = " + "
_CHUNK = 1 << 14
_LIMB = 32


@dataclass(frozen=True)
class SetPopulation:
    """Users and the items that they hold."""

    names: tuple[str, ...]
    held: npt.NDArray[np.bool_]
    """A line for each item and a column for each user."""

    @property
    def users(self) -> int:
        return int(self.held.shape[1])

    @property
    def sizes(self) -> dict[int, float]:
        """How many users hold so many items."""
        counts = np.bincount(self.held.sum(axis=0))
        return {size: float(count) for size, count in enumerate(counts.tolist()) if count}

    @property
    def indexes(self) -> Indexes:
        """The index of each user's set: a bit for each item."""
        limbs = np.zeros((self.users, -(-len(self.names) // _LIMB)), np.uint32)
        for place, line in enumerate(self.held):
            limbs[:, place // _LIMB] |= line.astype(np.uint32) << np.uint32(place % _LIMB)
        if len(self.names) > 2 * _LIMB:
            return limbs
        found = limbs[:, 0].astype(np.uint64)
        return found | limbs[:, 1].astype(np.uint64) << np.uint64(_LIMB) if limbs.shape[1] > 1 else found

    def resampled(self, users: int, seed: int) -> SetPopulation:
        """Return so many users, drawn from these with replacement."""
        drawn = np.random.default_rng(seed).integers(0, self.users, users)
        return SetPopulation(self.names, self.held[:, drawn])


def made_up(items: int, sizes: Mapping[int, float], users: int, seed: int) -> SetPopulation:
    """Return users with sets of these sizes."""
    if not 2 <= items <= MAX_SET_NAMES:
        raise InvalidSpec(f"a simulation of sets has 2 to {MAX_SET_NAMES} items")
    if max(sizes) > items or not sum(sizes.values()) > 0 or min(sizes.values()) < 0:
        raise InvalidSpec(f"sizes are from 0 to {items}, the number of items, and some user has one of them")
    rng = np.random.default_rng(seed)
    weights = np.array(list(sizes.values()))
    size = rng.choice(np.array(list(sizes)), users, p=weights / weights.sum())
    held = np.empty((items, users), np.bool_)
    for start in range(0, users, _CHUNK):  # the s smallest of exponential times with these rates are such a draw
        some = size[start : start + _CHUNK]
        times = rng.exponential(1.0, (items, len(some))) * np.arange(1, items + 1)[:, None]
        held[:, start : start + _CHUNK] = times.argsort(axis=0).argsort(axis=0) < some
    return SetPopulation(tuple(f"item {number}" for number in range(1, items + 1)), held)


def read_sets(file: Path, items: int) -> SetPopulation:
    """Read a file, and list its most frequent items."""
    try:
        lines = file.read_text(encoding="utf-8-sig").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        why = unread(error, f'a line a user, items with "{_AND}" between them, in UTF-8')
        raise InvalidSpec(f"cannot read {file}: {why}") from None
    sets = [{part.strip() for part in line.split(_AND)} - {""} for line in lines]
    counts = Counter(name for one in sets for name in one)
    names = sorted(sorted(counts), key=lambda name: -counts[name])[: min(items, MAX_SET_NAMES)]
    if len(names) < 2:
        raise InvalidSpec(f"{file} has fewer than two different items")
    places = {name: place for place, name in enumerate(names)}
    held = np.zeros((len(names), len(sets)), np.bool_)
    for user, one in enumerate(sets):
        held[[places[name] for name in one if name in places], user] = True
    return SetPopulation(tuple(names), held)
