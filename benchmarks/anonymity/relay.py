"""How fast a relay takes reports and makes them durable, beside a collection server in the same run.

Both get streams of batches with one report each, as devices send them. The relay's are sealed, so they are longer; the
server's are plain. They take turns, and the ratio is that of the medians.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from statistics import median

from benchmarks.row import Options, Row, row
from ldp_client.collection import Collection
from ldp_client.protocol.domain import Integers
from ldp_client.protocol.sealing import sealed_bytes
from ldp_server.testing import RelayProcess, ServerProcess
from simulator.wire.relay import sealing_settings

__all__ = ["relay_settings", "run"]

COUNT = 20_000
TARGET = ">= 0.5"


def _question(smallest: int | None) -> Collection:
    """A question over 80 numbers; a report has one byte."""
    return Collection.create(
        "How many?", Integers(1, 80), "linear-hash", "1", opens=0, closes=1 << 33, parameters={"q": 3, "t": 4},
        smallest_batch=smallest,
    )  # fmt: skip


def relay_settings(folder: Path, collector: str, collections: list[Collection], rounds: str) -> Path:
    """Write the configuration of a relay in front of a collection server on this machine."""
    ids = ", ".join(f'"{one.id.hex()}"' for one in collections)
    path = folder / "relay.toml"
    path.write_text(
        f'data = "relay"\n[forward]\ncollector = "{collector}"\nplaintext = true\ncollections = [{ids}]\n'
        f'[hold]\nround = "{rounds}"\nremember_rounds = 1000000\n',
        encoding="utf-8",
    )
    return path


def _load(target: str, service: str, collection: Collection, width: int, count: int) -> float:
    command = [sys.executable, "-m", "benchmarks.anonymity.load", target, service, collection.id.hex(), str(width)]
    done = subprocess.run([*command, str(count)], check=True, capture_output=True, text=True)
    return count / float(done.stdout)


def run(options: Options) -> Iterator[Row]:
    """Measure both in turns. Every report has one byte, and is 1: the byte with which a sealed one begins."""
    plain, sealed = _question(None), _question(1000)
    width = sealed.randomizer.report_bytes
    with tempfile.TemporaryDirectory(prefix="hearsay-bench-", dir=Path.cwd()) as name:
        folder = Path(name)
        settings = folder / "server.toml"
        settings.write_text(sealing_settings(folder)[0], encoding="utf-8")
        with ServerProcess(folder / "data", "--config", str(settings)) as server, server.analyst() as analyst:
            for collection in (plain, sealed):
                analyst.create(collection, unlisted=True)
            with RelayProcess(relay_settings(folder, server.target, [sealed], "1 day")) as relay:
                rates: dict[str, list[float]] = {"relay": [], "server": []}
                for _ in range(9 if options.full else 3):
                    rates["server"].append(_load(server.target, "Collector", plain, width, COUNT))
                    rates["relay"].append(_load(relay.target, "Relay", sealed, sealed_bytes(width), COUNT))
    stick = ("reports/s, collection server", median(rates["server"]))
    yield row("relay: streams of single reports, durable", median(rates["relay"]), "reports/s", None, stick)
    ratio = median(rates["relay"]) / median(rates["server"])
    yield row("relay / collection server, streams of single reports, durable", ratio, "ratio", TARGET)
