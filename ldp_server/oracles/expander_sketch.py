"""The oracle of the expander sketch, in both forms.

In the practical form an item's frequency is estimated as for every sketch of teams (team_sketch.py). In the paper's
form every report is two reports, and a Hashtogram oracle of the second ones estimates the frequency.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import ClassVar, Self

import numpy as np
import numpy.typing as npt

from ldp_client.errors import InvalidSpec, ServerRefused
from ldp_client.mechanisms.base import Randomizer
from ldp_client.mechanisms.expander_sketch import ExpanderSketch
from ldp_server.arrays.hashing import Indexes
from ldp_server.arrays.packing import pack, unpack
from ldp_server.oracles.base import Floats
from ldp_server.oracles.hashtogram import HashtogramOracle
from ldp_server.oracles.independence.chances import Chance
from ldp_server.oracles.shared.counts import Counts
from ldp_server.oracles.shared.team_sketch import TeamSketchOracle

__all__ = ["ExpanderSketchOracle"]

_STATE = struct.Struct("<8sQ")
_MAGIC = b"LDPTWO01"


class ExpanderSketchOracle(TeamSketchOracle):
    """Counts of (team, point, answer); with two reports, `second` counts the ones about the item itself."""

    kind: ClassVar[type[ExpanderSketch]] = ExpanderSketch

    def __init__(self, randomizer: ExpanderSketch) -> None:
        if not isinstance(randomizer, ExpanderSketch):
            raise InvalidSpec(f"this oracle reads reports of {self.kind.name}, not of {randomizer.name}")
        self._whole = randomizer
        self.second = None if randomizer.oracle is None else HashtogramOracle(randomizer.oracle)
        super().__init__(randomizer if randomizer.sketch is None else randomizer.sketch)

    @property
    def randomizer(self) -> ExpanderSketch:
        return self._whole

    def accumulate(self, payload: bytes) -> int:
        oracle = self._whole.oracle
        if self.second is None or oracle is None:
            return super().accumulate(payload)
        reports = unpack(payload, self._whole.report_bytes, self._whole.bound).astype(np.uint64)
        first, rest = np.divmod(reports, np.uint64(oracle.bound))
        self.second.accumulate(pack(rest, oracle.report_bytes))
        return super().accumulate(pack(first, self._sketch.report_bytes))

    def points(self) -> Iterable[Iterable[npt.NDArray[np.integer]]]:
        """The points of the second reports are drawn independently of those of the first."""
        yield from super().points()
        if self.second is not None:
            yield from self.second.points()

    def teams(self) -> Sequence[Chance]:
        if self.second is None:
            return super().teams()
        return [replace(chance, of=2) for chance in (*super().teams(), *self.second.teams())]

    def chances(self) -> Iterable[Chance]:
        """With two reports nothing is left out: the counts of both belong together."""
        if self.second is None:
            yield from super().chances()
            return
        for chance in (*super().chances(), *self.second.chances()):
            yield replace(chance, place=None, of=2 * chance.of)

    def merge(self, other: Self) -> None:
        super().merge(other)
        if self.second is not None and other.second is not None:
            self.second.merge(other.second)

    def to_bytes(self) -> bytes:
        """The state; with two reports, both, the length of the first before them."""
        first = super().to_bytes()
        return first if self.second is None else _STATE.pack(_MAGIC, len(first)) + first + self.second.to_bytes()

    @classmethod
    def from_bytes(cls, randomizer: Randomizer, data: bytes) -> Self:
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
        return super().estimate(indexes) if self.second is None else self.second.estimate(indexes)

    def variance(self, frequencies: npt.ArrayLike) -> Floats:
        return super().variance(frequencies) if self.second is None else self.second.variance(frequencies)

    def intervals(self, indexes: Indexes, estimates: Floats, tail: float) -> tuple[Floats, Floats]:
        if self.second is None:
            return super().intervals(indexes, estimates, tail)
        return self.second.intervals(indexes, estimates, tail)

    def sum_variance(self, indexes: Indexes, frequencies: npt.ArrayLike) -> float:
        if self.second is None:
            return super().sum_variance(indexes, frequencies)
        return self.second.sum_variance(indexes, frequencies)
