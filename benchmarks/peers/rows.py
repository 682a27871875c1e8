"""Other libraries beside ours, as rows: n users, d = 1,024, epsilon = 1, Zipf(1.1)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from benchmarks.peers.environment import environment
from benchmarks.peers.environment import peer_rows as measured
from benchmarks.row import Row
from ldp_client.errors import Unavailable
from simulator.population.kinds import Categorical, block_coins, zipf_weights

__all__ = ["peer_rows"]

SIZE, USERS, SLOW = 1024, 100_000, 20_000


def peer_rows() -> Iterator[Row]:
    """Measure each mechanism of each library that can be installed and run."""
    held = Categorical(zipf_weights(1.1, SIZE)).draw(block_coins(1, 0), 0, USERS) - np.uint64(1)
    try:
        with environment() as python:
            for found in measured(python, held, SIZE, 1.0, SLOW):
                yield from _rows(found)
    except Unavailable:
        yield Row("peers: do not install", 0.0, "")


def _rows(found: dict[str, Any]) -> Iterator[Row]:
    name = f"peer: {found['library']} {found['mechanism']}"
    if "remark" in found:
        yield Row(f"{name} {found['remark']}", 0.0, "")
        return
    yield Row(f"{name} client reports/s d={SIZE} eps=1", found["client_per_second"], "1/s")
    yield Row(f"{name} aggregate reports/s d={SIZE} eps=1", found["aggregate_per_second"], "1/s")
    yield Row(f"{name} estimate d={SIZE} eps=1", found["estimate_ms"], "ms")
    for key, kind in (("mse_over_optimum", "mse"), ("consistent_mse_over_optimum", "consistent mse")):
        if key in found:
            yield Row(f"{name} {kind}/optimum d={SIZE} n={found['users']} eps=1", found[key], "ratio")
