"""The table of docs/oracles.md, from the rows of one run: `python -m benchmarks.coverage.table FILE [FILE ...]`.

The rows are those that `python -m benchmarks coverage --full --json` prints; a run in parts has several files.
"""

from __future__ import annotations

import json
import sys
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.coverage.tally import wilson

__all__ = ["table"]


@dataclass
class _Line:
    """All cells of one mechanism, for one kind of interval."""

    cells: int = 0
    held: float = 0.0
    claims: int = 0
    missed: int = 0
    widths: list[float] = field(default_factory=list)
    biases: list[float] = field(default_factory=list)

    def add(self, row: dict[str, Any], what: str) -> None:
        """Add one row of a cell."""
        if what == "held":
            claims = int(row["unit"].split()[1])
            self.cells, self.claims = self.cells + 1, self.claims + claims
            self.held, self.missed = self.held + row["value"] * claims, self.missed + (row["ok"] is False)
        elif what == "width":
            self.widths.append(row["value"])
        elif what == "bias":
            self.biases.append(row["value"])

    def text(self, mechanism: str, kind: str) -> str:
        """Return the line of the table."""
        low, high = wilson(self.held, self.claims)
        share = f"{self.held / self.claims:.1%} ({low:.1%} to {high:.1%})"
        widths = f"{median(self.widths):.2f}, {max(self.widths):.2f}" if self.widths else ""
        biases = f"{median(self.biases):.2f}" if self.biases else ""
        return (
            f"| {mechanism} | {kind} | {self.cells} | {self.claims:,} | {share} | {self.missed} | {widths} | {biases} |"
        )


def table(lines: Iterable[str]) -> str:
    """Return the table as text."""
    found: dict[tuple[str, str], _Line] = defaultdict(_Line)
    for line in lines:
        row = json.loads(line)
        cell, kind, what = row["name"].rsplit(": ", 2)
        kind = "range" if kind.startswith("range") else "quantile" if kind.startswith("quantile") else kind
        kind = "attribute" if "attribute" in kind else kind
        found[cell.split()[0], kind].add(row, what)
    head = "| mechanism | intervals | cells | claims | held | cells that miss | width: median, largest | bias: median |"
    rule = "|---|---|---|---|---|---|---|---|"
    return "\n".join([head, rule, *(found[key].text(*key) for key in sorted(found) if found[key].claims)])


def main(paths: list[str]) -> None:
    """Print the table of these files' rows."""
    lines: list[str] = []
    for path in paths:
        lines += Path(path).read_text("utf-8").splitlines()
    print(table(lines))


if __name__ == "__main__":
    main(sys.argv[1:])
