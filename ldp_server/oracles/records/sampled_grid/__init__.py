"""The oracle of places on a map: how many users are in an area, from three grids that are made to agree.

What each report counts for is in sums.py, how the grids agree in agreeing.py, the areas in areas.py.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from ldp_client.mechanisms.linear_hash import LinearHash
from ldp_client.mechanisms.records.sampled_grid import SampledGrid
from ldp_server.arrays.transform import drawn
from ldp_server.oracles.base import Floats, NumbersOracle, TooFewReports
from ldp_server.oracles.independence.chances import Chance
from ldp_server.oracles.linear_hash import LinearHashOracle, report_chances
from ldp_server.oracles.randomized_response import RandomizedResponseOracle
from ldp_server.oracles.records.sampled_grid.agreeing import AgreedGrids, agreed
from ldp_server.oracles.records.sampled_grid.areas import AreaBounds, area_bounds
from ldp_server.oracles.records.sampled_grid.sums import GridReports

__all__ = ["SampledGridOracle"]


class SampledGridOracle(NumbersOracle):
    """Counts of (grid, answer)."""

    kind: ClassVar[type[SampledGrid]] = SampledGrid
    instead: ClassVar[str] = "ask for the users in areas of its map (`ldp-server map`)"

    def __init__(self, randomizer: SampledGrid) -> None:
        super().__init__(randomizer)
        self.grid = randomizer
        self._likely = [float(randomizer.chance(j)) for j in range(3)]
        self._agreed: AgreedGrids | None = None

    def _forget(self) -> None:
        self._agreed = None

    def _parts(self) -> list[npt.NDArray[np.uint32] | npt.NDArray[np.uint64]]:
        """The counts of each grid."""
        return [self.counts.values[a:b] for a, b in pairwise(self.grid.starts)]

    def _users(self) -> Floats:
        """How many users drew each grid."""
        return np.array([part.sum(dtype=np.int64) for part in self._parts()], np.float64)

    def points(self) -> Iterable[Iterable[npt.NDArray[np.integer]]]:
        """Each grid that is answered by linear hash has points of its own."""
        for response, part, likely in zip(self.grid.responses, self._parts(), self._likely, strict=True):
            if likely and isinstance(response, LinearHash):
                yield (drawn(part, response.q),)

    def teams(self) -> Sequence[Chance]:
        """Which grid a device answers does not depend on its place."""
        users, likely = self._users().astype(np.int64), np.array(self._likely)
        kinds = np.unique(likely[likely > 0])
        if len(kinds) == 1 and kinds[0] == 1:
            return ()
        return [Chance(users[likely == one], self.reports, float(one), float(one), of=len(kinds)) for one in kinds]

    def chances(self) -> Sequence[Chance]:
        found = []
        for j, (response, likely) in enumerate(zip(self.grid.responses, self._likely, strict=True)):
            if not likely:
                continue
            place = None
            if isinstance(response, LinearHash):
                (most, least), place = report_chances(response), self.grid.starts[j]
            else:
                most, least = (float(response.response.probability(0, answer)) for answer in (0, response.size - 1))
            found.append(
                Chance(self._parts()[j], self.reports, likely * most, likely * least, place=place, of=len(self._likely))
            )
        return found

    def estimates(self, drawn_grid: int) -> Floats:
        """How many of all users have each element of a grid, `none` first."""
        response, part = self.grid.responses[drawn_grid], self._parts()[drawn_grid]
        if isinstance(response, LinearHash):
            inner: LinearHashOracle | RandomizedResponseOracle = LinearHashOracle(response)
        else:
            inner = RandomizedResponseOracle(response)
        inner.counts.values, inner.counts.total = part, int(part.sum(dtype=np.int64))
        return inner.estimate_all() * (self.reports / inner.reports)

    def agreed(self) -> AgreedGrids:
        """The three grids after least squares, kept until the counts change."""
        if self._agreed is None:
            used = [j for j in range(3) if self._likely[j]]
            users = self._users()
            if not self.reports or not all(users[j] for j in used):
                raise TooFewReports("a grid of the map has no reports yet: more users are needed")
            reports = {
                j: GridReports(self.grid.responses[j], self._parts()[j], float(self.reports), float(users[j]))
                for j in used
            }
            self._agreed = agreed(self.grid, {j: self.estimates(j) for j in used}, reports)
        return self._agreed

    def holders(self) -> float:
        return float(min(max(self.reports - self.agreed().nowhere, 0.0), self.reports))

    def area(self, x: tuple[int, int], y: tuple[int, int], confidence: float) -> AreaBounds:
        """Return how many users are in an area, its ends as distances from the lowest, both included."""
        return area_bounds(self.agreed(), x, y, confidence)
