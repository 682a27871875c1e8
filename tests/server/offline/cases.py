"""Exported files of a small collection, and the counts that a plain loop makes of them."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import numpy as np

from ldp_client.collection import Collection
from ldp_client.protocol.domain import Integers
from ldp_server.arrays.packing import pack
from ldp_server.offline import count_part
from ldp_server.oracles import oracle_for

COLLECTION = Collection.create(
    "Counted again?", Integers(1, 1 << 16), "linear-hash", "1", opens=0, closes=1 << 33, parameters={"q": 3, "t": 11}
)


def exported(folder: Path, *reports: int) -> list[Path]:
    """Files of so many random reports, each with its spec beside it, as `ldp-server export --reports` writes them."""
    coins, randomizer = np.random.default_rng(), COLLECTION.randomizer
    found = []
    for number, count in enumerate(reports):
        path = folder / f"reports{number}"
        path.write_bytes(pack(coins.integers(0, randomizer.bound, count, dtype=np.uint64), randomizer.report_bytes))
        path.with_name(path.name + ".ldp").write_text(COLLECTION.to_toml())
        found.append(path)
    return found


def loop(files: list[Path]) -> bytes:
    """The counts by one loop over everything."""
    oracle = oracle_for(COLLECTION)
    for path in files:
        oracle.accumulate(path.read_bytes())
    return oracle.to_bytes()


def slowly(part):
    """Count a part, and take a while for it: long enough to be killed."""
    time.sleep(0.5)
    return count_part(part)


def dies_once(part):
    """The first process that gets here is killed in the middle of its work."""
    mark = Path(part.path).with_suffix(f".{part.start}.killed")
    if part.start == 0 and not mark.exists():
        mark.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return count_part(part)
