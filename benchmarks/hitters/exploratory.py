"""Exploratory lists beside ordinary ones of the same reports: what more they list, and which part is false."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

from benchmarks.hitters.trials import BETA, Trial, TrialSetting, collect, judged, population, side_by_side
from benchmarks.row import Options, Row, row
from ldp_client.protocol.domain import Integers, Strings
from ldp_server.heavy_hitters import DecodeLimits, decode
from ldp_server.heavy_hitters.promise import EXPLORATORY

__all__ = ["exploratory_rows"]

U64 = Integers(0, (1 << 64) - 1)
USERS = 10**6
SEEDS = 910_000
CASES = {
    "64-bit, eps=1, 8 items at 1 to 1.2": (TrialSetting(U64, USERS, "1"), (1.0, 1.05, 1.1, 1.2), 2),
    "64-bit, eps=1, 2 items at 1.05": (TrialSetting(U64, USERS, "1"), (1.05,), 2),
    "64-bit, eps=4, 35 items at 0.9 to 1.1": (TrialSetting(U64, USERS, "4"), (0.9, 0.95, 1.0, 1.05, 1.1), 7),
    "16 bytes, eps=1, 8 items at 1 to 1.2": (TrialSetting(Strings(16), USERS, "1"), (1.0, 1.05, 1.1, 1.2), 2),
}
"""Users, multiples of D_opt, and items at each."""


@dataclass(frozen=True)
class _Both:
    """The lists of one crowd."""

    ordinary: Trial
    exploratory: Trial


def _both(setting: TrialSetting, seed: int) -> _Both:
    collection = setting.collection(seed)
    indexes, truth, planted = population(setting, seed)
    oracle, seconds = collect(collection, indexes, seed)
    lists = [
        decode(collection, oracle, beta=BETA, limits=DecodeLimits(exploratory=exploratory))
        for exploratory in (False, True)
    ]
    return _Both(*(judged(setting, collection, found, truth, planted, seconds) for found in lists))


def _part(trial: Trial) -> float:
    """The part of a list that is false."""
    return trial.false / max(1, len(trial.covered))


def exploratory_rows(options: Options) -> Iterator[Row]:
    """Yield the recall of both lists, and the part of the exploratory ones that is false."""
    for name, (setting, multiples, each) in CASES.items():
        runs = 20 if options.full else 4
        found = side_by_side(name, partial(_both, setting.plant(multiples, each)), range(SEEDS, SEEDS + runs))
        for kind, lists in (
            ("ordinary", [both.ordinary for both in found]),
            ("exploratory", [both.exploratory for both in found]),
        ):
            hits = [hit for one in lists for _, hit in one.planted]
            yield row(f"{name}: {kind}, planted items listed of {len(hits)}", sum(hits), "")
            listed, false = sum(len(one.covered) for one in lists), sum(one.false for one in lists)
            yield row(f"{name}: {kind}, false items of {listed}, {runs} lists", false, "")
        part = sum(_part(both.exploratory) for both in found) / len(found)
        yield row(f"{name}: exploratory, false part of a list on average", part, "", f"<= {EXPLORATORY:g}")
