"""Sub-sampled participation: how much privacy it adds, in three different channels.

Each person takes part with probability s:

- **visible** (the usual app: those not drawn send nothing). The server sees who sent a report. The pure
  epsilon of a report is therefore unchanged. On average over the draw, D_a = ln(1 - s + s e^((a-1)
  D_a(report)))/(a-1). Charging only the reports that were really sent has the same effect.
- **hidden** (those not drawn send a dummy, or a relay hides who takes part): the channel is s P + (1-s) R. If
  R is itself within epsilon of every P (a dummy drawn as the report of a random item is), pure epsilon
  shrinks to ln(1 + s (e^eps - 1)). The signal shrinks by s with it: the variance grows by 1/s^2.
- **hidden, concentrated**: (13 s^2 rho, omega/2), under conditions that `hidden_tcdp` checks. Where they fail
  it returns None: no amplification is claimed. It searches for the largest usable omega instead of trusting a
  closed form for it, because the closed form in circulation does not imply the conditions.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from ldp_client.errors import InvalidSpec
from ldp_client.privacy.curves import Tcdp
from ldp_client.privacy.rounding import Number, positive, up

__all__ = ["hidden_epsilon", "hidden_renyi", "hidden_tcdp", "share", "visible_renyi"]


def share(participation: float) -> float:
    """Check that a participation probability lies in (0, 1]."""
    if not 0.0 < participation <= 1.0:
        raise InvalidSpec("participation must lie in (0, 1]")
    return float(participation)


def visible_renyi(divergence: float, order: float, participation: float) -> float:
    """Return the order's divergence when the server sees who took part, averaged over the public draw."""
    s, grown = share(participation), (order - 1) * divergence
    if order <= 1:
        raise InvalidSpec("a Renyi order is above 1")
    if grown < 1:
        return up(math.log1p(s * math.expm1(grown)) / (order - 1), 2.0**-36)
    return up((grown + math.log(s + (1 - s) * math.exp(-grown))) / (order - 1), 2.0**-36)


def hidden_epsilon(epsilon: Number, participation: float) -> float:
    """Return ln(1 + s (e^eps - 1)), the pure epsilon of s P + (1-s) R, every ordered pair of P, Q, R within
    eps.

    For a given output, P <= e^eps min(Q, R), so (s P + (1-s) R)/(s Q + (1-s) R) is largest at Q = R = e^-eps
    P.
    """
    value = positive(epsilon, "epsilon")
    return up(
        value + math.log(share(participation) + (1 - participation) * math.exp(-value))
        if value > 1
        else (math.log1p(share(participation) * math.expm1(value)))
    )


def hidden_tcdp(privacy: Tcdp, participation: float) -> Tcdp | None:
    """Return (13 s^2 rho, w/2) for the largest w <= omega that meets the theorem's conditions, else None.

    The conditions: rho <= 0.1 and, with w > 2,
        2 + log2(1/rho) + log2(1/((w-2) s)) <= w <= ln(1/((w-2) s)) / rho.
    The upper one holds up to a crossing (its right side falls as w grows), the lower one from a crossing on;
    so the largest w that meets the upper one is the only candidate needed. It is taken from below, and the
    lower one is checked with a margin.
    """
    s, rho = share(participation), privacy.rho
    if not 0 < rho <= 0.1:
        return None

    def below(w: float) -> bool:
        return w * rho <= -math.log((w - 2) * s)

    low, high = 2.0, min(privacy.omega, 2 + 1 / s)
    if high <= 2:
        return None
    if below(high):
        low = high
    else:
        while high - low > 1e-12 * high:
            middle = (low + high) / 2
            low, high = (middle, high) if below(middle) else (low, middle)
    if low <= 2 or low < (2 - math.log2(rho) - math.log2((low - 2) * s)) * (1 + 1e-12):
        return None
    return Tcdp(up(13 * s * s * rho), low / 2)


def hidden_renyi(divergence: Callable[[int], float], order: int, participation: float) -> float:
    """Return D_a(s P + (1-s) Q || Q) exactly, for a whole order a, from the divergences D_2..D_a of P from Q.

    (1/(a-1)) ln( (1-s)^a + a (1-s)^(a-1) s + sum over k=2..a of C(a,k) (1-s)^(a-k) s^k e^((k-1) D_k) )
    This is the mixture with Q itself as the dummy, one order of one pair: not yet a statement about a
    mechanism.
    """
    if order < 2:
        raise InvalidSpec("a whole order of at least 2 is needed")
    s = share(participation)
    if s == 1:
        return divergence(order)
    logs = []
    for k in range(2, order + 1):
        weight = _log_choose(order, k) + (order - k) * math.log1p(-s) + k * math.log(s)
        logs.append(weight + _log_expm1((k - 1) * divergence(k)))
    top = max(logs)
    if math.isinf(top):
        return math.inf if top > 0 else 0.0
    # The weights sum to 1, so the sum is 1 plus what the exponentials exceed 1 by: nothing cancels.
    excess = math.fsum(math.exp(value - top) for value in logs)
    total = math.log1p(excess * math.exp(top)) if top < 600 else top + math.log(excess)
    return up(total / (order - 1), 2.0**-36)


def _log_expm1(x: float) -> float:
    """ln(e^x - 1)."""
    if x <= 0:
        return -math.inf
    return x + math.log1p(-math.exp(-x)) if x > 30 else math.log(math.expm1(x))


def _log_choose(n: int, k: int) -> float:
    return math.log(math.comb(n, k)) if n <= 400 else math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1)
