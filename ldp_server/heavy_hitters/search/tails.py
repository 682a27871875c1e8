"""Probabilities for acceptance: tails and quantiles of the binomial law of an unheld item's support, and of others.

An item that nobody holds is supported by each report with a probability very near q0 = 1/q, so its total support is
Binomial(n, q0), and its score z = (support - n q0)/sqrt(n q0 (1 - q0)). The normal law is too inexact so far from the
mean: its tail at z = 9.4 is too small by a factor of 2.6 at n = 10^6 and q = 47, and by a factor of 15 at n = 10^5. So
the tail is summed from the binomial's own terms.

The tests against near-copies need hundreds of quantiles, of some hundred users each. There `binomial_quantile` takes a
saddlepoint formula instead of the sum (Lugannani and Rice for whole numbers, in the form of Barndorff-Nielsen). Let x
be the share of users who support, kl its divergence from p, r = sqrt(2 n kl), and u = (1 - e^-h) sqrt(n x (1-x)) with
h = ln(x(1-p)/(p(1-x))). Where n x is a whole number,

    P(Binomial(n, p) >= n x) is nearly P(N(0,1) > r + ln(u/r)/r).
"""

from __future__ import annotations

import math
from functools import cache, lru_cache
from statistics import NormalDist

import numpy as np
import numpy.typing as npt

__all__ = [
    "binomial_quantile",
    "binomial_tail_log",
    "chi_square_quantile",
    "log_normal_tail",
    "log_normal_tails",
    "normal_quantile",
    "normal_tails",
    "threshold",
    "thresholds",
]

Floats = npt.NDArray[np.float64]

_HALVINGS = 50
_NEAR = 0.1  # the formula divides by r; nobody asks for such a tail


def log_normal_tail(z: float) -> float:
    """Return ln P(N(0,1) > z), for any z."""
    if z < 25:
        return math.log(0.5 * math.erfc(z / math.sqrt(2)))
    return -z * z / 2 - math.log(z * math.sqrt(2 * math.pi)) + math.log1p(-1 / (z * z) + 3 / z**4)


def normal_tails(z: npt.NDArray[np.floating]) -> Floats:
    """Return P(N(0,1) > z) to 6 digits, and 0 beyond z = 14."""
    points, tails = _table()
    upper = np.interp(np.abs(z), points, tails, right=0.0)
    return np.asarray(np.where(z < 0, 1.0 - upper, upper))


def log_normal_tails(z: Floats) -> Floats:
    """Return an upper bound on ln P(N(0,1) > z): 0 where z is negative, and 6 digits elsewhere."""
    points, tails = _table()
    far = np.maximum(z, points[-1])  # there the tail is below the density over z
    beyond = -(far**2) / 2 - np.log(far * math.sqrt(2 * math.pi))
    return np.where(z > points[-1], beyond, np.interp(z, points, np.log(tails), left=0.0))


@cache
def _table() -> tuple[Floats, Floats]:
    points = np.arange(0, 14, 1 / 512)
    return points, np.array([math.exp(log_normal_tail(z)) for z in points])


def normal_quantile(log_tail: float) -> float:
    """The z with ln P(N(0,1) > z) = log_tail, for any tail down to e^-5000."""
    if log_tail > -600:
        return -NormalDist().inv_cdf(math.exp(log_tail))
    z = math.sqrt(-2 * log_tail)
    for _ in range(30):  # ln tail = -z^2/2 - ln(z sqrt(2 pi)) - 1/z^2 + ...
        z = math.sqrt(max(1.0, -2 * (log_tail + math.log(z * math.sqrt(2 * math.pi)) + 1 / (z * z))))
    return z


@lru_cache(maxsize=4096)
def binomial_quantile(n: float, p: float, log_tail: float) -> float:
    """Return a standard score that Binomial(n, p) reaches with probability e^log_tail at most, which is below a tenth.

    It is a number of users before rounding, so the probability may be that of the next whole number.
    """
    wanted, low, high = normal_quantile(log_tail), 0.0, 1.0 - p  # how far x lies above p
    for _ in range(_HALVINGS):
        above = (low + high) / 2
        x = p + above
        kl = x * math.log1p(above / p) + (1 - x) * math.log1p(-above / (1 - p))
        r = math.sqrt(max(0.0, 2 * n * kl))
        u = above / (x * (1 - p)) * math.sqrt(n * x * (1 - x))  # 1 - e^-h = (x - p)/(x(1-p))
        root = r + math.log(u / r) / r if r > _NEAR else r
        low, high = (above, high) if root < wanted else (low, above)
    return n * high / math.sqrt(n * p * (1 - p))


def binomial_tail_log(n: int, p: float, at_least: float) -> float:
    """Return ln P(Binomial(n, p) >= at_least), summed from the terms; for at_least above the mean."""
    k = math.ceil(at_least)
    if k > n:
        return -math.inf
    if k <= n * p:
        return 0.0
    log_term = (
        math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1) + k * math.log(p) + (n - k) * math.log1p(-p)
    )
    total, term = 1.0, 1.0
    while term > 1e-12 * total and k < n:
        term *= (n - k) / (k + 1) * p / (1 - p)
        total += term
        k += 1
    return log_term + math.log(total)


def threshold(n: int, p: float, log_items: float, false_items: float) -> float:
    """The least score z such that e^log_items unheld items give at most `false_items` expected ones above it."""
    wanted = math.log(false_items) - log_items
    sd = math.sqrt(n * p * (1 - p))
    low, high = 0.0, (n - n * p) / sd
    if binomial_tail_log(n, p, n) > wanted:
        return math.inf  # even the support of all reports would not be enough
    for _ in range(60):
        middle = (low + high) / 2
        if binomial_tail_log(n, p, n * p + middle * sd) > wanted:
            low = middle
        else:
            high = middle
    return high


def thresholds(n: int, p: float, log_levels: Floats) -> Floats:
    """The least score that an unheld item reaches with a probability of at most e^level, for each level.

    The binomial's terms are summed once, from the top down, as far as the smallest level needs them.
    """
    sd, least = math.sqrt(n * p * (1 - p)), float(np.min(log_levels))
    first = math.ceil(n * p)
    top = first + math.ceil(sd * (8 + 2 * math.sqrt(max(0.0, -2 * least))))
    while top < n and binomial_tail_log(n, p, top) > least - 40:
        top += math.ceil(10 * sd)
    k = np.arange(first, min(top, n) + 1)
    steps = np.log((n - k[:-1]) / (k[:-1] + 1) * p / (1 - p))
    start = (
        (math.lgamma(n + 1) - math.lgamma(first + 1) - math.lgamma(n - first + 1))
        + first * math.log(p)
        + (n - first) * math.log1p(-p)
    )
    terms = start + np.concatenate(([0.0], np.cumsum(steps)))
    tails = np.logaddexp.accumulate(terms[::-1])[::-1]
    places = np.searchsorted(-tails, -log_levels)  # the first k with a tail that is small enough
    return np.where(places < len(k), (k[np.minimum(places, len(k) - 1)] - n * p) / sd, np.inf)


def _gamma_upper(s: float, x: float) -> float:
    """The regularised upper incomplete gamma function Q(s, x)."""
    if x <= 0:
        return 1.0
    scale = math.exp(s * math.log(x) - x - math.lgamma(s))
    if x < s + 1:
        term = total = 1 / s
        a = s
        while term > 1e-16 * total:
            a += 1
            term *= x / a
            total += term
        return 1 - scale * total
    b = x + 1 - s  # Lentz's continued fraction
    c, d = 1e300, 1 / b
    h = d
    for i in range(1, 500):
        an = -i * (i - s)
        b += 2
        d = 1 / (an * d + b)
        c = b + an / c
        h *= d * c
        if abs(d * c - 1) < 1e-15:
            break
    return scale * h


def chi_square_quantile(freedom: int, tail: float) -> float:
    """The value that a chi-square variable of `freedom` degrees exceeds with probability `tail`."""
    if freedom < 1:
        return math.inf
    low, high = 0.0, 10.0 * freedom + 200.0
    for _ in range(80):
        middle = (low + high) / 2
        if _gamma_upper(freedom / 2, middle / 2) > tail:
            low = middle
        else:
            high = middle
    return high
