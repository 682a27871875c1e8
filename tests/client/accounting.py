"""Accounting rules that the product does not use, kept beside their tests: each is proved in its docstring.

They bound what the product's own rules (ldp_client/privacy) are compared with: groups under concentrated privacy,
metrics over records, information about a whole crowd, and Gaussian noise.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from fractions import Fraction
from heapq import heappop, heappush

from ldp_client.errors import InvalidSpec
from ldp_client.privacy.charges import Charges
from ldp_client.privacy.composition import Total, smallest
from ldp_client.privacy.conversion import best_order
from ldp_client.privacy.curves import Curve, Tcdp
from ldp_client.privacy.groups import people_in
from ldp_client.privacy.optimal import Losses
from ldp_client.privacy.rounding import Number, exact, fraction_down, positive, probability, up


def hamming(one: Mapping[str, object], two: Mapping[str, object], weights: Mapping[str, Number]) -> Fraction:
    """Return the weighted Hamming metric: the sum of the weights of the attributes in which two records
    differ.
    """
    if one.keys() != two.keys() or not one.keys() <= weights.keys():
        raise InvalidSpec("the records and the weights must speak of the same attributes")
    return sum((exact(weights[name]) for name in one if one[name] != two[name]), Fraction(0))


def shortest_paths(edges: Mapping[tuple[str, str], Number], start: str) -> dict[str, Fraction]:
    """Return the loss between `start` and every node it can reach, from guarantees for single steps.

    A guarantee eps(u, v) for neighbouring values u, v (an undirected edge) extends to any two values by
    adding along a path, so the shortest path is the guarantee. Values that cannot be reached have no
    guarantee and are left out.
    """
    neighbours: dict[str, list[tuple[str, Fraction]]] = {}
    for (one, two), weight in edges.items():
        length = exact(weight)
        if length < 0:
            raise InvalidSpec("a loss must not be negative")
        neighbours.setdefault(one, []).append((two, length))
        neighbours.setdefault(two, []).append((one, length))
    if start not in neighbours:
        raise InvalidSpec("the start is not a node of the graph")
    reached: dict[str, Fraction] = {}
    heap = [(Fraction(0), start)]
    while heap:
        length, node = heappop(heap)
        if node in reached:
            continue
        reached[node] = length
        for other, step in neighbours[node]:
            if other not in reached:
                heappush(heap, (length + step, other))
    return reached


class GaussianCurve(Curve):
    """Gaussian noise of standard deviation sigma on a number that two items change by at most `sensitivity`.

    Not pure at any epsilon. D_a = a (sensitivity/sigma)^2/2 exactly, and
    delta(eps) = Phi(m/2 - eps/m) - e^eps Phi(-m/2 - eps/m), m = sensitivity/sigma.
    """

    def __init__(self, sigma: float, sensitivity: float = 1.0) -> None:
        self._m = positive(sensitivity, "sensitivity") / positive(sigma, "sigma")

    @property
    def pure(self) -> float:
        """No pure epsilon."""
        return math.inf

    def renyi(self, order: float) -> float:
        """A m^2/2."""
        if order <= 1:
            raise InvalidSpec("a Renyi order is above 1")
        return up(order * self._m**2 / 2)

    def delta(self, epsilon: Number) -> float:
        """The two tails; their difference loses at most a few digits, so the margin is 1e-9 of the first."""
        asked = fraction_down(exact(epsilon))
        first = math.erfc((asked / self._m - self._m / 2) / math.sqrt(2)) / 2
        second = math.erfc((asked / self._m + self._m / 2) / math.sqrt(2)) / 2
        grown = math.exp(asked + math.log(second)) if second > 0 else 0.0
        return max(0.0, first - grown) + 1e-9 * first

    def tcdp(self, omega: float = math.inf, tolerance: float = 1e-6) -> Tcdp:
        """m^2/2 at every order."""
        return Tcdp(up(self._m**2 / 2), omega)


def compose_tcdp(parts: Iterable[Tcdp]) -> Tcdp:
    """Add the rhos, keep the smallest omega."""
    held = list(parts)
    total = math.fsum(part.rho for part in held)
    return Tcdp(up(total), min((part.omega for part in held), default=math.inf))


class Composed(Curve):
    """The Renyi curve of several mechanisms used one after another: the sum of theirs.

    `delta` is the tight conversion, an upper bound (the exact hockey stick of a product needs its own law).
    """

    def __init__(self, parts: Iterable[Curve]) -> None:
        self._parts = tuple(parts)

    @property
    def pure(self) -> float:
        """The sum of the pure epsilons."""
        return up(math.fsum(part.pure for part in self._parts))

    def renyi(self, order: float) -> float:
        """The sum of the divergences."""
        return up(math.fsum(part.renyi(order) for part in self._parts))

    def delta(self, epsilon: Number) -> float:
        """The smallest delta that the Renyi curve supports; 0 from the pure epsilon on."""
        asked = fraction_down(exact(epsilon))
        return 0.0 if asked >= self.pure else curve_delta(self.renyi, asked)


def tail(privacy: Tcdp, excess: float) -> float:
    """Return a bound on the probability that the loss exceeds rho + excess: Gaussian, then exponential."""
    if excess < 0:
        return 1.0
    rho, omega = privacy.rho, privacy.omega
    if rho == 0:
        return 0.0 if excess > 0 else 1.0
    if math.isinf(omega) or excess <= 2 * rho * (omega - 1):
        return min(1.0, up(math.exp(-(excess**2) / (4 * rho))))
    return min(1.0, up(math.exp((omega - 1) ** 2 * rho - (omega - 1) * excess)))


def renyi_delta(order: float, divergence: float, epsilon: float) -> float:
    """Return the delta at epsilon of a mechanism whose Renyi divergence of this order is known."""
    if order <= 1:
        raise InvalidSpec("a Renyi order is above 1")
    if math.isinf(divergence):
        return 1.0
    exponent = (order - 1) * (divergence - epsilon) + order * math.log1p(-1 / order) - math.log(order - 1)
    slack = ((order - 1) * (divergence + epsilon) + 2.0) * 2.0**-40
    return 1.0 if exponent + slack >= 0 else up(math.exp(exponent + slack))


def curve_delta(renyi: Callable[[float], float], epsilon: float, omega: float = math.inf) -> float:
    """Return the smallest `renyi_delta` over orders in (1, omega)."""
    return best_order(lambda order: renyi_delta(order, renyi(order), epsilon), omega)


def grouposition(people: int, epsilon: Number, delta: float) -> float:
    """Return k eps^2/2 + eps sqrt(2 k ln(1/delta)) for k people with one eps-LDP report each."""
    value = positive(epsilon, "epsilon")
    k = people_in(people)
    return up(k * value**2 / 2 + value * math.sqrt(-2 * k * math.log(probability(delta, "delta"))))


def grouposition_approximate(people: int, epsilon: Number, delta0: float, delta: float) -> Total:
    """Return the same for (eps, delta0)-LDP reports: the failure grows to delta + k delta0."""
    if not 0 <= delta0 < 1:
        raise InvalidSpec("delta0 must lie in [0, 1)")
    return Total(grouposition(people, epsilon, delta), up(delta + people * delta0), "grouposition")


def tcdp_group(privacy: Tcdp, steps: int) -> Tcdp:
    """Return (rho g^2, omega/g) for a change of g steps; needs omega/g > 1."""
    if privacy.omega / people_in(steps) <= 1:
        raise InvalidSpec("omega is too small for a group of this size")
    return Tcdp(up(privacy.rho * steps**2), privacy.omega / steps)


def tcdp_group_divergence(privacy: Tcdp, steps: int) -> tuple[float, float]:
    """Return (order, divergence) for any number of steps: D_a <= c (omega-1) omega rho at a = 1 + 1/c.

    c = (1 + 1/(omega-1))^k - 1. The exact form; the exponential bound on it is not needed.
    """
    if math.isinf(privacy.omega):
        raise InvalidSpec("this rule is for a finite omega: use (rho g^2, infinity)")
    c = math.expm1(people_in(steps) * math.log1p(1 / (privacy.omega - 1)))
    return 1 + 1 / c, up(c * (privacy.omega - 1) * privacy.omega * privacy.rho)


def tcdp_group_epsilon(privacy: Tcdp, steps: int, delta: float) -> float:
    """Return e^(k/(omega-1)) (omega^2 rho + ln(1/delta)): valid for any size, soon vacuous."""
    reach = -math.log(probability(delta, "delta"))
    return up(math.exp(people_in(steps) / (privacy.omega - 1)) * (privacy.omega**2 * privacy.rho + reach))


def information_of_response(epsilon: Number, k: int = 2) -> float:
    """Return the exact mutual information of k-ary randomized response on a uniform item: its capacity, in
    nats.
    """
    if k < 2:
        raise InvalidSpec("randomized response needs at least two answers")
    value = positive(epsilon, "epsilon")
    shrunk = math.exp(-value)
    truth = 1 / (1 + (k - 1) * shrunk)
    lie = shrunk * truth
    return up(truth * math.log(k * truth) + (k - 1) * lie * math.log(k * lie), 2.0**-30)


def max_information_rules(users: int, epsilon: Number, beta: float) -> list[Total]:
    """Return the beta-approximate max-information of n reports by every rule, smallest first (`epsilon` in
    nats).
    """
    value = positive(epsilon, "epsilon")
    if users < 1:
        raise InvalidSpec("the number of users must be above 0")
    deviation = value * math.sqrt(-2 * users * math.log(probability(beta, "beta")))
    totals = [
        Total(up(users * value), 0.0, "n eps"),
        Total(up(users * value**2 / 2 + deviation), beta, "grouposition"),
        Total(up(users * value * math.tanh(value / 2) + deviation), beta, "grouposition, exact mean"),
    ]
    return sorted(totals, key=lambda total: (total.epsilon, total.delta))


def max_information(users: int, epsilon: Number, beta: float) -> Total:
    """Return the smallest of `max_information_rules`."""
    return smallest(max_information_rules(users, epsilon, beta))


def block_total_variation(attributes: int, epsilon: Number) -> float:
    """Return how far a report can move a belief about a set of attributes: e^(2|s| eps) - 1, at most 1.

    For per-attribute epsilon and a prior under which the set is independent of the rest; vacuous (1) from
    |s| eps = (ln 2)/2 on.
    """
    if attributes < 1:
        raise InvalidSpec("at least one attribute")
    return min(1.0, up(math.expm1(2 * attributes * positive(epsilon, "epsilon"))))


def block_information(attributes: int, epsilon: Number) -> float:
    """Return eps^2 |s|^2 / 2: the most nats about a set of attributes that is independent of the rest."""
    if attributes < 1:
        raise InvalidSpec("at least one attribute")
    return up((attributes * positive(epsilon, "epsilon")) ** 2 / 2)


def optimal_delta(epsilons: Charges, epsilon: float) -> float:
    """Return the smallest delta at which all these reports together are (epsilon, delta)-private."""
    return Losses(epsilons).delta(epsilon)


def optimal_epsilon(epsilons: Charges, delta: float) -> float:
    """Return the smallest epsilon at which all these reports together are (epsilon, delta)-private."""
    return Losses(epsilons).epsilon(probability(delta, "delta"))
