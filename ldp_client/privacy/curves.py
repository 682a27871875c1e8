"""Privacy curves: what the probabilities of a mechanism's outputs say about its privacy.

For two laws P and Q on the same outputs, and L = ln(P/Q) the privacy loss of an output drawn from P:

    hockey stick    delta(eps) = sum max(0, P - e^eps Q)         (eps, delta)-privacy, both exact
    Renyi           D_a = ln(E[e^((a-1) L)]) / (a-1)     for a > 1; grows with a, from KL to the pure epsilon
    rho             sup D_a/a over 1 < a < omega         (rho, omega)-tCDP; omega = infinity is rho-zCDP

A curve is the worst case over all pairs of items. `LawCurve` is made from exact probabilities;
`ResponseCurve` is randomized response in closed form.

**One curve bounds all others.** Every eps-LDP mechanism is, for each pair of items, a post-processing of
*binary* randomized response with the same epsilon, so `ResponseCurve(eps)` bounds the curve of every
mechanism of the project. And binary randomized response has rho = eps tanh(eps/2) exactly: its loss is eps
with probability p = e/(e+1), else -eps, with mean m = eps tanh(eps/2); the Kearns-Saul inequality for a
Bernoulli variable, ln E[e^(s(X-p))] <= s^2 (2p-1) / (4 ln(p/(1-p))), at the scale 2 eps and with ln(p/(1-p))
= eps, 2p-1 = tanh(eps/2), gives ln E[e^(sL)] <= s m + s^2 m, so D_a <= a m, with equality in the limit a ->
1.
"""

from __future__ import annotations

import heapq
import math
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Protocol

from ldp_client.errors import InvalidSpec
from ldp_client.privacy.rounding import Number, exact, exp_floor, fraction_down, fraction_up, log_up, positive, up

__all__ = ["Curve", "LawCurve", "Lawful", "ResponseCurve", "Tcdp", "pure_rho"]

MAX_LAW = 1 << 20
"""The most probabilities that an exact audit lists."""


@dataclass(frozen=True)
class Tcdp:
    """(rho, omega)-truncated concentrated privacy: D_a <= rho a for 1 < a < omega."""

    rho: float
    omega: float = math.inf

    def __post_init__(self) -> None:
        if not (self.rho >= 0 and self.omega > 1):
            raise InvalidSpec("tCDP needs rho >= 0 and omega > 1")


def pure_rho(epsilon: Number) -> float:
    """Return the zCDP parameter of every eps-LDP mechanism: eps tanh(eps/2) <= eps^2/2 (proof above)."""
    value = positive(epsilon, "epsilon")
    return up(value * math.tanh(value / 2))


class Curve(ABC):
    """The privacy of one mechanism for its worst pair of items. All answers are rounded up."""

    @property
    @abstractmethod
    def pure(self) -> float:
        """The smallest pure epsilon; infinity if there is none."""

    @abstractmethod
    def renyi(self, order: float) -> float:
        """The Renyi divergence of an order above 1, in nats."""

    @abstractmethod
    def delta(self, epsilon: Number) -> float:
        """The smallest delta at which the mechanism is (epsilon, delta)-private."""

    def epsilon(self, delta: float, tolerance: float = 1e-12) -> float:
        """Return the smallest epsilon with delta(epsilon) <= delta, rounded up to the tolerance; infinity if none."""
        if self.delta(0) <= delta:
            return 0.0
        low, high = 0.0, self.pure if self.pure < math.inf else 1.0
        while self.delta(high) > delta:
            if high > 1000:
                return math.inf  # with probability above delta, an output is possible under one item only
            low, high = high, 2 * high
        while high - low > tolerance * max(1.0, high):
            middle = (low + high) / 2
            low, high = (low, middle) if self.delta(middle) <= delta else (middle, high)
        return up(high)

    def tcdp(self, omega: float = math.inf, tolerance: float = 1e-6) -> Tcdp:
        """Return (rho, omega) with rho the supremum of D_a/a, found to the tolerance and rounded up.

        D_a grows with a, so on [b, c] D_a/a <= D_c/b. The interval with the largest such bound is halved
        until the bound is within the tolerance of a value reached: a search that cannot stop below the
        supremum. Beyond `last` the pure epsilon alone gives a smaller D_a/a than order 2 does.
        """
        if omega <= 1:
            raise InvalidSpec("omega must be above 1")
        best = self.renyi(min(2.0, omega)) / min(2.0, omega)
        if best == 0.0:
            return Tcdp(0.0, omega)
        if math.isinf(omega) and math.isinf(self.pure):
            raise InvalidSpec("a mechanism without a pure epsilon needs a finite omega here")
        last = min(omega, max(4.0, self.pure / best))
        heap: list[tuple[float, float, float]] = []
        start = 1.0
        while start < last:
            end = min(last, 1.0 + 2.0 * (start - 1.0) + 1e-4)
            heapq.heappush(heap, (-self.renyi(end) / start, start, end))
            start = end
        while -heap[0][0] > best * (1 + tolerance):
            _, start, end = heapq.heappop(heap)
            middle = (start + end) / 2
            inside = self.renyi(middle)
            best = max(best, inside / middle)
            heapq.heappush(heap, (-inside / start, start, middle))
            heapq.heappush(heap, (-self.renyi(end) / middle, middle, end))
        return Tcdp(up(-heap[0][0]), omega)


@dataclass(frozen=True)
class _Pair:
    """Two laws on the same outputs as (P, Q, how many outputs have these two probabilities)."""

    terms: tuple[tuple[Fraction, Fraction, int], ...]

    def ratio(self) -> Fraction | None:
        """The largest P/Q; None where Q is 0 and P is not."""
        if any(q == 0 for p, q, _ in self.terms if p):
            return None
        return max(p / q for p, q, _ in self.terms if p)

    def delta(self, grown: Fraction) -> Fraction:
        """The hockey stick at e^eps = grown."""
        return sum((count * max(Fraction(0), p - grown * q) for p, q, count in self.terms), Fraction(0))

    def renyi(self, order: float) -> float:
        """D_order from floats of the exact terms; see _moment for the error."""
        if self.ratio() is None:
            return math.inf
        weights = [(float(count * p), _log_ratio(p, q)) for p, q, count in self.terms if p]
        return _moment(weights, order)


def _log_ratio(p: Fraction, q: Fraction) -> float:
    excess = p / q - 1
    return math.log1p(float(excess)) if abs(excess) < 1 else math.log(p) - math.log(q)


def _moment(weights: Iterable[tuple[float, float]], order: float) -> float:
    """Return ln(sum w e^((order-1) l))/(order-1) for weights that sum to 1, rounded up.

    Near order 1 the sum is 1 + sum w expm1(s l), kept as its excess over 1; at large s the largest exponent
    is taken out first. Weights and losses have relative errors near 2^-52; in the excess form the terms
    cancel down to about loss^2/2, which costs a factor 2/loss: 2^-44 at a loss of 0.01, hence the wider
    margin.
    """
    if order <= 1:
        raise InvalidSpec("a Renyi order is above 1")
    weights = list(weights)
    s = order - 1
    top = max(loss for _, loss in weights)
    if s * top < 1.0:
        excess = math.fsum(w * math.expm1(s * loss) for w, loss in weights)
        return up(max(0.0, math.log1p(excess) / s), 2.0**-36)
    rest = math.fsum(w * math.exp(s * (loss - top)) for w, loss in weights)
    return up(max(0.0, top + math.log(rest) / s), 2.0**-36)


class Lawful(Protocol):
    """An object with an exact output law, such as every randomizer."""

    @property
    def size(self) -> int:
        """The number of items."""
        ...

    @property
    def bound(self) -> int:
        """The number of reports."""
        ...

    def probability(self, index: int, report: int) -> Fraction: ...


class LawCurve(Curve):
    """The curve of an exact output law: one row of probabilities for each item, over the same outputs."""

    def __init__(self, laws: Iterable[Sequence[Fraction]]) -> None:
        rows = [tuple(Fraction(p) for p in law) for law in laws]
        if len(rows) < 2 or len({len(row) for row in rows}) != 1:
            raise InvalidSpec("a curve needs at least two items, with laws over the same outputs")
        if any(sum(row) != 1 or min(row) < 0 for row in rows):
            raise InvalidSpec("every law must be non-negative and sum to 1 exactly")
        distinct = {
            _Pair(tuple(sorted((p, q, count) for (p, q), count in Counter(zip(one, two, strict=True)).items())))
            for one in rows
            for two in rows
            if one is not two
        }
        self._pairs = tuple(distinct)

    @classmethod
    def of(cls, randomizer: Lawful) -> LawCurve:
        """Return the curve of a randomizer's whole law: an exact audit, for a domain that is small enough to list.

        tests/client/mechanisms/battery.py compares the stated law with the real code, word by word.
        """
        if randomizer.size * randomizer.bound > MAX_LAW:
            raise InvalidSpec(f"an exact audit lists at most {MAX_LAW} probabilities: use a smaller domain")
        reports = range(randomizer.bound)
        return cls([[randomizer.probability(x, y) for y in reports] for x in range(randomizer.size)])

    @property
    def ratio(self) -> Fraction | None:
        """The exact largest ratio of an output's probabilities under two items; None if it is infinite."""
        ratios = [pair.ratio() for pair in self._pairs]
        finite = [ratio for ratio in ratios if ratio is not None]
        return max(finite) if len(finite) == len(ratios) else None

    @property
    def pure(self) -> float:
        """Return ln of the largest ratio."""
        ratio = self.ratio
        return math.inf if ratio is None else log_up(ratio)

    def renyi(self, order: float) -> float:
        """The worst pair's divergence."""
        return max(pair.renyi(order) for pair in self._pairs)

    def delta_exact(self, epsilon: Number) -> Fraction:
        """Return delta(epsilon) with e^epsilon replaced by a lower bound that is right to 50 digits."""
        grown = exp_floor(exact(epsilon))
        return max(pair.delta(grown) for pair in self._pairs)

    def delta(self, epsilon: Number) -> float:
        """The worst pair's hockey stick."""
        return fraction_up(self.delta_exact(epsilon))


class ResponseCurve(Curve):
    """k-ary randomized response: truth with probability p = e/(e+k-1), each lie with q = 1/(e+k-1)."""

    def __init__(self, epsilon: Number, k: int = 2) -> None:
        if k < 2:
            raise InvalidSpec("randomized response needs at least two answers")
        self.k = k
        self._epsilon = positive(epsilon, "epsilon")
        # e^-eps instead of e^eps, so that no epsilon overflows.
        shrunk = math.exp(-self._epsilon)
        self.p = 1 / (1 + (k - 1) * shrunk)
        self.q = shrunk / (1 + (k - 1) * shrunk)

    @property
    def pure(self) -> float:
        """The epsilon itself."""
        return self._epsilon

    def renyi(self, order: float) -> float:
        """ln(p^a q^(1-a) + q^a p^(1-a) + (k-2) q) / (a-1)."""
        losses = [(self.p, self._epsilon), (self.q, -self._epsilon)]
        return _moment([*losses, ((self.k - 2) * self.q, 0.0)], order)

    def delta(self, epsilon: Number) -> float:
        """Return p - e^epsilon q for epsilon below the pure one: only the true answer has P > e^epsilon Q."""
        asked = fraction_down(exact(epsilon))
        return up(max(0.0, -self.p * math.expm1(asked - self._epsilon)), 2.0**-36)

    def tcdp(self, omega: float = math.inf, tolerance: float = 1e-6) -> Tcdp:
        """Binary: eps tanh(eps/2), in closed form; else searched (its supremum is not at order 1)."""
        if self.k == 2:
            return Tcdp(pure_rho(self._epsilon), omega)
        return super().tcdp(omega, tolerance)

    @property
    def divergence(self) -> float:
        """The Kullback-Leibler divergence of two items' laws: (p - q) eps nats, rounded up."""
        return up((self.p - self.q) * self._epsilon)
