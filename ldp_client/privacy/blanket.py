r"""Shuffled reports by the privacy blanket: an upper bound of delta(eps), computed without numpy in milliseconds.

**The statement.** n people use the same mechanism R, with the blanket b of mass gamma (the words are those of
ldp_client/mechanisms/shared/pair_law.py). Their n reports are seen as a multiset. Two inputs are neighbours if one
person's item is replaced, x0 by x1. With L = first - e^eps second, drawn with an atom's share, the multiset's hockey
stick is at most

    delta(eps) = E[(Z_1 + ... + Z_n)_+] / n,    Z_i = L with probability gamma, 0 with probability 1 - gamma.

Proof. Every other person's report is from omega = b/gamma with probability gamma, else from the person's own rest. Tell
the observer which others are of the second kind, and what they said: this can only help. What is left is the multiset
of the person's whole report and of K ~ Binomial(n-1, gamma) reports from omega. Given K = m - 1, the density of these m
reports with respect to omega^m, in random order, is the average over i of R_x(y_i)/omega(y_i). So the hockey stick is
E[(L_1 + ... + L_m)_+] gamma/m, and P[K = m-1]/m = P[Binomial(n, gamma) = m]/(n gamma). **So the n of the binomial law
is the number of all honest reports, the person's own among them**: at n = 1 the formula is the local hockey stick, and
with n - 1 it would promise too little, with n + 1 too much. (Lemma 5.3 of Balle, Bell, Gascon and Nissim, 2019.)

S_n/n is a reverse martingale, so delta falls with n: a number for n holds for every larger batch.

**The computation** gives a number that is at least delta(eps), by steps that each can only raise it. Shares and L are
rounded up: a measure that is larger everywhere gives a larger sum. Then, with S = Z_1 + ... + Z_n:

1. Few terms: all counts of the atoms are listed (`_listed`).
2. Else E[S_+] <= E[(S + Y)_+] for Y ~ N(0, tau^2), by Jensen's inequality. A Laplace transform gives, for any
   lambda > 0, with phi(s) = E[e^(s Z)] and G(s) = phi(s)^n e^(tau^2 s^2/2) / s^2,

       sum over all integers j of E[(S + Y + j P)_+] e^(-lambda j P) = (1/P) sum over all k of G(lambda + 2 pi i k/P)

   (Poisson's summation formula for t -> e^(-lambda t) E[(S + Y + t)_+], which is continuous and falls exponentially on
   both sides; its transform falls like a normal density). No term on the left is negative, and j = 0 is what is wanted.
   So the right side is an upper bound for every lambda, tau and P: these only decide how close it is.
3. The sum over k is cut at K. What is left is at most 2 |G(lambda)| e^(-tau^2 (2 pi K/P)^2/2) (lambda P/2 pi)^2/K, and
   is added. So is a bound of the error of rounding: each phi is off by at most e_k (`_rounding`), |phi| <= phi(lambda),
   so phi^n/phi(lambda)^n is off by at most 2 n e_k while that is small. If it is not small, E[S_+] <= phi(lambda)^n/(e
   lambda) is returned.

lambda is the saddle point: tau is a fiftieth of the deviation of S there, which raises epsilon by about 0.02%. About
700 values of phi are enough for every n. There is no grid of values of L: a fast Fourier transform would need more than
10^5 of them at n = 10^6, and would have to bound what wraps around.
"""

from __future__ import annotations

import cmath
import math
from collections.abc import Sequence
from fractions import Fraction

from ldp_client.errors import InvalidSpec
from ldp_client.mechanisms.shared.pair_law import PairLaw
from ldp_client.privacy.rounding import fraction_down, fraction_up, up

__all__ = ["Blanket", "Spread"]

MOST_REPORTS = 10**12
"""More reports are counted as so many: the error of rounding grows with n."""
_LISTED = 4000
"""The most combinations that are listed."""
_SMOOTH = 0.02
_REACH = 7.0
_MOST_TERMS = 20_000
_UNIT = 2.0**-53
_LARGEST = 600.0
"""The largest exponent of e that is worked with."""


class Spread:
    """The law of Z_1 + ... + Z_n at one epsilon."""

    def __init__(self, steps: Sequence[tuple[float, float]], nothing: float, reports: int) -> None:
        self.steps = steps
        """Probability and value of each atom."""
        self.nothing = nothing
        """The probability of 0."""
        self.reports = reports

    def positive_part(self) -> float:
        """Return an upper bound of E[(Z_1 + ... + Z_n)_+]."""
        if max(value for _, value in self.steps) <= 0.0:
            return 0.0
        kinds = len(self.steps)
        if self.reports <= _LISTED and math.comb(self.reports + kinds, kinds) <= _LISTED:
            return self._listed()
        return self._contour(self._saddle())

    def _listed(self) -> float:
        """Sum over all counts of the atoms. Terms of one sign: the relative error is far below 2^-30."""
        counts = [(self.reports, 1.0, 0.0)]
        for chance, value in self.steps:
            counts = [
                (left - k, weight * math.comb(left, k) * chance**k, reached + k * value)
                for left, weight, reached in counts
                for k in range(left + 1)
            ]
        parts = (weight * self.nothing**left * reached for left, weight, reached in counts if reached > 0.0)
        return up(math.fsum(parts), 2.0**-30)

    def _moments(self, tilt: float) -> tuple[float, float, float]:
        """phi, and mean and variance of one Z under the law tilted by e^(tilt Z)."""
        weights = [(chance * math.exp(tilt * value), value) for chance, value in self.steps]
        total = math.fsum((self.nothing, *(weight for weight, _ in weights)))
        mean = math.fsum(weight * value for weight, value in weights) / total
        square = math.fsum(weight * (value - mean) ** 2 for weight, value in weights) + self.nothing * mean * mean
        return total, mean, square / total

    def _saddle(self) -> float:
        """The tilt at which phi^n/tilt^2 is about least: there n times the tilted mean is 2/tilt."""
        top = max(value for _, value in self.steps)
        low, high = min(1.0, 2.0 / self.reports) / top, _LARGEST / top
        for _ in range(40):
            middle = math.sqrt(low * high)
            above = self.reports * self._moments(middle)[1] * middle >= 2.0
            low, high = (low, middle) if above else (middle, high)
        return math.sqrt(low * high)

    def _rounding(self, tilt: float, total: float) -> tuple[float, float]:
        """(c, d): the value of phi(tilt + i theta)/phi(tilt) is off by at most c + d theta.

        An exponential is off by some units of its last place and by the rounding of its exponent (tilt + i theta) z,
        and the sum by one unit for each of its terms.
        """
        moved = math.fsum(chance * abs(value) * math.exp(tilt * value) for chance, value in self.steps) / total
        slope = 12 * moved * _UNIT
        return (32 + 4 * len(self.steps)) * _UNIT + slope * tilt, slope

    def _contour(self, tilt: float) -> float:
        """The sum over k in the text above, with what is left out and what may be wrong."""
        n = self.reports
        total, _, variance = self._moments(tilt)
        spread = math.sqrt(n * variance)
        period = 8 * spread + 16 / tilt
        pace = 2 * math.pi / period
        smooth = max(_SMOOTH * spread, _REACH / (_MOST_TERMS * pace))
        last = math.ceil(_REACH / (smooth * pace))
        level = math.log(total)
        fixed, slope = self._rounding(tilt, total)
        if 2 * n * (fixed + slope * last * pace) > 0.1:
            return up(math.exp(n * level + 2 * n * fixed) / (math.e * tilt))
        terms, errors = [], []
        for k in range(1, last + 1):
            theta = k * pace
            point = complex(tilt, theta)
            phi = self.nothing + sum([chance * cmath.exp(point * value) for chance, value in self.steps])
            square = (tilt / point) ** 2
            weight = abs(square) * math.exp(-((smooth * theta) ** 2) / 2)
            if phi:
                exponent = n * (cmath.log(phi) - level) + complex(
                    -((smooth * theta) ** 2) / 2, smooth**2 * tilt * theta
                )
                terms.append((cmath.exp(exponent) * square).real)
            errors.append((2 * n * (fixed + slope * theta) + 512 * _UNIT) * weight)
        rest = math.exp(-((smooth * last * pace) ** 2) / 2) * (tilt / pace) ** 2 / last
        whole = 1 + 2 * math.fsum(terms) + 2 * math.fsum(errors) + 2 * rest
        scale = math.exp(n * level + 2 * n * fixed + (smooth * tilt) ** 2 / 2)
        return up(max(whole, 0.0) * scale / (tilt * tilt * period), 2.0**-30)


class Blanket:
    """The privacy of n shuffled reports of one mechanism, from its pair laws."""

    def __init__(self, laws: Sequence[PairLaw], reports: int) -> None:
        if reports < 1:
            raise InvalidSpec("a shuffled batch has at least one report")
        self.reports = min(reports, MOST_REPORTS)
        # The pair whose laws differ most in the blanket's measure comes first: it is mostly the worst.
        distance = {law: sum(share * (first - second) ** 2 for share, first, second in law) for law in laws}
        self.deviation = math.sqrt(max(distance.values()) / self.reports)
        """About the deviation of the privacy loss of one person."""
        self._laws = []
        for law in sorted(distance, key=lambda law: distance[law], reverse=True):
            atoms = [(fraction_up(s), fraction_up(first), fraction_down(second)) for s, first, second in law]
            self._laws.append((atoms, fraction_up(1 - sum((atom.share for atom in law), Fraction(0)))))

    def delta(self, epsilon: float) -> float:
        """Return an upper bound of delta at a float epsilon of at least 0."""
        return max(self._delta(which, epsilon) for which in range(len(self._laws)))

    def _delta(self, which: int, epsilon: float) -> float:
        """Only the pair with this number."""
        return min(1.0, up(self._spread(which, epsilon).positive_part() / self.reports))

    def _spread(self, which: int, epsilon: float) -> Spread:
        """The sum for one pair. L gets a margin that is larger than all its errors of rounding."""
        atoms, nothing = self._laws[which]
        grown = math.exp(epsilon)
        steps = [
            (share, first - grown * second + 2.0**-48 * (first + grown * second)) for share, first, second in atoms
        ]
        return Spread(steps, nothing, self.reports)

    def epsilon(self, delta: float, most: float, tolerance: float = 1e-4) -> float:
        """Return the smallest epsilon with delta(epsilon) <= delta to a relative tolerance, rounded up; else `most`."""
        found = 0.0
        for which in range(len(self._laws)):
            if self._delta(which, found) > delta:
                found = self._smallest(which, delta, (found, most), tolerance)
        return found

    def _smallest(self, which: int, delta: float, between: tuple[float, float], tolerance: float) -> float:
        """The same for one pair, whose delta at the lower end is too large."""
        low, most = between
        at_low = self._delta(which, low)
        high = most * (1 - tolerance)
        at_high = self._delta(which, high)
        if at_high > delta:
            return most
        while high - low > tolerance * high:
            middle = high / 4
            if low:
                margin = 0.45 * tolerance * high
                middle = min(max(_between(low, high, (at_low, delta, at_high)), low + margin), high - margin)
            value = self._delta(which, middle)
            if value <= delta:
                high, at_high = middle, value
            else:
                low, at_low = middle, value
        return min(most, up(high))


def _between(low: float, high: float, deltas: tuple[float, float, float]) -> float:
    """Where the middle delta is expected, ln delta falling like the square of epsilon; halfway if that says nothing."""
    above, wanted, below = deltas
    if below <= 0.0:
        return (low + high) / 2
    share = math.log(above / wanted) / math.log(above / below)
    return math.sqrt(low * low + share * (high * high - low * low))
