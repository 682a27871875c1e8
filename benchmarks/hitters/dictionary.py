"""Heavy hitters with a dictionary of a million candidates: recall, false items, seconds.

The candidates are the planted items, half of the 10,000 strings of the body, and strings that nobody holds. `list
alone` makes no search: every false item is one of the dictionary, and items that it does not name are not taken away.
That is the harder case for its promise, of beta/4 false items a run.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from time import process_time

import numpy as np

from benchmarks.hitters.trials import BETA, TrialSetting, collect, population, side_by_side
from benchmarks.row import Options, Row, row
from ldp_client.protocol.domain import Integers, Strings
from ldp_server.arrays.hashing import Indexes
from ldp_server.arrays.items import from_ints
from ldp_server.heavy_hitters import DecodeLimits, decode
from ldp_server.heavy_hitters.dictionary import Dictionary

__all__ = ["dictionary_rows"]

_SIZE = 1_000_000
_BODY = 5000
_FIRST = 700_001  # seeds
_U64 = Integers(0, (1 << 64) - 1)
_CASES = {
    "64-bit, eps=1": (TrialSetting(_U64, 10**6, "1").plant((0.6, 0.65, 0.7, 0.72, 0.75, 0.8), 2), 0.72),
    "64-bit, eps=4": (TrialSetting(_U64, 10**6, "4").plant((0.6, 0.65, 0.7, 0.72, 0.75, 0.8), 2), 0.72),
    "16-byte strings, eps=1": (
        TrialSetting(Strings(16), 10**6, "1").plant((0.4, 0.43, 0.46, 0.48, 0.5, 0.55), 2),
        0.48,
    ),
    "32-byte strings, eps=1": (
        TrialSetting(Strings(32), 10**6, "1").plant((0.3, 0.33, 0.36, 0.38, 0.4, 0.45), 2),
        0.38,
    ),
}
"""Who is asked, and the multiple of D_opt at which 95% are to be listed."""


@dataclass
class _Found:
    planted: list[tuple[float, bool]]
    false: int
    seconds: float


def dictionary_rows(options: Options) -> Iterator[Row]:
    """Recall at each multiple, and false items, of lists that are made of the dictionary alone and of whole ones."""
    for name, (setting, target) in _CASES.items():
        for alone in (True, False):
            runs = 20 if options.full and alone else 6 if options.full else 2
            told = f"dictionary of 10^6, {name}, {'list alone' if alone else 'with the search'}"
            found = side_by_side(told, partial(_trial, setting, alone), range(_FIRST, _FIRST + runs))
            for multiple in sorted(set(setting.planted)):
                hits = [hit for one in found for at, hit in one.planted if at == multiple]
                wanted = ">= 0.95" if multiple == target and options.full else None
                yield row(
                    f"{told}: recall at {multiple:g} x D_opt, {len(hits)} items", sum(hits) / len(hits), "", wanted
                )
            allowed = f"<= {BETA / 4 if alone else BETA / 2:g}" if options.full else None
            yield row(f"{told}: false items, {runs} runs", sum(one.false for one in found) / runs, "a run", allowed)
            yield row(f"{told}: decode", max(one.seconds for one in found), "CPU s")


def _trial(setting: TrialSetting, alone: bool, seed: int) -> _Found:
    collection = setting.collection(seed)
    indexes, truth, planted = population(setting, seed)
    oracle, _ = collect(collection, indexes, seed)
    words = _words(setting, truth, planted, seed)
    start = process_time()
    limits = DecodeLimits(rounds=0) if alone else DecodeLimits()
    listed = decode(collection, oracle, beta=BETA, limits=limits, dictionary=words)
    taken = process_time() - start
    found = {collection.domain.index(hitter.item) for hitter in listed.items}
    hits = [(multiple, index in found) for multiple, index in zip(setting.planted, planted, strict=True)]
    return _Found(hits, sum(not truth.get(index) for index in found), taken)


def _words(setting: TrialSetting, truth: dict[int, int], planted: list[int], seed: int) -> Dictionary:
    """Return the candidates, all with the same weight."""
    rng = np.random.default_rng([seed, 18])
    held = [index for index, count in truth.items() if count > 1]
    known = dict.fromkeys([*planted, *(held[i] for i in rng.permutation(len(held))[:_BODY])])
    first = from_ints(known, setting.domain.bits)
    return Dictionary(
        np.concatenate([first, _unheld(first, _SIZE - len(first), rng)]), np.full(_SIZE, -math.log(_SIZE))
    )


def _unheld(like: Indexes, count: int, rng: np.random.Generator) -> Indexes:
    """Return indexes that nobody holds: so many random ones of so long items meet no held one."""
    if like.ndim == 1:
        return rng.integers(1, 1 << 64, count, np.uint64)
    limbs = rng.integers(0, 1 << 32, (count, like.shape[1]), np.uint32)
    limbs[:, -1] = 0
    return limbs
