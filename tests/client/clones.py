"""Two older bounds of what a shuffler is worth, by another computation than the product's: a reference for its tests.

Whatever the item x of another person, R(x) >= e^-eps0 (R(x0) + R(x1))/2 for any x0, x1, so with probability e^-eps0
each of them acts as a clone of "x0 or x1, by a fair coin". And R(x0), R(x1) are binary randomized response between two
laws. So the worst case is: C ~ Binomial(n-1, e^-eps0) clones, A ~ Binomial(C, 1/2) of them on x0's side, plus the
person: (A + B, C - A + 1 - B) with B ~ Bernoulli(e^eps0/(e^eps0+1)), against the same with B swapped. `Clones` sums its
hockey stick. `closed_epsilon` is ln(1 + tanh(eps0/2) (8 sqrt(e^eps0 ln(4/delta)/n) + 8 e^eps0/n)), for
eps0 <= ln(n / (16 ln(2/delta))).
"""

from __future__ import annotations

import math

from ldp_client.privacy.rounding import Number, positive, up

BUCKETS = 160


def shuffled_delta(epsilon0: Number, users: int, epsilon: float) -> float:
    """Return an upper bound on delta(epsilon) of n shuffled eps0-LDP reports."""
    return Clones(positive(epsilon0, "epsilon"), users, 1e-12).delta(epsilon)


def closed_epsilon(epsilon: Number, users: int, delta: float) -> float:
    """Return the closed form; epsilon itself where its condition fails or it does not help."""
    value, n = positive(epsilon, "epsilon"), users
    if value > math.log(n / (16 * math.log(2 / delta))):
        return value
    grown = math.exp(value)
    spread = 8 * math.sqrt(grown * math.log(4 / delta) / n) + 8 * grown / n
    return min(value, up(math.log1p(math.tanh(value / 2) * spread)))


class Clones:
    """The law of the number of clones, in buckets. A bucket counts as its smallest number: more clones help."""

    def __init__(self, epsilon0: float, users: int, rare: float) -> None:
        self.epsilon0 = epsilon0
        chance = math.exp(-epsilon0)
        trials = users - 1
        mean = trials * chance
        # Chernoff: P[C < mean - t] <= exp(-t^2/(2 mean)). Numbers above the window are counted in the last bucket.
        reach = math.sqrt(2 * mean * -math.log(rare)) if mean else 0.0
        first = max(0, math.floor(mean - reach))
        last = min(trials, math.ceil(mean + reach))
        self.rare = rare if first else 0.0
        edges = sorted({first + (last + 1 - first) * i // BUCKETS for i in range(BUCKETS)})
        masses = self._masses(trials, chance, first, last)
        self.buckets = []
        for start, end in zip(edges, [*edges[1:], last + 1], strict=True):
            self.buckets.append((start, math.fsum(masses[start - first : end - first])))
        start, mass = self.buckets[-1]
        held = math.fsum(mass for _, mass in self.buckets)
        self.buckets[-1] = (start, mass + max(0.0, 1.0 - held))

    @staticmethod
    def _masses(trials: int, chance: float, first: int, last: int) -> list[float]:
        """Binomial probabilities, with a margin for lgamma's error."""
        slack = math.exp(2.0**-46 * math.lgamma(trials + 2) + 2.0**-40)
        yes, no = math.log(chance), math.log(-math.expm1(math.log(chance))) if chance < 1 else -math.inf
        total = math.lgamma(trials + 1)
        masses = []
        for c in range(first, last + 1):
            stay = (trials - c) * no if trials > c else 0.0
            masses.append(slack * math.exp(total - math.lgamma(c + 1) - math.lgamma(trials - c + 1) + c * yes + stay))
        return masses

    def delta(self, epsilon: float) -> float:
        """The hockey stick, weighted over the buckets, plus what was left out."""
        parts = [mass * self._given(clones, epsilon) for clones, mass in self.buckets]
        return min(1.0, up(math.fsum(parts), 2.0**-30) + self.rare)

    def _given(self, clones: int, epsilon: float) -> float:
        """The hockey stick with this many clones: with m = clones + 1 and a of them on the first side,

            P0(a) = 2 b(a) (p a + (1-p)(m-a))/m,   P1(a) = 2 b(a) ((1-p) a + p (m-a))/m, b = Binomial(m, 1/2),

        P0 > e^eps P1 from some a on. Terms are summed upwards from there until what is left is negligible:
        beyond a term the ratio of two neighbours only falls, so the rest is below a geometric series, which
        is added.
        """
        m = clones + 1
        truth = 1 / (1 + math.exp(-self.epsilon0))
        lie = math.exp(-self.epsilon0) * truth
        grown = math.exp(epsilon)
        # P0 - e^eps P1 = 2 b(a) (slope a - fall)/m
        slope = (truth - lie) * (1 + grown)
        fall = m * (grown * truth - lie)
        a = max(0, math.floor(fall / slope))
        logs = math.lgamma(m + 1) - m * math.log(2)
        slack = math.exp(2.0**-46 * math.lgamma(m + 2) + 2.0**-40)
        if a > m:
            return 0.0
        weight = slack * math.exp(logs - math.lgamma(a + 1) - math.lgamma(m - a + 1))
        total = 0.0
        while a <= m:
            term = weight * max(0.0, slope * a - fall)
            total += term
            step = (m - a) / (a + 1)
            if 2 * a > m and term > 0:
                following = weight * step * (slope * (a + 1) - fall)
                ratio = following / term
                if ratio < 0.999 and following / (1 - ratio) < 1e-9 * total:
                    total += following / (1 - ratio)
                    break
            weight *= step
            a += 1
        return 2 * total / m
