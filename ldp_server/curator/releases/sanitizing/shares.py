"""How a budget is shared out over many draws, each (epsilon', delta')-private.

Either epsilon' = epsilon / k, by basic composition; or by concentration: an (epsilon', delta')-private draw is
delta'-approximately (epsilon'^2 / 2)-zCDP, k of them add up to rho = k epsilon'^2 / 2, and rho with a delta of its own
is converted back. The second is better for many draws. The larger epsilon' is taken.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

from ldp_client.privacy.conversion import tcdp_epsilon
from ldp_client.privacy.curves import Tcdp
from ldp_client.privacy.rounding import fraction_down, fraction_up
from ldp_server.curator.prices import CentralPrice

__all__ = ["DrawShare", "share_out"]

_FINEST = 1 << 40


@dataclass(frozen=True)
class DrawShare:
    """What each of many draws may cost."""

    draws: int
    epsilon: Fraction
    """Of each."""
    delta: Fraction
    """Of all draws together, before the conversion."""

    def price(self, epsilon: Fraction, delta: Fraction) -> CentralPrice:
        """Return the price of all of them, which was shared out."""
        rho = min(epsilon * epsilon / 2, self.draws * self.epsilon**2 / 2)
        return CentralPrice(epsilon, delta, rho)


@lru_cache(maxsize=256)
def share_out(draws: int, epsilon: Fraction, delta: Fraction) -> DrawShare:
    """Return the larger of the two shares."""
    basic = DrawShare(draws, epsilon / draws, delta)
    low, high = Fraction(0), epsilon
    half = fraction_down(delta / 2)
    for _ in range(40):
        middle = Fraction(math.floor((low + high) / 2 * _FINEST), _FINEST)
        fits = tcdp_epsilon(Tcdp(fraction_up(draws * middle**2 / 2), math.inf), half) <= epsilon if middle else True
        low, high = (middle, high) if fits else (low, middle)
    return DrawShare(draws, low, delta / 2) if low > basic.epsilon else basic
