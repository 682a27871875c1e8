"""The oracle of every field at an epsilon of its own: the product of the tables of its fields (shared/product.py).

With T words for the truth, W for each lie, r left over and d = (T - W)/N, the table of a field of s elements is

    A = d I + 1 q',   q_y = (W + floor(r/s) + [y < r mod s]) / N,   so its inverse is   M[v, y] = ([v = y] - q_v) / d.
"""

from __future__ import annotations

from functools import lru_cache
from typing import ClassVar

import numpy as np

from ldp_client.mechanisms.records.every_field import EveryField
from ldp_server.oracles.shared.axis_table import AxisTable, extremes
from ldp_server.oracles.shared.product import ProductOracle

__all__ = ["EveryFieldOracle"]


class EveryFieldOracle(ProductOracle):
    """Counts of whole answers."""

    kind: ClassVar[type[EveryField]] = EveryField

    def axis_tables(self) -> tuple[AxisTable, ...]:
        made = self.randomizer
        if not isinstance(made, EveryField):
            raise AssertionError("the oracle of every-field reads its reports")
        return tuple(_table(one.truth, one.lie, one.spare, one.k, one.word_bits) for one in made.responses)


@lru_cache(maxsize=32)
def _table(truth: int, lie: int, spare: int, k: int, word_bits: int) -> AxisTable:
    total = float(1 << word_bits)
    kept = (truth - lie) / total
    said = (lie + spare // k + (np.arange(k) < spare % k)) / total
    table = kept * np.eye(k) + said
    inverse = (np.eye(k) - said[:, None]) / kept
    squares, cubes = ((table * inverse**power).sum(axis=1) for power in (2, 3))
    return AxisTable(table, inverse, squares, cubes, *extremes(table, inverse))
