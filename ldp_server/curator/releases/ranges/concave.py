"""RecConcave: a value of a huge range with a large score, if the score rises to a peak and falls.

A score q gives each value of a range an integer, and one record moves each of them by at most Delta. It is
quasi-concave if it never rises again after it has fallen. With a promise p, the mechanism returns a value with
q >= p - w, where w depends on the range's length T by log log T with one step of recursion; the exponential
mechanism pays log T. (Beimel, Nissim, Stemmer, Figure 5 and Lemma 3.12. There, p is r and w is alpha r.)

    1. L(j) = the largest, over windows of 2^j values, of the smallest q in the window, for all 2^j <= T
    2. inner(j) = min( L(j) - (p - w),  p - L(j + 1) ), and the first part alone for the last j.
       A record moves it by Delta, and it is quasi-concave for every data set: L falls with j
    3. k = a value with a large inner score: by this procedure again, or by the exponential mechanism (epsilon_0)
    4. K = 2^k. Blocks of 8 K values, from the start of the range (A) and shifted by 4 K (B). A_dist names the block of
       A with the largest score, and the block of B, each if it leads by enough (epsilon_1, delta_1)
    5. the exponential mechanism over the values in these two blocks (epsilon_2). With none: nothing

**Private** for every data set, whether the promise holds or not: with N - 1 rounds of 1 to 5 it is
(epsilon_0 + (N - 1)(2 epsilon_1 + epsilon_2), 2 (N - 1) delta_1)-private, by adaptive composition. The paper counts
3 N mechanisms for 3 N - 2. A_dist is the one of mode.py: the gap of two scores moves by 2 Delta, and both data sets
have a gap of at most 2 Delta if they name different blocks. As printed, with scale 1 / epsilon, it is not private, and
neither is what is built on it. If a partition has one block, naming it says nothing.

**Use.** Let q be quasi-concave with a value at p or above, and c = ceil(w / 2) - w' for the error w' of step 3.
The largest j with L(j) >= p - floor(w / 2) has inner(j) >= ceil(w / 2), which is the promise of the inner problem. So
k has L(k) >= p - w + c and L(k + 1) <= p - c. The values with q > p - c are a run of less than 2 K around the peak.
The peak is at least 2 K away from the ends of its block in A or of that in B; there, all other blocks have q <= p - c.
So the block leads by c. It has K values around the peak with q >= p - w + c, and the two blocks have at most 15 K
others. So step 5 fails with probability at most 15 e^(-epsilon_2 c / (2 Delta)), and w = 2 (w' + c) is enough, where c
is what A_dist and step 5 need. Each of the 3 N - 2 draws fails with probability beta / (3 N - 2).

Before steps 1 and 5 each score is raised to at least p - 2 w. This moves no score further and keeps the proofs.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from ldp_server.curator.draws import Draws, laplace_scale
from ldp_server.curator.laws import laplace_half_width
from ldp_server.curator.releases.mode import GRAIN
from ldp_server.curator.releases.ranges.steps import (
    Stretch,
    block_lead,
    cropped,
    draw_value,
    joined,
    selection_error,
    window_levels,
)
from ldp_server.curator.releases.stability import smallest_threshold

__all__ = ["ConcaveSearch", "best_search", "concave_search"]

SMALL = 32
"""A range of so few values is searched by the exponential mechanism."""
_FINEST = 1000


@dataclass(frozen=True)
class ConcaveSearch:
    """RecConcave with its budgets and errors. Make it with `concave_search`."""

    depth: int
    """N; 1 is the exponential mechanism alone."""
    sensitivity: int
    """Delta."""
    last: Fraction
    """epsilon_0."""
    naming: Fraction
    """epsilon_1."""
    naming_delta: Fraction
    """delta_1."""
    inside: Fraction
    """epsilon_2."""
    slacks: tuple[int, ...]
    """w of each round, the outermost first; the last one is that of the exponential mechanism."""

    @property
    def epsilon(self) -> Fraction:
        """What all draws cost together."""
        return self.last + (self.depth - 1) * (2 * self.naming + self.inside)

    @property
    def delta(self) -> Fraction:
        return 2 * (self.depth - 1) * self.naming_delta

    @property
    def error(self) -> int:
        """W of the outermost round."""
        return self.slacks[0]

    @property
    def scale(self) -> float:
        """Of the noise on a gap, which is taken GRAIN times."""
        return laplace_scale(2 * self.sensitivity * GRAIN, self.naming)

    @property
    def threshold(self) -> int:
        """A block is named if GRAIN gap + Z is at least this."""
        return 2 * self.sensitivity * GRAIN + smallest_threshold(self.scale, 2 * self.naming, self.naming_delta)

    def solve(self, stretches: Sequence[Stretch], promise: int, draws: Draws, depth: int = 0) -> int | None:
        """Return a value with a score of at least promise - error, or None if no block leads by enough."""
        slack = self.slacks[depth]
        score = joined(stretches, promise - 2 * slack)
        if depth == self.depth - 1:
            return draw_value(score, self.sensitivity, self.last, draws)
        levels = window_levels(score)
        inner = [
            Stretch(
                j, 1, min(level - promise + slack, promise - above) if above is not None else level - promise + slack
            )
            for j, (level, above) in enumerate(zip(levels, [*levels[1:], None], strict=True))
        ]
        k = self.solve(inner, -(-slack // 2), draws, depth + 1)
        if k is None:
            return None
        kept = [block for offset in (0, 4 << k) for block in self._named(score, 8 << k, offset, draws)]
        if not kept:
            return None
        return draw_value(cropped(score, _apart(kept)), self.sensitivity, self.inside, draws)

    def _named(self, score: Sequence[Stretch], length: int, offset: int, draws: Draws) -> list[tuple[int, int]]:
        """A_dist over the blocks of a partition: first and end of the block, or nothing."""
        block, lead = block_lead(score, length, offset)
        if lead is not None:
            (noisy,) = draws.laplace([GRAIN * lead], self.scale)
            if noisy < self.threshold:
                return []
        first = score[0].first + offset + block * length
        return [(first, first + length)]


def _apart(blocks: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return the union of one or two intervals as disjoint ones."""
    first, *rest = sorted(blocks)
    if rest and rest[0][0] < first[1]:
        return [(first[0], max(first[1], rest[0][1]))]
    return [first, *rest]


def concave_search(
    size: int, epsilon: Fraction, delta: Fraction, sensitivity: int = 1, depth: int = 2, beta: float = 0.05
) -> ConcaveSearch:
    """Share a budget out over the draws, so that the error is small with probability 1 - beta, on a range of `size`.

    What each part adds to the error is about K / its epsilon, so shares go by the square root of K.
    """
    sizes = [size]
    while len(sizes) < depth and sizes[-1] > SMALL:
        sizes.append(sizes[-1].bit_length())
    rounds = len(sizes) - 1
    beta = beta / (3 * rounds + 1)
    if not rounds:
        error = selection_error(math.log(size), sensitivity, epsilon, beta)
        return ConcaveSearch(1, sensitivity, epsilon, epsilon, delta, epsilon, (error,))
    naming_delta = delta / (2 * rounds)
    naming = 2 + 2 * (math.log(1 / (2 * float(naming_delta))) + math.log(1 / (2 * beta)))
    inside = 2 * math.log(15 / beta)
    last = 2 * math.log(sizes[-1] / beta)
    each = 2 + inside / naming  # what a round costs, if A_dist costs 1
    ratio = math.sqrt(2**rounds * last / ((2 ** (rounds + 1) - 2) * naming / (rounds * each)))
    unit = epsilon / Fraction(math.ceil((ratio + rounds * each) * _FINEST), _FINEST)
    share = unit * Fraction(math.floor(inside / naming * _FINEST), _FINEST)
    rest = epsilon - rounds * (2 * unit + share)
    made = ConcaveSearch(rounds + 1, sensitivity, rest, unit, naming_delta, share, (0,))
    width = laplace_half_width(made.scale, 2 * beta)
    lead = max(-(-(made.threshold + width) // GRAIN), selection_error(math.log(15), sensitivity, share, beta))
    slacks = [selection_error(math.log(sizes[-1]), sensitivity, rest, beta)]
    for _ in range(rounds):
        slacks.insert(0, 2 * (slacks[0] + lead))
    return ConcaveSearch(rounds + 1, sensitivity, rest, unit, naming_delta, share, tuple(slacks))


def best_search(
    size: int, epsilon: Fraction, delta: Fraction | None, sensitivity: int = 1, beta: float = 0.05
) -> ConcaveSearch:
    """Return the search with the smaller error: the exponential mechanism, or RecConcave, which needs a delta."""
    plain = concave_search(size, epsilon, Fraction(0), sensitivity, 1, beta)
    if delta is None:
        return plain
    return min(plain, concave_search(size, epsilon, delta, sensitivity, 2, beta), key=lambda one: one.error)
