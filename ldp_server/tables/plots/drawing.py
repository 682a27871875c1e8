"""Which plot an answer gets, by the columns that its table has."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from ldp_client.errors import InvalidSpec
from ldp_server.store.errors import translated
from ldp_server.tables.extras import library
from ldp_server.tables.items import ITEM, KIND
from ldp_server.tables.plots.areas import draw_areas, is_map
from ldp_server.tables.plots.canvas import Canvas, canvas
from ldp_server.tables.plots.numbers import draw_histogram, draw_places, is_histogram
from ldp_server.tables.plots.over_time import draw_changes, draw_differences, draw_trend, drawn_lines
from ldp_server.tables.plots.pairs import draw_pairs, pair_names
from ldp_server.tables.plots.rows import draw_rows, drawn_rows
from ldp_server.tables.plots.shares import draw_shares, share_labels
from ldp_server.tables.table import AnswerTable
from ldp_server.tables.words import COVERAGE_WORDS, item_words, percent

__all__ = ["AnswerPlot", "draw_answer"]

_WIDTH = 8.0
_MOST_PAIRED = 20


@dataclass(frozen=True)
class AnswerPlot:
    """A plot: an SVG, the same text for the same answer, and the figure of matplotlib that it was made from."""

    svg: str = field(repr=False)
    figure: Any = field(repr=False)

    def _repr_svg_(self) -> str:
        return self.svg

    def save(self, path: str | Path) -> None:
        """Write the plot to a file: SVG, or by the ending of its name another format that matplotlib knows."""
        file = Path(path)
        with translated(file):
            if file.suffix in {"", ".svg"}:
                file.write_text(self.svg, encoding="utf-8")
            else:
                self.figure.savefig(file)


def draw_answer(table: AnswerTable, lines: Mapping[str, float], most: int) -> AnswerPlot:
    """Draw an answer: the `most` largest of its rows, and vertical lines with their names."""
    if most < 1:
        raise InvalidSpec("a plot shows at least one row")
    library("matplotlib", "plots", "a plot")
    names = set(table.names)
    if "label" in names:
        return _over_time(table, most)
    if "group" in names or "rule" in names:
        return _shares(table)
    if names & {"share", "holders", "name"}:
        return _places(table)
    if "users_low" in names:
        return _averages(table, most)
    return _of_users(table, names, lines, most)


def _of_users(table: AnswerTable, names: set[str], lines: Mapping[str, float], most: int) -> AnswerPlot:
    """Draw an answer whose rows are numbers of users."""
    if "first" in names and is_histogram(table):
        with _titled(table, 4.0, []) as drawing:
            draw_histogram(drawing, table)
        return _made(drawing)
    if "attributes" in names and len(table) > 1 and all(len(pair) == 2 for pair in table.column("attributes")):
        labels = pair_names(table)
        if len(labels) <= _MOST_PAIRED:
            with _titled(table, 1.4 + 0.42 * max(4, len(labels)), labels) as drawing:
                draw_pairs(drawing, table)
            return _made(drawing)
    return _map(table) if "first_x" in names and is_map(table) else _rows(table, lines, most)


def _map(table: AnswerTable) -> AnswerPlot:
    with _titled(table, 6.0, []) as drawing:
        draw_areas(drawing, table)
    return _made(drawing)


def _over_time(table: AnswerTable, most: int) -> AnswerPlot:
    if not len(table):
        raise InvalidSpec("this answer has no rows to draw")
    if "difference" in table.names:
        height = 1.6 + 0.3 * max(3, min(len(table), most))
        with _titled(table, height, table.column("label")[:most]) as drawing:
            draw_differences(drawing, table, most)
        return _made(drawing)
    shown = drawn_lines(table)
    with _titled(table, 4.6, [line.label for line in shown[:most]]) as drawing:
        if "before" in table.names:
            draw_changes(drawing, shown[:most])
        else:
            draw_trend(drawing, table, shown[:most])
        if len(shown) > most:
            drawing.axes[0].set_xlabel(f"{len(shown) - most:,} more lines are not shown")
    return _made(drawing)


def _rows(table: AnswerTable, lines: Mapping[str, float], most: int) -> AnswerPlot:
    every = drawn_rows(table)
    shown = [row for row in every if not row.last][:most] + [row for row in every if row.last]
    if not shown:
        raise InvalidSpec("this answer has no rows to draw")
    with _titled(table, 1.2 + 0.27 * max(4, len(shown)), [row.label for row in shown]) as drawing:
        draw_rows(drawing, shown, lines, bars="attributes" in table.names, judged="verdict" in table.names)
        left = len(every) - len(shown)
        drawing.axes[0].set_xlabel(f"users ({left:,} more rows are not shown)" if left else "users")
    return _made(drawing)


def _shares(table: AnswerTable) -> AnswerPlot:
    labels = share_labels(table)
    with _titled(table, 1.2 + 0.3 * max(3, len(labels)), labels) as drawing:
        draw_shares(drawing, table)
    return _made(drawing)


def _places(table: AnswerTable) -> AnswerPlot:
    if "name" in table.names:
        labels = [str(name) for name in table.column("name")]
    else:
        shares = table.column("share") if "share" in table.names else None
        labels = ["average"] if shares is None else [f"{share:.6g} lie at or below" for share in shares]
    with _titled(table, 1.2 + 0.3 * max(3, len(labels)), labels) as drawing:
        draw_places(drawing, labels, table)
    return _made(drawing)


def _averages(table: AnswerTable, most: int) -> AnswerPlot:
    """The cells with the most users, in the order of the table."""
    users = table.column("users")
    shown = sorted(sorted(range(len(users)), key=lambda place: -users[place])[:most])
    part = replace(
        table,
        columns=tuple(replace(one, values=[table.column(one.name)[i] for i in shown]) for one in table.columns),
    )
    labels = [item_words(kind, cell) for kind, cell in zip(part.column(KIND), part.column(ITEM), strict=True)]
    with _titled(part, 1.2 + 0.3 * max(3, len(labels)), labels) as drawing:
        draw_places(drawing, labels, part)
        left = len(users) - len(shown)
        drawing.axes[0].set_xlabel(f"average ({left:,} more cells are not shown)" if left else "average")
    return _made(drawing)


@contextmanager
def _titled(table: AnswerTable, height: float, texts: list[str]) -> Iterator[Canvas]:
    about = table.metadata
    with canvas(_WIDTH, height, texts=[*texts, about.question]) as drawing:
        yield drawing
        meaning = f"{about.reports:,} reports; {percent(about.confidence)} intervals: "
        drawing.title(about.question, meaning + COVERAGE_WORDS.get(about.coverage, about.coverage))
        drawing.finish()


def _made(drawing: Canvas) -> AnswerPlot:
    return AnswerPlot(drawing.finished, drawing.figure)
