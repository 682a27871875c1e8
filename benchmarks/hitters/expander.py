"""PrivateExpanderSketch in the paper's form beside the practical decoder: recall, CPU time and memory, same users.

32-bit items; items are planted at multiples of D_opt (beta = 0.05), the other users hold a Zipf(1.1) body and items of
their own. The paper's form promises that all items from `Delta` on are listed at once with probability 95%. Its rows at
1.05 Delta plant as many items as the users can hold there.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from statistics import median
from time import process_time

from benchmarks.hitters.trials import TrialSetting, collect, population, side_by_side
from benchmarks.row import Options, Row, row
from ldp_client.collection import Collection
from ldp_client.protocol.domain import Integers
from ldp_server.heavy_hitters import decode
from ldp_server.heavy_hitters.paper.planner import PaperPlan, paper_create, paper_plan
from ldp_server.heavy_hitters.planner import create, plan
from ldp_server.oracles import Oracle
from ldp_server.oracles.expander_sketch import ExpanderSketchOracle
from ldp_server.oracles.shared.team_sketch import TeamSketchOracle

__all__ = ["run"]

DOMAIN = Integers(0, (1 << 32) - 2)
EPSILONS = ("1", "2", "4")
LADDERS = ((1.2, 3.0, 6.0), (2.0, 4.0, 5.0), (1.5, 8.0))
"""Planted together: all of a ladder fit into the users at epsilon = 1."""


@dataclass
class _Found:
    """The planted items of one trial, by form: (multiple, whether it was listed), false items, CPU seconds, bytes."""

    hits: dict[str, list[tuple[float, bool]]] = field(default_factory=dict)
    false: dict[str, int] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)
    size: dict[str, int] = field(default_factory=dict)


def _collections(setting: TrialSetting, seed: int) -> dict[str, Collection]:
    paper = paper_plan(setting.users, setting.domain, setting.epsilon)
    practical = plan(setting.users, setting.domain, setting.epsilon)
    question = f"expander {seed}"
    return {
        "paper's form": paper_create(question, setting.domain, setting.epsilon, paper.parameters),
        "practical": create(question, setting.domain, setting.epsilon, practical, opens=0, closes=1),
    }


def _trial(setting: TrialSetting, seed: int) -> _Found:
    indexes, truth, planted = population(setting, seed)
    found = _Found()
    for name, collection in _collections(setting, seed).items():
        oracle, seconds = collect(collection, indexes, seed)
        start = process_time()
        listed = {collection.domain.index(h.item) for h in decode(collection, oracle).items}
        found.seconds[name] = process_time() - start + seconds["accumulate"]
        found.hits[name] = [(m, index in listed) for m, index in zip(setting.planted, planted, strict=True)]
        found.false[name] = sum(truth.get(index, 0) == 0 for index in listed)
        found.size[name] = _bytes(oracle)
    return found


def _bytes(oracle: Oracle) -> int:
    """Bytes of the counts, and of the scores while a decoder runs."""
    if not isinstance(oracle, TeamSketchOracle):
        raise TypeError("this benchmark is of sketches")
    second = oracle.second if isinstance(oracle, ExpanderSketchOracle) else None
    counts = oracle.counts.values.nbytes + (0 if second is None else second.counts.values.nbytes)
    return counts + 4 * oracle.sketch.teams * oracle.sketch.inner.size


def _recall(name: str, trials: list[_Found]) -> Iterator[Row]:
    """Yield both forms' recall at each multiple, their false items, time and memory."""
    for form in trials[0].hits:
        by_multiple: dict[float, list[bool]] = {}
        for trial in trials:
            for multiple, hit in trial.hits[form]:
                by_multiple.setdefault(multiple, []).append(hit)
        for multiple, hits in sorted(by_multiple.items()):
            label = f"{name}, {form}: recall at {multiple:g} x D_opt, {len(hits)} items"
            yield row(label, sum(hits) / len(hits), "")
        yield row(f"{name}, {form}: false items", sum(t.false[form] for t in trials) / len(trials), "a run")
    other = "practical", median(t.seconds["practical"] for t in trials)
    mine = median(t.seconds["paper's form"] for t in trials)
    yield row(f"{name}, paper's form: count and decode", mine, "CPU s", yardstick=other)
    sizes = trials[0].size
    stick = ("practical", sizes["practical"] / 1e6)
    yield row(f"{name}, paper's form: counts and scores", sizes["paper's form"] / 1e6, "MB", yardstick=stick)


def _promise(name: str, setting: TrialSetting, found: PaperPlan, runs: int) -> Iterator[Row]:
    """Yield Delta, and how often all items at 1.05 Delta are listed at once."""
    yield row(f"{name}, paper's form: promised for all items at once (Delta)", found.delta / setting.d_opt, "x D_opt")
    multiple = 1.05 * found.delta / setting.d_opt
    items = max(1, math.floor(0.95 * setting.users / (1.05 * found.delta)))
    trials = side_by_side(
        f"{name}, promise", partial(_kept, replace(setting, planted=(multiple,) * items)), range(runs)
    )
    label = f"{name}, paper's form: runs that list all {items} items at 1.05 x Delta, {runs} runs"
    yield row(label, sum(trials) / runs, "", ">= 0.95" if runs >= 60 else None)


def _kept(setting: TrialSetting, seed: int) -> bool:
    indexes, _, planted = population(setting, seed)
    collection = _collections(setting, seed)["paper's form"]
    oracle, _ = collect(collection, indexes, seed)
    return set(planted) <= {collection.domain.index(h.item) for h in decode(collection, oracle).items}


def run(options: Options) -> Iterator[Row]:
    """Every row."""
    users, each, promises = (1_000_000, 20, 100) if options.full else (100_000, 4, 10)
    for epsilon in EPSILONS:
        setting = TrialSetting(DOMAIN, users, epsilon)
        name = f"32-bit, n={users:g}, eps={epsilon}"
        trials: list[_Found] = []
        for ladder in LADDERS:
            trials += side_by_side(f"{name}, recall", partial(_trial, replace(setting, planted=ladder)), range(each))
        yield from _recall(name, trials)
        yield from _promise(name, setting, paper_plan(users, DOMAIN, epsilon), promises)
