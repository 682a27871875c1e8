"""Questions about eight yes/no fields: all pairs of them, and sets of two of which people have both or any."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import Any, ClassVar

import numpy as np

from ldp_server.curator.draws import Draws
from ldp_server.curator.people import Record
from ldp_server.curator.releases.base import CentralMechanism, Outcome
from ldp_server.curator.releases.partial.mwem import PairTable
from ldp_server.curator.releases.partial.projection import ProjectedConjunctions
from ldp_server.curator.workloads.asking.sets import AnyOfSets
from ldp_server.curator.workloads.fourier import LaplaceFourier
from ldp_server.curator.workloads.mwem import MwemTables
from ldp_server.curator.workloads.online import OnlineTables
from ldp_server.curator.workloads.tables import LaplaceTables
from ldp_server.curator.workloads.universe import Workload, pairs
from simulator.hybrid.kinds import Floats, PairTables, People
from simulator.price.question import OfHybrid

__all__ = ["AnyOfTwo", "BothOfTwo", "PairCells"]

_RECORD = PairTables.RECORD
_WORK = Workload(_RECORD, pairs(_RECORD))
_FIELDS = len(_RECORD.names)
_PAIRS = tuple(combinations(range(_FIELDS), 2))
"""In the order of the tables. A cell's number is that of the first field, and twice that of the second."""
_LOCAL = "one parity of at most two fields each"


def _cells(people: People) -> Floats:
    """Return the shares of all cells of all pairs."""
    counts = _WORK.histogram(people.tolist())
    return np.concatenate([_WORK.of_cells(table, counts) for table in range(len(_PAIRS))]) / len(people)


def _texts(people: People) -> list[str]:
    """Return each person's fields as a text of 0 and 1, the first field first."""
    return [format(held, f"0{_FIELDS}b")[::-1] for held in people.tolist()]


class PairCells(OfHybrid):
    """Every cell of all pairs."""

    hybrid = PairTables
    text, local = "every cell of all pairs of 8 yes/no fields", _LOCAL
    releases: ClassVar = {
        "tables": lambda epsilon: LaplaceTables(_WORK, epsilon),
        "fourier": lambda epsilon: LaplaceFourier(_WORK, epsilon),
        "mwem": lambda epsilon: MwemTables(_WORK, epsilon),
        "online": lambda epsilon: OnlineTables(_WORK, epsilon, 40),
    }

    def columns(self, people: People) -> Sequence[Sequence[Record]]:
        return [people.tolist()]

    def outcome(self, made: CentralMechanism, people: People, draws: Draws) -> Outcome:
        """The people are cells already, so nothing is read from texts."""
        return made.run(people.tolist(), draws)


class BothOfTwo(OfHybrid):
    """How many people have both of two fields."""

    hybrid = PairTables
    text, local = "how many people have both of 2 of 8 yes/no fields, as a share", _LOCAL
    releases: ClassVar = {
        "projected-counts": lambda epsilon: ProjectedConjunctions(_FIELDS, 2, epsilon**2 / 2),
        "pair-table": lambda epsilon: PairTable(_FIELDS, epsilon**2 / 2, 1, 300),
    }

    def truth(self, people: People) -> Floats:
        return self._both(_cells(people))

    def reported(self, people: People, seed: int) -> Floats:
        return self._both(np.asarray(super().reported(people, seed)))

    def _both(self, cells: Floats) -> Floats:
        return cells.reshape(-1, 4)[:, 3]

    def columns(self, people: People) -> Sequence[Sequence[Record]]:
        return [_texts(people)]

    def released(self, made: CentralMechanism, outcome: Outcome, people: int) -> Floats:
        counts = [row.count or 0 for row in outcome.rows]
        if made.kind == PairTable.kind:
            held = np.repeat([int(str(row.item)[::-1], 2) for row in outcome.rows], counts)
            return self._both(_cells(held)) * len(held) / people
        return np.array(counts) / people


class AnyOfTwo(PairCells):
    """How many people have a field, or any of two."""

    text = "how many people have any of up to 2 of 8 yes/no fields, as a share"
    releases: ClassVar = {"any-of": lambda epsilon: AnyOfSets(_RECORD, epsilon, 2)}

    def truth(self, people: People) -> Floats:
        return self._any(_cells(people))

    def reported(self, people: People, seed: int) -> Floats:
        return self._any(np.asarray(super().reported(people, seed)))

    def _any(self, cells: Floats) -> Floats:
        """The fields alone, each averaged over its seven pairs, and then the pairs: all cells but that of nobody."""
        tables = cells.reshape(-1, 4)
        alone = np.zeros(_FIELDS)
        for (first, second), (_, one, other, both) in zip(_PAIRS, tables.tolist(), strict=True):
            alone[first] += one + both
            alone[second] += other + both
        return np.concatenate([alone / (_FIELDS - 1), 1 - tables[:, 0]])

    def released(self, made: CentralMechanism, outcome: Outcome, people: int) -> Any:
        del made
        return np.array([row.count or 0 for row in outcome.rows]) / people
