"""The oracles of the sketches of teams (expander sketch, trees): counts by team, and estimates of given items.

In team m, with n_m reports, fhat_m(cell_m(x)) estimates the team's holders of all items that share x's cell. Removing
the expected collisions, f(x) = sum over m of K/(K-1) (fhat_m(cell_m(x)) - n_m/K), K the cells a team uses, is unbiased
over the choice of the hashes for any team sizes, with variance n v plus collisions (hashtogram.py has the same terms;
at the usual K = 2^22 they are far below the noise). A tree's item is told by its last payload and by the levels that
check it: only their users count, scaled up.

ldp_server/heavy_hitters finds the items; here they are given.
"""

from __future__ import annotations

import struct
from typing import ClassVar, Self

import numpy as np
import numpy.typing as npt

from ldp_client.errors import InvalidSpec, ServerRefused
from ldp_client.mechanisms.base import Randomizer
from ldp_client.mechanisms.expander_sketch import ExpanderSketch
from ldp_client.mechanisms.prefix_tree import PrefixTree
from ldp_client.mechanisms.team_sketch import TeamSketch
from ldp_client.mechanisms.tree_sketch import TreeSketch
from ldp_server.arrays.hashing import Indexes
from ldp_server.arrays.packing import pack, unpack
from ldp_server.arrays.team_cells import bulk_code
from ldp_server.oracles.base import Floats, Oracle, binomial_variance
from ldp_server.oracles.counts import Counts
from ldp_server.oracles.hashtogram import HashtogramOracle
from ldp_server.oracles.linear_hash import binomial_skewness
from ldp_server.oracles.rows import RowCounts

__all__ = ["ExpanderSketchOracle", "PrefixTreeOracle", "TeamSketchOracle", "TreeSketchOracle"]


class TeamSketchOracle(Oracle):
    """Counts of (team, point, answer)."""

    def __init__(self, randomizer: TeamSketch) -> None:
        self._sketch = randomizer
        self._second_moments: dict[int, float] = {}
        super().__init__(randomizer)

    @property
    def sketch(self) -> TeamSketch:
        """The mechanism of the counts by team (of the first report, where there are two)."""
        return self._sketch

    @property
    def rows(self) -> RowCounts:
        """The counts, team by team."""
        return self._rows

    @property
    def cells(self) -> int:
        """How many of the q^t cells a team uses."""
        code = bulk_code(self._sketch).code
        return 1 << code.cell_bits

    @property
    def telling(self) -> range:
        """The teams whose cells depend on the whole item."""
        return range(self._sketch.teams)

    def set_counts(self, counts: Counts) -> None:
        """Take the state, seen team by team."""
        super().set_counts(counts)
        self._rows = RowCounts(counts, self._sketch.inner, self._sketch.teams)

    def _forget(self) -> None:
        self._rows.forget()
        self._second_moments.clear()

    def _scale(self) -> float:
        """All users over those of the telling teams."""
        told = int(self._rows.row_totals[list(self.telling)].sum())
        return self.counts.total / told if told else 0.0

    def estimate(self, indexes: Indexes) -> Floats:
        """Raw estimates."""
        code, size = bulk_code(self._sketch), self.cells
        blocks = code.permuted(indexes)
        out = np.zeros(len(indexes))
        for team in self.telling:
            line = self._rows.cell_estimates(team)
            out += line[code.block_cells(blocks, team)] - self._rows.row_totals[team] / size
            if team not in self._second_moments:
                self._second_moments[team] = self._second_moment(team, line[:size])
        return np.asarray(out * (size / (size - 1)) * self._scale())

    def _second_moment(self, team: int, line: npt.NDArray[np.float32]) -> float:
        """An unbiased estimate of the sum of the squared numbers of the team's holders of each item, at least 0."""
        users, size = float(self._rows.row_totals[team]), self.cells
        squares = float(np.vdot(line, line))
        noise = float(self._rows.cell_variance(team, users)) + (size - 1) * float(self._rows.cell_variance(team, 0.0))
        return max(0.0, (squares - noise - users**2 / size) / (1 - 1 / size))

    def variance(self, frequencies: npt.ArrayLike) -> Floats:
        """Noise and collisions, and the draw of the telling teams where they are not all."""
        f, size, scale = np.asarray(frequencies, float), self.cells, self._scale()
        if not scale:
            return np.zeros(f.shape)
        if any(team not in self._second_moments for team in self.telling):
            for team in self.telling:
                self._second_moments[team] = self._second_moment(team, self._rows.cell_estimates(team)[:size])
        noise = binomial_variance(f / scale, self.counts.total / scale, self._rows.p, self._rows.s)
        draw = np.clip(f, 0, None) / scale * (1 - 1 / scale)
        others = max(0.0, sum(self._second_moments[team] for team in self.telling))
        return np.asarray((noise * (size / (size - 1)) ** 2 + draw + others / (size - 1)) * scale**2)

    @property
    def skewness(self) -> float:
        """Of the noise."""
        scale = self._scale()
        return binomial_skewness(round(self.counts.total / scale), self._rows.s) if scale else 0.0

    @property
    def can_list(self) -> bool:
        """A sketch is for domains that nobody lists."""
        return False


class TreeSketchOracle(TeamSketchOracle):
    """The tree sketch's."""

    kind: ClassVar[type[Randomizer]] = TreeSketch

    def __init__(self, randomizer: TreeSketch) -> None:
        if not isinstance(randomizer, self.kind):
            raise InvalidSpec(f"this oracle reads reports of {self.kind.name}, not of {randomizer.name}")
        self._telling = range(randomizer.teams - 1 - randomizer.check_levels, randomizer.teams)
        super().__init__(randomizer)

    @property
    def telling(self) -> range:
        """The last payload's level and those that check."""
        return self._telling


class PrefixTreeOracle(TreeSketchOracle):
    """The prefix tree's."""

    kind: ClassVar[type[Randomizer]] = PrefixTree


_STATE = struct.Struct("<8sQ")
_MAGIC = b"LDPTWO01"


class ExpanderSketchOracle(TeamSketchOracle):
    """The expander sketch's, in both forms; with two reports, `second` counts the ones about the item itself."""

    kind: ClassVar[type[Randomizer]] = ExpanderSketch

    def __init__(self, randomizer: ExpanderSketch) -> None:
        if not isinstance(randomizer, ExpanderSketch):
            raise InvalidSpec(f"this oracle reads reports of {self.kind.name}, not of {randomizer.name}")
        self._whole = randomizer
        self.second = None if randomizer.oracle is None else HashtogramOracle(randomizer.oracle)
        super().__init__(randomizer if randomizer.sketch is None else randomizer.sketch)

    @property
    def randomizer(self) -> ExpanderSketch:
        """The mechanism with its parameters."""
        return self._whole

    def accumulate(self, payload: bytes) -> int:
        """Count the reports packed in a payload; all or nothing."""
        oracle = self._whole.oracle
        if self.second is None or oracle is None:
            return super().accumulate(payload)
        reports = unpack(payload, self._whole.report_bytes, self._whole.bound).astype(np.uint64)
        first, rest = np.divmod(reports, np.uint64(oracle.bound))
        self.second.accumulate(pack(rest, oracle.report_bytes))
        return super().accumulate(pack(first, self._sketch.report_bytes))

    def merge(self, other: Self) -> None:
        """Add the counts of another oracle of the same mechanism."""
        super().merge(other)
        if self.second is not None and other.second is not None:
            self.second.merge(other.second)

    def to_bytes(self) -> bytes:
        """The state; with two reports, both, the length of the first before them."""
        first = super().to_bytes()
        return first if self.second is None else _STATE.pack(_MAGIC, len(first)) + first + self.second.to_bytes()

    @classmethod
    def from_bytes(cls, randomizer: Randomizer, data: bytes) -> Self:
        """The oracle whose `to_bytes` this is."""
        if not isinstance(randomizer, ExpanderSketch):
            raise InvalidSpec(f"this oracle reads reports of {cls.kind.name}, not of {randomizer.name}")
        oracle = cls(randomizer)
        if oracle.second is None or randomizer.sketch is None or randomizer.oracle is None:
            oracle.set_counts(Counts.from_bytes(randomizer, data))
            return oracle
        if len(data) < _STATE.size or not data.startswith(_MAGIC):
            raise ServerRefused("BAD_STATE", "saved counts are of another version or another mechanism")
        _, length = _STATE.unpack_from(data)
        body = data[_STATE.size :]
        oracle.set_counts(Counts.from_bytes(randomizer.sketch, body[:length]))
        oracle.second = HashtogramOracle.from_bytes(randomizer.oracle, body[length:])
        if oracle.second.reports != oracle.reports:
            raise ServerRefused("BAD_STATE", "saved counts do not belong together")
        return oracle

    def estimate(self, indexes: Indexes) -> Floats:
        """Raw estimates: of the second report where there is one."""
        return super().estimate(indexes) if self.second is None else self.second.estimate(indexes)

    def variance(self, frequencies: npt.ArrayLike) -> Floats:
        """Its variance."""
        return super().variance(frequencies) if self.second is None else self.second.variance(frequencies)

    @property
    def skewness(self) -> float:
        """Its skewness."""
        return super().skewness if self.second is None else self.second.skewness
