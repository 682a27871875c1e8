"""The law of a sum over teams of what randomly chosen cells say, from the teams' own tables.

An item that nobody holds has in each team a cell that hardly depends on the others: its estimate is the sum of one
entry drawn from each table. The tables' histograms are convolved. Where f users hold the item, the estimate is larger
by f and has more noise, which is normal.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

__all__ = ["TableErrors"]

Floats = npt.NDArray[np.float64]

_BARS = 48
"""Bars of a histogram to one standard error of the sum."""
_ROOM = 2.0


@dataclass(frozen=True)
class TableErrors:
    """The law of an estimate; `tables` are centred, in users of all teams."""

    reports: int
    tables: list[Floats]
    variance: Callable[[npt.ArrayLike], Floats]
    unit: float = 0.0

    def spread(self, holders: npt.ArrayLike) -> Floats:
        """Return the standard error."""
        return np.asarray(np.sqrt(self.variance(holders)))

    @cached_property
    def _step(self) -> float:
        return max(float(np.sqrt(sum(float(table.var()) for table in self.tables))), 1e-9) / _BARS

    @cached_property
    def _transform(self) -> tuple[npt.NDArray[np.complex128], int, int]:
        """The transform of the sum's histogram, its length, and the place of 0."""
        lows = [int(np.floor(table.min() / self._step)) for table in self.tables]
        highs = [int(np.ceil(table.max() / self._step)) for table in self.tables]
        reach = int(_ROOM * max(-sum(lows), sum(highs))) + 1
        length = 1 << (2 * reach).bit_length()
        product = np.ones(length // 2 + 1, np.complex128)
        for table, low, high in zip(self.tables, lows, highs, strict=True):
            bars = np.bincount(np.rint(table / self._step).astype(np.int64) - low, minlength=high - low + 2)
            product *= np.fft.rfft(bars / len(table), length)
        return product, length, -sum(lows)

    def tails(self, holders: Floats, limits: Floats) -> Floats:
        """Return P(estimate >= limit), a line for each number of holders and a column for each limit."""
        product, length, zero = self._transform
        places = (np.arange(length) - zero) * self._step
        angles, out = 2 * np.pi * np.arange(length // 2 + 1) / length, np.empty((len(holders), len(limits)))
        base = float(self.variance(0.0))
        for line, held in enumerate(holders.tolist()):
            blur = max(0.0, float(self.variance(held)) - base) / self._step**2
            shift = 8 * np.sqrt(blur)  # what the blur puts below the first place comes back at the end
            law = np.fft.irfft(product * np.exp(-blur * angles**2 / 2 - 1j * angles * shift), length)
            above = np.cumsum(np.maximum(law, 0.0)[::-1])[::-1]
            at = limits - held + shift * self._step + self._step / 2
            out[line] = np.interp(at, places, above, left=1.0, right=0.0)
        return out
