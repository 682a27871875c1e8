"""How a question's answer leaves the command: a table, JSON, or files for spreadsheets and data frames."""

from __future__ import annotations

import functools
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import click

from ldp_server.analyst import Answer, EveryLook
from ldp_server.answers.to_json import to_json
from ldp_server.cli.connection import json_option
from ldp_server.cli.files import replaced_private_file
from ldp_server.cli.show import lines, print_json, show_warnings, whole
from ldp_server.oracles.independence.result import INDEPENDENT
from ldp_server.released import write_released
from ldp_server.tables.csv_text import METADATA_SUFFIX
from ldp_server.tables.extras import library

__all__ = ["Output", "every_look_option", "output_options"]

A = TypeVar("A", bound=Answer)
_EVERY_LOOK = "the intervals are right at every look: at all numbers of reports at once"
F = TypeVar("F", bound=Callable[..., Any])

_FILE = click.Path(path_type=Path, dir_okay=False)
_OPTIONS = (
    json_option,
    click.option("--csv", type=_FILE, help="Write a CSV file, mode 0600, and its metadata to FILE-metadata.json."),
    click.option("--parquet", type=_FILE, help="Write a Parquet file, mode 0600 (extra `parquet`)."),
    click.option(
        "--release",
        type=click.Path(path_type=Path, file_okay=False),
        metavar="FOLDER",
        help="Release this answer to everybody: write it where the public pages read it (web --released FOLDER).",
    ),
)


@dataclass(frozen=True)
class Output:
    """What the options of a command ask for."""

    as_json: bool
    csv: Path | None
    parquet: Path | None
    release: Path | None = None

    @property
    def quiet(self) -> bool:
        """Whether nothing but the answer is wanted."""
        return self.as_json

    def show(self, found: A, as_table: Callable[[A], None]) -> None:
        """Write the files; print JSON, or which files were written, or the table."""
        written = [*self._csv(found), *self._parquet(found), *self._release(found)]
        if self.as_json:
            print_json(to_json(found))
        elif written:
            rows = len(found.table)
            lines(f"{found.question}: {whole(rows)} row{'s' * (rows != 1)} in {', '.join(map(str, written))}")
            show_warnings(getattr(found, "independence", INDEPENDENT))
        else:
            as_table(found)
            lines(*_notes(found))

    def _csv(self, found: Answer) -> list[Path]:
        if self.csv is None:
            return []
        beside = self.csv.with_name(self.csv.name + METADATA_SUFFIX)
        with replaced_private_file(self.csv) as file:
            found.to_csv(file)
        with replaced_private_file(beside) as file:
            file.write(found.csv_metadata(self.csv.name).encode())
        return [self.csv, beside]

    def _release(self, found: Answer) -> list[Path]:
        return [] if self.release is None else [write_released(self.release, found, int(time.time()))]

    def _parquet(self, found: Answer) -> list[Path]:
        if self.parquet is None:
            return []
        with replaced_private_file(self.parquet) as file:
            found.to_parquet(file)
        return [self.parquet]


def output_options(command: F) -> F:
    """Give a command the options that say where its answer goes, as the argument `output`."""

    @functools.wraps(command)
    def gathering(
        *args: Any, as_json: bool, csv: Path | None, parquet: Path | None, release: Path | None, **kw: Any
    ) -> Any:
        if parquet is not None:
            library("pyarrow", "parquet", "--parquet")  # before the server is asked
        return command(*args, output=Output(as_json, csv, parquet, release), **kw)

    for option in reversed(_OPTIONS):
        gathering = option(gathering)
    return gathering  # type: ignore[return-value]  # the options change what click sees, not what the caller wrote


def _notes(found: Answer) -> list[str]:
    """What stands below every kind of table."""
    looks = [_EVERY_LOOK] if getattr(found, "every_look", False) else []
    periods = [] if found.periods is None else [f"of {found.periods}"]
    return [*periods, *looks, *([found.half_in_words] if found.half_in_words else [])]


def every_look_option(command: F) -> F:
    """Give a command --every-look, which makes its parameter `confidence` one that holds at every look."""

    @functools.wraps(command)
    def wrapper(*args: Any, every_look: bool, **given: Any) -> Any:
        if every_look:
            given["confidence"] = EveryLook(given["confidence"])
        return command(*args, **given)

    flag = click.option(
        "--every-look",
        is_flag=True,
        help="Intervals that stay right if you look again and again while reports come in.",
    )
    return flag(wrapper)  # type: ignore[return-value]  # the options change what click sees, not what the caller wrote
