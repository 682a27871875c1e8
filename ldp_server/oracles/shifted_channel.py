"""The oracle of shifted channels: the product of the tables of its axes (shared/product.py)."""

from __future__ import annotations

from typing import ClassVar

from ldp_client.mechanisms.shifted_channel import ShiftedChannel
from ldp_server.oracles.shared.axis_table import AxisTable, axis_table
from ldp_server.oracles.shared.product import ProductOracle

__all__ = ["ShiftedChannelOracle"]


class ShiftedChannelOracle(ProductOracle):
    """Counts of reports, and the inverses of the axes' tables."""

    kind: ClassVar[type[ShiftedChannel]] = ShiftedChannel

    def axis_tables(self) -> tuple[AxisTable, ...]:
        made = self.randomizer
        if not isinstance(made, ShiftedChannel):
            raise AssertionError("the oracle of a shifted channel reads its reports")
        return tuple(axis_table(axis, made.word_bits) for axis in made.axes)
