"""The results of a run: one line of JSON for each mutant, so that a run that was stopped goes on where it was."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

from scipy.stats import binomtest

from tests.mutation.operators import Mutant

__all__ = ["Results", "interval"]

DEAD = ("killed", "timeout")


def interval(killed: int, tried: int) -> tuple[float, float]:
    """The 95% interval of a rate (Wilson's)."""
    found = binomtest(killed, tried).proportion_ci(method="wilson")
    return float(found.low), float(found.high)


class Results:
    """The verdicts kept in a file."""

    def __init__(self, file: Path) -> None:
        self.file = file
        self.rows: dict[str, dict] = {}
        if file.exists():
            for line in file.read_text().splitlines():
                row = json.loads(line)
                self.rows[row["key"]] = row

    def add(self, mutant: Mutant, verdict: str, test: str, seconds: float) -> None:
        row = {"key": mutant.key, "verdict": verdict, "test": test, "seconds": round(seconds, 2), **asdict(mutant)}
        self.rows[mutant.key] = row
        self.file.parent.mkdir(parents=True, exist_ok=True)
        with self.file.open("a") as out:
            out.write(json.dumps(row) + "\n")

    def todo(self, mutants: list[Mutant], again: bool) -> list[Mutant]:
        """What was not tried; with `again`, what survived too."""
        done = {key for key, row in self.rows.items() if not again or row["verdict"] in DEAD}
        return [mutant for mutant in mutants if mutant.key not in done]

    def summary(self, mutants: list[Mutant]) -> str:
        rows = [self.rows[m.key] for m in mutants if m.key in self.rows]
        if not rows:
            return "nothing tried"
        dead = sum(row["verdict"] in DEAD for row in rows)
        low, high = interval(dead, len(rows))
        late = sum(row["verdict"] == "timeout" for row in rows)
        return f"{len(rows)} mutants, {dead} killed ({late} by time), {dead / len(rows):.1%} [{low:.1%}, {high:.1%}]"

    def survivors(self, mutants: list[Mutant]) -> list[str]:
        """One line each: where, what it was, what it became."""
        rows = [self.rows[m.key] for m in mutants if m.key in self.rows]
        alive = [row for row in rows if row["verdict"] not in DEAD]
        return [f"{r['file']}:{r['line']} {r['verdict']}: {_short(r['was'])}  ->  {_short(r['text'])}" for r in alive]


def _short(text: str) -> str:
    return " ".join(text.split())[:160]
