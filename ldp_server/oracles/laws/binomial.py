"""Tails of the binomial law, summed from its own terms: the normal law is too inexact far from the mean."""

from __future__ import annotations

import math

__all__ = ["binomial_tail_log", "largest_likely", "least_likely"]

_PRECISION = 1e-12


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
    while term > _PRECISION * total and k < n:
        term *= (n - k) / (k + 1) * p / (1 - p)
        total += term
        k += 1
    return log_term + math.log(total)


def largest_likely(n: int, p: float, log_tail: float) -> int:
    """Return the largest count that Binomial(n, p) exceeds with a probability of more than e^log_tail; n at most."""
    if not 0 < p < 1:
        return n if p >= 1 else 0
    low, high = math.floor(n * p), n
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if binomial_tail_log(n, p, middle) > log_tail else (low, middle - 1)
    return low


def least_likely(n: int, p: float, log_tail: float) -> int:
    """Return the least count below which Binomial(n, p) falls with a probability of more than e^log_tail."""
    return n - largest_likely(n, 1 - p, log_tail)
