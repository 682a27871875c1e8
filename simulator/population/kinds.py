"""Populations of synthetic users. Each kind is written as a short text.

    uniform[:N]                  N items (default: the whole domain, or 10,000 of a large one), equally popular
    zipf:S[:N]                   item r with weight r^-S
    geometric:P[:N]              item r with weight (1-P)^r
    vocabulary                   the words of a real text (simulator/data/README.md), with their real counts
    file:PATH                    one item a line, or `item,count`
    module:function              function(users, seed) in a Python module gives the items, one for each user
    none                         no user holds an item
    singletons                   every user holds an item that nobody else holds; large domains only
    correlated:K:R[:P]           K yes/no attributes, each held with probability P, any two with latent correlation R
    mixture:W*SPEC+W*SPEC...     a share of the users for each
    planted:SHARE,SHARE...+SPEC  items held by exactly these shares of the users, over a background
    drifting:RATE*SPEC           tastes change: the favourites rotate, and a user changes with probability RATE a period

A population gives each user a *rank*. Rank 0 is `none`. Ranks 1, 2, ... are the population's items. Ranks from SINGLE
on are items that one user alone holds. naming.py turns ranks into indexes of the domain. Users come in blocks
(simulator/crowd). What the users of a block hold depends only on the seed and on the number of the block, so that
results are the same for any number of processes.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from ldp_client.errors import InvalidSpec

__all__ = [
    "MAX_ITEMS",
    "PERIODS",
    "SINGLE",
    "Categorical",
    "Correlated",
    "Drifting",
    "Fixed",
    "Mixture",
    "Planted",
    "Population",
    "Singletons",
    "block_coins",
    "geometric_weights",
    "zipf_weights",
]

U64 = npt.NDArray[np.uint64]
Floats = npt.NDArray[np.float64]

SINGLE: Final = 1 << 63
"""Ranks from here on belong to one user each: rank SINGLE + i belongs to user number i."""
PERIODS: Final = 30
"""Number of periods over which the users of a population that drifts answer a question that is asked once."""
MAX_ITEMS = 1 << 24
_GUIDE = 1 << 16
"""Entries of the guide table of a Categorical."""
_STEPS = 3
"""Steps along the distribution function before it is searched by bisection."""


def block_coins(seed: int, block: int) -> np.random.Generator:
    """Return the coins that decide what the users of one block hold; those of their reports are others."""
    return np.random.Generator(np.random.SFC64(np.random.SeedSequence([seed, block, 1])))


class Population(ABC):
    """Gives each user an item."""

    distinct: int
    """Number of items, with ranks 1 to `distinct`; items of single users are not counted."""
    has_singles: bool = False
    """Whether some users hold items that nobody else holds."""

    @abstractmethod
    def draw(self, coins: np.random.Generator, first: int, count: int) -> U64:
        """Return the ranks of `count` users, from number `first` on."""

    def walk(self, coins: np.random.Generator, first: int, count: int) -> Iterator[U64]:
        """Give the ranks of the same users, period after period, without end; by default they never change."""
        held = self.draw(coins, first, count)
        while True:
            yield held


def zipf_weights(exponent: float, items: int) -> Floats:
    """Return r^-s for r = 1 to `items`."""
    return np.asarray(np.arange(1, items + 1, dtype=np.float64) ** -exponent)


def geometric_weights(p: float, items: int) -> Floats:
    """Return (1-p)^r."""
    return np.asarray((1 - p) ** np.arange(items, dtype=np.float64))


class Categorical(Population):
    """Items with weights, drawn by inverting the distribution function.

    A guide table says for each 65,536th of the interval from 0 to 1 at which item to begin. One or two comparisons then
    settle nearly all draws; the others are found by bisection.
    """

    def __init__(self, weights: Floats) -> None:
        if not 1 <= len(weights) <= MAX_ITEMS:
            raise InvalidSpec(f"a population has 1 to {MAX_ITEMS} items, not {len(weights)}")
        total = float(weights.sum())
        if not math.isfinite(total) or total <= 0 or float(weights.min()) < 0:
            raise InvalidSpec("a population's weights must not be negative, nor all zero")
        self.distinct = len(weights)
        self._ends = np.cumsum(weights) / total
        self._ends[-1] = 1.0
        self._guide = np.searchsorted(self._ends, np.arange(_GUIDE) / _GUIDE, side="right").astype(np.int32)
        self.shares = np.diff(self._ends, prepend=0.0)

    def draw(self, coins: np.random.Generator, first: int, count: int) -> U64:
        del first
        u = coins.random(count)
        at = self._guide[(u * _GUIDE).astype(np.intp)]
        unsettled = np.flatnonzero(self._ends[at] <= u)
        for _ in range(_STEPS):
            if not len(unsettled):
                break
            at[unsettled] += 1
            unsettled = unsettled[self._ends[at[unsettled]] <= u[unsettled]]
        at[unsettled] = np.searchsorted(self._ends, u[unsettled], side="right")
        ranks: U64 = at.astype(np.uint64)
        ranks += np.uint64(1)
        return ranks


class Fixed(Population):
    """Given items: user number i holds ranks[i % len(ranks)]."""

    def __init__(self, ranks: npt.NDArray[np.uint32], distinct: int) -> None:
        if not len(ranks):
            raise InvalidSpec("a population has at least one user")
        self._ranks, self.distinct = ranks, distinct

    def draw(self, coins: np.random.Generator, first: int, count: int) -> U64:
        del coins
        return self._ranks[np.arange(first, first + count) % len(self._ranks)].astype(np.uint64)


class Singletons(Population):
    """Every user holds an item that nobody else holds."""

    distinct = 0
    has_singles = True

    def draw(self, coins: np.random.Generator, first: int, count: int) -> U64:
        del coins
        return np.arange(SINGLE + first, SINGLE + first + count, dtype=np.uint64)


@dataclass(frozen=True)
class Correlated(Population):
    """K yes/no attributes that share a latent cause (a Gaussian copula with one factor).

    A user has attribute j if sqrt(R) g + sqrt(1-R) e_j exceeds the quantile of 1 - P, with g and e_j standard normal.
    The rank is the sum of 2^j over the user's attributes. A user without attributes is `none`, as in the domain of
    attributes.
    """

    attributes: int
    correlation: float
    share: float

    def __post_init__(self) -> None:
        if not 1 <= self.attributes <= 20:
            raise InvalidSpec("correlated takes 1 to 20 attributes")
        if not 0 <= self.correlation < 1 or not 0 < self.share < 1:
            raise InvalidSpec("correlated takes a correlation from 0 to below 1, and a share between 0 and 1")

    @property
    def distinct(self) -> int:  # type: ignore[override]  # a fixed number, computed from the fields
        return (1 << self.attributes) - 1

    def draw(self, coins: np.random.Generator, first: int, count: int) -> U64:
        del first
        from statistics import NormalDist  # noqa: PLC0415 - only here

        bar = NormalDist().inv_cdf(1 - self.share)
        common = math.sqrt(self.correlation) * coins.standard_normal(count)
        ranks = np.zeros(count, np.uint64)
        for place in range(self.attributes):
            own = math.sqrt(1 - self.correlation) * coins.standard_normal(count)
            ranks |= (common + own > bar).astype(np.uint64) << np.uint64(place)
        return ranks


class Mixture(Population):
    """Each user belongs to one part, with the part's share as probability. All parts have the same list of items."""

    def __init__(self, parts: Sequence[tuple[float, Population]]) -> None:
        total = math.fsum(weight for weight, _ in parts)
        if len(parts) < 2 or min(weight for weight, _ in parts) <= 0 or not 0.999 < total < 1.001:
            raise InvalidSpec("a mixture has two parts or more, whose shares are above 0 and add up to 1")
        self._parts = [population for _, population in parts]
        self._ends = np.cumsum([weight for weight, _ in parts])[:-1]
        self.distinct = max(population.distinct for population in self._parts)
        self.has_singles = any(population.has_singles for population in self._parts)

    def draw(self, coins: np.random.Generator, first: int, count: int) -> U64:
        which = np.searchsorted(self._ends, coins.random(count), side="right")
        lines = [population.draw(coins, first, count) for population in self._parts]
        return np.choose(which, lines)


class Planted(Population):
    """Items 1, 2, ... with an exact number of holders each, and a background population for the other users.

    The background's rank r becomes r + (number of planted items), so that nobody else holds a planted item. The first
    users hold the planted items. That makes no difference to the reports, as each user's coins are independent.
    """

    def __init__(self, holders: Sequence[int], background: Population, users: int) -> None:
        if not holders or min(holders) < 0 or sum(holders) > users:
            raise InvalidSpec(f"planted items need {sum(holders)} users in all, of {users}: plant less, or add users")
        self.holders = tuple(holders)
        self._ends = np.cumsum(holders)
        self._background = background
        self.distinct = len(holders) + background.distinct
        self.has_singles = background.has_singles

    def draw(self, coins: np.random.Generator, first: int, count: int) -> U64:
        ranks = self._background.draw(coins, first, count)
        ranks = np.where((ranks > 0) & (ranks < SINGLE), ranks + np.uint64(len(self.holders)), ranks)
        users = np.arange(first, first + count)
        planted = np.searchsorted(self._ends, users, side="right")
        return np.where(planted < len(self.holders), planted.astype(np.uint64) + np.uint64(1), ranks)


class Drifting(Population):
    """Tastes that change: in period t, rank r has the popularity that rank r - t has in the base population.

    `draw` is for a question that is asked once: user number i of n answers in period PERIODS i/n. `walk` follows the
    same users: in each period a user draws a new item of that period with probability `rate`, and else keeps the item.
    """

    def __init__(self, rate: float, base: Population, users: int) -> None:
        if not 0 <= rate <= 1:
            raise InvalidSpec("drifting takes a rate between 0 and 1")
        if not base.distinct:
            raise InvalidSpec("drifting needs a population with items in common")
        self._rate, self._base, self._users = rate, base, users
        self.distinct = base.distinct
        self.has_singles = base.has_singles

    def _rotate(self, ranks: U64, periods: npt.NDArray[np.int64] | int) -> U64:
        common = (ranks > 0) & (ranks < SINGLE)
        moved = (ranks.astype(np.int64) - 1 + periods) % self.distinct + 1
        return np.where(common, moved.astype(np.uint64), ranks)

    def draw(self, coins: np.random.Generator, first: int, count: int) -> U64:
        periods = PERIODS * np.arange(first, first + count) // max(1, self._users)
        return self._rotate(self._base.draw(coins, first, count), periods)

    def walk(self, coins: np.random.Generator, first: int, count: int) -> Iterator[U64]:
        held, period = self._base.draw(coins, first, count), 0
        while True:
            yield held
            period += 1
            fresh = self._rotate(self._base.draw(coins, first, count), period)
            held = np.where(coins.random(count) < self._rate, fresh, held)
