"""The audit of other libraries' clients. These rows have no target. docs/audit.md has the table."""

from __future__ import annotations

import json
import subprocess
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

from benchmarks.audit.black_box import black_box
from benchmarks.peers.environment import environment
from benchmarks.row import Row
from ldp_client.errors import Unavailable

__all__ = ["audit_script", "peer_rows"]

MESSAGES = 20_000
CONFIDENCE = 0.999


def audit_script(python: Path) -> Iterator[Row]:
    """Run the script with the other libraries' Python, and audit what it prints."""
    script = Path(__file__).with_name("audit_script.py")
    samples: dict[str, list[list[bytes]]] = defaultdict(list)
    with subprocess.Popen(
        [python, "-W", "ignore", script, str(MESSAGES)], stdout=subprocess.PIPE, text=True
    ) as process:
        for line in process.stdout or ():
            if not line.startswith("{"):
                continue
            told = json.loads(line)
            name = told["name"]
            if "error" in told:
                yield Row(f"peer: {name} does not run: {told['error']}", 0.0, "")
                continue
            samples[name].append([bytes.fromhex(message) for message in told["messages"]])
            if len(samples[name]) == 2:
                one, two = samples.pop(name)
                found = black_box(one, two, CONFIDENCE)
                yield Row(f"peer: {name}, lower bound on eps (declared {told['declared']:g})", found.epsilon, "nats")


def peer_rows() -> Iterator[Row]:
    """Install the other libraries and audit their clients."""
    try:
        with environment() as python:
            yield from audit_script(python)
    except Unavailable:
        yield Row("peers: do not install", 0.0, "")
