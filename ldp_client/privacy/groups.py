"""Groups: what the reports of k people say about all of them together.

In the local model each person randomizes alone, so k people are k independent reports: their losses add like
those of one person's k reports, and mostly cancel. Where a curator's guarantee for groups grows like k, this
one grows like sqrt(k) (advanced grouposition): with probability 1 - delta over the reports the loss is at
most k eps^2/2 + eps sqrt(2 k ln(1/delta)). `group_rules` sets it beside k eps, the sharper forms of
composition.py and the exact value, and the smallest is reported.

The tCDP group rules at the end are for guarantees about *one step* of a record (or a curator's): a change of
g steps.
"""

from __future__ import annotations

import math
from collections import Counter
from fractions import Fraction

from ldp_client.errors import InvalidSpec
from ldp_client.privacy.charges import Charges, tally
from ldp_client.privacy.composition import Total, every_rule, smallest
from ldp_client.privacy.curves import Tcdp
from ldp_client.privacy.rounding import Number, fraction_up, positive, probability, up

__all__ = [
    "every_group_of",
    "group",
    "group_rules",
    "grouposition",
    "grouposition_approximate",
    "tcdp_group",
    "tcdp_group_divergence",
    "tcdp_group_epsilon",
]


def grouposition(people: int, epsilon: Number, delta: float) -> float:
    """Return k eps^2/2 + eps sqrt(2 k ln(1/delta)) for k people with one eps-LDP report each."""
    value = positive(epsilon, "epsilon")
    k = _people(people)
    return up(k * value**2 / 2 + value * math.sqrt(-2 * k * math.log(probability(delta, "delta"))))


def grouposition_approximate(people: int, epsilon: Number, delta0: float, delta: float) -> Total:
    """Return the same for (eps, delta0)-LDP reports: the failure grows to delta + k delta0."""
    if not 0 <= delta0 < 1:
        raise InvalidSpec("delta0 must lie in [0, 1)")
    return Total(grouposition(people, epsilon, delta), up(delta + people * delta0), "grouposition")


def group_rules(people: int, charges: Charges, delta: float = 0.0) -> list[Total]:
    """Return the group's total by every rule, smallest first; `charges` are one person's reports."""
    each = tally(charges)
    everyone: Counter[Fraction] = Counter({amount: count * _people(people) for amount, count in each.items()})
    totals = every_rule(everyone, delta)
    if delta > 0 and everyone:
        reach = -2 * math.log(delta)
        squares = math.fsum(count * fraction_up(amount) ** 2 for amount, count in everyone.items())
        totals.append(Total(up(squares / 2 + math.sqrt(reach * squares)), delta, "grouposition"))
    return sorted(totals, key=lambda total: (total.epsilon, total.delta))


def group(people: int, charges: Charges, delta: float = 0.0) -> Total:
    """Return the smallest valid statement about a group, with the rule that gave it."""
    return smallest(group_rules(people, charges, delta))


def every_group_of(people: int, users: int, charges: Charges, delta: float) -> Total:
    """Return a statement that holds for **all** groups of k among n users at once, with probability 1 -
    delta.

    There are C(n, k) groups: each gets delta / C(n, k) (union bound). Only rules that bound the probability
    of a large loss can be used so; a hockey stick cannot, hence basic and grouposition (with the sharper mean
    eps tanh(eps/2)).
    """
    if not 1 <= people <= users:
        raise InvalidSpec("a group has at least one person and at most all users")
    each = tally(charges)
    log_groups = math.lgamma(users + 1) - math.lgamma(people + 1) - math.lgamma(users - people + 1)
    reach = 2 * (up(log_groups) - math.log(probability(delta, "delta")))
    values = [(fraction_up(amount), count * people) for amount, count in each.items()]
    squares = math.fsum(count * value * value for value, count in values)
    mean = math.fsum(count * value * math.tanh(value / 2) for value, count in values)
    totals = [
        Total(up(math.fsum(value * count for value, count in values)), 0.0, "basic"),
        Total(up(mean + math.sqrt(reach * squares)), delta, "grouposition"),
    ]
    return smallest(totals)


def tcdp_group(privacy: Tcdp, steps: int) -> Tcdp:
    """Return (rho g^2, omega/g) for a change of g steps; needs omega/g > 1."""
    if privacy.omega / _people(steps) <= 1:
        raise InvalidSpec("omega is too small for a group of this size")
    return Tcdp(up(privacy.rho * steps**2), privacy.omega / steps)


def tcdp_group_divergence(privacy: Tcdp, steps: int) -> tuple[float, float]:
    """Return (order, divergence) for any number of steps: D_a <= c (omega-1) omega rho at a = 1 + 1/c.

    c = (1 + 1/(omega-1))^k - 1. The exact form; the exponential bound on it is not needed.
    """
    if math.isinf(privacy.omega):
        raise InvalidSpec("this rule is for a finite omega: use (rho g^2, infinity)")
    c = math.expm1(_people(steps) * math.log1p(1 / (privacy.omega - 1)))
    return 1 + 1 / c, up(c * (privacy.omega - 1) * privacy.omega * privacy.rho)


def tcdp_group_epsilon(privacy: Tcdp, steps: int, delta: float) -> float:
    """Return e^(k/(omega-1)) (omega^2 rho + ln(1/delta)): valid for any size, soon vacuous."""
    reach = -math.log(probability(delta, "delta"))
    return up(math.exp(_people(steps) / (privacy.omega - 1)) * (privacy.omega**2 * privacy.rho + reach))


def _people(count: int) -> int:
    if count < 1:
        raise InvalidSpec("a group has at least one person")
    return count
