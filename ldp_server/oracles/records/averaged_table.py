"""The oracle of a number and the cell of a table: how many users each cell has, and their average.

The response estimates how many users are rounded down and up in each cell
(ldp_client/mechanisms/records/averaged_table.py). Their sum is the number of users with a number there; the part that
is rounded up is the average, as a part of the range. What the two estimates of a cell can err by together is the matter
of records/averages.py.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from ldp_client.mechanisms.linear_hash import LinearHash
from ldp_client.mechanisms.records.averaged_table import AveragedTable
from ldp_server.oracles.base import Floats, NumbersOracle
from ldp_server.oracles.independence.chances import Chance
from ldp_server.oracles.linear_hash import LinearHashOracle
from ldp_server.oracles.randomized_response import RandomizedResponseOracle
from ldp_server.oracles.records.averages import CellLaw, CellSums

__all__ = ["AveragedTableOracle"]


class AveragedTableOracle(NumbersOracle):
    """Counts of the reports of the response."""

    kind: ClassVar[type[AveragedTable]] = AveragedTable
    instead: ClassVar[str] = "ask for the averages in its cells (`ldp-server averages`)"

    def __init__(self, randomizer: AveragedTable) -> None:
        super().__init__(randomizer)
        self.cells, self.place, self.reach = randomizer.cells, randomizer.number, randomizer.reach
        self._inner, self._base, self._step = randomizer.inner, randomizer.base, randomizer.step
        self._elements: Floats | None = None

    def _forget(self) -> None:
        self._elements = None

    def _responses(self) -> LinearHashOracle | RandomizedResponseOracle:
        """The oracle of the response, with the same counts."""
        made = self._inner
        found = LinearHashOracle(made) if isinstance(made, LinearHash) else RandomizedResponseOracle(made)
        found.counts.values, found.counts.total = self.counts.values, self.counts.total
        return found

    def points(self) -> Iterable[Iterable[npt.NDArray[np.integer]]]:
        return self._responses().points()

    def chances(self) -> Iterable[Chance]:
        return self._responses().chances()

    def _estimates(self) -> Floats:
        """How many users have each element, kept until the counts change."""
        if self._elements is None:
            self._elements = self._responses().estimate_all()
        return self._elements

    def holders(self) -> float:
        return float(min(max(self.reports - self._estimates()[0], 0.0), self.reports))

    def sums(self) -> CellSums:
        """Return what the reports say of each cell."""
        downs = self._base + self._step * np.arange(self.cells.size)
        found = self._estimates()
        return CellSums(float(self.reports), self.law, found[downs], found[downs + 1])

    @property
    def law(self) -> CellLaw:
        """How likely a report supports one, both or none of the two elements of a cell."""
        return CellLaw.of(self._inner)
