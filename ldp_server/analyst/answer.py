"""What every answer that an analyst gets can do: say what it is about, and become a table, a file, a page or a plot.

A kind of answer is a dataclass of two parents: `Answer`, and what was computed, which has `reports`, `confidence` and
`coverage`. `ROWS` names its field with the rows. A row's columns follow from the types of its fields
(ldp_server/tables/table.py).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, BinaryIO, ClassVar, TypeVar, overload

from ldp_client.errors import InvalidSpec
from ldp_server.analyst.collections import CollectionInfo
from ldp_server.answers.over_time.periods import PeriodSpan
from ldp_server.store.errors import translated
from ldp_server.tables.arrow import arrow_table, write_parquet
from ldp_server.tables.csv_text import METADATA_SUFFIX, csv_metadata, csv_text
from ldp_server.tables.data_frames import FrameLibrary, data_frame
from ldp_server.tables.html_text import html_text
from ldp_server.tables.metadata import AnswerMetadata, metadata_of
from ldp_server.tables.plots.drawing import AnswerPlot, draw_answer
from ldp_server.tables.table import AnswerTable, table_of

__all__ = ["Answer", "with_info"]

A = TypeVar("A", bound="Answer")


@dataclass(frozen=True)
class Answer:
    """An answer with the collection that it is about."""

    info: CollectionInfo | None = field(default=None, metadata={"json": "never"})
    days_for_half: float | None = field(default=None, metadata={"json": "unless None"})
    """In how many days half the error is reached at the present rate of reports; None: not known."""
    periods: PeriodSpan | None = field(default=None, metadata={"json": "unless None"})
    """The first and the last period that is counted; None for a question without a schedule."""
    ROWS: ClassVar[str]
    """The field with the rows."""
    EXTRA: ClassVar[tuple[str, ...]] = ()
    """Fields with one more row each, if they are not None."""

    @property
    def about(self) -> CollectionInfo:
        """The collection, which every answer of a server has."""
        if self.info is None:
            raise InvalidSpec("this answer does not say which collection it is about: ask a server")
        return self.info

    @property
    def question(self) -> str:
        return "" if self.info is None else self.info.collection.question

    @property
    def half_in_words(self) -> str:
        """How many more reports, and days, half the error takes; empty if that is not known of this kind of answer."""
        more = getattr(self, "more_for_half", None)
        if more is None:
            return ""
        start = f"half this error, as a share of the users, takes {more:,} more reports"
        if self.days_for_half is not None:
            days, rate = max(1, math.ceil(self.days_for_half)), self.about.reports_per_day or 0.0
            return f"{start}: {days:,} day{'s' if days > 1 else ''} at the present {rate:,.0f} a day"
        running = self.info is not None and self.info.state == "running"
        return f"{start}: the server cannot say yet how many days that is" if running else start

    @property
    def statement(self) -> tuple[str, ...]:
        """The privacy statement for the users who report, in sentences, as the server wrote it."""
        return () if self.info is None else self.info.statement

    @property
    def metadata(self) -> AnswerMetadata:
        """The facts that stay with the answer in every file."""
        return metadata_of(self, self.about.collection, self.statement, (self.ROWS, *self.EXTRA))

    @property
    def table(self) -> AnswerTable:
        """The rows as columns."""
        return table_of(self, self.ROWS, self.EXTRA, self.metadata, self.about.collection.domain.counted)

    def to_frame(self, library: FrameLibrary | None = None) -> Any:
        """Return the rows as a data frame of pandas or polars, as an Arrow table, or as a dict of numpy columns.

        Without a choice: pandas if it is installed, else polars, else numpy. A frame of pandas has the metadata in
        `attrs`, and an Arrow table in its schema.
        """
        return data_frame(self.table, library)

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """Let polars, pandas, DuckDB and others read the rows through Arrow's C interface (extra `parquet`)."""
        return arrow_table(self.table).__arrow_c_stream__(requested_schema)

    @overload
    def to_csv(self) -> str: ...
    @overload
    def to_csv(self, target: str | Path | BinaryIO) -> None: ...
    def to_csv(self, target: str | Path | BinaryIO | None = None) -> str | None:
        """Return the rows as CSV, or write them to a file.

        A file that is given by its name gets its metadata in a second file beside it: `NAME-metadata.json`.
        """
        made = self.table
        text = csv_text(made)
        if target is None:
            return text
        if isinstance(target, str | Path):
            path = Path(target)
            _write(path, text)
            _write(path.with_name(path.name + METADATA_SUFFIX), csv_metadata(made, path.name))
        else:
            target.write(text.encode())
        return None

    def csv_metadata(self, name: str) -> str:
        """Return the metadata of a CSV file with this name, as JSON."""
        return csv_metadata(self.table, name)

    def to_parquet(self, target: str | Path | BinaryIO) -> None:
        """Write the rows as Parquet to a file, with the metadata in its schema (extra `parquet`)."""
        made = self.table
        if not isinstance(target, str | Path):
            write_parquet(made, target)
            return
        with translated(Path(target)), Path(target).open("wb") as file:
            write_parquet(made, file)

    def plot(self, rows: int = 30) -> AnswerPlot:
        """Draw the answer, the largest `rows` of a long one (extra `plots`). A notebook shows the plot."""
        return draw_answer(self.table, self.marks(), rows)

    def marks(self) -> Mapping[str, float]:
        """The numbers of users that a plot marks with a line, by their names."""
        return {}

    def _repr_html_(self) -> str:
        """The first rows, as a notebook shows them."""
        return html_text(self.table)


def with_info(answer: A, info: CollectionInfo) -> A:
    """Return an answer with its collection, and with the days that half its error takes."""
    more, rate = getattr(answer, "more_for_half", None), info.reports_per_day
    return replace(answer, info=info, days_for_half=more / rate if more is not None and rate else None)


def _write(path: Path, text: str) -> None:
    with translated(path):
        path.write_bytes(text.encode())
