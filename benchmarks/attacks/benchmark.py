"""The rows of `python -m benchmarks attacks`: each attack, what it did to the server, and what is allowed."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

from benchmarks.attacks import flood
from benchmarks.row import Options, Row, row
from ldp_client.collection import Collection
from ldp_client.protocol.domain import Integers
from ldp_server.testing import ServerProcess

__all__ = ["run"]

_MB = 1e6


def collection(text: str = "How many?") -> Collection:
    """A small collection for a server that is attacked."""
    return Collection.create(
        text, Integers(1, 40), "linear-hash", "2", opens=0, closes=1 << 33, parameters={"q": 3, "t": 4}
    )


def run(_: Options) -> Iterator[Row]:
    """Attack a server of our own, one attack after the other."""
    with tempfile.TemporaryDirectory() as folder, ServerProcess(Path(folder) / "d") as server:
        asked = collection()
        long = [collection(f"{number} " + "x" * 4000) for number in range(200)]
        with server.analyst() as analyst:
            for one in [asked, *long]:
                analyst.create(one)
        with flood.idle_streams(server, 4100):
            taken = flood.answered(server, asked.id)
            yield row("seconds to an app's answer during 4,100 idle streams of another address", taken, "s", "<= 10")
        for name, size in (("batches of 0.3 MB", 300_000), ("messages of 1 MB", 1_000_000), ("of 4 MB", 4_000_000)):
            grown = flood.unfinished_messages(server, 2000, size, 10.0)
            yield row(f"memory taken by 2,000 unfinished {name}", grown / _MB, "MB", "<= 300")
        grown = flood.unread_lists(server, 180, 5.0)
        yield row("memory taken by 180 unread lists", grown / _MB, "MB", "<= 300")
        yield row("seconds to an answer afterwards", flood.answered(server, asked.id), "s", "<= 10")
