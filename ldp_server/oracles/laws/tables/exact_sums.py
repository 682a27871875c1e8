r"""The exact law of a sum over few reports whose probabilities stand in a table, and the interval that follows.

The estimate of a set of elements adds up g[y] over the reports. Where few reports make all of its noise, the sum takes
few values, and the saddlepoint of table_sums.py, which takes it for smooth, fails: of three users at epsilon 2 its 95%
interval held in 74% of crowds. Here g is replaced by whole numbers w[y], the nearest multiples of a step, and T is the
sum of w over the reports. Of a crowd with whole numbers f_x of holders, T has the law

    product over x of (sum over y of A[x][y] z^w[y])^f_x,

which is worked out exactly, by a Fourier transform over a window of 16 standard deviations and the largest weights. The
interval is, with F users inside the set,

    { F in 0 .. n : P_F(T >= T_seen) > tail  and  P_F(T <= T_seen) > tail }.

T is seen exactly, so rounding g costs a little width and no coverage. If g is a multiple of one number, the step is
that number and nothing is rounded.

How the users inside and outside are spread over the elements matters too, though not for the mean. A few users do not
show it. So P_F is the largest of several crowds' probabilities: the one that the reports show (intervals.py), and those
with a part of the users at the element of most or least noise, or of the noise that is most skewed to either side.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

__all__ = ["LEAST_TAIL", "ExactSums", "few_events"]

Floats = npt.NDArray[np.float64]

LEAST_TAIL = 1e-10
"""The transform is not exact enough for smaller tails."""
_STEPS = 64
"""The largest and the least w are so far apart, where g is no multiple of one number."""
_FEW = 4.0
"""Up to this variance, in squares of the range of g, a sum is taken to take few values."""


def few_events(table: Floats, values: Floats, reports: int) -> npt.NDArray[np.bool_]:
    """Return for which lines of values a sum over the reports has noise from few reports only, whoever holds what."""
    spread = values**2 @ table.T - (values @ table.T) ** 2
    return np.asarray(reports * spread.max(axis=1) <= _FEW * np.square(np.ptp(values, axis=1)))


def _whole(values: Floats) -> npt.NDArray[np.int64]:
    """Return the nearest whole multiples of a step, less the least of them."""
    above = values - values.min()
    span = float(above.max())
    gaps = np.diff(np.sort(above))
    step = float(gaps[gaps > 1e-9 * span].min(initial=span)) or 1.0
    if span > step * _STEPS or np.abs(above / step - np.rint(above / step)).max() > 1e-6:
        step = span / _STEPS
    return np.asarray(np.rint(above / step), np.int64)


def _users(shares: Floats, count: int) -> Floats:
    """Return whole numbers of users in about these shares, which add up to `count`."""
    parts = count * shares
    whole = np.floor(parts)
    missing = count - int(whole.sum())
    whole[np.argsort(whole - parts, kind="stable")[:missing]] += 1
    return np.asarray(whole)


@dataclass(frozen=True)
class ExactSums:
    """The sum of one line of values over the reports."""

    table: Floats
    """A: a line for each element, a column for each report."""
    values: Floats
    """g."""
    seen: npt.NDArray[np.int64]
    """How often each report came."""
    inside: Floats
    """How the users inside the set may be spread over the elements: a line for each crowd, which adds up to 1."""
    outside: Floats

    @property
    def reports(self) -> int:
        return int(self.seen.sum())

    @cached_property
    def weights(self) -> npt.NDArray[np.int64]:
        return _whole(self.values)

    @cached_property
    def total(self) -> int:
        """T."""
        return int(self.seen @ self.weights)

    @cached_property
    def _means(self) -> Floats:
        return np.asarray(self.table @ self.weights)

    @cached_property
    def _logs(self) -> npt.NDArray[np.complex128]:
        """The logarithm of each element's series."""
        squares = self.table @ np.square(self.weights) - np.square(self._means)
        deviation = math.sqrt(self.reports * max(0.0, float(squares.max())))
        length = 1 << math.ceil(math.log2(16 * deviation + 4 * float(self.weights.max()) + 16))
        laws = np.array([np.bincount(self.weights, line, length) for line in self.table])
        series = np.fft.rfft(laws, axis=1)
        return np.asarray(np.log(np.where(np.abs(series) > 1e-300, series, 1e-300)))

    def law(self, inside: Floats, outside: Floats, holders: int) -> tuple[Floats, int]:
        """Return the probabilities of all sums in a window for one crowd, and the first of these sums."""
        users = _users(inside, holders) + _users(outside, self.reports - holders)
        length = 2 * (self._logs.shape[1] - 1)
        logs = np.einsum("x,xt->t", users, self._logs)  # no `@`: it is short, and threads would wait for each other
        law = np.maximum(np.fft.irfft(np.exp(logs), length), 0.0)
        first = max(0, round(float(users @ self._means)) - length // 2)
        return np.roll(law, -(first % length)), first

    def tails(self, holders: int) -> tuple[float, float]:
        """Return the largest probabilities of a sum of at least, and at most, the one that was seen."""
        above = below = 0.0
        for inside, outside in zip(self.inside, self.outside, strict=True):
            law, first = self.law(inside, outside, holders)
            at = min(max(self.total - first, -1), len(law))
            above, below = max(above, float(law[max(at, 0) :].sum())), max(below, float(law[: at + 1].sum()))
        return above, below

    def interval(self, tail: float) -> tuple[float, float]:
        """Return the interval for the users inside the set; each end errs with probability `tail`, from 1e-10 on."""
        low, high = 0, self.reports
        while low < high:
            middle = (low + high) // 2
            low, high = (low, middle) if self.tails(middle)[0] > tail else (middle + 1, high)
        least, most = 0, self.reports
        while least < most:
            middle = (least + most + 1) // 2
            least, most = (middle, most) if self.tails(middle)[1] > tail else (least, middle - 1)
        return float(low), float(max(low, least))
