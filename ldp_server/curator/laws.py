"""The laws of the draws in closed form: probabilities, tails and quantiles.

    discrete Laplace    P(Z = z) = (1-q)/(1+q) q^|z|,  q = e^(-1/scale);   P(Z >= t) = q^t / (1+q) for t >= 1
    discrete Gaussian   P(Z = z) = e^(-z^2 / (2 sigma^2)) / sum over all integers
    exponential         P(i) proportional to e^(scores[i] / scale)
    permute-and-flip    P(i) = p_i  integral from 0 to 1 of  product over j != i of (1 - p_j u) du,
                        p_i = e^((scores[i] - largest) / scale)

The last one: candidates are looked at in the order of uniform times u, and the first whose coin (p_i) shows heads is
taken; the largest has p = 1, so there always is one.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

__all__ = [
    "exponential_law",
    "gaussian_half_width",
    "gaussian_law",
    "gaussian_tail",
    "gaussian_variance",
    "laplace_half_width",
    "laplace_law",
    "laplace_tail",
    "laplace_variance",
    "permute_and_flip_law",
]


def laplace_law(scale: float, z: int) -> float:
    """Return P(Z = z) of the discrete Laplace law."""
    q = math.exp(-1 / scale)
    return -math.expm1(-1 / scale) / (1 + q) * math.exp(-abs(z) / scale)


def laplace_tail(scale: float, t: int) -> float:
    """Return P(Z >= t) of the discrete Laplace law."""
    q = math.exp(-1 / scale)
    return math.exp(-t / scale) / (1 + q) if t >= 1 else 1 - math.exp(-(1 - t) / scale) / (1 + q)


def laplace_variance(scale: float) -> float:
    """Return the variance of the discrete Laplace law: 2 q / (1 - q)^2."""
    return 2 * math.exp(-1 / scale) / math.expm1(-1 / scale) ** 2


def laplace_half_width(scale: float, beta: float) -> int:
    """Return the smallest w with P(|Z| > w) <= beta."""
    width = max(0, math.ceil(-scale * (math.log(beta / 2) + math.log1p(math.exp(-1 / scale)))) - 2)
    while 2 * laplace_tail(scale, width + 1) > beta:
        width += 1
    return width


def _gaussian_sum(sigma: float) -> float:
    """Return the sum of e^(-z^2 / (2 sigma^2)) over all integers."""
    if sigma >= 4:
        return sigma * math.sqrt(2 * math.pi)  # Poisson summation: the rest is below 2 e^(-2 pi^2 sigma^2) of it
    return 1 + 2 * math.fsum(math.exp(-z * z / (2 * sigma * sigma)) for z in range(1, 40 * math.ceil(sigma) + 40))


def gaussian_law(sigma: float, z: int) -> float:
    """Return P(Z = z) of the discrete Gaussian law."""
    return math.exp(-z * z / (2 * sigma * sigma)) / _gaussian_sum(sigma)


def gaussian_variance(sigma: float) -> float:
    """Return the variance of the discrete Gaussian law, which is at most sigma^2."""
    if sigma >= 4:
        return sigma * sigma
    terms = range(1, 40 * math.ceil(sigma) + 40)
    return 2 * math.fsum(z * z * math.exp(-z * z / (2 * sigma * sigma)) for z in terms) / _gaussian_sum(sigma)


def gaussian_tail(sigma: float, t: int) -> float:
    """Return an upper bound of P(Z >= t) for t >= 1, exact to twelve digits for a small sigma.

    For a large one the sum over z >= t is at most the integral from t - 1 on, since the density falls.
    """
    if sigma <= 200:
        terms = (math.exp(-z * z / (2 * sigma * sigma)) for z in range(t, t + 40 * math.ceil(sigma) + 40))
        return math.fsum(terms) / _gaussian_sum(sigma)
    return math.erfc((t - 1) / sigma / math.sqrt(2)) / 2 * (1 + 1e-12)


def gaussian_half_width(sigma: float, beta: float) -> int:
    """Return a w with P(|Z| > w) <= beta: the smallest one, or one more for a large sigma."""
    low, high = 0, 1
    while 2 * gaussian_tail(sigma, high + 1) > beta:
        low, high = high, 2 * high
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if 2 * gaussian_tail(sigma, middle + 1) <= beta else (middle + 1, high)
    return low


def exponential_law(scores: Sequence[int], scale: float) -> list[float]:
    """Return the probabilities of the exponential mechanism."""
    largest = max(scores)
    weights = [math.exp((score - largest) / scale) for score in scores]
    total = math.fsum(weights)
    return [weight / total for weight in weights]


def permute_and_flip_law(scores: Sequence[int], scale: float) -> list[float]:
    """Return the probabilities of permute-and-flip, for a few candidates."""
    largest = max(scores)
    chances = [math.exp((score - largest) / scale) for score in scores]
    found = []
    for index, chance in enumerate(chances):
        product = [1.0]  # coefficients of the product, by powers of u
        for other, p in enumerate(chances):
            if other != index:
                product = [a - p * b for a, b in zip([*product, 0.0], [0.0, *product], strict=True)]
        found.append(chance * math.fsum(c / (power + 1) for power, c in enumerate(product)))
    return found
