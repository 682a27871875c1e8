"""Many reports of one person: their total by every rule that applies, and the smallest with the rule's name.

`charges` are the pure epsilons of the reports. Rules (delta > 0 for all but the first):

    basic       sum of eps                                                     always; adaptive epsilons too
    advanced    sum of eps tanh(eps/2) + sqrt(2 ln(1/delta) sum of eps^2)      mean loss plus deviation
    zcdp        rho + 2 sqrt(rho ln(1/delta)), rho = sum of eps tanh(eps/2)    curves.py
    renyi       the tight conversion of the sum of exact Renyi curves          conversion.py
    optimal     the exact hockey stick of the worst case                       optimal.py

All rules but basic need the epsilons to be fixed beforehand; the questions may be chosen adaptively. If the *amounts*
are chosen on the way, use a filter (filters.py), which fixes the total instead.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from ldp_client.privacy.charges import Charges, basic, tally
from ldp_client.privacy.conversion import curve_epsilon, tcdp_epsilon
from ldp_client.privacy.curves import ResponseCurve, Tcdp, pure_rho
from ldp_client.privacy.optimal import Losses
from ldp_client.privacy.rounding import fraction_up, probability, shown, up

__all__ = ["Total", "advanced", "basic", "compose", "every_rule", "smallest"]


@dataclass(frozen=True)
class Total:
    """A privacy statement: (epsilon, delta), and the rule that proves it."""

    epsilon: float
    delta: float
    rule: str

    def __str__(self) -> str:
        """The statement in one line, epsilon rounded up at the sixth digit."""
        where = "" if self.delta == 0 else f" at delta = {self.delta:g}"
        return f"eps = {shown(self.epsilon, 6)}{where} ({self.rule})"


def advanced(charges: Charges, delta: float) -> float:
    """Return mean loss plus sqrt(2 ln(1/delta) sum eps^2).

    The loss of a report lies in [-eps, eps] and has mean at most eps tanh(eps/2), the Kullback-Leibler
    divergence of binary randomized response; the loss of all of them exceeds its mean by t with probability
    at most exp(-t^2 / (2 sum eps^2)) (Azuma-Hoeffding), whoever chooses the mechanisms.
    """
    values = [(fraction_up(amount), count) for amount, count in tally(charges).items()]
    reach = -2 * math.log(probability(delta, "delta"))
    mean = math.fsum(count * value * math.tanh(value / 2) for value, count in values)
    return up(mean + math.sqrt(reach * math.fsum(count * value * value for value, count in values)))


def every_rule(charges: Charges, delta: float = 0.0) -> list[Total]:
    """Return the total by every rule, smallest first."""
    amounts = tally(charges)
    totals = [Total(fraction_up(basic(amounts)), 0.0, "basic")]
    if delta == 0.0 or not amounts:
        return totals
    curves = [(ResponseCurve(amount), count) for amount, count in amounts.items()]
    rho = up(math.fsum(count * pure_rho(curve.pure) for curve, count in curves))

    def renyi(order: float) -> float:
        return up(math.fsum(count * curve.renyi(order) for curve, count in curves))

    totals += [
        Total(advanced(amounts, delta), delta, "advanced"),
        Total(tcdp_epsilon(Tcdp(rho), delta), delta, "zcdp"),
        Total(curve_epsilon(renyi, delta), delta, "renyi"),
        Total(Losses(amounts).epsilon(delta), delta, "optimal"),
    ]
    return sorted(totals, key=lambda total: (total.epsilon, total.delta))


def smallest(totals: Iterable[Total]) -> Total:
    """Return the smallest epsilon; at a tie the statement without delta."""
    return min(totals, key=lambda total: (total.epsilon, total.delta))


def compose(charges: Charges, delta: float = 0.0) -> Total:
    """Return the smallest valid total of these charges at delta, with the rule that gave it."""
    return smallest(every_rule(charges, delta))
