"""Privacy in everyday units: odds, guesses, and nats of information.

- **Odds.** An eps-LDP report changes the odds between any two items by a factor of at most e^eps.
- **Mutual information.** One eps-LDP report says at most c - 1 - ln c nats about its item, c = eps e/(e-1),
  whatever the items' distribution; reports add. Proof: for an output y all P(y|x) lie within a factor e of
  each other, and y's share of the information is convex in them, so it is largest when each is at one end. If
  the items at the high end have prior probability f, y carries f e eps/Z - ln Z nats for each unit of its
  probability, Z = 1 + f(e-1); the best Z is c. At eps = 1 this is 0.1232 nats; the divergence bound eps
  tanh(eps/2) gives 0.4621, eps^2/2 gives 0.5.
- **Max-information** of n reports (any joint distribution of the items): n eps, or with probability 1 - beta
  n eps^2/2 + eps sqrt(2 n ln(1/beta)); with the exact mean eps tanh(eps/2) in place of eps^2/2 it is smaller
  still.
"""

from __future__ import annotations

import math

from ldp_client.errors import InvalidSpec
from ldp_client.privacy.composition import Total, smallest
from ldp_client.privacy.rounding import Number, positive, probability, up

__all__ = [
    "best_guess",
    "block_information",
    "block_total_variation",
    "information_of_response",
    "max_information",
    "max_information_rules",
    "mutual_information",
    "odds_factor",
]


def odds_factor(epsilon: Number) -> float:
    """Return e^eps: how far the odds between two items can move."""
    return up(math.exp(positive(epsilon, "epsilon")), 2.0**-38)


def best_guess(epsilon: Number, prior: float) -> float:
    """Return the largest probability that anybody can assign to a fact after a report, from `prior` before
    it.
    """
    probability(prior, "the prior")
    grown = odds_factor(epsilon)
    return min(1.0, up(prior * grown / (1 + prior * (grown - 1)), 2.0**-36))


def mutual_information(epsilon: Number, reports: int = 1) -> float:
    """Return the most that this many eps-LDP reports of one item can say about it, in nats."""
    value = positive(epsilon, "epsilon")
    if reports < 0:
        raise InvalidSpec("the number of reports must not be negative")
    # c - 1 - ln c with c - 1 = (eps - 1 + e^-eps)/(1 - e^-eps), both parts free of cancellation by a series
    # near 0.
    small = value * value * _exponential_rest(value)
    excess = small / -math.expm1(-value)
    # x - ln(1+x) loses digits below 0.1: its own series there.
    nats = _log_rest(excess) if excess < 0.1 else excess - math.log1p(excess)
    return up(reports * nats, 2.0**-36)


def _exponential_rest(x: float) -> float:
    """(e^-x - 1 + x)/x^2."""
    if x > 0.5:
        return (math.expm1(-x) + x) / (x * x)
    return math.fsum((-x) ** k / math.factorial(k + 2) for k in range(24))


def _log_rest(x: float) -> float:
    """X - ln(1+x) for 0 <= x < 0.1: x^2/2 - x^3/3 + ..."""
    return math.fsum((-1) ** k * x**k / k for k in range(2, 24))


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
