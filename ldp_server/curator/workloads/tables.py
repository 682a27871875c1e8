"""Every cell of every table that is wanted, with noise on each: the classical baseline for a workload of tables.

Privacy. Replacing one record moves two cells of each of the m tables by at most 1: by 2 m in L1, by sqrt(2 m) in L2.

    laplace     scale 2 m / epsilon     epsilon-private
    gaussian    sigma^2 = m / rho       rho-zCDP

Accuracy. The interval of each cell holds with probability 95%. The noise of a cell does not depend on how many cells a
table has, so the tables are right however rare their cells are. With many tables m a learner (mwem.py) is better where
people are few, and this one where they are many.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

from ldp_client.protocol.domain import Record as Fields
from ldp_server.curator.draws import Draws, gaussian_scale, laplace_scale
from ldp_server.curator.laws import gaussian_half_width, gaussian_variance, laplace_half_width, laplace_variance
from ldp_server.curator.people import Record
from ldp_server.curator.prices import CentralPrice
from ldp_server.curator.releases.base import BETA, CentralMechanism, Outcome, clipped
from ldp_server.curator.workloads.universe import Workload, encoded

__all__ = ["FieldsMechanism", "GaussianTables", "LaplaceTables", "WorkloadMechanism"]

_NOTE = "each interval holds with probability 95%, over the noise alone; {tables} of the fields {fields}"


class FieldsMechanism(CentralMechanism):
    """A release about several fields together. Each person's record is the index of a cell of all fields."""

    @property
    @abstractmethod
    def fields(self) -> Fields:
        """The fields, each of which is read from the column of its name."""

    def run_columns(self, columns: Sequence[Sequence[Record]], draws: Draws) -> Outcome:
        return self.run(encoded(self.fields, columns), draws)


@dataclass(frozen=True)
class WorkloadMechanism(FieldsMechanism):
    """A release about tables of several fields."""

    workload: Workload

    @property
    def fields(self) -> Fields:
        return self.workload.record

    def parameters(self) -> dict[str, Any]:
        found = super().parameters()
        del found["workload"]
        record = self.workload.record
        tables = [list(one) for one in self.workload.tables]
        return found | {"fields": record.describe()["fields"], "tables": tables}


class _Tables(WorkloadMechanism):
    kind: ClassVar[str] = "tables"

    def run(self, records: Sequence[Record], draws: Draws) -> Outcome:
        work = self.workload
        counts = work.every_count(records)
        noisy = self._noisy([int(one) for table in counts for one in table], draws)
        rows, at = [], 0
        width = self._width(BETA)
        for table, length in enumerate(work.lengths):
            cells = zip(work.items(table), noisy[at : at + length], strict=True)
            rows += [clipped(item, count, width, len(records)) for item, count in cells]
            at += length
        many = f"{len(work.tables)} tables" if len(work.tables) > 1 else "the table"
        note = _NOTE.format(tables=many, fields=", ".join(work.record.names))
        told = [{"fields": list(table), "variance": self._variance} for table in work.tables]
        return Outcome(tuple(rows), note, details={"tables": told})

    @abstractmethod
    def _noisy(self, counts: Sequence[int], draws: Draws) -> list[int]: ...

    @abstractmethod
    def _width(self, beta: float) -> int: ...

    @property
    @abstractmethod
    def _variance(self) -> float: ...


@dataclass(frozen=True)
class LaplaceTables(_Tables):
    """Tables with discrete Laplace noise."""

    epsilon: Fraction

    @property
    def price(self) -> CentralPrice:
        return CentralPrice.pure(self.epsilon)

    @property
    def scale(self) -> float:
        return laplace_scale(2 * len(self.workload.tables), self.epsilon)

    def _noisy(self, counts: Sequence[int], draws: Draws) -> list[int]:
        return draws.laplace(counts, self.scale)

    def _width(self, beta: float) -> int:
        return laplace_half_width(self.scale, beta)

    @property
    def _variance(self) -> float:
        return laplace_variance(self.scale)


@dataclass(frozen=True)
class GaussianTables(_Tables):
    """Tables with discrete Gaussian noise."""

    rho: Fraction

    @property
    def price(self) -> CentralPrice:
        return CentralPrice(rho=self.rho)

    @property
    def sigma(self) -> float:
        return gaussian_scale(2 * len(self.workload.tables), self.rho)

    def _noisy(self, counts: Sequence[int], draws: Draws) -> list[int]:
        return draws.gaussian(counts, self.sigma)

    def _width(self, beta: float) -> int:
        return gaussian_half_width(self.sigma, beta)

    @property
    def _variance(self) -> float:
        return gaussian_variance(self.sigma)
