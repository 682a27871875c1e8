"""`ldp-simulate reproduce table`: Table 1 of the paper, measured for 32-bit items, epsilon = 1 and beta = 0.05.

Three protocols: PrivateExpanderSketch in the paper's form, the practical sketch of the planner, and the rival of
Theorem 3.3. Cells of the first and the last grow like sqrt(n), as the theorems have it; the practical sketch has one
size for every n. Bassily and Smith's protocol takes n^1.5 work for each user, so it is not run.

Public randomness is counted in bits of the public stream that one user's report expands. User memory is the peak of
Python's own allocations while a report is made, the client's modules not included.
"""

from __future__ import annotations

import hashlib
import math
import secrets
import time
import tracemalloc
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from statistics import median
from typing import Any
from unittest.mock import patch

import numpy as np

from ldp_client.coins import draw_words
from ldp_client.collection import Collection
from ldp_client.mechanisms import MECHANISMS
from ldp_client.privacy.yardsticks import d_opt
from ldp_client.protocol.domain import Integers
from ldp_client.protocol.epsilon import Epsilon
from ldp_server.arrays.packing import pack
from ldp_server.heavy_hitters import decode
from ldp_server.heavy_hitters.paper.law import winning
from ldp_server.heavy_hitters.paper.planner import paper_create, paper_plan
from ldp_server.heavy_hitters.planner import create, plan
from ldp_server.oracles import Oracle, oracle_for
from ldp_server.oracles.expander_sketch import ExpanderSketchOracle
from simulator import crowd
from simulator.report.plots import Panel, Series
from simulator.reproductions.reproduction import Progress, Reproduction, Rows
from simulator.reproductions.rival import BETA_0, CHUNK, Rival, copies_for

__all__ = ["table"]

BITS, EPSILON, BETA = 32, "1", 0.05
DOMAIN = Integers(1, (1 << BITS) - 2)
USERS = (10_000, 100_000, 1_000_000)
_TRIED = 500
"""Reports that are timed."""

Randomize = Callable[[int, tuple[int, ...]], int]


@dataclass(frozen=True)
class _Protocol:
    """What is measured of a protocol at one n."""

    name: str
    fresh: Callable[[bytes], Randomize]
    """A randomizer with public coins of its own, nothing in it expanded yet."""
    words: int
    report_bits: int
    error: float
    serve: Callable[[np.ndarray[Any, np.dtype[np.uint64]]], tuple[float, float, int]]
    """CPU seconds to count and to decode, and the bytes of the counts."""


def table(runs: int | None = None, seed: int = 1, progress: Progress | None = None, full: bool = False) -> Reproduction:
    """Return a row for each protocol and n: medians of `runs` runs."""
    tell, runs = progress or (lambda _steps: None), runs or (5 if full else 1)
    rows: Rows = []
    for users in USERS:
        for protocol in (_paper(users, seed), _practical(users, seed), _rival(users, seed)):
            rows.append(_row(protocol, users, runs, seed))
            tell(1)
    return Reproduction(tuple(_panels(rows)), rows)


def _row(protocol: _Protocol, users: int, runs: int, seed: int) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    body = rng.integers(1, 1 << BITS - 1, 1000).astype(np.uint64)
    indexes = body[rng.zipf(1.3, users) % 1000]
    served = [protocol.serve(indexes) for _ in range(runs)]
    unit = d_opt(users, float(EPSILON), DOMAIN.size, BETA)
    return {
        "users": users,
        "protocol": protocol.name,
        "count_seconds": median(one[0] for one in served),
        "decode_seconds": median(one[1] for one in served),
        "user_us": _user_time(protocol),
        "server_mb": served[0][2] / 1e6,
        "user_kb": _user_memory(protocol) / 1e3,
        "report_bits": protocol.report_bits,
        "public_bits": _public_bits(protocol),
        "error": protocol.error,
        "error_over_d_opt": protocol.error / unit,
    }


def _user_time(protocol: _Protocol) -> float:
    """Microseconds of a report, after the first one."""
    randomize = protocol.fresh(bytes(32))
    randomize(1, draw_words(protocol.words))
    start = time.thread_time()
    for item in range(_TRIED):
        randomize(1 + item, draw_words(protocol.words))
    return 1e6 * (time.thread_time() - start) / _TRIED


def _user_memory(protocol: _Protocol) -> int:
    """Bytes, for the randomizer and its first report. New coins: what was expanded for the same ones would be kept."""
    tracemalloc.start()
    protocol.fresh(secrets.token_bytes(32))(5, draw_words(protocol.words))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak


def _public_bits(protocol: _Protocol) -> int:
    """Bits of the public stream for the first report."""
    taken = 0
    whole = hashlib.shake_128

    class Counting:
        def __init__(self, data: bytes) -> None:
            self._stream = whole(data)

        def digest(self, length: int) -> bytes:
            nonlocal taken
            taken += length
            return self._stream.digest(length)

    with patch("ldp_client.protocol.stream.hashlib.shake_128", Counting):
        protocol.fresh(secrets.token_bytes(32))(5, draw_words(protocol.words))
    return 8 * taken


def _sketch(name: str, collection: Collection, error: float, seed: int) -> _Protocol:
    """A protocol that the product has."""
    spec = collection.randomizer

    def fresh(public: bytes) -> Randomize:
        parameters = dict(spec.parameters())
        attempt = parameters.get("attempt", 0)
        for tried in range(attempt, attempt + 4000):
            if "attempt" in parameters:
                parameters["attempt"] = tried
            try:
                return MECHANISMS[spec.name].build(Epsilon.parse(EPSILON), DOMAIN, public, parameters).randomize
            except ValueError:
                continue
        raise ValueError("no graph")

    def serve(indexes: np.ndarray[Any, np.dtype[np.uint64]]) -> tuple[float, float, int]:
        oracle, counted = oracle_for(collection), 0.0
        for reports in crowd.simulate(spec, indexes, seed):
            payload = pack(reports, spec.report_bytes)
            start = time.process_time()
            oracle.accumulate(payload)
            counted += time.process_time() - start
        start = time.process_time()
        decode(collection, oracle)
        return counted, time.process_time() - start, _counted(oracle)

    return _Protocol(name, fresh, spec.words, spec.report_bits, error, serve)


def _counted(oracle: Oracle) -> int:
    """Bytes of the counts, of both reports where there are two."""
    second = oracle.second if isinstance(oracle, ExpanderSketchOracle) else None
    return oracle.counts.values.nbytes + (0 if second is None else second.counts.values.nbytes)


def _paper(users: int, seed: int) -> _Protocol:
    cells = math.ceil(math.log2(1024 * math.sqrt(users)))
    found = paper_plan(users, DOMAIN, EPSILON, beta=BETA, cell_bits=cells)
    collection = paper_create(f"table {users}", DOMAIN, EPSILON, found.parameters)
    return _sketch("PrivateExpanderSketch", collection, found.delta, seed)


def _practical(users: int, seed: int) -> _Protocol:
    found = plan(users, DOMAIN, EPSILON)
    collection = create(f"table {users}", DOMAIN, EPSILON, found, opens=0, closes=1)
    return _sketch("practical sketch", collection, found.reliable, seed)


def _rival(users: int, seed: int) -> _Protocol:
    copies = copies_for(BETA)

    def made(public: bytes) -> Rival:
        return Rival(Epsilon.parse(EPSILON), BITS, users, copies, public)

    def serve(indexes: np.ndarray[Any, np.dtype[np.uint64]]) -> tuple[float, float, int]:
        rival = made(bytes(32))
        reports = rival.reports(indexes, seed)
        start = time.process_time()
        counts, second = rival.count(*reports)
        counted = time.process_time()
        second.estimate_median(rival.candidates(counts))
        return counted - start, time.process_time() - counted, counts.nbytes + second.counts.values.nbytes

    rival = made(bytes(32))
    return _Protocol(
        "the rival", lambda public: made(public).randomize, 6, rival.report_bits, _rival_error(rival), serve
    )


def _rival_error(rival: Rival) -> float:
    """The frequency from which one copy misses an item with probability at most beta_0, among 20 popular ones."""
    p, s = (float(x) for x in rival.inner.support)
    noise = math.sqrt(rival.users / rival.copies * rival.chunks * s * (1 - s)) / (p - s)
    together = 20 / (1 << rival.hash_bits)
    low, high = 0.0, 40.0
    for _ in range(40):
        middle = (low + high) / 2
        right = (1 - together) * winning(middle, 1 << CHUNK) ** rival.chunks
        low, high = (middle, high) if right < 1 - BETA_0 else (low, middle)
    return high * noise * rival.copies


_SHOWN = (
    ("decode_seconds", "server: decoding", "CPU seconds"),
    ("count_seconds", "server: counting", "CPU seconds"),
    ("server_mb", "server: counts in memory", "MB"),
    ("error_over_d_opt", "worst-case error", "multiples of D_opt"),
)


def _panels(rows: Rows) -> Iterator[Panel]:
    names = list(dict.fromkeys(row["protocol"] for row in rows))
    for key, title, label in _SHOWN:
        lines = []
        for name in names:
            mine = [row for row in rows if row["protocol"] == name and math.isfinite(row[key])]
            lines.append(Series(name, [row["users"] for row in mine], [row[key] for row in mine]))
        yield Panel(title, "users n", label, lines, log_x=True, log_y=True)
