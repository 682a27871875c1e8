r"""The law of a sum over reports about several tables, inverted to intervals for a number of users.

n_s devices drew table s. Each report about it adds one of a few values v to X, with the probability in_s(v) if its user
is among the f users that are counted, else out_s(v). Which devices drew a table is free of what they hold, so a report
about it is of a counted user with probability f/n, and adds v with probability

    pi_s(v) = out_s(v) + (f/n)(in_s(v) - out_s(v)).

The devices are drawn without replacement, which spreads X less than independent draws with these probabilities
(Hoeffding 1963): the interval allows for a little more than there is. With K(theta) = sum of n_s ln(sum of pi_s(v)
e^(theta v)), tails of X are those of Lugannani and Rice in Barndorff-Nielsen's form (support.py), with the continuity
correction of the largest distance h between values: x is moved by h/2 away from the mean of what is asked, which is
right for one table of two values and wider than needed for several. P_f(X >= x) rises with f, so that the ends are
found by halving. Beyond what any reports can add up to, a tail is 0 or 1.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ldp_server.oracles.laws.support import normal_quantile

__all__ = ["MixtureLaw"]

Floats = npt.NDArray[np.float64]

_HALVINGS = 48
_STEPS = 60
_FLAT = 1e-4
_REACH = 60.0
_FAR = 50.0
_PRECISION = 1e-2
"""Of a user: the ends are whole numbers of users."""


@dataclass(frozen=True)
class MixtureLaw:
    """A line for each of several sums, which differ in their probabilities and not in their values."""

    users: float
    counts: Floats
    """n_s, of S tables."""
    values: Floats
    """S x V: what a report may add; unused places are 0 and have no probability. Or R x S x V, for R sums."""
    inside: Floats
    """S x V or R x S x V."""
    outside: Floats
    step: float | None = None
    """The largest distance between values of one table, where the values here are not those that reports add."""

    def moments(self, holders: Floats) -> tuple[Floats, Floats]:
        """Return the variance and the third central moment of each sum, with so many users counted."""
        share = (np.clip(holders, 0, self.users) / self.users)[:, None, None]
        chances = np.maximum(self.outside + share * (self.inside - self.outside), 0.0)
        centre = (chances * self.values).sum(axis=2, keepdims=True)
        moved = np.where(chances > 0, self.values - centre, 0.0)
        second, third = ((chances * moved**power).sum(axis=2) @ self.counts for power in (2, 3))
        return np.asarray(second), np.asarray(third)

    def intervals(self, sums: Floats, tail: float) -> tuple[Floats, Floats]:
        """Return the ends for f of the sums X that were seen; each end errs with probability `tail` at most."""
        z, half = normal_quantile(tail), self._step() / 2
        none, every = np.zeros(len(sums)), np.full(len(sums), self.users)
        low = self._crossing(sums - half, z)
        low = np.where(self.score(none, sums - half) < z, 0.0, low)
        high = self._crossing(sums + half, -z)
        high = np.where(self.score(every, sums + half) > -z, self.users, high)
        low, high = np.ceil(low - _PRECISION), np.floor(high + _PRECISION)
        return low + 0.0, np.maximum(low, high) + 0.0

    def _step(self) -> Floats | float:
        """The largest distance between neighbouring values of a table that was drawn."""
        if self.step is not None:
            return self.step
        ordered = np.sort(np.where(self._used(), self.values, np.nan), axis=-1)
        gaps = np.where(self.counts[:, None] > 0, np.diff(ordered, axis=-1), 0.0)
        return np.asarray(np.nanmax(np.nan_to_num(gaps), axis=(-2, -1), initial=0.0))

    def _used(self) -> npt.NDArray[np.bool_]:
        return (self.inside > 0) | (self.outside > 0)

    def _crossing(self, sums: Floats, z: float) -> Floats:
        """The f at which `score` falls to z, by secants and halves in turn: it falls with f."""
        low, high = np.zeros(len(sums)), np.full(len(sums), self.users)
        above, below = (np.clip(self.score(end, sums) - z, -_FAR, _FAR) for end in (low, high))
        for step in range(_HALVINGS):
            middle = (low + high) / 2
            if step % 3:
                with np.errstate(divide="ignore", invalid="ignore"):
                    secant = low + above / (above - below) * (high - low)
                inside = np.isfinite(secant) & (secant > low) & (secant < high)
                nudged = secant + np.where(secant < middle, 1, -1) * _PRECISION / 2  # so that the far end moves too
                middle = np.where(inside, np.clip(nudged, low, high), middle)
            value = np.clip(self.score(middle, sums) - z, -_FAR, _FAR)
            over = value > 0
            low, above = np.where(over, middle, low), np.where(over, value, above)
            high, below = np.where(over, high, middle), np.where(over, below, value)
            if float((high - low).max(initial=0.0)) < _PRECISION:
                break
        return np.asarray((low + high) / 2)

    def score(self, holders: Floats, sums: Floats) -> Floats:
        """Return z with P(X >= x) = 1 - Phi(z), where no continuity is corrected any more."""
        share = (holders / self.users)[:, None, None]
        chances = np.maximum(self.outside + share * (self.inside - self.outside), 0.0)
        used = chances > 0
        values = np.broadcast_to(self.values, chances.shape)
        weights = self.counts[None, :]
        least = (np.where(used, values, np.inf).min(axis=2) * weights).sum(axis=1)
        most = (np.where(used, values, -np.inf).max(axis=2) * weights).sum(axis=1)
        inside = (sums > least) & (sums < most)
        theta = self._saddle(chances, values, np.where(inside, sums, (chances * values).sum(axis=2) @ self.counts))
        k, _, spread = self._moments(chances, values, theta)
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            r = np.sign(theta) * np.sqrt(np.maximum(2 * (theta * sums - k), 0.0))
            step = np.maximum(self._step(), 1e-12)
            reach = np.clip(theta * step / 2, -300.0, 300.0)
            u = 2 / step * np.sinh(reach) * np.sqrt(spread)
            z = r + np.log(u / r) / r
        z = np.where((np.abs(r) > _FLAT) & np.isfinite(z), z, r)
        return np.where(sums <= least, -np.inf, np.where(sums >= most, np.inf, z))

    def _saddle(self, chances: Floats, values: Floats, sums: Floats) -> Floats:
        """The theta with K'(theta) = x, by Newton's steps inside a bracket that shrinks."""
        width = float(np.ptp(self.values)) or 1.0
        low, high = np.full(len(sums), -_REACH / width), np.full(len(sums), _REACH / width)
        theta = np.zeros(len(sums))
        for _ in range(_STEPS):
            _, mean, spread = self._moments(chances, values, theta)
            below = mean < sums
            low, high = np.where(below, theta, low), np.where(below, high, theta)
            with np.errstate(divide="ignore", invalid="ignore"):
                step = theta + (sums - mean) / spread
            fits = np.isfinite(step) & (step > low) & (step < high)
            new = np.where(fits, step, (low + high) / 2)
            if float(np.abs(new - theta).max(initial=0.0)) * width < 1e-6:
                break
            theta = new
        return theta

    def _moments(self, chances: Floats, values: Floats, theta: Floats) -> tuple[Floats, Floats, Floats]:
        """K(theta), K'(theta) and K''(theta)."""
        exponents = theta[:, None, None] * values
        top = np.where(chances > 0, exponents, -np.inf).max(axis=2, keepdims=True)
        grown = chances * np.exp(np.minimum(exponents - top, 0.0))
        total = grown.sum(axis=2)
        mean = (grown * values).sum(axis=2) / total
        square = (grown * np.square(values)).sum(axis=2) / total
        k = self.counts * (np.log(total) + top[:, :, 0])
        spread = self.counts * np.maximum(square - mean**2, 0.0)
        return k.sum(axis=1), (self.counts * mean).sum(axis=1), spread.sum(axis=1)
