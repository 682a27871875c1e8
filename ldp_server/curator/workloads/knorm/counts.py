"""How many people hold one of the items of each group, where groups may overlap.

What one person may answer is known from the groups: the groups that an item is in, for each item, and none. Four kinds
of noise protect it, and the one with the smallest mean variance is taken. That depends on the groups alone.

    hull       the K-norm mechanism of what can really move (hull.py), for up to four independent counts
    exclusive  noise on how many people have each such answer (exclusive.py): the K-norm mechanism of what can really
               move where no answer follows from others, such as for nested groups, in any dimension
    cube       the K-norm mechanism where all counts may move at once (cube.py)
    laplace    scale D / epsilon on each count, D being the largest distance of two answers in L1: for many groups, of
               which each item is in a few

Each is epsilon-private: the proofs are in the modules, that of Laplace noise is the sum of the d one-dimensional ones.
The interval of each count holds with probability 95%.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from ldp_client.errors import InvalidSpec
from ldp_server.curator.draws import Draws, laplace_scale
from ldp_server.curator.laws import laplace_half_width, laplace_variance
from ldp_server.curator.people import Record
from ldp_server.curator.prices import CentralPrice
from ldp_server.curator.releases.base import BETA, CentralMechanism, Outcome, ReleasedRow, clipped
from ldp_server.curator.workloads.knorm.cube import MARGIN, CubeNoise
from ldp_server.curator.workloads.knorm.exclusive import ExclusiveNoise, exclusive_noise
from ldp_server.curator.workloads.knorm.hull import HullNoise, hull_noise

__all__ = ["GroupNoise", "KNormCounts", "group_noises", "patterns"]

_MOST, _MOST_PATTERNS = 64, 1_500


class GroupNoise(ABC):
    """Noise on the counts of some groups."""

    name: ClassVar[str]

    @abstractmethod
    def add(self, values: Sequence[int], draws: Draws) -> list[int]: ...

    @abstractmethod
    def half_width(self, count: int) -> int:
        """Return how far a count may be off with probability 95%."""

    @property
    @abstractmethod
    def variances(self) -> list[float]:
        """Of each count's error."""

    @property
    def error(self) -> float:
        """The root of the mean variance."""
        return float(np.sqrt(np.mean(self.variances)))


@dataclass(frozen=True)
class _Cube(GroupNoise):
    name: ClassVar[str] = "cube"
    noise: CubeNoise

    def add(self, values: Sequence[int], draws: Draws) -> list[int]:
        return self.noise.add(values, draws)

    def half_width(self, count: int) -> int:  # noqa: ARG002 - all counts are alike
        return self.noise.half_width(BETA)

    @property
    def variances(self) -> list[float]:
        return [self.noise.variance] * self.noise.count


@dataclass(frozen=True)
class _Laplace(GroupNoise):
    name: ClassVar[str] = "laplace"
    count: int
    scale: float

    def add(self, values: Sequence[int], draws: Draws) -> list[int]:
        return draws.laplace(values, self.scale)

    def half_width(self, count: int) -> int:  # noqa: ARG002 - all counts are alike
        return laplace_half_width(self.scale, BETA)

    @property
    def variances(self) -> list[float]:
        return [laplace_variance(self.scale)] * self.count


@dataclass(frozen=True)
class _Hull(GroupNoise):
    name: ClassVar[str] = "hull"
    noise: HullNoise | ExclusiveNoise

    def add(self, values: Sequence[int], draws: Draws) -> list[int]:
        return self.noise.add(values, draws)

    def half_width(self, count: int) -> int:
        return self.noise.half_width(count, BETA)

    @property
    def variances(self) -> list[float]:
        return self.noise.variances


@dataclass(frozen=True)
class _Exclusive(_Hull):
    name: ClassVar[str] = "exclusive"


def patterns(groups: Sequence[Sequence[Record]]) -> list[tuple[int, ...]]:
    """Return what one person may answer: 1 for each group that the person's item is in."""
    held = [set(group) for group in groups]
    items = dict.fromkeys(item for group in groups for item in group)
    return sorted({(0,) * len(held), *(tuple(int(item in group) for group in held) for item in items)})


def group_noises(answers: Sequence[tuple[int, ...]], epsilon: Fraction) -> list[GroupNoise]:
    """Return the kinds of noise for these possible answers, the smallest error first."""
    count = len(answers[0])
    found: list[GroupNoise] = [
        _Cube(CubeNoise(count, epsilon)),
        _Laplace(count, laplace_scale(_moved(answers), epsilon)),
    ]
    if len(answers) <= _MOST_PATTERNS:
        if (hull := hull_noise(answers, epsilon)) is not None:
            found.append(_Hull(hull))
        if (exclusive := exclusive_noise(answers, epsilon)) is not None:
            found.append(_Exclusive(exclusive))
    return sorted(found, key=lambda noise: round(noise.error, 6))  # where two are the same law, the first one


def _moved(answers: Sequence[tuple[int, ...]]) -> int:
    """Return the largest distance of two answers, or a bound of it where there are very many."""
    rows: npt.NDArray[np.int64] = np.array(answers, np.int64)
    if len(rows) > _MOST_PATTERNS:
        return min(int(rows.shape[1]), 2 * int(rows.sum(axis=1).max()))
    sizes = rows.sum(axis=1)
    return int((sizes[:, None] + sizes[None, :] - 2 * rows @ rows.T).max())


@dataclass(frozen=True)
class KNormCounts(CentralMechanism):
    """How many people hold one of the items of each group; groups may overlap."""

    kind: ClassVar[str] = "overlapping"
    groups: tuple[tuple[Record, ...], ...]
    epsilon: Fraction

    def __post_init__(self) -> None:
        if not 1 <= len(self.groups) <= _MOST or not all(self.groups):
            raise InvalidSpec(f"give 1 to {_MOST} groups of items, none of them empty")
        if self.epsilon <= 2 * MARGIN:
            raise InvalidSpec("the noise of this release would be infinite: give a larger epsilon")

    @property
    def price(self) -> CentralPrice:
        return CentralPrice.pure(self.epsilon)

    @cached_property
    def noise(self) -> GroupNoise:
        return group_noises(patterns(self.groups), self.epsilon)[0]

    def parameters(self) -> dict[str, object]:
        return {
            "groups": [list(group) for group in self.groups],
            "epsilon": str(self.epsilon),
            "noise": self.noise.name,
        }

    def run(self, records: Sequence[Record], draws: Draws) -> Outcome:
        truth = [sum(record in held for record in records) for held in (set(group) for group in self.groups)]
        noisy = self.noise.add(truth, draws)
        rows: list[ReleasedRow] = [
            clipped(" or ".join(str(one) for one in group), noisy[place], self.noise.half_width(place), len(records))
            for place, group in enumerate(self.groups)
        ]
        note = "people who hold one of the items of each group; each interval holds with probability 95%"
        return Outcome(tuple(rows), note, details={"noise": self.noise.name, "variances": self.noise.variances})
