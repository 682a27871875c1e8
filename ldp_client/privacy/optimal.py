"""The exact (epsilon, delta) of many pure reports, if nothing is known of them but their epsilons.

Each eps-LDP report is, for any two items, a post-processing of binary randomized response, and this holds for
reports chosen adaptively too, as long as their epsilons are fixed beforehand. So the worst case of T reports
is T-fold binary randomized response itself, whose loss takes few values: with T equal reports it is (T - 2j)
eps with binomial probability, and

    delta(eps') = sum over j of C(T, j) p^(T-j) (1-p)^j max(0, 1 - e^(eps' - (T-2j) eps)).

Unequal epsilons: the losses of the groups of equal ones are added on a lattice. Where the epsilons have a
common divisor that is coarse enough, the lattice holds them exactly; otherwise each is rounded **up** to it
(a larger epsilon dominates a smaller one), so the answer is never below the truth.

The same law governs a group of k people who send one report each, and any mixture of the two.
"""

from __future__ import annotations

import math
from collections import Counter
from fractions import Fraction

from ldp_client.privacy.charges import Charges, basic, tally
from ldp_client.privacy.rounding import fraction_up, up

__all__ = ["Losses"]

LATTICE = 20_000
"""Largest number of lattice steps from loss 0 to the largest loss when epsilons differ."""
WINDOW = 20_000
"""Above so many equal reports, only the bulk of the binomial law is summed; the rest is added to delta."""
NEGLIGIBLE = 1e-30


class Losses:
    """The law of the privacy loss of many pure reports: its values and their probabilities."""

    def __init__(self, epsilons: Charges) -> None:
        charges = tally(epsilons)
        self.basic = basic(charges)
        self.lost = 0.0
        """Probability left out of the sums, to be added to every delta."""
        self._unit = self._choose_unit(charges)
        law = {0: 1.0}
        for epsilon, count in sorted(charges.items()):
            steps = math.ceil(epsilon / self._unit)
            law = _convolve(law, self._binomial(steps, count))
        unit = fraction_up(self._unit)
        # A margin of its own for the losses: their product with the unit is rounded, and delta(epsilon) just below
        # a loss is as small as their difference.
        self._law = sorted(((up(loss * unit, 2.0**-50), weight) for loss, weight in law.items()), reverse=True)

    def _choose_unit(self, charges: Counter[Fraction]) -> Fraction:
        if not charges:
            return Fraction(1)
        denominator = math.lcm(*(epsilon.denominator for epsilon in charges))
        divisor = Fraction(math.gcd(*(int(epsilon * denominator) for epsilon in charges)), denominator)
        if len(charges) == 1 or self.basic / divisor <= LATTICE:
            return divisor
        return self.basic / LATTICE

    def _binomial(self, steps: int, count: int) -> dict[int, float]:
        """The loss of `count` reports whose epsilon is `steps` units, with the margin of _log_choose."""
        used = fraction_up(steps * self._unit)
        truth = -math.log1p(math.exp(-used))  # ln p
        lie = truth - used
        first, last = 0, count
        if count > WINDOW:
            centre = count * math.exp(lie)
            width = math.sqrt(count * math.log(2 / NEGLIGIBLE) / 2)  # Hoeffding: two tails below NEGLIGIBLE
            first, last = max(0, int(centre - width)), min(count, int(centre + width) + 1)
            self.lost += NEGLIGIBLE
        slack = math.exp(2.0**-46 * (math.lgamma(count + 1) + count * (1 + used)) + 2.0**-40)
        law = {}
        for lies in range(first, last + 1):
            weight = math.exp(_log_choose(count, lies) + (count - lies) * truth + lies * lie)
            law[(count - 2 * lies) * steps] = weight * slack
        return law

    def delta(self, epsilon: float) -> float:
        """Return the smallest delta that goes with this epsilon, rounded up."""
        terms = []
        for loss, weight in self._law:
            if loss <= epsilon:
                break
            terms.append(weight * -math.expm1(epsilon - loss))
        return min(1.0, up(math.fsum(terms)) + self.lost)

    def epsilon(self, delta: float, tolerance: float = 1e-12) -> float:
        """Return the smallest epsilon with delta(epsilon) <= delta, rounded up to the tolerance."""
        if self.delta(0.0) <= delta:
            return 0.0
        low, high = 0.0, fraction_up(self.basic)
        if self.delta(high) > delta:  # only where losses were rounded up to the lattice
            return high
        while high - low > tolerance * max(1.0, high):
            middle = (low + high) / 2
            low, high = (low, middle) if self.delta(middle) <= delta else (middle, high)
        return up(high)


def _log_choose(n: int, k: int) -> float:
    """Return ln C(n, k), exactly if it is small, else by lgamma, whose error the caller's margin covers."""
    if n <= 400:
        return math.log(math.comb(n, k))
    return math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1)


def _convolve(one: dict[int, float], two: dict[int, float]) -> dict[int, float]:
    sums: dict[int, float] = {}
    for first, weight in one.items():
        for second, other in two.items():
            sums[first + second] = sums.get(first + second, 0.0) + weight * other
    return sums
