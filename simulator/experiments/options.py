"""What the commands share: options, progress, and how results are shown."""

from __future__ import annotations

import math
import shlex
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import click
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from ldp_client.errors import InvalidSpec
from ldp_server.answers.to_json import dump
from simulator.machine import usable_processes
from simulator.report.page import Report, check_folder

__all__ = [
    "asked_command",
    "common",
    "elements",
    "emit",
    "parameters_of",
    "print_table",
    "processes_option",
    "progress_bar",
    "write_report",
]

_PIPE_WIDTH = 160
"""Of tables that go to a file or a pipe, which have no edge."""

F = TypeVar("F", bound=Callable[..., Any])


def common(command: F) -> F:
    """--json, --seed and --report."""
    for option in (
        click.option(
            "--report",
            type=click.Path(path_type=Path, file_okay=False),
            callback=_report_folder,
            help="Write an HTML page with plots, and its tables as CSV, to this folder.",
        ),
        click.option(
            "--seed", type=click.IntRange(0, (1 << 32) - 1), default=1, show_default=True, help="Of all coins."
        ),
        click.option("--json", "as_json", is_flag=True, help="JSON on standard output instead of a table."),
    ):
        command = option(command)
    return command


def processes_option(command: F) -> F:
    """--processes; 0 means all cores."""
    return click.option(
        "--processes",
        type=click.IntRange(0, 256),
        default=1,
        show_default=True,
        callback=lambda _context, _option, value: usable_processes(value),
        help="Worker processes; 0: one for each core. Results do not depend on it.",
    )(command)


def _report_folder(context: click.Context, option: click.Parameter, value: Path | None) -> Path | None:
    """A folder that cannot be written is found out before the work, not after."""
    del context, option
    if value is not None:
        check_folder(value)
    return value


def parameters_of(values: Sequence[str]) -> tuple[tuple[str, int], ...]:
    """Read name=number pairs."""
    found = []
    for text in values:
        name, equals, number = text.partition("=")
        if not equals or not number.strip().isdigit():
            raise InvalidSpec(f"a parameter is written name=number, such as q=2, not {text!r}")
        found.append((name.strip(), int(number)))
    return tuple(found)


@contextmanager
def progress_bar(text: str, total: int) -> Iterator[Callable[[int], None]]:
    """A bar on standard error, if somebody looks at it."""
    console = Console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task(text, total=total)

        def advance(steps: int) -> None:
            bar.advance(task, steps)

        yield advance


def emit(shape: Mapping[str, Any], as_json: bool, show: Callable[[], None]) -> None:
    """Print one object, or what people read."""
    if as_json:
        sys.stdout.write(dump(shape) + "\n")
    else:
        show()


def print_table(
    title: str, rows: Sequence[Mapping[str, Any]], columns: Sequence[str] | None = None, caption: str = ""
) -> None:
    """A table for people; the first column is text."""
    table = Table(title=title, caption=caption or None, title_justify="left", caption_justify="left")
    names = list(columns or dict.fromkeys(name for row in rows for name in row))
    for place, name in enumerate(names):
        table.add_column(name.replace("_", " "), justify="left" if not place else "right")
    for row in rows:
        table.add_row(*(_cell(row.get(name)) for name in names))
    console = Console(highlight=False, soft_wrap=True)
    if not console.is_terminal:
        console = Console(highlight=False, soft_wrap=True, width=_PIPE_WIDTH)
    console.print(table)


def _cell(value: Any) -> str:
    if value is None:
        return "-"
    if isinstance(value, Mapping):
        return " ".join(f"{k}={v}" for k, v in value.items())
    if isinstance(value, bool) or not isinstance(value, int | float):
        return str(value)
    if isinstance(value, int):
        return f"{value:,}"
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"


def elements(size: int) -> str:
    """A domain's size for people."""
    return f"{size:,}" if size < 1 << 40 else f"about 2^{math.log2(size):.0f}"


def asked_command() -> str:
    """The command line, as one would type it again."""
    return shlex.join(["ldp-simulate", *sys.argv[1:]])


def write_report(report: Report, folder: Path | None) -> None:
    """Write it where --report says, and say where."""
    if folder is not None:
        page = report.write(folder)
        sys.stderr.write(f"report: {page}\n")
