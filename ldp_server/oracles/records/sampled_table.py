"""The oracle of one table out of several: it gives tables of the record's fields, and no frequencies of whole records.

A table that is asked for is worked out from all tables that were drawn and have its fields (records/view.py).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from ldp_client.mechanisms.linear_hash import LinearHash
from ldp_client.mechanisms.randomized_response import RandomizedResponse
from ldp_client.mechanisms.records.sampled_table import SampledTable
from ldp_server.arrays.transform import drawn as points_drawn
from ldp_server.oracles.base import Oracle
from ldp_server.oracles.independence.chances import Chance
from ldp_server.oracles.linear_hash import report_chances
from ldp_server.oracles.records.pooled import Pooling
from ldp_server.oracles.records.state import TableCounts
from ldp_server.oracles.shared.counts import Counts

__all__ = ["SampledTableOracle"]


class SampledTableOracle(Oracle):
    """Counts of (table, answer)."""

    kind: ClassVar[type[SampledTable]] = SampledTable
    state: ClassVar[type[Counts]] = TableCounts
    instead: ClassVar[str] = "name the fields of a table that devices were asked about (`ldp-server estimate --fields`)"
    counts: TableCounts
    pooling: Pooling | None = None
    """What the tables say together, until the counts change (records/view.py)."""

    def __init__(self, randomizer: SampledTable) -> None:
        super().__init__(randomizer)
        self.tables = randomizer.tables
        self.likely = [float(randomizer.chance(j)) for j in range(len(self.tables))]

    def set_counts(self, counts: Counts) -> None:
        super().set_counts(counts)
        self.pooling = None

    def _forget(self) -> None:
        self.pooling = None

    def points(self) -> Iterable[Iterable[npt.NDArray[np.integer]]]:
        """Each table that is answered by linear hash has points of its own."""
        for j, table in enumerate(self.tables):
            if isinstance(table.inner, LinearHash):
                yield (points_drawn(self.counts.part(j), table.inner.q),)

    def teams(self) -> Sequence[Chance]:
        """Which table a device answers does not depend on what it holds."""
        drawn, likely = self.counts.drawn(), np.array(self.likely)
        kinds = np.unique(likely)
        return [Chance(drawn[likely == one], self.reports, float(one), float(one), of=len(kinds)) for one in kinds]

    def chances(self) -> Sequence[Chance]:
        """The largest and the least probability of an answer, times that of its table."""
        found = []
        for j, (table, likely) in enumerate(zip(self.tables, self.likely, strict=True)):
            inner, place = table.inner, None
            if isinstance(inner, LinearHash):
                most, least = report_chances(inner)
                place = int(self.counts.edges[j])
            elif isinstance(inner, RandomizedResponse):
                most, least = (float(inner.response.probability(0, answer)) for answer in (0, inner.size - 1))
            else:
                most, least = (float(one) for one in inner.support)
            part = self.counts.part(j)
            found.append(Chance(part, self.reports, likely * most, likely * least, place=place, of=len(self.tables)))
        return found
