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


_TOP = 1 << 64


@cache
def _steps(n: int) -> tuple[tuple[tuple[int, ...], int], ...]:
    """Return C(place, c) for all c, and the place's bit, for each place from the last one on."""
    return tuple((binomials(n)[place], 1 << place) for place in range(n - 1, -1, -1))


def subset(n: int, chosen: int, rank: int) -> int:
    """Return the subset of `chosen` of n places that has this rank, below 2^63.

    A 1 above the highest bit keeps the number of digits the same at every step, and both outcomes of a step are
    computed. So the computing time says little about the subset.
    """
    rest, found = rank + _TOP, 1 << n
    for line, place in _steps(n):
        left, more = rest - line[chosen], found | place
        take = left >= _TOP
        rest, found = ((rest, found), (left, more))[take]
        chosen -= take
    return found ^ 1 << n


@cache
def _twice(n: int) -> tuple[int, ...]:
    return (*range(n), *range(n))


def rank_of(n: int, members: int, turn: int = 0) -> int:
    """Move each place of a subset up by `turn`, modulo n, and return the rank of the result among the subsets of its
    size.

    The same bits are read for every turn, only in another order. So the computing time does not depend on the turn.
    """
    rank, chosen = 0, 0
    for line, source in zip(binomials(n), _twice(n)[n - turn : 2 * n - turn], strict=False):
        member = members >> source & 1
        chosen += member
        rank += line[chosen] * member
    return rank
