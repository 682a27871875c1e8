"""Mechanisms as they are printed, or as one writes them for add/remove neighbours. An audit must catch each of them.

Each is a subclass of the right one, with the printed constant.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from ldp_server.curator.draws import laplace_scale
from ldp_server.curator.releases.gap_max import ObviousAnswer
from ldp_server.curator.releases.histogram import LaplaceHistogram
from ldp_server.curator.releases.mode import GRAIN, Mode
from ldp_server.curator.releases.ranges.concave import ConcaveSearch
from ldp_server.curator.releases.stability import StabilityHistogram

__all__ = ["AddRemoveHistogram", "AddRemoveStability", "PrintedConcaveSearch", "PrintedMode", "PrintedObviousAnswer"]


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
