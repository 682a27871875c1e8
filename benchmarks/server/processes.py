"""The processes of the server's benchmark besides the server: load clients and handlers that discard."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any, Self

from ldp_client.collection import Collection

__all__ = ["Program", "child_pid", "child_rss_mb", "cpu_seconds", "finish", "load", "rate", "rss_mb"]


def rss_mb(pid: int) -> float:
    """Return the memory of a process, in megabytes."""
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6


def child_rss_mb(parent: int) -> float:
    """Return the memory of a process's only child, in megabytes; 0 if it has none."""
    child = child_pid(parent)
    return 0.0 if child is None else rss_mb(child)


def child_pid(parent: int) -> int | None:
    """Return the number of a process's only child."""
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[1]) == parent:
            return int(path.parent.name)
    return None


def cpu_seconds(pid: int) -> float:
    """Return the processor time that a process has used."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


class Program:
    """A Python module in a process of its own, which prints one line when it is ready."""

    def __init__(self, module: str, *arguments: str) -> None:
        path = os.pathsep.join(entry or str(Path.cwd()) for entry in sys.path)
        self._process = subprocess.Popen(
            [sys.executable, "-m", module, *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            env={**os.environ, "PYTHONPATH": path},
        )
        self.pid = self._process.pid
        self.first = self.line()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.end()

    def line(self) -> str:
        """Read its next line."""
        if self._process.stdout is None:
            raise AssertionError("started with pipes")
        return self._process.stdout.readline().strip()

    def say(self, text: str) -> None:
        """Write a line to it."""
        if self._process.stdin is None:
            raise AssertionError("started with pipes")
        self._process.stdin.write(text + "\n")
        self._process.stdin.flush()

    def end(self) -> None:
        """Stop it and wait."""
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGTERM)
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                pipe.close()


def load(target: str, collection: Collection, mode: str, reports: int, batches: int, **options: Any) -> Program:
    """Start a client that prepares its batches and waits for `finish`."""
    arguments = {
        "target": target,
        "collection": collection.id.hex(),
        "mode": mode,
        "width": collection.randomizer.report_bytes,
        "bound": collection.randomizer.bound,
        "reports": reports,
        "batches": batches,
        **options,
    }
    client = Program("benchmarks.server.load", *(f"--{name}={value}" for name, value in arguments.items()))
    if client.first != "prepared":
        raise RuntimeError("the load client did not start")
    return client


def finish(client: Program) -> dict[str, float]:
    """Let a client send, and return what it measured."""
    client.say("go")
    line = client.line()
    client.end()
    if not line:
        raise RuntimeError("the load client failed")
    found: dict[str, float] = json.loads(line)
    return found


def rate(target: str, collection: Collection, mode: str, reports: int, batches: int, **options: Any) -> float:
    """Return how many batches a second one client gets acknowledged."""
    found = finish(load(target, collection, mode, reports, batches, **options))
    return found["batches"] / found["seconds"]
