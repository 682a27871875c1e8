"""Which cells a distribution is kept over: all of them, or some that are drawn before any record is looked at.

With thirty yes/no fields there are 2^30 cells. A distribution over M of them that were drawn at random may answer
tables of few fields as well as one over all, if the people are spread out: if some distribution with the same answers
puts at most xi on each of the N cells. The paper asks for M = 4 max(xi N (ln(1/beta) + ln q) / alpha^2, ln(1/beta))
cells for q queries up to alpha (Hardt and Rothblum 2010; `cells_needed`). People who are all alike are not spread out:
then hardly any drawn cell is near them, and no weights of the cells give the right answers. That costs updates, never
privacy: the cells are drawn from a seed that is independent of all records.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from ldp_client.errors import InvalidSpec
from ldp_server.curator.workloads.universe import MOST_CELLS, Cells, Workload

__all__ = ["AllCells", "SomeCells", "Universe", "cells_needed"]


@dataclass(frozen=True)
class Universe(ABC):
    """Cells with weights; the weights are kept as logarithms."""

    work: Workload

    @abstractmethod
    def start(self) -> Cells:
        """Return the logarithms of equal weights."""

    @abstractmethod
    def shares(self, table: int, theta: Cells) -> Cells:
        """Return the shares of a table's cells."""

    @abstractmethod
    def spread(self, table: int, values: Cells) -> Cells:
        """Return what each cell gets if each cell of a table has a value. It broadcasts."""


class AllCells(Universe):
    """All cells of all fields."""

    def start(self) -> Cells:
        return np.zeros(self.work.record.sizes)

    def shares(self, table: int, theta: Cells) -> Cells:
        weights = np.exp(theta - theta.max())
        return np.asarray(self.work.of_cells(table, weights.ravel(order="F") / weights.sum()), np.float64)

    def spread(self, table: int, values: Cells) -> Cells:
        return self.work.spread(table, values)


@dataclass(frozen=True)
class SomeCells(Universe):
    """So many cells, drawn with replacement from a seed."""

    cells: int
    seed: int

    def __post_init__(self) -> None:
        if not 1 <= self.cells <= MOST_CELLS:
            raise InvalidSpec(f"--universe: 1 to {MOST_CELLS:,} cells")

    @cached_property
    def drawn(self) -> npt.NDArray[np.int64]:
        """The indexes of the cells."""
        return np.random.default_rng(self.seed).integers(0, self.work.record.size, self.cells)

    @cached_property
    def _inside(self) -> dict[int, npt.NDArray[np.int64]]:
        return {}

    def _of(self, table: int) -> npt.NDArray[np.int64]:
        """In which cell of a table each drawn cell is."""
        if table not in self._inside:
            found, step = np.zeros(self.cells, np.int64), 1
            for place in self.work.places[table]:
                size = self.work.record.sizes[place]
                found += self.drawn // self.work.record.strides[place] % size * step
                step *= size
            self._inside.clear()  # one table after the other is asked for
            self._inside[table] = found
        return self._inside[table]

    def start(self) -> Cells:
        return np.zeros(self.cells)

    def shares(self, table: int, theta: Cells) -> Cells:
        weights = np.exp(theta - theta.max())
        summed = np.bincount(self._of(table), weights / weights.sum(), minlength=self.work.lengths[table])
        return np.asarray(summed, np.float64)

    def spread(self, table: int, values: Cells) -> Cells:
        return np.asarray(values[self._of(table)])


def cells_needed(largest: float, size: int, queries: int, error: float, beta: float = 0.05) -> int:
    """Return the printed number of cells, for people of whom no cell of `size` needs a larger share than `largest`."""
    return math.ceil(4 * max(largest * size * (math.log(1 / beta) + math.log(queries)) / error**2, math.log(1 / beta)))
