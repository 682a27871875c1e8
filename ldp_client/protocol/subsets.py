"""Subsets as numbers: the combinatorial number system.

The subsets of c of the places 0 ... n-1 have ranks 0 ... C(n, c) - 1, in the order of their largest place, then of the
next one, and so on: the subset with places p_1 < p_2 < ... < p_c has rank C(p_1, 1) + C(p_2, 2) + ... + C(p_c, c). A
subset is a number with a bit for each place. Both functions take n steps, whatever the subset.
"""

from __future__ import annotations

import math
from functools import cache

__all__ = ["binomials", "rank_of", "subset"]


@cache
def binomials(n: int) -> tuple[tuple[int, ...], ...]:
    """Return C(i, j) for i and j from 0 to n."""
    return tuple(tuple(math.comb(i, j) for j in range(n + 1)) for i in range(n + 1))


def subset(n: int, chosen: int, rank: int) -> int:
    """Return the subset of `chosen` of n places that has this rank."""
    table, found = binomials(n), 0
    for place in range(n - 1, -1, -1):
        skipped = table[place][chosen]
        take = rank >= skipped
        rank -= skipped * take
        found |= take << place
        chosen -= take
    return found


def rank_of(n: int, members: int) -> int:
    """Return the rank of a subset of n places among those of its size."""
    table, rank, chosen = binomials(n), 0, 0
    for place in range(n):
        member = members >> place & 1
        chosen += member
        rank += table[place][chosen] * member
    return rank
