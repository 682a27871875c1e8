"""Subsets as numbers over arrays, the twin of ldp_client/protocol/subsets.py.

Places are lines and subsets are columns: `found[place, i]` says whether subset i has that place. Every C(i, j) that is
looked up is at most the number of subsets, which fits 64 bits by the limits of the mechanism that uses them.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import numpy.typing as npt

from ldp_client.protocol.subsets import binomials

__all__ = ["ranks_of", "subsets"]

U64 = npt.NDArray[np.uint64]
Places = npt.NDArray[np.bool_]


@lru_cache(maxsize=16)
def _table(n: int, most: int) -> U64:
    """C(i, j) for i < n and j <= most."""
    return np.array([line[: most + 1] for line in binomials(n)[:n]], np.uint64)


def subsets(n: int, chosen: npt.NDArray[np.intp], ranks: U64) -> Places:
    """Return the subsets of `chosen` of n places that have these ranks."""
    table = _table(n, int(chosen.max(initial=0)))
    found = np.empty((n, len(ranks)), np.bool_)
    rest, left = ranks.copy(), chosen.copy()
    for place in range(n - 1, -1, -1):
        skipped = table[place][left]
        take = found[place]
        np.greater_equal(rest, skipped, out=take)
        rest -= np.where(take, skipped, np.uint64(0))
        left -= take
    return found


def ranks_of(found: Places, chosen: int) -> U64:
    """Return the rank of every subset among those of `chosen` elements."""
    table = _table(len(found), chosen)
    ranks, seen = np.zeros(found.shape[1], np.uint64), np.zeros(found.shape[1], np.intp)
    for place, member in enumerate(found):
        seen += member
        ranks += np.where(member, table[place][seen], np.uint64(0))
    return ranks
