"""Many bounded numbers at once, the twin of ldp_client/mechanisms/bounded_number.py."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ldp_client.mechanisms.bounded_number import BoundedNumber, Window
from ldp_server.arrays.hashing import Indexes
from simulator.crowd.randomized_response import choose, scale

__all__ = ["randomize"]

U64 = npt.NDArray[np.uint64]


def _choose(law: Window, words: U64, places: U64) -> U64:
    """Return every user's answer."""
    split = np.uint64(law.window * law.truth)
    outside = (words - split) % np.uint64(law.answers - law.window)
    outside += np.uint64(law.window) * (outside >= places)
    answers = np.where(words < split, places + words % np.uint64(law.window), outside)
    if law.spare:
        used = np.uint64(law.used)
        answers = np.where(words >= used, (words - used) % np.uint64(law.answers), answers)
    return answers


def _thresholds(numerators: U64, denominator: int) -> tuple[U64, U64]:
    """The lower place and the number of words that round up, for each distinct index: exact integers."""
    pairs = [divmod(int(n), denominator) for n in numerators]
    lower = np.array([place for place, _ in pairs], np.uint64)
    upper = np.array([-(-(rest << 64) // denominator) for _, rest in pairs], np.uint64)
    return lower, upper


def randomize(randomizer: BoundedNumber, indexes: Indexes, words: U64) -> U64:
    """Return every user's report."""
    law = randomizer.law
    places = law.answers - law.window
    held, inverse = np.unique(indexes.astype(np.uint64, copy=False), return_inverse=True)
    numerators = [2 * (int(i) - 1) * places if i else places * (randomizer.size - 2) for i in held]
    lower, upper = _thresholds(np.array(numerators, object), 2 * (randomizer.size - 2))
    place = lower[inverse] + (words[:, 1] < upper[inverse])
    about_presence = scale(words[:, 0], 256) < np.uint64(randomizer.presence)
    present = (indexes > 0).astype(np.uint64)
    told = np.uint64(law.answers) + choose(randomizer.response, words[:, 2], present)
    return np.where(about_presence, told, _choose(law, words[:, 2], place))
