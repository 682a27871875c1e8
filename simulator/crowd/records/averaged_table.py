"""Many rounded numbers with their cells, the twin of ldp_client/mechanisms/records/averaged_table.py."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ldp_client.mechanisms.records.averaged_table import AveragedTable
from ldp_server.arrays.hashing import Indexes
from simulator import crowd

__all__ = ["randomize"]

U64 = npt.NDArray[np.uint64]


def randomize(randomizer: AveragedTable, indexes: Indexes, words: U64) -> U64:
    """Return every user's report."""
    stride, size = (np.uint64(one[randomizer.number]) for one in (randomizer.record.strides, randomizer.record.sizes))
    above, below = np.divmod(indexes.astype(np.uint64, copy=False), stride)
    above, held = np.divmod(above, size)
    distances, inverse = np.unique(held, return_inverse=True)
    # The largest word that rounds up, for each different number: u R < v N, and so u <= (v N - 1) // R. None for v = 0.
    last = [(((int(v) - 1) << 64) - 1) // randomizer.reach if v > 1 else 0 for v in distances]
    up = (held > 1) & (words[:, 0] <= np.array(last, np.uint64)[inverse])
    cell = below + above * stride
    elements = np.uint64(randomizer.base) + np.uint64(randomizer.step) * cell + up
    return crowd.randomize(randomizer.inner, np.where(held > 0, elements, np.uint64(0)), words[:, 1:])
