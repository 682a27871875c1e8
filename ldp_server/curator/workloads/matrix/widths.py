r"""How large a weighted sum of independent draws is, with 95%.

A discrete draw Z has a continuous twin Y with |Z - Y| <= 1: the Y with the same quantiles.

    Laplace     P(Z >= t) = q^t / (1 + q), which P(Y >= t - c) = e^(-(t - c)/scale) / 2 equals for
                c = scale ln(2 / (1 + q)), and 0 < c <= 1/2
    Gaussian    P(Y >= t) <= P(Z >= t) <= P(Y >= t - 1/2) for sigma >= 1 (the density is concave up to sigma and convex
                from there on; the sum over all integers is sigma sqrt(2 pi) up to 2 e^(-2 pi^2 sigma^2), 1e-8 of it)

So a sum of c_r Z_r is within sum |c_r| of the sum of c_r Y_r. The rows of a strategy are scaled up so far that this is
small beside the noise.

For Gaussian noise that sum is normal. For Laplace noise its characteristic function is f(t) = prod 1 / (1 + b^2 c_r^2
t^2) with the scale b, and P(sum > w) = 1/2 - (1/pi) integral from 0 of sin(w t) f(t) / t dt. With steps of h, at h (k +
1/2), the sum over k is the integral up to probabilities of values beyond 2 pi / h - w, which Chernoff's bound makes
smaller than 1e-9. From T on f(t) <= f(T) (T / t)^k with k = sum 2 b^2 c_r^2 T^2 / (1 + b^2 c_r^2 T^2), because -d ln f
/ d ln t grows. So what is left out is at most (2 / pi) f(T) / k, and it is added to the probability.

Coefficients are rounded up to a step of a hundredth. That makes the sum less peaked around 0 (Birnbaum 1948, for
symmetric laws with one mode), so its tail is larger.
"""

from __future__ import annotations

import math
from statistics import NormalDist

import numpy as np
import numpy.typing as npt

__all__ = ["gaussian_sum_width", "laplace_sum_width"]

Floats = npt.NDArray[np.float64]
_GRID = math.log(1.01)
_LEFT_OUT = 1e-5
_SPAN = 60
"""Of the period of the sum over steps, in standard deviations: values so large have a probability below 1e-9."""


def gaussian_sum_width(coefficients: Floats, sigma: float, beta: float) -> float:
    """Return a w that the sum of c_r times discrete Gaussian draws exceeds in size with probability at most beta."""
    spread = sigma * math.sqrt(float(coefficients @ coefficients))
    quantile = NormalDist().inv_cdf(1 - beta / 2 * (1 - 1e-6))
    return quantile * spread + float(np.abs(coefficients).sum())


def laplace_sum_width(coefficients: Floats, scale: float, beta: float) -> float:
    """Return a w that the sum of c_r times discrete Laplace draws exceeds in size with probability at most beta."""
    sizes = np.abs(coefficients)
    exact = float(sizes.sum())
    sizes = sizes[sizes > 1e-9 * sizes.max()]
    steps, counts = np.unique(np.ceil(np.log(sizes) / _GRID), return_counts=True)
    scales = np.exp(steps * _GRID) * scale
    return _width(scales, counts.astype(np.float64), beta) + exact


def _width(scales: Floats, counts: Floats, beta: float) -> float:
    """Return the width for a sum of continuous Laplace draws, so many of each scale."""
    spread = math.sqrt(2 * float(counts @ scales**2))
    t = (np.arange(200_000) + 0.5) * (2 * math.pi / (_SPAN * spread))
    waves, at = list[Floats](), 0
    while at < len(t):
        part = t[at : at + 2_000]
        waves.append(np.exp(-(counts @ np.log1p(np.square(scales[:, None] * part)))))
        at += len(part)
        if waves[-1][-1] < _LEFT_OUT:
            break
    wave = np.concatenate(waves)
    falling = np.square(scales * t[len(wave) - 1])
    seen, left = wave / t[: len(wave)], float(wave[-1]) / float(counts @ (2 * falling / (1 + falling)))
    low, high = 0.0, 20 * spread
    for _ in range(60):
        middle = (low + high) / 2
        inside = float(np.sin(middle * t[: len(wave)]) @ seen) * (2 * math.pi / (_SPAN * spread)) / math.pi
        low, high = (low, middle) if 1 - 2 * inside + left <= beta else (middle, high)
    return high
