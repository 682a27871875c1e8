"""Many questions one after the other, most of which cost nothing: private multiplicative weights (PMW).

A question is a cell of a table: how many people are in it? A distribution over the cells of all fields answers, as long
as it is near the truth; each time it is not, the true count is released with noise and the distribution is updated.
Only updates cost, and there are at most u of them.

Privacy. Whether the guess g is near the count c is asked of the sparse vector technique (Dwork and Roth 2014,
AboveThreshold; Lyu, Su and Li 2017). For each stretch up to the next update with the price e:

    threshold   T + Laplace(2 / e), drawn anew for each stretch     question     |c - g| + Laplace(4 / e)

c moves by at most 1 where a record is replaced, so |c - g| does. The transcript "near, ..., near, far" then has the
epsilon e: shift the threshold's noise by 1 and the last question's by 2, which costs e/2 each; all "near" follow. What
is released at "far" is c + Laplace(1 / e'), with fresh noise. So the whole is u (e + e')-private.

    printed (Theorem 4.4.1 of the thesis): the value that was compared with the noisy threshold is released itself. Then
    the shift of the last question's noise moves the released value too, and the argument fails: the realised loss grows
    with the number of near questions without bound. Tests integrate it.

After u updates the distribution answers everything that is left. Each answer says which of the two it is.

Accuracy. An answer of the distribution was within T plus noise of the truth when it was given: the interval is that,
for all questions at once with 95%. After the updates are used up there is none.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np

from ldp_client.errors import InvalidSpec
from ldp_server.curator.draws import Draws, laplace_scale
from ldp_server.curator.laws import laplace_half_width
from ldp_server.curator.people import Record
from ldp_server.curator.prices import CentralPrice
from ldp_server.curator.releases.base import BETA, Outcome, ReleasedRow
from ldp_server.curator.workloads.fit import distribution, uniform
from ldp_server.curator.workloads.tables import WorkloadMechanism
from ldp_server.curator.workloads.universe import MOST_CELLS, Cells

__all__ = ["OnlineTables"]

_RELEASES = Fraction(1, 4)
"""Which part of the price pays for released counts."""


@dataclass(frozen=True)
class OnlineTables(WorkloadMechanism):
    """The cells of tables, asked one after the other in their order."""

    kind: ClassVar[str] = "online"
    epsilon: Fraction
    updates: int

    def __post_init__(self) -> None:
        if self.workload.record.size > MOST_CELLS:
            raise InvalidSpec(f"a distribution is kept over at most {MOST_CELLS:,} cells: leave fields out")
        if not 1 <= self.updates <= 10_000:
            raise InvalidSpec("--rounds: at most so many updates, 1 to 10,000")

    @property
    def price(self) -> CentralPrice:
        return CentralPrice.pure(self.epsilon)

    @property
    def scales(self) -> tuple[float, float, float]:
        """Of the noise on the threshold, on a question and on a count that is released."""
        each = self.epsilon / self.updates
        stretch, released = (1 - _RELEASES) * each, _RELEASES * each
        return laplace_scale(2, stretch), laplace_scale(4, stretch), laplace_scale(1, released)

    @property
    def threshold(self) -> int:
        """T: so far off is a guess that is worth an update, by three standard errors of the noise."""
        return math.ceil(3 * math.sqrt(2) * math.hypot(*self.scales[:2]))

    @property
    def half_width(self) -> int:
        """By how much an answer may be off, for all questions at once with probability 95%."""
        questions = sum(self.workload.lengths)
        near = laplace_half_width(self.scales[0], 2 * BETA / 3 / self.updates)
        asked = laplace_half_width(self.scales[1], 2 * BETA / 3 / questions)
        told = laplace_half_width(self.scales[2], BETA / 3 / self.updates)
        return max(self.threshold + near + asked + 1, told)

    def run(self, records: Sequence[Record], draws: Draws) -> Outcome:
        work, people = self.workload, len(records)
        histogram = work.histogram(records)
        theta, left, rows, told = uniform(work), self.updates, list[ReleasedRow](), list[bool]()
        bar = self._bar(draws)
        for table in range(len(work.tables)):
            truth, items = np.asarray(work.of_cells(table, histogram)), work.items(table)
            for cell, item in enumerate(items):
                guess = self._guess(theta, table, cell, people)
                width: int | None = None
                far = left > 0 and self._far(abs(int(truth[cell]) - guess), bar, draws)
                if left > 0:
                    width = self.half_width
                if far:
                    guess = draws.laplace([int(truth[cell])], self.scales[2])[0]
                    theta = self._updated(theta, table, cell, guess / people)
                    left, bar = left - 1, self._bar(draws)
                rows.append(_row(item, guess, width, people))
                told.append(far)
        note = f"{sum(told)} of {len(told):,} cells cost an update; {self._promise(left)}"
        return Outcome(tuple(rows), note, details={"updated": [int(one) for one in told]})

    def _promise(self, left: int) -> str:
        if not left:
            return "the updates are used up, and cells after the last one have no interval"
        return "all cells lie in their intervals at once with probability 95%"

    def _bar(self, draws: Draws) -> int:
        return draws.laplace([self.threshold], self.scales[0])[0]

    def _far(self, apart: int, bar: int, draws: Draws) -> bool:
        return draws.laplace([apart], self.scales[1])[0] >= bar

    def _guess(self, theta: Cells, table: int, cell: int, people: int) -> int:
        return round(float(self.workload.of_cells(table, distribution(theta))[cell]) * people)

    def _updated(self, theta: Cells, table: int, cell: int, share: float) -> Cells:
        """Return the weights with this cell at a share: the update of largest entropy."""
        now = float(self.workload.of_cells(table, distribution(theta))[cell])
        share, now = (min(max(one, 1e-6), 1 - 1e-6) for one in (share, now))
        step = np.zeros(self.workload.lengths[table])
        step[cell] = math.log(share / now) - math.log((1 - share) / (1 - now))
        return np.asarray(theta + self.workload.spread(table, step))


def _row(item: Any, count: int, width: int | None, people: int) -> ReleasedRow:
    if width is None:
        return ReleasedRow(item, count)
    return ReleasedRow(item, count, max(count - width, 0), min(count + width, people))
