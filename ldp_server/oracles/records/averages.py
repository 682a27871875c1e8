r"""The average of a number in each cell of a table, from how many users are rounded down and up there.

A report supports neither of a cell's two elements, the one for "down", the one for "up", or both. Which of these is a
draw from one of three laws: that of a user who is rounded down in this cell, of one who is rounded up, and of every
other user, wherever that user is (ldp_client/mechanisms/records/averaged_table.py says why). With p the probability
that the response tells the truth, for randomized response with q for each lie:

             both   down           up
    down     0      p              q
    other    0      q              q

and for linear hash over F_q^t, with P = q^t - 1, c = (q^(t-1) - 1)/P, b = (q^(t-2) - p)/P:

    down     p c    p (1 - c)      (1 - p)(1 - c)/(q - 1)
    other    b      (q - 1) q^(t-2)/P for each.

b: the report differs from a user's own answer by e, the two elements do so by u and w, and (u, w) is each of the q^2
pairs for q^(t-2) of the P vectors, (0, 0) for one fewer. Both are supported if u = w = e.

The average. Let mu be the users' average as a part of the range. Each report adds to X

    w = 1 - mu for "up", -mu for "down", 1 - 2 mu for both, 0 for neither.

X has a known law under mu, but for the number C of users with a number in the cell: C users of the law (1 - mu) down +
mu up, n - C of the other. Users whose numbers differ are rounded up with different probabilities, which spreads X less
than if each had the mean of these (Hoeffding 1956). So mu is in the interval unless X is too large or too small for
every C of an interval of its own; its tails are those of mixture.py. The interval of C errs with a fifth of the
probability, the rest is for X. This is the test of a ratio by Fieller (1954), with the law in place of the normal one:
where a cell has too few users, no mu can be ruled out, and the interval is the whole range.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np

from ldp_client.mechanisms.linear_hash import LinearHash
from ldp_client.mechanisms.randomized_response import RandomizedResponse
from ldp_server.oracles.base import Floats
from ldp_server.oracles.laws.support import normal_quantile
from ldp_server.oracles.records.mixture import MixtureLaw

__all__ = ["FOR_THE_COUNT", "CellLaw", "CellMeans", "CellSums"]

FOR_THE_COUNT = 0.2
"""The part of the error that is for the interval of the number of users."""
_STEPS = 60
_PRECISION = 1e-5
"""Of the range: how near an end of an interval is found, from outside."""
_FAR = 50.0


@dataclass(frozen=True)
class CellLaw:
    """The probabilities that a report supports no element of a cell, "down" alone, "up" alone, and both."""

    down: Floats
    """Of a user of the cell who is rounded down."""
    other: Floats
    """Of any user who is not counted in the cell."""

    @classmethod
    def of(cls, inner: RandomizedResponse | LinearHash) -> Self:
        """Return that of the response of an averaged table."""
        if isinstance(inner, LinearHash):
            return cls.of_hash(float(inner.response.p), inner.q, inner.t)
        return cls.of_response(float(inner.response.p), float(inner.response.q))

    @classmethod
    def of_response(cls, p: float, q: float) -> Self:
        """Return that of randomized response."""
        return cls(np.array([1 - p - q, p, q, 0.0]), np.array([1 - 2 * q, q, q, 0.0]))

    @classmethod
    def of_hash(cls, p: float, q: int, t: int) -> Self:
        """Return that of linear hash over F_q^t."""
        vectors = q**t - 1
        same = (q ** (t - 1) - 1) / vectors
        own = [p * (1 - same), (1 - p) * (1 - same) / (q - 1), p * same]
        each = (q - 1) * q ** (t - 2) / vectors
        others = [each, each, (q ** (t - 2) - p) / vectors]
        return cls(np.array([1 - sum(own), *own]), np.array([1 - sum(others), *others]))

    @property
    def up(self) -> Floats:
        """Of a user of the cell who is rounded up."""
        return self.down[[0, 2, 1, 3]]

    @property
    def gap(self) -> float:
        """How much more likely the own element is supported than that of another."""
        return float(self.down[1] + self.down[3] - self.other[1] - self.other[3])

    @property
    def chance(self) -> float:
        """s: how likely a report supports another user's element."""
        return float(self.other[1] + self.other[3])

    def inside(self, means: Floats) -> Floats:
        """Those of a user of a cell with this average: a line for each."""
        return np.asarray((1 - means)[:, None] * self.down + means[:, None] * self.up)

    def deviations(self, means: Floats, held: Floats, reports: float) -> Floats:
        """The standard deviation of X at these averages, with so many users in each cell."""
        values, inside = _values(means), self.inside(means)
        own = (inside * values**2).sum(axis=1) - (inside * values).sum(axis=1) ** 2
        other = values**2 @ self.other - (values @ self.other) ** 2
        return np.asarray(np.sqrt(held * own + (reports - held) * other))


@dataclass(frozen=True)
class CellMeans:
    """Averages as parts of the range, and the users of each cell that have a number, with intervals."""

    means: Floats
    errors: Floats
    """Standard errors; infinite where there are too few users to tell."""
    low: Floats
    high: Floats
    users: Floats
    users_errors: Floats
    users_low: Floats
    users_high: Floats


@dataclass(frozen=True)
class CellSums:
    """Unbiased estimates of the users who are rounded down and up in each cell."""

    reports: float
    law: CellLaw
    downs: Floats
    ups: Floats

    def means(self, tail: float) -> CellMeans:
        """Return the averages with their intervals; those of each cell err with twice `tail` in all."""
        users = self.downs + self.ups
        low, high = self._users(tail)
        with np.errstate(divide="ignore", invalid="ignore"):
            means = np.clip(np.where(users > 0, self.ups / users, 0.5), 0.0, 1.0)
        ends = self._ends(means, tail)
        tells = (low > 0) & ((ends[0] > 0) | (ends[1] < 1))
        held = np.clip(users, 1.0, self.reports)
        with np.errstate(divide="ignore"):
            errors = np.where(tells, self.law.deviations(means, held, self.reports) / (self.law.gap * held), np.inf)
        return CellMeans(
            np.where(tells, np.clip(means, *ends), 0.5),
            errors,
            np.where(tells, ends[0], 0.0),
            np.where(tells, ends[1], 1.0),
            users,
            self._users_errors(np.clip(users, 0.0, self.reports)),
            low,
            high,
        )

    def _users(self, tail: float) -> tuple[Floats, Floats]:
        """The interval for the users of each cell."""
        counts = MixtureLaw(
            self.reports,
            np.array([self.reports]),
            np.array([[0.0, 1.0, 1.0, 2.0]]),
            self.law.down[None, :],
            self.law.other[None, :],
        )
        supports = (self.downs + self.ups) * self.law.gap + 2 * self.reports * self.law.chance
        return counts.intervals(supports, tail)

    def _users_errors(self, held: Floats) -> Floats:
        values = np.array([0.0, 1.0, 1.0, 2.0])
        own, other = (float(law @ values**2 - (law @ values) ** 2) for law in (self.law.down, self.law.other))
        return np.asarray(np.sqrt(held * own + (self.reports - held) * other) / self.law.gap)

    def _ends(self, means: Floats, tail: float) -> tuple[Floats, Floats]:
        """The least and the largest average that is not out of the question, from the estimate outwards."""
        users = np.clip(self._users(tail * FOR_THE_COUNT), 1.0, self.reports)
        z = normal_quantile(tail * (1 - FOR_THE_COUNT))
        ends = np.broadcast_to(np.array([[0.0], [1.0]]), (2, len(means)))
        out, inside = ends.copy(), np.stack([means, means])
        above, below = self._excess(out, users, z), self._excess(inside, users, z)
        never = above < 0
        for step in range(_STEPS):
            middle = (out + inside) / 2
            if step % 3:  # by secants and halves in turn; a secant is nudged, so that both ends move
                with np.errstate(divide="ignore", invalid="ignore"):
                    secant = inside + below / (below - above) * (out - inside)
                secant += np.where(step % 3 == 1, 1e-3, -1e-3) * (out - inside)
                fits = np.isfinite(secant) & (np.abs(secant - middle) < np.abs(out - inside) / 2)
                middle = np.where(fits, secant, middle)
            excess = self._excess(middle, users, z)
            beyond = excess >= 0
            out, above = np.where(beyond, middle, out), np.where(beyond, excess, above)
            inside, below = np.where(beyond, inside, middle), np.where(beyond, below, excess)
            if float(np.where(never, 0.0, np.abs(out - inside)).max()) < _PRECISION:
                break
        out = np.where(never, ends, out)
        return out[0], np.maximum(out[0], out[1])

    def _excess(self, means: Floats, users: Floats, z: float) -> Floats:
        """By how much X is too large for the first line of averages, and too small for the second, as scores.

        The lesser of both ends of the interval for the number of users: it is so for any number between them.
        """
        sign = np.array([1.0, -1.0])[:, None, None] * np.ones((2, 2, means.shape[1]))
        each = np.broadcast_to(means[:, None, :], sign.shape).ravel()
        held = np.broadcast_to(users[None, :, :], sign.shape).ravel()
        values = _values(each)
        law = MixtureLaw(
            self.reports,
            np.array([self.reports]),
            values[:, None, :],
            self.law.inside(each)[:, None, :],
            np.broadcast_to(self.law.other, (len(each), 1, 4)),
        )
        ups, downs = (np.tile(one * self.law.gap + self.reports * self.law.chance, 4) for one in (self.ups, self.downs))
        half = np.diff(np.sort(values, axis=1), axis=1).max(axis=1) / 2
        scores = law.score(held, ups * (1 - each) - downs * each - sign.ravel() * half)
        return np.asarray(np.clip((scores.reshape(sign.shape) * sign - z).min(axis=1), -_FAR, _FAR))


def _values(means: Floats) -> Floats:
    """What a report adds to X at these averages: a line for each."""
    return np.stack([np.zeros(len(means)), -means, 1 - means, 1 - 2 * means], axis=1)
