"""How far a merged share may be off: normal errors, and in part the noise of a curator, which has heavier tails.

A merged error is X = sqrt(h) L + sqrt(1 - h) N times its standard error. N is normal: sampling and the noise of many
reports. L is Laplace noise of variance 1, and h is which part of the variance it has. With t > 0 and r = sqrt(2 (1 - h)
/ h), the normal's standard error over the Laplace scale,

    P(X > t) = Q(t/s) + e^(r^2/2) (e^(-t/b) P(t/s - r) - e^(t/b) Q(t/s + r)) / 2,    s^2 = 1 - h,  b^2 = h/2

with P and Q = 1 - P of the normal law. With h = 1 the tails beyond 1.96, 2.58 and 3.89 are 6%, 3% and 0.4% and not 5%,
1% and 0.01%: a normal interval would fail where few volunteers are merged with few reports.

A sum of several Laplace draws has lighter tails than one of the same variance where both are below 9% (it is a normal
variable whose variance is drawn, and a sum's varies less). So h may count every Laplace draw. For larger chances the
normal law is the larger one, and the larger of both is taken.
"""

from __future__ import annotations

import math
from functools import lru_cache
from statistics import NormalDist

__all__ = ["beyond", "reach"]

_NORMAL = NormalDist()
_SMALLEST = 0.003
"""A part of the variance that changes no tail: r is above 25."""


def _log_upper(x: float) -> float:
    """Return log Q(x)."""
    if x < 25:
        return math.log(math.erfc(x / math.sqrt(2)) / 2)
    return -x * x / 2 - math.log(x * math.sqrt(2 * math.pi))


def beyond(z: float, heavy: float = 0.0) -> float:
    """Return P(|X| > |z|), where Laplace noise has this part of the variance."""
    z = abs(z)
    normal = math.erfc(z / math.sqrt(2))
    if heavy < _SMALLEST:
        return normal
    b, s = math.sqrt(min(heavy, 1.0) / 2), math.sqrt(max(1 - heavy, 0.0))
    if s < 1e-6:
        return max(normal, math.exp(-z / b))
    r = s / b
    first = math.exp(r * r / 2 - z / b + _log_upper(r - z / s))
    second = math.exp(r * r / 2 + z / b + _log_upper(r + z / s))
    return max(normal, math.erfc(z / s / math.sqrt(2)) + first - second)


@lru_cache(maxsize=4096)
def _reach(chance: float, heavy: float) -> float:
    low, high = 0.0, 2.0
    while beyond(high, heavy) > chance:
        low, high = high, 2 * high
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if beyond(middle, heavy) > chance else (low, middle)
    return high


def reach(chance: float, heavy: float = 0.0) -> float:
    """Return z with P(|X| > z) = chance; a part of the variance is rounded up to whole percents."""
    if heavy < _SMALLEST:
        return -_NORMAL.inv_cdf(chance / 2)
    return _reach(chance, min(math.ceil(heavy * 100) / 100, 1.0))
