"""Records as cells of a table, for many users or cells at once: the twin of `DrawnTable.cell`."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ldp_client.mechanisms.records.sampled_table import DrawnTable

__all__ = ["cells_of", "values_of"]

U64 = npt.NDArray[np.uint64]


def cells_of(table: DrawnTable, indexes: U64) -> U64:
    """Return the cell of every record; for a parity, 0 or 1."""
    found = np.zeros(len(indexes), np.uint64)
    for stride, size, own in table.steps:
        found += indexes // np.uint64(stride) % np.uint64(size) * np.uint64(own)
    return found & np.uint64(1) if table.parity else found


def values_of(sizes: tuple[int, ...]) -> npt.NDArray[np.intp]:
    """Return the fields' values of every cell, a line for each field; the first field changes fastest."""
    cells = int(np.prod(sizes, dtype=np.int64)) if sizes else 1
    numbers, found = np.arange(cells), np.empty((len(sizes), cells), np.intp)
    for place, size in enumerate(sizes):
        numbers, found[place] = np.divmod(numbers, size)
    return found
