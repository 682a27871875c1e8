"""The state of mechanisms whose report is a set of d of some elements: how many reports hold each element."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ldp_client.mechanisms.base import Randomizer
from ldp_server.arrays.subsets import subsets
from ldp_server.oracles.shared.counts import Counts

__all__ = ["Supports"]

_CHUNK = 1 << 14  # ldp_server/answers/candidates.py counts the memory of that many


class Supports(Counts):
    """One cell for each element; a report adds one to `d` of them."""

    def __init__(self, randomizer: Randomizer, elements: int, d: int) -> None:
        super().__init__(randomizer, cells=elements, each=d)
        self._d = d

    def _add(self, reports: npt.NDArray[np.unsignedinteger]) -> None:
        for start in range(0, len(reports), _CHUNK):
            part = reports[start : start + _CHUNK].astype(np.uint64)
            found = subsets(self.cells, np.full(len(part), self._d, np.intp), part)
            self.values += found.sum(axis=1, dtype=self.values.dtype)
