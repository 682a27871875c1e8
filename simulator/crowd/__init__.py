"""Vectorised randomizers: many users at once, bit-equal to the client's randomizers on the same words.

`randomize(randomizer, indexes, words)` takes one index and one line of words for each user and returns the reports.
`draw_words` makes words for a simulation; its generator is fast and seeded, and never a device's. `CROWDS` finds the
module of a mechanism by its name, as ldp_client/mechanisms/__init__.py says.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from ldp_client.errors import InvalidSpec
from ldp_client.mechanisms import Registry
from ldp_client.mechanisms.base import Randomizer
from ldp_server.arrays.hashing import Indexes

__all__ = ["BLOCK", "CROWDS", "draw_words", "randomize", "simulate"]

U64 = npt.NDArray[np.uint64]

BLOCK = 1 << 16
"""Users whose words come from one generator; results do not depend on how blocks are spread over processes."""

CROWDS: Final = Registry[Callable[[Any, Indexes, U64], U64]](__name__, lambda _mechanism: "randomize")


def randomize(randomizer: Randomizer, indexes: Indexes, words: U64) -> U64:
    """Return the reports of many users; `words` has a column for each of the randomizer's words."""
    if words.shape != (len(indexes), randomizer.words):
        raise InvalidSpec(f"{randomizer.name} takes {randomizer.words} words for each user")
    return CROWDS[randomizer.name](randomizer, indexes, words)


def draw_words(seed: int, block: int, users: int, count: int) -> U64:
    """Draw `count` words for each user of one block, column by column in memory."""
    generator = np.random.Generator(np.random.SFC64(np.random.SeedSequence([seed, block])))
    return generator.integers(0, 1 << 64, (count, users), np.uint64).T


def simulate(randomizer: Randomizer, indexes: Indexes, seed: int, first_block: int = 0) -> Iterator[U64]:
    """Randomize users block by block; the same seed and block numbers give the same reports."""
    for start in range(0, len(indexes), BLOCK):
        part = indexes[start : start + BLOCK]
        words = draw_words(seed, first_block + start // BLOCK, len(part), randomizer.words)
        yield randomize(randomizer, part, words)
