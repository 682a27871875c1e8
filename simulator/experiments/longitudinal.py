"""`ldp-simulate longitudinal`: the same users are asked every day for a year.

There are two ways to answer a repeated question:
- *First answer*: one report is randomized once, kept, and counted every day. It spends one epsilon in all. The
  estimates grow wrong as tastes change.
- *Fresh*: a new report every day. The estimates follow the tastes, and each day spends another epsilon. An observer
  who can link a user's reports can guess the item (simulator/attacks/observer.py).

Measured are the total that is spent (by every rule of ldp_client/privacy), how often the observer's guess is right, and
the error of the estimates against what users hold that day, in a population whose tastes drift.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ldp_client.errors import InvalidSpec
from ldp_client.mechanisms.base import Randomizer
from ldp_client.privacy.composition import compose, every_rule
from ldp_client.protocol.epsilon import Epsilon
from ldp_server.arrays.packing import pack
from ldp_server.oracles import as_frequency, oracle_for
from simulator import crowd
from simulator.attacks.observer import Observer
from simulator.experiments.frequencies import build, prepare
from simulator.experiments.options import SimulationOptions
from simulator.population.kinds import Drifting, block_coins
from simulator.shapes import LongitudinalRow

__all__ = ["DELTA", "Year", "run"]

U64 = npt.NDArray[np.uint64]

DELTA = 1e-6
MAX_DAYS = 3_660
OBSERVED = 1000
"""Number of users whom the observer follows."""
MAX_GUESSES = 4096
"""Largest domain whose items the observer tries."""


@dataclass(frozen=True)
class Year:
    """The inputs of the experiment. Users change their item with probability `drift` a day."""

    options: SimulationOptions
    days: int = 365
    drift: float = 0.01
    every: int = 1
    """Days from one row to the next; the first and the last day always have one."""


def run(year: Year, progress: Callable[[int], None] | None = None) -> list[LongitudinalRow]:
    """Simulate all days."""
    options = year.options
    if not 1 <= year.days <= MAX_DAYS or year.every < 1:
        raise InvalidSpec(f"simulate 1 to {MAX_DAYS} days")
    setting = prepare(options)
    size = setting.naming.domain.size
    if setting.naming.table is not None or size > MAX_GUESSES:
        raise InvalidSpec(f"the observer of `longitudinal` tries every item: --domain is at most {MAX_GUESSES}")
    population = Drifting(year.drift, setting.population, options.users)
    randomizer = build(setting, options.epsilon).randomizer
    observer = Observer(randomizer, setting.population.draw(block_coins(options.seed, 0), 0, OBSERVED), options.seed)
    first, rows = np.zeros(size), list[LongitudinalRow]()
    for day, (held, reports) in enumerate(_days(randomizer, population, options, year.days), 1):
        fresh = _estimates(randomizer, reports)
        if day == 1:
            first = fresh
        truth = np.bincount(held.astype(np.intp), minlength=size)
        observer.see(day)
        if day in (1, year.days) or day % year.every == 0:
            rows.append(_row(day, options.epsilon, observer, fresh - truth, first - truth))
        if progress is not None:
            progress(1)
    return rows


def _days(
    randomizer: Randomizer, population: Drifting, options: SimulationOptions, days: int
) -> Iterator[tuple[U64, U64]]:
    """Yield what all users hold and report, for each day."""
    starts = range(0, options.users, crowd.BLOCK)
    walks = [
        population.walk(block_coins(options.seed, block), start, min(crowd.BLOCK, options.users - start))
        for block, start in enumerate(starts)
    ]
    for day in range(days):
        held = [next(walk) for walk in walks]
        reports = [
            crowd.randomize(
                randomizer, part, crowd.draw_words(options.seed, day * len(walks) + block, len(part), randomizer.words)
            )
            for block, part in enumerate(held)
        ]
        yield np.concatenate(held), np.concatenate(reports)


def _estimates(randomizer: Randomizer, reports: U64) -> npt.NDArray[np.float64]:
    oracle = oracle_for(randomizer)
    oracle.accumulate(pack(reports, randomizer.report_bytes))
    return as_frequency(oracle).estimate_all()


def _row(
    day: int, epsilon: str, observer: Observer, fresh: npt.NDArray[np.float64], first: npt.NDArray[np.float64]
) -> LongitudinalRow:
    exact = Epsilon.parse(epsilon).value
    best = compose([exact] * day, DELTA)
    optimal = min((total.epsilon for total in every_rule([exact] * day, DELTA)), default=math.inf)
    return {
        "day": day,
        "epsilon": epsilon,
        "delta": DELTA,
        "spent_first_answer": float(exact),
        "spent_basic": float(exact * day),
        "spent_best": min(best.epsilon, optimal),
        "rule": best.rule,
        "guessed_first_answer": observer.first_right,
        "guessed_fresh": observer.fresh_right,
        "rmse_first_answer": float(np.sqrt(np.mean(first**2))),
        "rmse_fresh": float(np.sqrt(np.mean(fresh**2))),
    }
