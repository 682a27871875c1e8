"""The simulator: its speed, its memory, whether results depend on the number of processes, and `wire` with all faults.

Everything goes through the real packing; the wire is real gRPC to a real server process on the embedded store.
"""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from statistics import median

from benchmarks.row import Options, Row, row
from ldp_server.oracles import as_frequency
from simulator.engine import Job, count
from simulator.experiments import frequencies, wire
from simulator.experiments.frequencies import build, prepare
from simulator.experiments.options import SimulationOptions
from simulator.wire.faults import Faults

__all__ = ["run"]

MILLION = SimulationOptions(1_000_000, "1", "65536", "zipf:1.1")
FORMS = (("q=2", (("q", 2), ("t", 16)), "<= 0.5"), ("optimal q=5", (("q", 5), ("t", 7)), "<= 1"))


def _job(wanted: SimulationOptions, seed: int) -> Job:
    setting = prepare(wanted)
    return Job(build(setting, wanted.epsilon), setting.population, setting.naming, wanted.users, seed)


def stages() -> Iterator[Row]:
    """Measure a million users, from their items to all estimates: CPU seconds, medians of five runs."""
    for name, parameters, target in FORMS:
        wanted = replace(MILLION, mechanism="linear-hash", parameters=parameters)
        taken: dict[str, list[float]] = {"all stages": []}
        count(_job(wanted, 0))
        for seed in range(5):
            start = time.process_time()
            counted = count(_job(wanted, seed))
            before = time.process_time()
            as_frequency(counted.oracle).estimate_all()
            end = time.process_time()
            taken["all stages"].append(end - start)
            for stage, seconds in (*counted.seconds.items(), ("estimate", end - before)):
                taken.setdefault(stage, []).append(seconds)
        for stage, values in taken.items():
            bound = target if stage == "all stages" else None
            yield row(f"simulator n=1e6 d=65536 eps=1 {name}: {stage}", median(values), "CPU s", bound)


def independence() -> Iterator[Row]:
    """Compare the counts of one process and of several."""
    for name, wanted in (
        ("d=65536", MILLION),
        ("d=2^32", replace(MILLION, domain="4294967296", population="mixture:0.8*zipf:1.1:10000+0.2*singletons")),
    ):
        job = _job(wanted, 1)
        digests = {hashlib.sha256(count(job, processes=p).oracle.to_bytes()).hexdigest() for p in (1, 2, 3)}
        yield row(f"simulator n=1e6 {name}: different results on 1, 2 and 3 processes", len(digests), "", "<= 1")


def _child(users: int, *extra: str) -> dict[str, float]:
    """Run `ldp-simulate frequencies` in a process of its own."""
    code = "from simulator.cli import main\nif __name__ == '__main__': main()"
    command = [sys.executable, "-c", code, "frequencies", "--users", str(users), "--domain", "65536", "--json", *extra]
    start = time.perf_counter()
    done = subprocess.run(command, capture_output=True, check=True, text=True)
    found = json.loads(done.stdout)
    return {"rss": found["peak_rss_mb"], "mse": found["mse_over_optimum"], "seconds": time.perf_counter() - start}


def memory(full: bool) -> Iterator[Row]:
    """Measure the peak resident size of the process for several numbers of users."""
    sizes = [1_000_000, 10_000_000, *([100_000_000] if full else [])]
    for users in sizes:
        found = _child(users)
        yield row(f"simulator n={users:.0e} d=65536: peak memory", found["rss"], "MB", "<= 2000")
        yield row(f"simulator n={users:.0e} d=65536: mse/optimum", found["mse"], "ratio", "<= 1.1")
        yield row(f"simulator n={users:.0e} d=65536: start to end, 1 process", found["seconds"], "s")


def over_the_wire(full: bool) -> Iterator[Row]:
    """Run `wire` with a million users on two senders and all faults; the server is killed in the middle."""
    faults = Faults(drop=0.01, duplicate=0.02, late=0.01, kill_after=1.0)
    wanted = SimulationOptions(1_000_000, "1", "1024", processes=2)
    for name, batch in (("1,000 reports a batch", 1000), *((("one report a batch", 1),) if full else ())):
        users = wanted if batch > 1 else replace(wanted, users=100_000)
        found = wire.run(users, faults, batch=batch)
        shape = found.shape
        named = f"wire n={users.users:.0e}, {name}, faults"
        once = int(shape["exactly_once"] and found.same_estimates)
        yield row(f"{named}: exactly once, and the same estimates", once, "", ">= 1")
        yield row(f"{named}: seconds", shape["seconds"], "s", "<= 60" if batch > 1 else None)
        yield row(f"{named}: restarts", shape["restarts"], "", ">= 1")
        yield row(f"{named}: repeated batches not counted again", shape["duplicates"], "")
        yield row(f"{named}: late batches refused", sum(shape["refused"].values()), "")


def honesty() -> Iterator[Row]:
    """Measure error and coverage for the vocabulary that comes with the simulator."""
    found = frequencies.run(SimulationOptions(1_000_000, population="vocabulary", runs=3)).shape
    yield row("vocabulary of a real text n=1e6 eps=1: mse/optimum", found["mse_over_optimum"], "ratio", "<= 1.1")
    yield row("vocabulary of a real text n=1e6 eps=1: coverage of 95% intervals", 100 * found["coverage"], "%", ">= 94")


def run(options: Options) -> Iterator[Row]:
    """Give all rows."""
    yield from stages()
    yield from independence()
    yield from honesty()
    yield from memory(options.full)
    yield from over_the_wire(options.full)
