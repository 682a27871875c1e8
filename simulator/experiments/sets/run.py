"""Users who hold several items report, and every item is compared with the truth, before and after the cut."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import islice

import numpy as np
import numpy.typing as npt

from ldp_client.collection import Collection
from ldp_client.mechanisms.set_selection import SetSelection
from ldp_server.answers.estimates import Estimates, every_item
from ldp_server.answers.sets import SetSizes
from ldp_server.arrays.packing import pack
from ldp_server.oracles import Oracle, oracle_for
from ldp_server.planning.sets import SetsDraft, SetsGoal, draft_sets
from simulator import crowd
from simulator.crowd.set_selection import held_elements
from simulator.population.sets import SetPopulation
from simulator.shapes import SetItem, SetsRun

__all__ = ["SetsFound", "run"]

Counts = npt.NDArray[np.int64]


@dataclass(frozen=True)
class SetsFound:
    """What a simulation of sets found."""

    shape: SetsRun
    words: tuple[str, ...]
    """The sizes of sets as an answer says them."""


def run(
    population: SetPopulation,
    epsilon: str,
    most: int | None = None,
    *,
    seed: int = 1,
    progress: Callable[[int], None] = lambda _: None,
) -> SetsFound:
    """Let every user report.

    Without `most` the plan chooses it for the sizes that these users' sets have, and for an item with the root mean
    square of the items' shares: what the cut takes from it is the root mean square of what it takes from all.
    """
    share = min(max(_rms(population.held.mean(axis=1)), 1e-6), 0.999)
    goal = SetsGoal(population.names, population.sizes, most, population.users, epsilon, share=share)
    plan = draft_sets("Simulated?", goal, opens=0, closes=1)
    oracle, kept = _reported(plan.collection, population, seed, progress)
    answer = every_item(plan.collection, oracle)
    shape = _shape(population, plan, answer, _rows(population, answer, kept))
    return SetsFound(shape, tuple(_sizes(answer).in_words(answer.reports)))


def _reported(
    collection: Collection, population: SetPopulation, seed: int, progress: Callable[[int], None]
) -> tuple[Oracle, Counts]:
    """The oracle of all reports, and how many users hold each item after the cut."""
    maker, oracle, indexes = collection.randomizer, oracle_for(collection), population.indexes
    if not isinstance(maker, SetSelection):
        raise TypeError("sets are reported by set-selection")
    kept = np.zeros(maker.items, np.int64)
    for block, start in enumerate(range(0, population.users, crowd.BLOCK)):
        part = indexes[start : start + crowd.BLOCK]
        words = crowd.draw_words(seed, block, len(part), maker.words)
        oracle.accumulate(pack(crowd.randomize(maker, part, words), maker.report_bytes))
        kept += held_elements(maker, part, words[:, 3])[: maker.items].sum(axis=1)
        progress(len(part))
    return oracle, kept


def _rows(population: SetPopulation, answer: Estimates, kept: Counts) -> list[SetItem]:
    users, truth = population.users, population.held.sum(axis=1)
    items = islice(answer.rows, 1, None)  # `none` comes first
    return [
        {
            "item": str(row.item),
            "truth": int(held) / users,
            "after_cut": int(left) / users,
            "estimate": row.estimate / users,
            "stated_error": row.standard_error / users,
            "low": row.low / users + 0.0,  # and not -0.0
            "high": row.high / users,
        }
        for row, held, left in zip(items, truth, kept, strict=True)
    ]


def _rms(values: Iterable[float]) -> float:
    return math.sqrt(float(np.mean(np.square(list(values)))))


def _sizes(answer: Estimates) -> SetSizes:
    if answer.sets is None:
        raise TypeError("an answer about sets has their sizes")
    return answer.sets


def _shape(population: SetPopulation, plan: SetsDraft, answer: Estimates, rows: Sequence[SetItem]) -> SetsRun:
    users, cut, sizes = population.users, _sizes(answer).cut, population.held.sum(axis=0)
    return {
        "users": users,
        "epsilon": plan.epsilon,
        "items": len(rows),
        "most": plan.most,
        "report_bits": plan.collection.randomizer.report_bits,
        "error": _rms(row["estimate"] - row["truth"] for row in rows),
        "noise": _rms(row["estimate"] - row["after_cut"] for row in rows),
        "stated_error": _rms(row["stated_error"] for row in rows),
        "short": _rms(row["truth"] - row["after_cut"] for row in rows),
        "covered": float(np.mean([row["low"] <= row["after_cut"] <= row["high"] for row in rows])),
        "cut": float((sizes > plan.most).mean()),
        "cut_estimate": cut.estimate / users,
        "cut_low": cut.low / users,
        "cut_high": cut.high / users,
        "choices": [{"most": one.most, "interval": one.noise, "short": one.cut} for one in plan.choices],
        "rows": list(rows),
    }
