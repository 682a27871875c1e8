"""Many answers at once, the twin of ldp_client/mechanisms/randomized_response.py."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ldp_client.mechanisms.randomized_response import RandomizedResponse, Response
from ldp_server.arrays.hashing import Indexes

__all__ = ["choose", "randomize", "scale"]

U64 = npt.NDArray[np.uint64]

_LOW32 = np.uint64(0xFFFFFFFF)
_32 = np.uint64(32)


def scale(words: U64, count: int) -> U64:
    """Return word * count >> 64 for a count of at most 2^32."""
    if count == 1:
        return np.zeros(len(words), np.uint64)
    if count & (count - 1) == 0:
        return words >> np.uint64(65 - count.bit_length())
    factor = np.uint64(count)
    low = (words & _LOW32) * factor
    low >>= _32
    low += (words >> _32) * factor
    low >>= _32
    return low


def choose(response: Response, words: U64, truths: U64) -> U64:
    """Return every user's answer."""
    truth = np.uint64(response.truth)
    honest = words < truth
    if response.k == 2 and not response.spare:
        return truths ^ ~honest
    answers = (words - truth) % np.uint64(response.k - 1)
    answers += answers >= truths
    if response.spare:
        leftover = np.uint64((1 << response.word_bits) - response.spare)
        answers = np.where(words >= leftover, (words - leftover) % np.uint64(response.k), answers)
    return np.where(honest, truths, answers)


def randomize(randomizer: RandomizedResponse, indexes: Indexes, words: U64) -> U64:
    """Return every user's report."""
    return choose(randomizer.response, words[:, 0], indexes.astype(np.uint64, copy=False))
