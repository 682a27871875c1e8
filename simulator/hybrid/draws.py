"""The curator's noise with a seed. It is for simulations: its floats would not be safe for a release.

The laws are those of ldp_server/curator/draws.py, up to rounding.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from ldp_server.curator.draws import Draws

__all__ = ["SeededDraws"]


class SeededDraws(Draws):
    """Draws of numpy's generator."""

    def __init__(self, rng: np.random.Generator) -> None:
        self._rng = rng

    def laplace(self, values: Sequence[int], scale: float) -> list[int]:
        """The difference of two geometric draws."""
        found = self._rng.geometric(-math.expm1(-1 / scale), (2, len(values)))
        return [value + int(noise) for value, noise in zip(values, found[0] - found[1], strict=True)]

    def gaussian(self, values: Sequence[int], sigma: float) -> list[int]:
        noise = np.rint(self._rng.normal(scale=sigma, size=len(values)))
        return [value + int(one) for value, one in zip(values, noise, strict=True)]

    def select(self, scores: Sequence[int], scale: float) -> int:
        """The largest of the scores with exponential noise: permute-and-flip."""
        noisy = np.asarray(scores, np.float64) + self._rng.exponential(scale, len(scores))
        return int(noisy.argmax())

    def exponential(self, scores: Sequence[int], scale: float) -> int:
        """The largest of the scores with Gumbel noise."""
        noisy = np.asarray(scores, np.float64) + self._rng.gumbel(0, scale, len(scores))
        return int(noisy.argmax())

    def uniform(self, count: int) -> int:
        return int(self._rng.integers(count)) if count < 1 << 62 else int(self._rng.random() * count)
