"""Write tests/vectors/sketches-v1.json from the product's code: `python -m tests.vectors.sketches`."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

from ldp_client.errors import InvalidSpec
from ldp_client.mechanisms import MECHANISMS
from ldp_client.mechanisms.team_sketch import TeamSketch
from ldp_client.protocol.epsilon import Epsilon

FILE = Path(__file__).with_name("sketches-v1.json")
SEED = bytes(range(32))

EXPANDER = {
    "attempt": 0,
    "bucket_bits": 0,
    "chunk_bits": 16,
    "degree": 2,
    "hash_bits": 3,
    "oracle_q": 0,
    "oracle_rows": 0,
    "oracle_t": 0,
    "q": 3,
    "symbol_pointers": 1,
    "t": 14,
    "teams": 5,
}
ITEM = {"symbol_pointers": 0, "hash_bits": 2}
CASES: list[tuple[str, str, int, dict[str, int]]] = [
    ("expander-sketch", "1", 64, EXPANDER),
    ("expander-sketch", "4", 64, EXPANDER | ITEM | {"q": 47, "t": 4}),
    ("expander-sketch", "1", 65, EXPANDER | {"chunk_bits": 13, "teams": 6}),
    ("expander-sketch", "2", 129, EXPANDER | {"chunk_bits": 15, "teams": 10, "q": 7, "t": 8, "attempt": 7}),
    (
        "expander-sketch",
        "1",
        64,
        EXPANDER | ITEM | {"chunk_bits": 8, "teams": 12, "degree": 3, "bucket_bits": 3, "t": 13},
    ),
    ("expander-sketch", "0.5", 40, EXPANDER | ITEM | {"chunk_bits": 9, "teams": 9, "degree": 4, "t": 13}),
    ("tree-sketch", "1", 129, {"first_bits": 22, "step_bits": 14, "cell_bits": 22, "q": 3, "t": 14, "check_levels": 2}),
    ("tree-sketch", "1", 257, {"first_bits": 22, "step_bits": 14, "cell_bits": 22, "q": 3, "t": 14, "check_levels": 1}),
    ("prefix-tree", "2", 64, {"first_bits": 16, "step_bits": 8, "cell_bits": 22, "q": 7, "t": 8}),
]


def _number(label: str, bits: int) -> int:
    return int.from_bytes(hashlib.shake_256(label.encode()).digest(64), "little") % (1 << bits)


def vectors() -> list[dict[str, Any]]:
    """Each sketch with some items: every team's cell, and reports."""
    out = []
    for name, epsilon, bits, wanted in CASES:
        for attempt in range(wanted.get("attempt", 0), 1 << 12):
            parameters = wanted | ({"attempt": attempt} if "attempt" in wanted else {})
            try:
                sketch = MECHANISMS[name](Epsilon(epsilon), 1 << bits, SEED, **parameters)  # type: ignore[call-arg]
                break
            except InvalidSpec:
                continue
        assert isinstance(sketch, TeamSketch)
        lines = []
        for i in range(4):
            index = [0, (1 << bits) - 1][i] if i < 2 else _number(f"item {name} {bits} {i}", bits)
            words = [_number(f"word {name} {bits} {i} {w}", 64) for w in range(3)]
            lines.append(
                {
                    "index": hex(index),
                    "cells": [sketch.cell(index, team) for team in range(sketch.teams)],
                    "words": [hex(word) for word in words],
                    "report": sketch.randomize(index, words),
                }
            )
        out.append({"mechanism": name, "epsilon": epsilon, "bits": bits, "parameters": parameters, "items": lines})
    return out


def text() -> str:
    """The file: one vector a line."""
    body = ",\n".join(json.dumps(v) for v in vectors())
    return f'{{"version": 1, "seed": "{SEED.hex()}", "vectors": [\n{body}\n]}}\n'


if __name__ == "__main__":
    FILE.write_text(text())
