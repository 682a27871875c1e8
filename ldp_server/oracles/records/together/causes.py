r"""What goes together in pairs of fields, as far as a few common causes explain it.

Let users be of k + 1 kinds, and let the fields of each kind be independent. With p_a the part of the users of kind a,
and m_(i,a) what the effect of field i would be if all were of this kind, the rest of the pair (i, j) (shrinking.py) is

    t_(i,j) = n sum over a of p_a (m_(i,a) - m_i)(m_(j,a) - m_j)',        m_i = sum over a of p_a m_(i,a).

Put together for all pairs, in an orthonormal basis of each field's d_i = size - 1 free numbers, this is a positive
matrix T of D = sum of d_i lines and of rank k at most, of which the blocks (i, i) are not seen. So 16 fields that go
together in 120 pairs may follow from few numbers, and what is not of low rank is noise.

**The fit.** T_k minimises the sum over the pairs of |r_(i,j) - t_(i,j)|^2/v_(i,j) over positive matrices of rank k. In
each step, what T says stands where nothing is seen, and beside what is seen where v is above its least value. The next
T is the part of the k largest positive eigenvalues of that. No step makes the sum larger.

**The number of causes** is the one with the least error to be expected by Stein's formula, for the whole of what is
done with the rests r, f(r) (they are moved towards T_k by shrinking.py):

    |f(r) - r|^2 + 2 sum over all numbers of v df/dr - sum of v.

The derivatives are taken along a few random directions, always the same ones: E[z' (df/dr) z] is their sum if z has the
variances v. The formula needs normal noise with known variances, and no shape of the truth: where there are no common
causes it says that T_k gains nothing. Causes are taken if they save a twentieth of the noise, and 2/sqrt(numbers) of it
more than what is done without them, and if there are 100 numbers. The least of a few noisy figures is below its mean,
so a closer choice would often be wrong.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial

import numpy as np

from ldp_server.oracles.base import Floats
from ldp_server.oracles.records.parts import Places

__all__ = ["LEAST_NUMBERS", "MOST_LINES", "PairFit", "least_gain", "moved_towards_causes"]

Rests = Mapping[Places, Floats]
Moving = Callable[[Rests, Rests], dict[Places, Floats]]
"""From rests and what they are moved towards to the rests after that."""

LEAST_NUMBERS = 50
"""With fewer numbers in all, chance decides what is gained."""
_LEAST_OF_CAUSES = 100
"""The same where the number of causes is chosen."""
MOST_LINES = 128
"""D of the matrix; a larger one takes long."""
_MOST_CAUSES = 6
_IN_VAIN = 3
"""After so many numbers of causes that are no better, no more are tried."""
_STEPS = 30
_STILL = 5e-3
"""The fit is done when no number moves by more than this part of the least standard error."""
_PROBE = 0.1
"""How far a direction goes, in standard errors."""
_PROBED = 600
"""Numbers times directions, at least: each direction's slope is off by about sqrt(2 x numbers)."""
_LEAST_DIRECTIONS = 2
_GAIN = 0.05


def least_gain(numbers: float, doubt: float = 1.0) -> float:
    """Return the part of the noise that has to be saved: its error varies by sqrt(2/numbers) of its mean."""
    return max(_GAIN, doubt / math.sqrt(numbers))


def moved_towards_causes(rests: Rests, variances: Mapping[Places, float], moving: Moving) -> dict[Places, Floats]:
    """Return the rests of all pairs, moved towards as many common causes as is best; perhaps none."""
    nothing = {places: np.zeros_like(one) for places, one in rests.items()}
    best = moving(rests, nothing)
    fields = {place: size for places, one in rests.items() for place, size in zip(places, one.shape, strict=True)}
    numbers = sum(_free(one) for one in rests.values())
    if (
        numbers < _LEAST_OF_CAUSES
        or sum(size - 1 for size in fields.values()) > MOST_LINES
        or not all(map(math.isfinite, variances.values()))
    ):
        return best
    fit = PairFit.of(fields, variances)
    risks = _Risks(fit, rests, variances)
    least = min(risks.of(best, lambda one: moving(one, nothing)), 0.0) - least_gain(numbers, 2.0) * risks.noise
    since = 0
    for causes in range(1, min(_MOST_CAUSES, len(fields) - 2) + 1):
        work = partial(_moved, fit, moving, causes, fit.of_rank(rests, causes))
        after = work(rests)
        risk = risks.of(after, work)
        if risk < least:
            least, best, since = risk, after, 0
        elif (since := since + 1) == _IN_VAIN:
            break
    return best


def _moved(fit: PairFit, moving: Moving, causes: int, start: Floats, rests: Rests) -> dict[Places, Floats]:
    return moving(rests, fit.pairs(fit.of_rank(rests, causes, start)))


@dataclass(frozen=True)
class PairFit:
    """Where each pair lies in the matrix, and how much of each entry is believed in a step."""

    bases: Mapping[int, Floats]
    """An orthonormal basis of each field's free numbers, as columns."""
    starts: Mapping[int, int]
    belief: Floats
    """The least variance over that of each entry; 0 where nothing is seen."""
    still: float

    @classmethod
    def of(cls, fields: Mapping[int, int], variances: Mapping[Places, float]) -> PairFit:
        """Return that of fields of these sizes."""
        bases = {place: _contrasts(size) for place, size in sorted(fields.items())}
        ends = np.cumsum([0, *(base.shape[1] for base in bases.values())]).tolist()
        starts = dict(zip(bases, ends, strict=False))
        least, belief = min(variances.values()), np.zeros((ends[-1], ends[-1]))
        fit = cls(bases, starts, belief, _STILL * math.sqrt(least))
        for (one, other), variance in variances.items():
            lines, columns = fit._lines(one), fit._lines(other)
            belief[lines, columns] = belief[columns, lines] = least / variance
        return fit

    def _lines(self, place: int) -> slice:
        return slice(self.starts[place], self.starts[place] + self.bases[place].shape[1])

    def matrix(self, rests: Rests) -> Floats:
        """Return the rests as one matrix."""
        found = np.zeros_like(self.belief)
        for (one, other), rest in rests.items():
            block = self.bases[one].T @ rest @ self.bases[other]
            found[self._lines(one), self._lines(other)] = block
            found[self._lines(other), self._lines(one)] = block.T
        return found

    def pairs(self, matrix: Floats) -> dict[Places, Floats]:
        """Return what a matrix says of every pair of fields."""
        return {
            (one, other): self.bases[one] @ matrix[self._lines(one), self._lines(other)] @ self.bases[other].T
            for one in self.bases
            for other in self.bases
            if one < other
        }

    def of_rank(self, rests: Rests, causes: int, start: Floats | None = None) -> Floats:
        """Return T_k; a start that is near it saves steps."""
        seen = self.matrix(rests)
        found = np.zeros_like(seen) if start is None else start
        for _ in range(_STEPS):
            values, vectors = np.linalg.eigh(found + self.belief * (seen - found))
            kept = vectors[:, -causes:]
            new = (kept * np.maximum(values[-causes:], 0.0)) @ kept.T
            moved, found = float(np.abs(new - found).max()), new
            if moved <= self.still:
                break
        return np.asarray(found)


class _Risks:
    """The error to be expected after something is done with the rests, less that of leaving them as they are."""

    def __init__(self, fit: PairFit, rests: Rests, variances: Mapping[Places, float]) -> None:
        rng = np.random.default_rng(0)
        self._rests = rests
        self.noise = sum(_free(one) * variances[places] for places, one in rests.items())
        self._ways = [
            {
                places: fit.bases[places[0]]
                @ (rng.choice([-1.0, 1.0], [size - 1 for size in one.shape]) * math.sqrt(variances[places]))
                @ fit.bases[places[1]].T
                for places, one in rests.items()
            }
            for _ in range(max(_LEAST_DIRECTIONS, math.ceil(_PROBED / sum(map(_free, rests.values())))))
        ]

    def of(self, after: Rests, work: Callable[[Rests], Rests]) -> float:
        """Return that of `work`, which gives `after`."""
        changed = sum(float(np.square(after[places] - one).sum()) for places, one in self._rests.items())
        slope = 0.0
        for way in self._ways:
            ends = [
                work({places: one + side * _PROBE * way[places] for places, one in self._rests.items()})
                for side in (1, -1)
            ]
            slope += sum(float(np.sum(way[places] * (ends[0][places] - ends[1][places]))) for places in way)
        return changed + 2 * slope / (2 * _PROBE * len(self._ways)) - 2 * self.noise


def _free(rest: Floats) -> int:
    return math.prod(size - 1 for size in rest.shape)


def _contrasts(size: int) -> Floats:
    """An orthonormal basis of the vectors of this length that add up to 0, as columns."""
    found, _ = np.linalg.qr(np.column_stack([np.ones(size), np.eye(size)[:, : size - 1]]))
    return np.asarray(found[:, 1:])
