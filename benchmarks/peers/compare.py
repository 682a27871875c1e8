"""Our mechanisms beside other libraries', on the same users.

Times are CPU seconds of one thread. A client's rate is that of its ordinary call for one user. Ours is the scalar
client, to packed bytes, with random words of the operating system. The simulator's vectorised randomizers are far
faster, but they are not what a device runs. Sizes are bytes on the wire. Other libraries have no wire format: theirs
are of the pickled report.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TypedDict

import numpy as np
import numpy.typing as npt

from benchmarks.peers.environment import environment, peer_rows
from ldp_client.coins import draw_words
from ldp_client.errors import InvalidSpec
from ldp_client.mechanisms.base import Randomizer
from ldp_client.protocol.epsilon import Epsilon
from ldp_server.arrays.packing import pack
from ldp_server.oracles import as_frequency, oracle_for
from simulator import crowd
from simulator.engine import Job, blocks_of, draw_block
from simulator.experiments.frequencies import FrequencySetting, build, prepare
from simulator.experiments.options import SimulationOptions
from simulator.metrics import measure

__all__ = ["CompareRow", "run"]

MAX_USERS = 1_000_000
SLOW_USERS = 20_000
"""Users of the other libraries' slow mechanisms."""


class CompareRow(TypedDict):
    """A line of --json: one library's mechanism."""

    library: str
    mechanism: str
    users: int
    domain: int
    epsilon: str
    mse_over_optimum: float | None
    consistent_mse_over_optimum: float | None
    max_error: float | None
    report_bytes: int | None
    client_per_second: float | None
    aggregate_per_second: float | None
    estimate_ms: float | None
    remark: str


def run(
    options: SimulationOptions,
    folder: Path | None = None,
    *,
    peers: bool = True,
    progress: Callable[[int], None] | None = None,
) -> list[CompareRow]:
    """Measure our mechanisms, then theirs."""
    setting = prepare(options)
    if setting.naming.table is not None or setting.naming.domain.size > 1 << 17:
        raise InvalidSpec("the other libraries list their whole domain: --domain is at most 131072 elements here")
    if options.users > MAX_USERS:
        raise InvalidSpec(f"the other libraries take one user at a time: --users is at most {MAX_USERS} here")
    seeded = Job(build(setting, options.epsilon), setting.population, setting.naming, options.users, options.seed)
    held = np.concatenate([draw_block(seeded, block) for block in blocks_of(options.users)])
    rows = []
    for choice in _ours(options, setting):
        rows.append(_our_row(choice, options, held))
        if progress is not None:
            progress(1)
    if peers:
        with environment(folder) as python:
            size, epsilon = setting.naming.domain.size, float(Epsilon.parse(options.epsilon))
            for found in peer_rows(python, held, size, epsilon, SLOW_USERS):
                rows.append(_their_row(found, options, setting))
                if progress is not None:
                    progress(1)
    return rows


def _ours(options: SimulationOptions, setting: FrequencySetting) -> list[FrequencySetting]:
    """The mechanism that is chosen, the one-bit form of the paper, and randomized response."""
    size = setting.naming.domain.size
    bits = max(2, (size - 1).bit_length())
    return [
        setting,
        prepare(replace(options, mechanism="linear-hash", parameters=(("q", 2), ("t", bits)))),
        prepare(replace(options, mechanism="randomized-response", parameters=())),
    ]


def _scalar(randomizer: Randomizer, held: list[int]) -> float:
    """Reports per second of the client's own code."""
    words, width, randomize = randomizer.words, randomizer.report_bytes, randomizer.randomize
    start = time.thread_time()
    for index in held:
        randomize(index, draw_words(words)).to_bytes(width, "little")
    return len(held) / max(time.thread_time() - start, 1e-9)


def _our_row(setting: FrequencySetting, options: SimulationOptions, held: npt.NDArray[np.uint64]) -> CompareRow:
    randomizer = build(setting, options.epsilon).randomizer
    reports = np.concatenate(list(crowd.simulate(randomizer, held, options.seed)))
    payload = pack(reports, randomizer.report_bytes)
    oracle = oracle_for(randomizer)
    start = time.thread_time()
    oracle.accumulate(payload)
    middle = time.thread_time()
    raw = as_frequency(oracle).estimate_all()
    end = time.thread_time()
    truth = np.bincount(held.astype(np.intp), minlength=randomizer.size)
    errors = measure(oracle, raw, truth, float(randomizer.epsilon), np.arange(randomizer.size, dtype=np.uint64))
    parameters = " ".join(f"{k}={v}" for k, v in randomizer.parameters().items())
    return {
        "library": "hearsay",
        "mechanism": f"{randomizer.name} {parameters}".strip(),
        "users": options.users,
        "domain": randomizer.size,
        "epsilon": randomizer.epsilon.text,
        "mse_over_optimum": errors.mse_over_optimum,
        "consistent_mse_over_optimum": errors.norm_sub_mse_over_optimum,
        "max_error": errors.max_error,
        "report_bytes": randomizer.report_bytes,
        "client_per_second": _scalar(randomizer, [int(i) for i in held[:50_000]]),
        "aggregate_per_second": options.users / max(middle - start, 1e-9),
        "estimate_ms": 1000 * (end - middle),
        "remark": "",
    }


def _their_row(found: dict[str, object], options: SimulationOptions, setting: FrequencySetting) -> CompareRow:
    row: CompareRow = {
        "library": "",
        "mechanism": "",
        "users": 0,
        "domain": setting.naming.domain.size,
        "epsilon": options.epsilon,
        "mse_over_optimum": None,
        "consistent_mse_over_optimum": None,
        "max_error": None,
        "report_bytes": None,
        "client_per_second": None,
        "aggregate_per_second": None,
        "estimate_ms": None,
        "remark": "",
    }
    row.update(found)  # type: ignore[typeddict-item]  # the script's rows have these keys
    return row
