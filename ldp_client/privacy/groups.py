"""Groups: the privacy loss of k people together.

In the local model each person randomizes alone. So k people send k independent reports, and their losses add like those
of k reports of one person, where most of the loss cancels. A curator's guarantee for groups grows like k; this one
grows like sqrt(k) (advanced grouposition): with probability 1 - delta over the reports, the loss is at most
k eps^2/2 + eps sqrt(2 k ln(1/delta)). `group_rules` returns this beside k eps, the sharper forms of composition.py and
the exact value; `group` returns the smallest.

The loss compares the people's true items with other items that were fixed before the reports were made. Whoever
chooses the other items after reading the reports can do better: with binary randomized response the mean loss is then
k eps e/(e+1), e = e^eps, and with a report that is likely for all items but a few it comes close to k eps. So k eps is
all that holds for items chosen afterwards, whatever the mechanism.
"""

from __future__ import annotations

import math
from collections import Counter
from fractions import Fraction

from ldp_client.errors import InvalidSpec
from ldp_client.privacy.charges import Charges, tally
from ldp_client.privacy.composition import Total, every_rule, smallest
from ldp_client.privacy.rounding import fraction_up, probability, up

__all__ = [
    "every_group_of",
    "group",
    "group_rules",
    "people_in",
]


def group_rules(people: int, charges: Charges, delta: float = 0.0) -> list[Total]:
    """Return the group's total by every rule, smallest first; `charges` are one person's reports."""
    each = tally(charges)
    everyone: Counter[Fraction] = Counter({amount: count * people_in(people) for amount, count in each.items()})
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
    """Return a total that holds for **all** groups of k among n users at once, with probability 1 - delta.

    It bounds each group's loss against other items that were fixed beforehand, not against items chosen in view of the
    reports (see above). There are C(n, k) groups, and each gets delta / C(n, k) (union bound). This needs rules that
    bound the probability of a large loss: basic, and grouposition with the sharper mean eps tanh(eps/2). A hockey stick
    is no such bound.
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


def people_in(count: int) -> int:
    """Check the size of a group."""
    if count < 1:
        raise InvalidSpec("a group has at least one person")
    return count
