"""From Renyi divergences and (rho, omega) to (epsilon, delta).

Every order gives a valid answer; the smallest answer is used.

Three forms, from readable to tight:
- `tcdp_epsilon`: rho + 2 sqrt(rho ln(1/delta)), or rho omega + ln(1/delta)/(omega - 1) if the best order is above
  omega;
- `renyi_epsilon`: from one order a with D_a = tau, the tight form of the conversion,
      delta = e^((a-1)(tau-eps)) (1-1/a)^a / (a-1)   solved for eps;
- `curve_epsilon`: the smallest `renyi_epsilon` over the orders.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from ldp_client.errors import InvalidSpec
from ldp_client.privacy.curves import Tcdp
from ldp_client.privacy.rounding import probability, up

__all__ = ["best_order", "curve_epsilon", "renyi_epsilon", "tcdp_epsilon"]

GOLDEN = (math.sqrt(5) - 1) / 2
LARGEST_ORDER = 1e7


def tcdp_epsilon(privacy: Tcdp, delta: float) -> float:
    """Return the epsilon of (rho, omega)-tCDP at delta, by the tail bound at the best order up to omega."""
    reach = -math.log(probability(delta, "delta"))
    rho, omega = privacy.rho, privacy.omega
    if rho == 0:
        return 0.0
    if math.isinf(omega) or reach <= (omega - 1) ** 2 * rho:
        return up(rho + 2 * math.sqrt(rho * reach))
    return up(rho * omega + reach / (omega - 1))


def renyi_epsilon(order: float, divergence: float, delta: float) -> float:
    """Return the epsilon at delta of a mechanism whose Renyi divergence of this order is known."""
    if order <= 1:
        raise InvalidSpec("a Renyi order is above 1")
    bonus = math.log1p(-1 / order) - (math.log(probability(delta, "delta")) + math.log(order)) / (order - 1)
    # The two parts may have opposite signs: the margin is taken on their sizes, not on their sum.
    return max(0.0, divergence + bonus + (divergence + abs(bonus)) * 2.0**-40)


def curve_epsilon(renyi: Callable[[float], float], delta: float, omega: float = math.inf) -> float:
    """Return the smallest `renyi_epsilon` over orders in (1, omega)."""
    return best_order(lambda order: renyi_epsilon(order, renyi(order), delta), omega)


def best_order(value: Callable[[float], float], omega: float) -> float:
    """Minimise over the order: a geometric scan, then golden sections."""

    def at(position: float) -> float:
        return value(1 + math.exp(position))

    # Up to, but not including, omega: the bound is stated for orders below it.
    low, high = math.log(1e-4), math.log(min(LARGEST_ORDER, omega - 1)) - 1e-9
    low = min(low, high - 1)
    steps = 60
    scan = [at(low + (high - low) * i / steps) for i in range(steps + 1)]
    centre = min(range(steps + 1), key=scan.__getitem__)
    left = low + (high - low) * max(0, centre - 1) / steps
    right = low + (high - low) * min(steps, centre + 1) / steps
    best = scan[centre]
    while right - left > 1e-7:
        one, two = right - GOLDEN * (right - left), left + GOLDEN * (right - left)
        first, second = at(one), at(two)
        best = min(best, first, second)
        left, right = (left, two) if first <= second else (one, right)
    return best
