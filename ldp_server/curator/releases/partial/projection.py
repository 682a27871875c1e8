"""How many people have all of k attributes, for all sets of k of d attributes, made consistent (projection mechanism).

There are m = C(d, k) counts. Each gets discrete Gaussian noise of the scale sigma. If one person's record changes, all
of them may move by 1, and if one attribute of it changes, those that have it: m k / d. So at the same time

    for a whole record       rho = m / (2 sigma^2)
    for one attribute        rho = (m k / d) / (2 sigma^2), smaller by d / k

The noisy counts, divided by n, are replaced by the nearest point of the convex hull of what single records can give:
answers of some (weighted) data set. This is post-processing. It brings the answers nearer to the truth, always: the
truth lies in the hull, and the nearest point of a convex set is no farther from each of its points. The search (Frank
and Wolfe) ends at a point p with a gap g, for which |p - truth|^2 <= |y - truth|^2 - |y - p|^2 + 2 g. So p is taken if
2 g <= |y - p|^2, and y otherwise.

Accuracy. The mean squared error is at most min(sigma^2, sigma sqrt(2 m d ln 2) n / m) (Theorem 11 with Delta =
sqrt m), far below sigma^2 if n is small. The intervals are those of the noisy counts, all at once with 95%.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from ldp_client.errors import InvalidSpec
from ldp_client.privacy.rounding import fraction_up
from ldp_server.curator.draws import Draws, gaussian_scale
from ldp_server.curator.laws import gaussian_half_width
from ldp_server.curator.people import Record
from ldp_server.curator.prices import CentralPrice
from ldp_server.curator.releases.base import BETA, CentralMechanism, Outcome, ReleasedRow
from ldp_server.curator.releases.partial.bits import bits_of, check_bits

__all__ = ["ProjectedConjunctions", "projected"]

Reals = npt.NDArray[np.float64]
_MOST_BITS = 14
_STEPS = 600
_NOTHING, _NEAR = 1e-12, 0.01


@dataclass(frozen=True)
class ProjectedConjunctions(CentralMechanism):
    """Counts of people who have all of k attributes."""

    kind: ClassVar[str] = "projected-counts"
    bits: int
    """d."""
    k: int
    rho: Fraction

    def __post_init__(self) -> None:
        check_bits(self.bits)
        if self.bits > _MOST_BITS or not 1 <= self.k <= min(4, self.bits):
            raise InvalidSpec(f"--bits: at most {_MOST_BITS} attributes; --k: 1 to 4 of them")

    @property
    def sets(self) -> list[tuple[int, ...]]:
        """Which attributes each count is about."""
        return list(combinations(range(self.bits), self.k))

    @property
    def price(self) -> CentralPrice:
        return CentralPrice(rho=self.rho, attribute_rho=self.rho * self.k / self.bits)

    @property
    def about(self) -> str:
        one = fraction_up(self.rho * self.k / self.bits)
        return f"for two records that differ in one attribute: rho = {one:.6g}"

    @property
    def sigma(self) -> float:
        return gaussian_scale(math.comb(self.bits, self.k), self.rho)

    def run(self, records: Sequence[Record], draws: Draws) -> Outcome:
        rows, sets, people = bits_of(records, self.bits), self.sets, len(records)
        counts = [int(rows[:, list(one)].all(1).sum()) for one in sets]
        noisy = np.array(draws.gaussian(counts, self.sigma), np.float64)
        near = projected(noisy / people, self.bits, sets) * people
        width = gaussian_half_width(self.sigma, BETA / len(sets))
        found = []
        for one, value, center in zip(sets, near, noisy, strict=True):
            low, high = max(0, int(center) - width), min(people, int(center) + width)
            low, high = (low, high) if low <= high else (0, people)
            name = "+".join(str(place + 1) for place in one)
            found.append(ReleasedRow(name, min(max(round(value), low), high), low, high))
        note = "people with 1 at all of these places; all intervals hold at once with probability 95%"
        return Outcome(tuple(found), note)


def _records(bits: int) -> npt.NDArray[np.bool_]:
    numbers = np.arange(1 << bits)[:, None] >> np.arange(bits)[None, :]
    return np.asarray(numbers & 1, bool)


def projected(noisy: Reals, bits: int, sets: Sequence[tuple[int, ...]]) -> Reals:
    """Return the nearest answers that a data set has, or the noisy ones if the search cannot show that it is near."""
    points = _records(bits)
    vertices = np.stack([points[:, list(one)].all(1) for one in sets], 1).astype(np.float64)
    here, best, shown = vertices.mean(0), noisy, False
    for _ in range(_STEPS):
        toward = noisy - here
        distance = float(toward @ toward)
        corner = vertices[int((vertices @ toward).argmax())]
        move = corner - here
        gap = float(move @ toward)
        if 2 * gap <= distance:
            best, shown = here, True
        if distance <= _NOTHING or (shown and gap <= _NEAR * distance):
            break
        here = here + min(1.0, gap / float(move @ move)) * move
    return np.asarray(best, np.float64)
