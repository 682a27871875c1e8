"""Unit costs of a deployment: what one commit, batch, call or report takes.

`figures.json` is the output of the benchmarks, as it came. Another file of the same form, from another machine, takes
its place.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, fields
from pathlib import Path

from ldp_client.errors import InvalidSpec

__all__ = ["MEASURED", "ROWS", "Figures", "read_figures"]

MEASURED = Path(__file__).parent / "figures.json"

ROWS = {
    "call_us": "collector's processor time of a call",
    "connection_us": "collector's processor time of a call with a TLS connection of its own",
    "thousand_us": "collector's processor time of a batch of 1,000",
    "commit_us": "PostgreSQL's processor time of a commit",
    "batch_us": "PostgreSQL's processor time of a batch in it",
    "large_batch_us": "PostgreSQL's processor time of a batch of 4,000 bytes in it",
    "commit_log": "write-ahead log of a commit",
    "batch_log": "write-ahead log of a batch in it",
    "large_batch_log": "write-ahead log of 4,000 bytes in it",
    "upkeep_us": "upkeep's processor time of a batch",
    "upkeep_database_us": "PostgreSQL's processor time of a batch in upkeep",
    "upkeep_log": "write-ahead log of a batch in upkeep",
    "batch_disk": "disk of a batch",
    "index_disk": "of these, in the index that each id is looked up in",
    "counted": "reports of 24 bits counted in a second of one core",
    "decode_seconds": "decode, 64-bit, n=1e6, eps=1",
}
"""The row of the benchmarks that each figure comes from."""


@dataclass(frozen=True)
class Figures:
    """One value for each of `ROWS`: microseconds, bytes, reports a second, seconds."""

    call_us: float
    connection_us: float
    thousand_us: float
    commit_us: float
    batch_us: float
    large_batch_us: float
    commit_log: float
    batch_log: float
    large_batch_log: float
    upkeep_us: float
    upkeep_database_us: float
    upkeep_log: float
    batch_disk: float
    index_disk: float
    counted: float
    decode_seconds: float


def read_figures(*files: Path) -> Figures:
    """Read the lines that benchmarks printed with --json. What a later file has takes the place of an earlier one's."""
    found: dict[str, float] = {}
    for path in files:
        found |= _rows(path)
    missing = [ROWS[one.name] for one in fields(Figures) if ROWS[one.name] not in found]
    if missing:
        raise InvalidSpec(f"no file has the row {missing[0]!r}: python -m benchmarks scale --only costs --json")
    return Figures(**{name: found[row] for name, row in ROWS.items()})


def _rows(path: Path) -> dict[str, float]:
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not UTF-8 text"
        raise InvalidSpec(f"cannot read {path}: {reason}") from None
    found = {}
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
            name, value = str(row["name"]), float(row["value"])
        except (ValueError, TypeError, KeyError):
            raise InvalidSpec(f"line {number} of {path} is not a row of `python -m benchmarks scale --json`") from None
        if name in ROWS.values() and not 0 < value < float("inf"):
            raise InvalidSpec(f"line {number} of {path}: {name} must be above 0, and is {value}")
        found[name] = value
    return found
