"""Large crowds, long lists and long items: recall and false items at sizes that no other row has.

Reports are made and counted in blocks, so a crowd of 10^8 takes as much memory as one block beside the counts. Which
user comes when does not matter: the team is drawn on the device, from its own coins. So users come in the order of
their items, and nothing is shuffled.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import median
from time import process_time

import numpy as np
import numpy.typing as npt

from benchmarks.hitters.trials import BETA, Trial, TrialSetting, judged, run_trial, side_by_side, words
from benchmarks.memory_child import peak
from benchmarks.row import Options, Row, row
from ldp_client.collection import Collection
from ldp_client.protocol.domain import Integers, Strings
from ldp_client.protocol.hashing import limb_count
from ldp_server.arrays.hashing import Indexes
from ldp_server.arrays.items import from_ints
from ldp_server.arrays.packing import pack
from ldp_server.heavy_hitters import decode
from ldp_server.oracles import Oracle, oracle_for
from simulator import crowd

__all__ = ["Holders", "case_rows", "count_in_blocks", "holders", "scale_rows", "single_indexes", "streamed_trial"]

BODY = 10_000
BLOCK = 1 << 20
SEEDS = 720_000  # seeds from here on were not looked at before
U64 = Integers(0, (1 << 64) - 1)

LARGE = {
    "64 bits, n=1e7, eps=1": (TrialSetting(U64, 10**7, "1").plant((1.1, 1.15, 1.2, 1.25, 1.3), 5), 4),
    "16-byte strings, n=1e7, eps=1": (TrialSetting(Strings(16), 10**7, "1").plant((1.1, 1.16, 1.2, 1.3), 5), 4),
    "64 bits, n=1e8, eps=1": (TrialSetting(U64, 10**8, "1").plant((1.1, 1.15, 1.2, 1.25, 1.3), 10), 1),
    "64 bits, n=1e7, eps=4, 500 items": (TrialSetting(U64, 10**7, "4").plant((1.2, 1.3, 1.5), 167), 2),
}
"""Who is asked, and how many trials there are."""
LONG = {
    "64-byte strings, n=1e6, eps=2": (TrialSetting(Strings(64), 10**6, "2").plant((1.1, 1.16, 1.2, 1.3), 2), 4),
    "128-byte strings, n=1e6, eps=4": (TrialSetting(Strings(128), 10**6, "4").plant((1.1, 1.16, 1.2, 1.3), 4), 3),
    "255-byte strings, n=1e6, eps=4": (TrialSetting(Strings(255), 10**6, "4").plant((1.1, 1.16, 1.2, 1.3), 3), 2),
}


@dataclass(frozen=True)
class Holders:
    """The indexes that are held twice or more with their counts, planted ones first, and how many others are held."""

    indexes: list[int]
    counts: npt.NDArray[np.int64]
    singles: int

    @property
    def users(self) -> int:
        return int(self.counts.sum()) + self.singles


def holders(setting: TrialSetting, seed: int) -> Holders:
    """Return who holds what in a trial: planted items, a Zipf(1.1) body of 10,000, and items of one user each."""
    rng, domain = np.random.default_rng(seed), setting.domain
    planted = [round(multiple * setting.d_opt) for multiple in setting.planted]
    rest = setting.users - sum(planted)
    singles = int(rest * setting.singletons)
    weights = np.arange(1, BODY + 1) ** -1.1
    body = rng.multinomial(rest - singles, weights / weights.sum())
    indexes = [domain.index(item) for item in words(domain, "random", len(planted) + BODY, rng)]
    return Holders(indexes, np.concatenate([planted, body]).astype(np.int64), singles)


def single_indexes(setting: TrialSetting, count: int, rng: np.random.Generator) -> Indexes:
    """Return items that nobody else holds, but for an accident."""
    size, bits = setting.domain.size, setting.domain.bits
    if bits <= 64:
        return rng.integers(1, min(size, 1 << 64), count, np.uint64)
    found = np.zeros((count, limb_count(bits)), np.uint32)
    full = (size.bit_length() - 1) // 32
    found[:, :full] = rng.integers(0, 1 << 32, (count, full), np.uint32)
    return found


def count_in_blocks(collection: Collection, setting: TrialSetting, held: Holders, seed: int) -> Oracle:
    """Randomize, pack and count the reports of all users, a block at a time."""
    rng, oracle, width = np.random.default_rng([seed, 1]), oracle_for(collection), collection.randomizer.report_bytes
    common, ends = from_ints(held.indexes, setting.domain.bits), np.cumsum(held.counts)
    for start in range(0, held.users, BLOCK):
        stop = min(start + BLOCK, held.users)
        shared = np.arange(start, max(start, min(stop, int(ends[-1]))))
        alone = single_indexes(setting, stop - start - len(shared), rng)
        users = np.concatenate([common[np.searchsorted(ends, shared, side="right")], alone])
        for reports in crowd.simulate(collection.randomizer, users, seed, start // crowd.BLOCK):
            oracle.accumulate(pack(reports, width))
    return oracle


def streamed_trial(setting: TrialSetting, seed: int) -> Trial:
    """Run one trial with a crowd that is made in blocks."""
    Path("/proc/self/clear_refs").write_text("5")  # the peak is this trial's
    collection, held, started = setting.collection(seed), holders(setting, seed), process_time()
    oracle = count_in_blocks(collection, setting, held, seed)
    seconds = {"crowd": process_time() - started}
    started = process_time()
    listed = decode(collection, oracle, beta=BETA)
    seconds |= {"decode": process_time() - started, "peak": peak() / (1 << 20)}
    truth = {index: int(count) for index, count in zip(held.indexes, held.counts, strict=True) if count}
    return judged(setting, collection, listed, truth, held.indexes[: len(setting.planted)], seconds)


def scale_rows(options: Options) -> Iterator[Row]:
    """Yield recall, false items, time and memory of every case; without --full none, for they take long."""
    if not options.full:
        return
    for name, (setting, runs) in (LARGE | LONG).items():
        trial: Callable[[TrialSetting, int], Trial] = streamed_trial if name in LARGE else run_trial
        yield from case_rows(name, side_by_side(name, partial(trial, setting), range(SEEDS, SEEDS + runs)))


def case_rows(name: str, trials: list[Trial]) -> Iterator[Row]:
    """Yield the rows of one case."""
    found: dict[float, list[bool]] = {}
    for trial in trials:
        for multiple, hit in trial.planted:
            found.setdefault(multiple, []).append(hit)
    for multiple, hits in sorted(found.items()):
        yield row(f"{name}: recall at {multiple:g} x D_opt, {len(hits)} items", sum(hits) / len(hits), "")
    false = sum(trial.false for trial in trials)
    yield row(f"{name}: false items, {len(trials)} runs", false / len(trials), "a run", "<= 0.05")
    covered = [inside for trial in trials for inside in trial.covered]
    yield row(f"{name}: coverage of {len(covered)} intervals", sum(covered) / max(1, len(covered)), "")
    for part, unit in (("crowd", "CPU s"), ("decode", "CPU s"), ("peak", "MB")):
        taken = [trial.seconds[part] for trial in trials if part in trial.seconds]
        if taken:
            yield row(f"{name}: {part}", max(taken) if part == "peak" else median(taken), unit)
