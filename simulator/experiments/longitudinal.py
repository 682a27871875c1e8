"""`ldp-simulate longitudinal`: the same users asked every day for a year.

Two ways to answer again and again:
- *the first answer stands*: one report, randomized once, kept and counted every day. Spent: one epsilon, for ever. The
  estimates grow stale when tastes change;
- *a fresh report every day*: the estimates follow, and every day costs another epsilon. An observer who can link a
  user's reports adds up what they support, and guesses the item that most of them support (for these mechanisms, the
  most likely item: every report multiplies the odds of what it supports by the same number).

Both are measured here: what is spent (by every rule of ldp_client/privacy), how often the guess is right, and how far
the estimates are from what users hold that day, in a crowd whose tastes drift.
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
from ldp_server.oracles import oracle_for
from simulator import crowd
from simulator.crowd.loaded import supports
from simulator.experiments.frequencies import SimulationOptions, build, prepare
from simulator.population.kinds import Drifting, block_coins
from simulator.shapes import LongitudinalRow

__all__ = ["DELTA", "Year", "run"]

U64 = npt.NDArray[np.uint64]

DELTA = 1e-6
MAX_DAYS = 3_660
OBSERVED = 1000
"""How many users the observer follows."""
MAX_GUESSES = 4096


@dataclass(frozen=True)
class Year:
    """What to simulate: the crowd of `wanted`, changing its mind with probability `drift` a day."""

    wanted: SimulationOptions
    days: int = 365
    drift: float = 0.01
    every: int = 1
    """Rows are given for the first day and then for every so many."""


def run(year: Year, progress: Callable[[int], None] | None = None) -> list[LongitudinalRow]:
    """Day after day."""
    wanted = year.wanted
    if not 1 <= year.days <= MAX_DAYS or year.every < 1:
        raise InvalidSpec(f"simulate 1 to {MAX_DAYS} days")
    setting = prepare(wanted)
    size = setting.naming.domain.size
    if setting.naming.table is not None or size > MAX_GUESSES:
        raise InvalidSpec(f"the observer of `longitudinal` tries every item: --domain is at most {MAX_GUESSES}")
    population = Drifting(year.drift, setting.population, wanted.users)
    randomizer = build(setting, wanted.epsilon).randomizer
    observer = _Observer(randomizer, setting.population.draw(block_coins(wanted.seed, 0), 0, OBSERVED), wanted.seed)
    first, rows = np.zeros(size), list[LongitudinalRow]()
    for day, (held, reports) in enumerate(_days(randomizer, population, wanted, year.days), 1):
        fresh = _estimates(randomizer, reports)
        if day == 1:
            first = fresh
        truth = np.bincount(held.astype(np.intp), minlength=size)
        observer.see(day)
        if day in (1, year.days) or day % year.every == 0:
            rows.append(_row(day, wanted.epsilon, observer, fresh - truth, first - truth))
        if progress is not None:
            progress(1)
    return rows


def _days(
    randomizer: Randomizer, population: Drifting, wanted: SimulationOptions, days: int
) -> Iterator[tuple[U64, U64]]:
    """What everybody holds and reports, one day after the other."""
    starts = range(0, wanted.users, crowd.BLOCK)
    walks = [
        population.walk(block_coins(wanted.seed, block), start, min(crowd.BLOCK, wanted.users - start))
        for block, start in enumerate(starts)
    ]
    for day in range(days):
        held = [next(walk) for walk in walks]
        reports = [
            crowd.randomize(
                randomizer, part, crowd.draw_words(wanted.seed, day * len(walks) + block, len(part), randomizer.words)
            )
            for block, part in enumerate(held)
        ]
        yield np.concatenate(held), np.concatenate(reports)


def _estimates(randomizer: Randomizer, reports: U64) -> npt.NDArray[np.float64]:
    oracle = oracle_for(randomizer)
    oracle.accumulate(pack(reports, randomizer.report_bytes))
    return oracle.estimate_all()


class _Observer:
    """Follows some users who never change their item, and guesses it from all reports seen so far."""

    def __init__(self, randomizer: Randomizer, held: U64, seed: int) -> None:
        self._randomizer, self._held, self._seed = randomizer, held, seed
        self._items = np.arange(1, randomizer.size, dtype=np.uint64)
        self._fresh = np.zeros((len(held), len(self._items)), np.int32)
        self.first_right = self.fresh_right = 0.0

    def see(self, day: int) -> None:
        """One more report of each: fresh for some, the same as on the first day for the others."""
        words = crowd.draw_words(self._seed, (1 << 41) + day, len(self._held), self._randomizer.words)
        self._fresh += supports(self._randomizer, crowd.randomize(self._randomizer, self._held, words), self._items)
        self.fresh_right = self._right(self._fresh)
        if day == 1:
            self.first_right = self.fresh_right

    def _right(self, scores: npt.NDArray[np.int32]) -> float:
        """How often the best guess is right, ties broken evenly."""
        best = scores == scores.max(axis=1, keepdims=True)
        mine = self._held.astype(np.intp) - 1
        chances = np.where(mine >= 0, best[np.arange(len(mine)), np.maximum(mine, 0)] / best.sum(axis=1), 0.0)
        return float(chances.mean())


def _row(
    day: int, epsilon: str, observer: _Observer, fresh: npt.NDArray[np.float64], first: npt.NDArray[np.float64]
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
