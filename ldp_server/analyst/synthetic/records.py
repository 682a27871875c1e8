"""All tables of a collection of records, and synthetic records that have these tables.

The server gives the tables. The law is fitted and the records are drawn here, in the analyst's own process: it takes
seconds for a record of millions of cells, and the server has nothing to do with it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from ldp_client.errors import InvalidSpec
from ldp_client.protocol.domain import Integers, Record, YesNo
from ldp_client.protocol.v1 import analyst_pb2 as pb
from ldp_server.analyst.answer import Answer, with_info
from ldp_server.analyst.collections import CollectionInfo
from ldp_server.answers.over_time.periods import PeriodSpan
from ldp_server.answers.synthetic.fit import JointLaw, fitted
from ldp_server.answers.synthetic.tables import TablesAnswer
from ldp_server.answers.wire import from_wire
from ldp_server.tables.table import AnswerTable, ColumnKind, TableColumn

__all__ = ["CollectionTables", "SyntheticRecords"]


@dataclass(frozen=True)
class SyntheticRecords(Answer):
    """Records that no user holds: drawn from a law that has the estimated tables."""

    reports: int = 0
    """From so many reports the tables were estimated."""
    records: int = 0
    seed: int | None = None
    left_out: tuple[tuple[str, ...], ...] = ()
    """The sets of fields that are no more than noise, or not told from it: the records have nothing of them."""
    confidence: float = 0.0
    """There are no intervals."""
    coverage: str = "no intervals: synthetic records"
    law: JointLaw | None = field(default=None, repr=False, compare=False, metadata={"json": "never"})
    values: npt.NDArray[np.intp] | None = field(default=None, repr=False, compare=False, metadata={"json": "never"})
    """The index of each field, a line for each field."""
    ROWS: ClassVar[str] = "values"

    @property
    def table(self) -> AnswerTable:
        """A column for each field; a field without an answer is an empty cell."""
        if self.law is None or self.values is None:
            raise InvalidSpec("these records were not drawn: ask CollectionTables.synthetic for them")
        columns = []
        for one, line in zip(self.law.record.fields, self.values, strict=True):
            kind = ColumnKind.TEXT
            if isinstance(one.domain, Integers):
                kind = ColumnKind.INTEGER
            elif isinstance(one.domain, YesNo):
                kind = ColumnKind.FLAG
            items = [one.domain.item(index) for index in range(one.domain.size)]
            bounds = (one.domain.lowest, one.domain.highest) if isinstance(one.domain, Integers) else None
            columns.append(TableColumn(one.name, kind, [items[index] for index in line.tolist()], bounds))
        return AnswerTable(tuple(columns), self.metadata)


@dataclass(frozen=True)
class CollectionTables(Answer, TablesAnswer):
    """All tables of a collection, and the collection that they are about."""

    confidence: float = 0.9
    """Of the effects that are told from noise, a tenth are noise on average."""
    coverage: str = "told effects, on average"
    ROWS: ClassVar[str] = "signals"

    @property
    def record(self) -> Record:
        domain = self.about.collection.domain
        if not isinstance(domain, Record):
            raise InvalidSpec("this collection has no records")
        return domain

    def synthetic(
        self,
        records: int,
        *,
        fields: Iterable[str] = (),
        strict: bool = False,
        seed: int | None = None,
        progress: Callable[[str, float], None] = lambda _stage, _part: None,
    ) -> SyntheticRecords:
        """Return so many synthetic records of all fields, or of these; `InvalidSpec` where there is no signal.

        With `strict`, only what is told from noise goes together in them: weak connections are lost.
        """
        law = fitted(self.record, self, tuple(fields), strict=strict, progress=progress)
        made = SyntheticRecords(
            reports=self.reports,
            records=records,
            seed=seed,
            left_out=law.left_out,
            law=law,
            values=law.drawn(records, seed),
        )
        return replace(made, info=self.info, periods=self.periods)

    @classmethod
    def of(cls, response: pb.TablesResponse) -> CollectionTables:
        periods = from_wire(PeriodSpan, response.periods) if response.HasField("periods") else None
        found = replace(from_wire(cls, response), periods=periods)
        return with_info(found, CollectionInfo.of(response.collection))
