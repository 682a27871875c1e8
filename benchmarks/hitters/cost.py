"""What a list costs: CPU seconds and memory of client, crowd and server.

Each decode is measured in a process of its own, which holds the reports and nothing else. On a shared machine other
work slows it down, so the row has the least of a few decodes, beside a yardstick of the same process: the least time of
the same number of sorts and matrix products, which is what a decode is made of.

A decode on two threads is measured by its CPU time too: the main thread's, and half of what the two others took. That
is how long it takes on two cores that do nothing else.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from statistics import median
from time import process_time, thread_time

import numpy as np

from benchmarks.hitters.trials import TrialSetting, client_speed, collect, population, run_trial
from benchmarks.memory_child import peak
from benchmarks.row import Options, Row, row
from ldp_client.protocol.domain import Integers, Strings
from ldp_server.heavy_hitters import decode

__all__ = ["cost_rows", "speeds"]

U64 = Integers(0, (1 << 64) - 1)
AROUND = (1.05, 1.1, 1.15, 1.2, 1.25, 1.3)
CASES = {
    "64-bit, n=1e6, eps=1": (TrialSetting(U64, 10**6, "1").plant(AROUND, 2), 1.5, 250),
    "64-bit, n=1e6, eps=4": (TrialSetting(U64, 10**6, "4").plant(AROUND, 2), 2.5, 250),
    "16-byte strings, n=1e6, eps=1": (TrialSetting(Strings(16), 10**6, "1").plant(AROUND, 2), 2.5, 260),
    "32-byte strings, n=1e6, eps=1": (TrialSetting(Strings(32), 10**6, "1").plant(AROUND, 1), 5.0, 350),
    "16-byte strings, n=2e6, eps=3, 40 items": (
        TrialSetting(Strings(16), 2 * 10**6, "3").plant((1.1, 1.2, 1.3, 1.5, 2, 3, 5, 8), 4),
        3.5,
        260,
    ),
}
"""Who is asked, the CPU seconds and the megabytes to reach."""
_FIRST = 640_000  # seeds
_CHILD = "import sys; from benchmarks.hitters.cost import child; child(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))"


def speeds() -> Iterator[Row]:
    """Client, crowd, server; 64-bit items, n = 10^6."""
    for epsilon, limit in (("1", 3.0), ("2", 4.0), ("4", 5.0)):
        setting = TrialSetting(U64, 10**6, epsilon).plant((1.2, 1.3), 2)
        trials = [run_trial(setting, 500 + seed) for seed in range(3)]
        total = sorted(t.seconds["accumulate"] + t.seconds["decode"] for t in trials)[1]
        yield row(f"accumulate and decode, 64-bit, n=1e6, eps={epsilon}", total, "CPU s", f"<= {limit:g}")
        parts = sorted(t.seconds["randomize"] for t in trials)[1]
        yield row(f"crowd, eps={epsilon}", 10**6 / parts, "reports/s", ">= 1000000")
        collection = setting.collection(1)
        yield row(f"client, scalar, to packed bytes, eps={epsilon}", client_speed(collection), "reports/s", ">= 50000")
        yield row(f"report, eps={epsilon}", collection.randomizer.report_bits, "bits")


def cost_rows(options: Options) -> Iterator[Row]:
    """CPU seconds, memory and the use of two threads, for each length of items."""
    runs, repeats = (3, 4) if options.full else (1, 4)
    for name, (_, seconds, memory) in CASES.items():
        found = [_measured(name, _FIRST + run, repeats) for run in range(runs)]
        stick = ("sorts and matrix products", median(one["yardstick"] for one in found))
        taken = median(one["seconds"] for one in found)
        yield row(f"decode, {name}", taken, "CPU s", f"<= {seconds:g}", yardstick=stick)
        yield row(f"decode, {name}: two threads over one", median(one["threads"] for one in found), "", "<= 0.75")
        yield row(f"decode, {name}: peak memory", max(one["peak"] for one in found), "MB", f"<= {memory}")


def _measured(name: str, seed: int, repeats: int) -> dict[str, float]:
    root = Path(__file__).resolve().parents[2]
    command = [sys.executable, "-c", _CHILD, name, str(seed), str(repeats)]
    done = subprocess.run(command, cwd=root, check=True, capture_output=True, text=True, timeout=1200)
    found: dict[str, float] = json.loads(done.stdout)
    return found


def child(name: str, seed: int, repeats: int) -> None:
    """Count the reports of one population, decode them, and print what that took."""
    setting = CASES[name][0]
    collection = setting.collection(seed)
    oracle, _ = collect(collection, population(setting, seed)[0], seed)
    Path("/proc/self/clear_refs").write_text("5")  # the peak of making the users' reports is not the decoder's
    decode(collection, oracle)
    most, sticks, alone, threads = peak() / (1 << 20), [_yardstick()], [], []
    for _ in range(repeats):
        start = process_time()
        decode(collection, oracle)
        alone.append(process_time() - start)
        with ThreadPoolExecutor(2) as executor:
            whole, own = process_time(), thread_time()
            decode(collection, oracle, executor=executor)
            own = thread_time() - own
            threads.append(own + (process_time() - whole - own) / 2)
        sticks.append(_yardstick())
    found = {"seconds": min(alone), "yardstick": min(sticks), "threads": min(threads) / min(alone), "peak": most}
    print(json.dumps(found))


def _yardstick() -> float:
    """CPU seconds of 20 sorts of 2^20 integers and 20 products of complex matrices."""
    rng = np.random.default_rng(1)
    numbers = rng.integers(0, 1 << 62, 1 << 20)
    small = rng.standard_normal((27, 27)).astype(np.complex64)
    large = rng.standard_normal((59_049, 27)).astype(np.complex64)
    start = process_time()
    for _ in range(20):
        np.sort(numbers)
        small @ large.T
    return process_time() - start
