"""Privacy in other units: odds, guesses, and nats of information.

- **Odds.** An eps-LDP report changes the odds between any two items by a factor of at most e^eps.
- **Mutual information.** One eps-LDP report says at most c - 1 - ln c nats about its item, c = eps e/(e-1), for every
  distribution of the items; the bounds of several reports add. Proof: for an output y all P(y|x) lie within a factor e
  of each other, and y's part of the information is convex in them, so it is largest when each is at one end of that
  range. If the items at the high end have prior probability f, y carries f e eps/Z - ln Z nats for each unit of its
  probability, Z = 1 + f(e-1); the best Z is c. At eps = 1 this is 0.1233 nats; the divergence bound eps tanh(eps/2)
  gives 0.4621, eps^2/2 gives 0.5.
"""

from __future__ import annotations

import math

from ldp_client.errors import InvalidSpec
from ldp_client.privacy.rounding import Number, positive, probability, up

__all__ = [
    "best_guess",
    "mutual_information",
    "odds_factor",
]


def odds_factor(epsilon: Number) -> float:
    """Return e^eps, the largest factor by which a report changes the odds between two items."""
    return up(math.exp(positive(epsilon, "epsilon")), 2.0**-38)


def best_guess(epsilon: Number, prior: float) -> float:
    """Return the largest probability that anybody can assign to a fact after a report, with `prior` before it."""
    probability(prior, "the prior")
    grown = odds_factor(epsilon)
    return min(1.0, up(prior * grown / (1 + prior * (grown - 1)), 2.0**-36))


def mutual_information(epsilon: Number, reports: int = 1) -> float:
    """Return an upper bound on the information that so many eps-LDP reports of one item carry about it, in nats."""
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
    """Return x - ln(1+x) for 0 <= x < 0.1, as x^2/2 - x^3/3 + ..."""
    return math.fsum((-1) ** k * x**k / k for k in range(2, 24))
