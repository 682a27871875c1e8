"""Mechanisms as they are printed, or as one writes them for add/remove neighbours. An audit must catch each of them.

Each is a subclass of the right one, with the printed constant.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from ldp_server.curator.draws import gaussian_scale, laplace_scale
from ldp_server.curator.releases.gap_max import ObviousAnswer
from ldp_server.curator.releases.histogram import LaplaceHistogram
from ldp_server.curator.releases.mode import GRAIN, Mode
from ldp_server.curator.releases.ranges.concave import ConcaveSearch
from ldp_server.curator.releases.stability import StabilityHistogram
from ldp_server.curator.workloads.asking.oracle import CuratorQueries
from ldp_server.curator.workloads.average import LaplaceAverage
from ldp_server.curator.workloads.fourier import LaplaceFourier
from ldp_server.curator.workloads.knorm.exclusive import ExclusiveNoise
from ldp_server.curator.workloads.knorm.hull import HullNoise
from ldp_server.curator.workloads.knorm.polytope import Polytope
from ldp_server.curator.workloads.matrix.answers import LinearAnswers
from ldp_server.curator.workloads.mwem import MwemTables
from ldp_server.curator.workloads.tables import LaplaceTables

__all__ = [
    "AddRemoveFourier",
    "AddRemoveHistogram",
    "AddRemoveLinear",
    "AddRemoveStability",
    "AddRemoveTables",
    "PrintedConcaveSearch",
    "PrintedExclusive",
    "PrintedHull",
    "PrintedMode",
    "PrintedMwem",
    "PrintedObviousAnswer",
    "PrintedQueries",
    "SumAlone",
]


@dataclass(frozen=True)
class AddRemoveHistogram(LaplaceHistogram):
    """Scale 1 / epsilon: right if one person is added or removed. Partial DP, Theorem 15 prints it for replacement."""

    @property
    def scale(self) -> float:
        return laplace_scale(1, self.epsilon)


@dataclass(frozen=True)
class AddRemoveStability(StabilityHistogram):
    """The stability histogram with the scale of add/remove neighbours."""

    @property
    def scale(self) -> float:
        return laplace_scale(1, self.epsilon)


@dataclass(frozen=True)
class PrintedMode(Mode):
    """A_dist as printed: scale 1 / epsilon, and a threshold that forgets that the gap moves by 2."""

    @property
    def scale(self) -> float:
        return laplace_scale(GRAIN, self.epsilon)

    @property
    def threshold(self) -> int:
        return math.ceil(GRAIN * -math.log(self.delta) / self.epsilon)


@dataclass(frozen=True)
class PrintedConcaveSearch(ConcaveSearch):
    """RecConcave over A_dist as printed."""

    @property
    def scale(self) -> float:
        return laplace_scale(self.sensitivity * GRAIN, self.naming)

    @property
    def threshold(self) -> int:
        return math.ceil(self.sensitivity * GRAIN * -math.log(self.naming_delta) / self.naming)


@dataclass(frozen=True)
class PrintedObviousAnswer(ObviousAnswer):
    """The obvious answer with a threshold at the tail 1/k of an unshifted law, and no care for the atoms: t - 1."""

    @property
    def threshold(self) -> int:
        return super().threshold - 2


@dataclass(frozen=True)
class AddRemoveTables(LaplaceTables):
    """Scale m / epsilon: right if one person is added or removed."""

    @property
    def scale(self) -> float:
        return laplace_scale(len(self.workload.tables), self.epsilon)


@dataclass(frozen=True)
class SumAlone(LaplaceAverage):
    """The count for half of what it costs beside the sum: right for two people who both have a number."""

    @property
    def scales(self) -> tuple[float, float, float]:
        width = self.highest - self.lowest
        return (
            laplace_scale(2, self.epsilon),
            laplace_scale(2 * width, self.epsilon),
            laplace_scale(2 * width * width, self.epsilon),
        )


@dataclass(frozen=True)
class AddRemoveFourier(LaplaceFourier):
    """Half of the noise: c_S moves by 1 where a person is added or removed, and by 2 for a replacement."""

    @property
    def scale(self) -> float:
        return laplace_scale(self.moved, 2 * self.epsilon)


@dataclass(frozen=True)
class AddRemoveLinear(LinearAnswers):
    """The matrix mechanism with its printed sensitivity: the largest column alone, not the distance of two."""

    @property
    def scale(self) -> float:
        rows = self.plan.rows
        if self.paid.epsilon is not None:
            return laplace_scale(int(np.abs(rows).sum(axis=0).max()), self.paid.epsilon)
        return gaussian_scale(int(np.square(rows).sum(axis=0).max()), self.paid.rho or Fraction(1))


class PrintedHull(HullNoise):
    """K is the hull of what one person adds to the answers and its mirror image: right for adding or removing."""

    @classmethod
    def of(cls, answers: Sequence[Sequence[int]], epsilon: Fraction) -> PrintedHull:
        """Return the noise for answers that span the space."""
        rows = np.array(answers, np.int64)
        body = Polytope(np.concatenate([rows, -rows]))
        return cls(body, np.eye(rows.shape[1], dtype=np.int64), epsilon)


class PrintedExclusive(ExclusiveNoise):
    """Each count's noise is right for adding or removing a person, who is in one count."""

    @property
    def scale(self) -> float:
        return laplace_scale(1, self.epsilon)


class PrintedQueries(CuratorQueries):
    """Statistical queries with the noise of one query on each of them."""

    @property
    def scale(self) -> float:
        return laplace_scale(1, self._epsilon)


@dataclass(frozen=True)
class PrintedMwem(MwemTables):
    """Weights exp(e n |d| / 2): the normaliser moves too, so a selection costs twice what is claimed."""

    def selection(self, price: Fraction) -> float:
        return super().selection(price) / 2
