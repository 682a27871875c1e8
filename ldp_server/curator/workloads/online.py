"""Many questions one after the other, most of which cost nothing: private multiplicative weights (PMW).

A question is a cell of a table: how many people are in it? A distribution over the cells of all fields answers, as long
as it is near the truth; each time it is not, the true count is released with noise and the distribution is updated.
Only updates cost, and there are at most u of them.

Privacy. Whether the guess g is near the count c is asked of the sparse vector technique (Dwork and Roth 2014,
AboveThreshold; Lyu, Su and Li 2017). For each stretch up to the next update with the price e:

    threshold   T + Laplace(2 / e), drawn anew for each stretch     question     |c - g| + Laplace(4 / e)

c moves by at most 1 where a record is replaced, so |c - g| does. The transcript "near, ..., near, far" then has the
epsilon e: shift the threshold's noise by 1 and the last question's by 2, which costs e/2 each; all "near" follow. What
is released at "far" is the count with fresh noise. Distribution and guesses follow from what was released before, so
all stretches and releases compose adaptively.

    laplace     released: c + Laplace(1 / e')        u (e + e')-private
    gaussian    released: c + Gaussian(sigma)        u (e^2 / 2 + 1 / (2 sigma^2))-zCDP, since a stretch is e-private.
                For an epsilon and a delta: e may be about epsilon / sqrt(u) instead of epsilon / u

    printed (Theorem 4.4.1 of the thesis): the value that was compared with the noisy threshold is released itself. Then
    the shift of the last question's noise moves the released value too, and the argument fails: the realised loss grows
    with the number of near questions without bound. Tests integrate it. The printed (epsilon, delta) form has a fixed
    threshold and not this flaw, but constants that say nothing: at epsilon 1 and delta 1e-6 its threshold is 0.84 of a
    million people for 697 questions over 2^16 cells (`printed_threshold`).

After u updates the distribution answers everything that is left. Each answer says which of the two it is.

Accuracy. An answer of the distribution was within T plus noise of the truth when it was given: the interval is that,
for all questions at once with 95%, whatever cells the distribution is kept over. After the updates are used up there is
none.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np

from ldp_client.errors import InvalidSpec
from ldp_server.curator.draws import Draws, gaussian_scale, laplace_scale
from ldp_server.curator.laws import gaussian_half_width, gaussian_variance, laplace_half_width, laplace_variance
from ldp_server.curator.people import Record
from ldp_server.curator.prices import CentralPrice
from ldp_server.curator.releases.base import BETA, Outcome, ReleasedRow, bounds
from ldp_server.curator.workloads.sub_universe import AllCells, SomeCells, Universe
from ldp_server.curator.workloads.tables import WorkloadMechanism
from ldp_server.curator.workloads.universe import MOST_CELLS, Cells

__all__ = ["GaussianOnline", "OnlineTables", "printed_threshold", "updated"]

_RELEASES = Fraction(1, 4)
"""Which part of the price pays for released counts."""
_SEEDS = 1 << 62


class _Online(WorkloadMechanism):
    """The cells of tables, asked one after the other in their order."""

    kind: ClassVar[str] = "online"
    updates: int
    """How many there are at most."""
    cells: int
    """Of a universe that is drawn; 0: all cells."""

    def __post_init__(self) -> None:
        if not self.cells and self.workload.record.size > MOST_CELLS:
            raise InvalidSpec(
                f"a distribution is kept over at most {MOST_CELLS:,} cells: leave fields out, or give --universe"
            )
        if not 1 <= self.updates <= 10_000:
            raise InvalidSpec("--rounds: at most so many updates, 1 to 10,000")

    @property
    @abstractmethod
    def stretch(self) -> Fraction:
        """The pure epsilon of the questions up to an update."""

    @abstractmethod
    def told(self, count: int, draws: Draws) -> int:
        """Return a count that is released, with noise."""

    @abstractmethod
    def _told_width(self, beta: float) -> int:
        """Return how far a released count is off at most with probability 1 - beta."""

    @property
    def bars(self) -> tuple[float, float]:
        """The scales of the noise on the threshold and on a question."""
        return laplace_scale(2, self.stretch), laplace_scale(4, self.stretch)

    @property
    def threshold(self) -> int:
        """T: so far off is a guess that is worth an update, by three standard errors of the noise."""
        return math.ceil(3 * math.sqrt(2) * math.hypot(*self.bars))

    @property
    @abstractmethod
    def told_variance(self) -> float:
        """The variance of the noise on a released count."""

    def half_width(self, beta: float = BETA) -> int:
        """By how much an answer may be off, for all questions at once with probability 1 - beta."""
        questions = sum(self.workload.lengths)
        near = laplace_half_width(self.bars[0], 2 * beta / 3 / self.updates)
        asked = laplace_half_width(self.bars[1], 2 * beta / 3 / questions)
        return max(self.threshold + near + asked + 1, self._told_width(beta / 3 / self.updates))

    def universe(self, draws: Draws) -> Universe:
        """Return the cells that the distribution is kept over. No record is looked at."""
        return SomeCells(self.workload, self.cells, draws.uniform(_SEEDS)) if self.cells else AllCells(self.workload)

    def run(self, records: Sequence[Record], draws: Draws) -> Outcome:
        work, people, over = self.workload, len(records), self.universe(draws)
        theta, left, rows, told = over.start(), self.updates, list[ReleasedRow](), list[bool]()
        bar, wide = self._bar(draws), self.half_width()
        for table, truth in enumerate(work.every_count(records)):
            shares = over.shares(table, theta)
            for cell, item in enumerate(work.items(table)):
                guess, width = round(float(shares[cell]) * people), wide if left else None
                far = left > 0 and self._far(abs(int(truth[cell]) - guess), bar, draws)
                if far:
                    guess = self.told(int(truth[cell]), draws)
                    theta = updated(over, theta, table, cell, guess / people)
                    left, bar, shares = left - 1, self._bar(draws), over.shares(table, theta)
                rows.append(_row(item, guess, width, people))
                told.append(far)
        note = f"{sum(told)} of {len(told):,} cells cost an update; {self._promise(left)}"
        details: dict[str, Any] = {
            "updated": [int(one) for one in told],
            "variance": self.told_variance,
            "bounds": bounds(self.half_width),
        }
        if isinstance(over, SomeCells):
            details |= {"universe": over.cells, "seed": over.seed}
        return Outcome(tuple(rows), note, details=details)

    def _promise(self, left: int) -> str:
        if not left:
            return "the updates are used up, and cells after the last one have no interval"
        return "all cells lie in their intervals at once with probability 95%"

    def _bar(self, draws: Draws) -> int:
        return draws.laplace([self.threshold], self.bars[0])[0]

    def _far(self, apart: int, bar: int, draws: Draws) -> bool:
        return draws.laplace([apart], self.bars[1])[0] >= bar


@dataclass(frozen=True)
class OnlineTables(_Online):
    """A pure epsilon: Laplace noise on released counts."""

    epsilon: Fraction
    updates: int
    cells: int = 0

    @property
    def price(self) -> CentralPrice:
        return CentralPrice.pure(self.epsilon)

    @property
    def stretch(self) -> Fraction:
        return (1 - _RELEASES) * self.epsilon / self.updates

    @property
    def scales(self) -> tuple[float, float, float]:
        """Of the noise on the threshold, on a question and on a count that is released."""
        return *self.bars, laplace_scale(1, _RELEASES * self.epsilon / self.updates)

    def told(self, count: int, draws: Draws) -> int:
        return draws.laplace([count], self.scales[2])[0]

    @property
    def told_variance(self) -> float:
        return laplace_variance(self.scales[2])

    def _told_width(self, beta: float) -> int:
        return laplace_half_width(self.scales[2], beta)


@dataclass(frozen=True)
class GaussianOnline(_Online):
    """A rho: Gaussian noise on released counts, and stretches whose squares add up."""

    rho: Fraction
    updates: int
    cells: int = 0

    @property
    def price(self) -> CentralPrice:
        return CentralPrice(rho=self.rho)

    @property
    def stretch(self) -> Fraction:
        """The largest e with e^2 / 2 at most its part of the price."""
        part = 2 * (1 - _RELEASES) * self.rho / self.updates
        found = Fraction(math.sqrt(part))
        while found * found > part:
            found *= 1 - Fraction(1, 1 << 50)
        return found

    @property
    def sigma(self) -> float:
        return gaussian_scale(1, _RELEASES * self.rho / self.updates)

    def told(self, count: int, draws: Draws) -> int:
        return draws.gaussian([count], self.sigma)[0]

    @property
    def told_variance(self) -> float:
        return gaussian_variance(self.sigma)

    def _told_width(self, beta: float) -> int:
        return gaussian_half_width(self.sigma, beta)


def updated(over: Universe, theta: Cells, table: int, cell: int, share: float) -> Cells:
    """Return the weights with this cell of a table at a share: the update of largest entropy."""
    now = float(over.shares(table, theta)[cell])
    share, now = (min(max(one, 1e-6), 1 - 1e-6) for one in (share, now))
    step = np.zeros(over.work.lengths[table])
    step[cell] = math.log(share / now) - math.log((1 - share) / (1 - now))
    return np.asarray(theta + over.spread(table, step))


def printed_threshold(cells: int, queries: int, epsilon: float, delta: float, people: int, beta: float = 0.05) -> float:
    """Return the threshold 40 eta of the printed (epsilon, delta) form, as a share of the people."""
    squared = math.sqrt(math.log(cells)) * math.log(queries / beta) * math.log(1 / delta) / (epsilon * people)
    return 40 * math.sqrt(squared)


def _row(item: Any, count: int, width: int | None, people: int) -> ReleasedRow:
    if width is None:
        return ReleasedRow(item, count)
    return ReleasedRow(item, count, max(count - width, 0), min(count + width, people))
