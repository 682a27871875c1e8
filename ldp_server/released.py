"""Released answers: what the operator has decided to show to everybody, as files in a folder.

A released answer is one answer, as it was at one moment. A query command writes it (`--release FOLDER`), and the public
pages show it (`ldp-server web --public --released FOLDER`). Readers of the pages ask the server for nothing. There is
one file for a collection, named by its id: a later release replaces it, and removing the file withdraws it.
"""

from __future__ import annotations

import csv
import io
import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from ldp_client.errors import InvalidSpec
from ldp_server.answers.to_json import dump, to_json
from ldp_server.store.errors import translated
from ldp_server.tables.csv_text import csv_text
from ldp_server.tables.table import AnswerTable

__all__ = ["MAX_BYTES", "ReleasedAnswer", "read_released", "write_released"]

MAX_BYTES = 4_000_000
"""The largest file: some ten thousand rows."""
_FORM = "hearsay-released-1"


class _Asked(Protocol):
    @property
    def id(self) -> bytes: ...

    @property
    def unlisted(self) -> bool: ...


class _Answered(Protocol):
    @property
    def about(self) -> _Asked: ...

    @property
    def table(self) -> AnswerTable: ...


@dataclass(frozen=True)
class ReleasedAnswer:
    """A released answer: its rows, what must stay with them, and the whole answer as JSON."""

    collection: bytes
    released: int
    """Seconds since 1970."""
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    metadata: dict[str, Any]
    answer: dict[str, Any]

    def as_dict(self) -> dict[str, Any]:
        """Return plain data, for everybody."""
        return {"released": self.released, "metadata": self.metadata, "answer": self.answer}


def write_released(folder: Path, found: _Answered, now: int) -> Path:
    """Release an answer; return its file."""
    about = found.about
    if about.unlisted:
        raise InvalidSpec("this collection is unlisted: it is not on the public pages, so nothing of it is released")
    table = found.table
    text = dump(
        {
            "form": _FORM,
            "collection": about.id.hex(),
            "released": now,
            "csv": csv_text(table),
            "metadata": table.metadata.as_dict(),
            "answer": to_json(found),
        }
    )
    data = text.encode() + b"\n"
    if len(data) > MAX_BYTES:
        raise InvalidSpec(f"this answer takes {len(data):,} bytes, and a released one {MAX_BYTES:,} at most: ask less")
    file, draft = folder / f"{about.id.hex()}.json", folder / f"{about.id.hex()}.draft"
    with translated(folder):
        folder.mkdir(parents=True, exist_ok=True)
        with draft.open("wb") as out:
            out.write(data)
            out.flush()
            os.fsync(out.fileno())
        draft.replace(file)
    return file


def read_released(folder: Path, collection: bytes) -> ReleasedAnswer | None:
    """Return what was released of a collection, if anything. Raise InvalidSpec for a file that is none."""
    file = folder / f"{collection.hex()}.json"
    try:
        with file.open("rb") as stream:
            data = stream.read(MAX_BYTES + 1)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise InvalidSpec(f"{file}: {error.strerror}") from None
    try:
        if len(data) > MAX_BYTES:
            raise ValueError
        return _released(json.loads(data), collection)
    except (ValueError, KeyError, TypeError, RecursionError, csv.Error):
        raise InvalidSpec(f"{file}: not a released answer of this collection, or damaged") from None


def _released(found: dict[str, Any], collection: bytes) -> ReleasedAnswer:
    head, *rows = csv.reader(io.StringIO(found["csv"], newline=""))
    fits = all(len(row) == len(head) for row in rows)
    kinds = ((found["released"], int), (found["metadata"], dict), (found["answer"], dict))
    if found["form"] != _FORM or found["collection"] != collection.hex() or not fits:
        raise ValueError
    if not all(isinstance(value, kind) for value, kind in kinds):
        raise TypeError
    plain = tuple(tuple(cell.removeprefix("'") for cell in row) for row in rows)
    return ReleasedAnswer(collection, found["released"], tuple(head), plain, found["metadata"], found["answer"])
