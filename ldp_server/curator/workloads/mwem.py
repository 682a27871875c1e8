"""Many tables from few people: the tables that are known worst are measured, and a distribution is fitted (MWEM).

A round, with the price e: choose a table whose fitted counts are far from the truth, measure it, fit all that was
measured (fit.py). Hardt, Ligett and McSherry 2012, with these heuristics: whole tables instead of single cells; all old
measurements are replayed; a round that finds nothing but noise doubles the price of those that follow.

Privacy. Let t_i be the counts of table i, and f_i the fitted ones, rounded to integers. The score of i is
|t_i - f_i|_1 - noise_i, where noise_i is public: the error that measuring it would have. Replacing a record moves two
cells by 1, so a score by at most 2. Selection with scale 2 * 2 / (e/2) costs e/2. The counts of the chosen table move
by 2 in L1: Laplace noise of scale 2 / (e/2) costs e/2. The price of a round depends on what was released before, never
on a record, and all prices together are `epsilon` less that of the last step: rounds are made until it is used up. So
the rounds are private by adaptive composition of pure losses, which add up pointwise.

    last step   the largest |t - r| over all cells, r the integers that are released: one more person in a cell moves it
                by at most 1, so Laplace noise of scale 1 / (epsilon / 10) costs a tenth of epsilon

    printed     weights exp(e n |d| / 2) for a score that moves by 1 / n: twice what is claimed, since the normaliser
                moves too. Here e n |d| / 4, as the scale above

Accuracy. No useful bound is known beforehand (the printed one is above 1 for a few thousand people). So the last step
measures the error: with 95% every cell of every table lies within the interval that is released, all at once.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np

from ldp_client.errors import InvalidSpec
from ldp_client.protocol.domain import FieldItems
from ldp_server.curator.draws import Draws, laplace_scale, selection_scale
from ldp_server.curator.laws import laplace_half_width, laplace_variance
from ldp_server.curator.people import Record
from ldp_server.curator.prices import CentralPrice
from ldp_server.curator.releases.base import BETA, Outcome, ReleasedRow
from ldp_server.curator.workloads.fit import Measured, answers, fitted, uniform
from ldp_server.curator.workloads.tables import WorkloadMechanism
from ldp_server.curator.workloads.universe import MOST_CELLS, Cells

__all__ = ["MwemTables"]

_CHECK = Fraction(1, 10)
_LAST, _REFITTED = 0.25, 1 << 12
"""How closely the last fit follows what was measured, and up to how many cells it is made."""
_MOST_ROUNDS, _MOST_CHOSEN = 200, 48


@dataclass(frozen=True)
class MwemTables(WorkloadMechanism):
    """Tables out of a distribution that is fitted to the tables that were known worst."""

    kind: ClassVar[str] = "mwem"
    epsilon: Fraction
    rounds: int = 0
    """Into how many parts the price is divided at first; 0: see `first_price`."""
    steps: int = 120
    """Of each fit."""

    def __post_init__(self) -> None:
        if self.workload.record.size > MOST_CELLS:
            raise InvalidSpec(
                f"these fields have {self.workload.record.size:,} cells together, and a fit keeps at most "
                f"{MOST_CELLS:,}: leave fields out, make them coarser, or ask for tables"
            )
        if not 0 <= self.rounds <= _MOST_ROUNDS:
            raise InvalidSpec(f"--rounds: 1 to {_MOST_ROUNDS}")

    @property
    def price(self) -> CentralPrice:
        return CentralPrice.pure(self.epsilon)

    def first_price(self, people: int) -> Fraction:
        """Return the price of a round before any of them has found nothing but noise.

        Their number is chosen so that the noise of a measured cell is about five percent of the people: the
        measurements that are replayed then tell together more than each of them alone.
        """
        chosen = min(max(4, round(self.epsilon * people / 125)), len(self.workload.tables), _MOST_CHOSEN)
        return (1 - _CHECK) * self.epsilon / (self.rounds or chosen)

    def selection(self, price: Fraction) -> float:
        """Return the scale of a selection that costs half of a round's price."""
        return selection_scale(price / 2, sensitivity=2)

    def run(self, records: Sequence[Record], draws: Draws) -> Outcome:
        histogram = self.workload.histogram(records)
        truth = [np.asarray(self.workload.of_cells(table, histogram)) for table in range(len(self.workload.tables))]
        theta, told = self._rounds(truth, len(records), draws)
        fit = answers(self.workload, theta)
        counts = [np.rint(one * len(records)).astype(np.int64) for one in fit]
        worst = max(int(np.abs(a - b).max()) for a, b in zip(truth, counts, strict=True))
        scale = laplace_scale(1, _CHECK * self.epsilon)
        width = max(draws.laplace([worst], scale)[0] + laplace_half_width(scale, 2 * BETA), 0)
        rows = [
            _row(item, int(count), width, len(records))
            for table, cells in enumerate(counts)
            for item, count in zip(self.workload.items(table), cells.tolist(), strict=True)
        ]
        note = f"all cells lie in their intervals at once with probability 95%; {len(told)} tables were measured"
        return Outcome(tuple(rows), note, details={"measured": told})

    def _rounds(self, truth: Sequence[Any], people: int, draws: Draws) -> tuple[Cells, list[dict[str, Any]]]:
        """Return the fit, and which tables were measured, in order."""
        left, price = (1 - _CHECK) * self.epsilon, self.first_price(people)
        theta, measured, told = uniform(self.workload), list[Measured](), list[dict[str, Any]]()
        while left > 0:
            if left < 2 * price:
                price = left
            left -= price
            fit = answers(self.workload, theta)
            table, noisy = self._measured(truth, fit, people, price, draws)
            noise = math.sqrt(laplace_variance(self._noise(price)))
            before = float(np.abs(np.array(noisy) / people - fit[table]).mean())
            measured.append(Measured(table, np.array(noisy) / people, noise / people))
            theta = fitted(self.workload, measured, theta, self.steps)
            told.append({"fields": list(self.workload.tables[table]), "counts": noisy, "standard_error": noise})
            if before * people < 1.5 * noise:
                price *= 2
        if self.workload.record.size <= _REFITTED:
            # a round needs the large features alone; the last fit begins anew and follows all measurements more closely
            theta = fitted(self.workload, measured, uniform(self.workload), 3 * self.steps, _LAST)
        return theta, told

    def _noise(self, price: Fraction) -> float:
        return laplace_scale(2, price / 2)

    def _measured(
        self, truth: Sequence[Any], fit: Sequence[Cells], people: int, price: Fraction, draws: Draws
    ) -> tuple[int, list[int]]:
        """Choose a table and measure it."""
        error = self._noise(price)
        scores = []
        for counts, shares in zip(truth, fit, strict=True):
            apart = np.abs(counts - np.rint(shares * people).astype(np.int64))
            scores.append(int(apart.sum()) - math.floor(error * len(counts)))
        table = draws.select(scores, self.selection(price))
        return table, draws.laplace(truth[table].tolist(), error)


def _row(item: FieldItems, count: int, width: int, people: int) -> ReleasedRow:
    return ReleasedRow(item, count, max(count - width, 0), min(count + width, people))
