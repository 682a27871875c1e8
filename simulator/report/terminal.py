"""Tables and progress bars on a terminal, and the same tables in a pipe.

A table that is wider than the terminal is printed in several parts, one below the other. Each part begins with the same
first columns. In a pipe or a file a table has all its columns side by side, however wide it is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Literal

from rich.cells import cell_len
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from ldp_server.tables.words import printable
from simulator.report.values import heading, shown

__all__ = ["print_table", "progress_bar"]

_BORDER = 3
"""Characters between two columns."""
_FOLDED = 16
"""The least width of a column whose cells are folded because the terminal is narrow."""


@contextmanager
def progress_bar(text: str, total: int) -> Iterator[Callable[[int], None]]:
    """Show a bar on standard error if that is a terminal; the function that is given counts steps."""
    console = Console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task(text, total=total)

        def advance(steps: int) -> None:
            bar.advance(task, steps)

        yield advance


def print_table(
    title: str,
    rows: Sequence[Mapping[str, Any]],
    columns: Sequence[str] | None = None,
    caption: str = "",
    *,
    keys: int = 1,
) -> None:
    """Print rows; the first `keys` columns are text, name the row and are repeated in every part of a wide table."""
    names = list(columns or dict.fromkeys(name for row in rows for name in row))
    cells = {name: [printable(shown(row.get(name))) for row in rows] for name in names}
    terminal = Console()
    # On a terminal a heading may stand on several lines, so that more columns stand side by side.
    headings = {name: heading(name).split() if terminal.is_terminal else [heading(name)] for name in names}
    widths = {name: max(map(cell_len, [*headings[name], *cells[name]])) for name in names}
    edge = terminal.width if terminal.is_terminal else _width(names, widths)
    # Cells are text from users: nothing in them is markup.
    console = Console(highlight=False, markup=False, emoji=False, width=edge)
    console.print(title, soft_wrap=not terminal.is_terminal)
    for part in _parts(names, widths, edge, keys):
        console.print(_table(part, cells, widths, keys))
    if caption:
        console.print(caption, soft_wrap=not terminal.is_terminal)


def _width(names: Sequence[str], widths: Mapping[str, int]) -> int:
    return 1 + sum(widths[name] + _BORDER for name in names)


def _parts(names: list[str], widths: dict[str, int], edge: int, keys: int) -> Iterator[list[str]]:
    """Divide the columns so that each part fits; a single column that is too wide is folded."""
    if _width(names, widths) <= edge:
        yield names
        return
    first, rest = names[:keys], names[keys:]
    room = edge - min(_width(first, widths), max(edge // 2, _FOLDED * len(first)))
    part: list[str] = []
    for name in rest:
        if part and sum(widths[n] + _BORDER for n in (*part, name)) > room:
            yield [*first, *part]
            part = []
        part.append(name)
    yield [*first, *part]


def _table(names: Sequence[str], cells: Mapping[str, Sequence[str]], widths: Mapping[str, int], keys: int) -> Table:
    table = Table()
    for place, name in enumerate(names):
        justify: Literal["left", "right"] = "left" if place < keys else "right"
        table.add_column(heading(name), justify=justify, overflow="fold", max_width=widths[name])
    for row in zip(*(cells[name] for name in names), strict=True):
        table.add_row(*row)
    return table
