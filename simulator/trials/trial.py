"""Runs a plan: simulated users, the real mechanism, real packing, real answers; was the promise held?

The users of a run hold what the plan assumes, or what a sample holds: as many of each as its shares say. Each run has
coins and hashes of its own. The promise has two parts:

- the error. With R runs the mean square error over the predicted one is about chi-square over R: the promise is missed
  if it is larger than that with probability 0.001.
- the intervals. So many of them hold the truth as the confidence says: missed if fewer do than with probability 0.001.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
import numpy.typing as npt

from ldp_client.collection import Collection
from ldp_client.errors import InvalidSpec
from ldp_server.answers import numbers
from ldp_server.answers.attributes import attributes_answer
from ldp_server.answers.estimates import given_items
from ldp_server.arrays.packing import pack
from ldp_server.oracles import oracle_for
from ldp_server.oracles.base import Oracle
from ldp_server.planning import Plan, QuestionKind
from ldp_server.planning.outlook import item_of, range_of, shares_of
from simulator import crowd

__all__ = ["MOST_USERS", "PlanTrial", "tried"]

U64 = npt.NDArray[np.uint64]
MOST_USERS = 20_000_000
_OTHERS = 1000
"""Other items that the users of a trial about one item hold, where the domain has so many."""
_DOUBT = 0.001
_STEP = 1 << 17


@dataclass(frozen=True)
class PlanTrial:
    """What came of a plan. Errors and shares are as in the plan."""

    runs: int
    users: int
    predicted_error: float
    printed_error: float
    """The mean of the standard errors that answers stated."""
    measured_error: float
    """The root of the mean square of estimate less truth."""
    within: float
    """Half an interval, as planned."""
    confidence: float
    coverage: float
    """The part of the runs whose interval held the truth."""
    error_held: bool
    intervals_held: bool

    @property
    def held(self) -> bool:
        return self.error_held and self.intervals_held


@dataclass(frozen=True)
class _Told:
    """One answer about what the plan is about, with the truth, in the plan's unit."""

    truth: float
    estimate: float
    error: float
    low: float
    high: float


def tried(plan: Plan, runs: int, seed: int, progress: Callable[[int], None] | None = None) -> PlanTrial:
    """Run the plan so often."""
    if plan.users > MOST_USERS:
        raise InvalidSpec(f"a trial simulates at most {MOST_USERS:,} users, and this plan has {plan.users:,}")
    if plan.goal.kind in (QuestionKind.HEAVY_HITTERS,):
        raise InvalidSpec("lists of heavy hitters have a trial of their own: ldp-simulate plan --item-bytes L --verify")
    people = _people(plan)
    found = [_run(plan, people, seed, run, progress) for run in range(runs)]
    squares = [(one.estimate - one.truth) ** 2 for one in found]
    measured = math.sqrt(math.fsum(squares) / runs)
    holding = sum(one.low <= one.truth <= one.high for one in found)
    z = NormalDist().inv_cdf(1 - _DOUBT)
    most = (1 - 2 / (9 * runs) + z * math.sqrt(2 / (9 * runs))) ** 3  # chi-square over its degrees
    return PlanTrial(
        runs=runs,
        users=plan.users,
        predicted_error=plan.standard_error,
        printed_error=math.fsum(one.error for one in found) / runs,
        measured_error=measured,
        within=plan.within,
        confidence=plan.goal.confidence,
        coverage=holding / runs,
        error_held=measured**2 <= most * plan.standard_error**2,
        intervals_held=holding >= _least(runs, plan.goal.confidence),
    )


def _least(runs: int, confidence: float) -> int:
    """The least number of intervals that hold which is not too few."""
    below, number = 0.0, 0
    while True:
        ways = math.lgamma(runs + 1) - math.lgamma(number + 1) - math.lgamma(runs - number + 1)
        below += math.exp(ways + number * math.log(confidence) + (runs - number) * math.log1p(-confidence))
        if below > _DOUBT:
            return number
        number += 1


def _people(plan: Plan) -> U64:
    """The index of every user; for a trial of one item without a sample, item 1 has its share, others the rest."""
    goal = plan.goal
    if goal.kind is QuestionKind.FREQUENCIES and goal.sample is None:
        size = min(goal.domain.size, _OTHERS + 2)
        _, share = item_of(goal)
        shares = np.full(size, (1 - share) / max(1, size - 2))
        shares[0], shares[1] = (0.0, share) if size > 2 else (1 - share, share)
    else:
        shares = shares_of(goal)
    ends = np.rint(np.cumsum(shares) * plan.users).astype(np.int64)
    return np.repeat(np.arange(len(shares), dtype=np.uint64), np.diff(np.concatenate(([0], ends))))


def _run(plan: Plan, people: U64, seed: int, run: int, progress: Callable[[int], None] | None) -> _Told:
    periods = [_counted(plan, people, seed, (run, period), progress) for period in range(1 + plan.goal.change)]
    told = [_told(plan, people, *counted) for counted in periods]
    if not plan.goal.change:
        return told[0]
    before, after = told
    estimate, error = after.estimate - before.estimate, math.hypot(after.error, before.error)
    reach = NormalDist().inv_cdf((1 + plan.goal.confidence) / 2) * error
    return _Told(0.0, estimate, error, estimate - reach, estimate + reach)


def _counted(
    plan: Plan, people: U64, seed: int, run: tuple[int, int], progress: Callable[[int], None] | None
) -> tuple[Collection, Oracle]:
    number = run[0] * 2 + run[1]
    asked = Collection.create(
        "trial",
        plan.goal.domain,
        plan.mechanism,
        plan.epsilon,
        parameters=plan.parameters,
        opens=0,
        closes=1,
        nonce=number % 65_536,
    )
    oracle, randomizer = oracle_for(asked), asked.randomizer
    coins = int(np.random.SeedSequence([seed, *run]).generate_state(1)[0])
    for reports in crowd.simulate(randomizer, people, coins):
        for start in range(0, len(reports), _STEP):
            oracle.accumulate(pack(reports[start : start + _STEP], randomizer.report_bytes))
        if progress is not None:
            progress(len(reports))
    return asked, oracle


def _told(plan: Plan, people: U64, asked: Collection, oracle: Oracle) -> _Told:
    return _ANSWERS[plan.goal.kind](plan, people, asked, oracle)


def _frequency(plan: Plan, people: U64, asked: Collection, oracle: Oracle) -> _Told:
    index, _ = item_of(plan.goal)
    (row,) = given_items(asked, oracle, [asked.domain.item(index)], confidence=plan.goal.confidence).rows
    return _share(people, people == np.uint64(index), row.estimate, row.standard_error, row.low, row.high)


def _share(people: U64, holding: npt.NDArray[np.bool_], *numbers_told: float) -> _Told:
    users = len(people)
    return _Told(float(np.count_nonzero(holding)) / users, *(number / users for number in numbers_told))


def _average(plan: Plan, people: U64, asked: Collection, oracle: Oracle) -> _Told:
    row = numbers.average_answer(asked, oracle, confidence=plan.goal.confidence).average
    held = people[people > 0].astype(np.float64) if plan.goal.missing else people.astype(np.float64)
    values = np.where(held > 0, held - 1, (asked.domain.size - 2) / 2)  # who has none: the middle
    lowest = getattr(asked.domain, "lowest", 0)
    return _Told(lowest + float(values.mean()), row.estimate, row.standard_error, row.low, row.high)


def _quantile(plan: Plan, people: U64, asked: Collection, oracle: Oracle) -> _Told:
    """In shares of the numbers: those at or below the quantile, half of those at the quantile itself."""
    wanted = plan.goal.share or 0.5
    row = numbers.quantile(asked, oracle, wanted, confidence=plan.goal.confidence)
    lowest = getattr(asked.domain, "lowest", 0)
    held = np.bincount(people[people > 0].astype(np.intp), minlength=asked.domain.size)[1:]
    below = np.concatenate(([0.0], np.cumsum(held))) / max(1, int(held.sum()))
    place = int(row.estimate) - lowest
    first, last = int(row.low) - lowest, int(row.high) - lowest
    # Right if the quantile is one of the integers of the interval.
    return _Told(wanted, (below[place] + below[place + 1]) / 2, plan.standard_error, below[first], below[last + 1])


def _range(plan: Plan, people: U64, asked: Collection, oracle: Oracle) -> _Told:
    first, last = range_of(plan.goal)
    row = numbers.count_between(asked, oracle, first, last, confidence=plan.goal.confidence)
    lowest = getattr(asked.domain, "lowest", 0)
    holding = (people >= np.uint64(first - lowest + 1)) & (people <= np.uint64(last - lowest + 1))
    return _share(people, holding, row.estimate, row.standard_error, row.low, row.high)


def _attributes(plan: Plan, people: U64, asked: Collection, oracle: Oracle) -> _Told:
    """The first attribute or pair; without a sample all are alike."""
    pairs = plan.goal.kind is QuestionKind.PAIRS
    row = attributes_answer(asked, oracle, pairs=pairs, confidence=plan.goal.confidence).rows[0]
    mask = np.uint64(asked.domain.index(frozenset(row.attributes)))
    return _share(people, (people & mask) == mask, row.estimate, row.standard_error, row.low, row.high)


_ANSWERS: dict[QuestionKind, Callable[[Plan, U64, Collection, Oracle], _Told]] = {
    QuestionKind.FREQUENCIES: _frequency,
    QuestionKind.AVERAGE: _average,
    QuestionKind.QUANTILES: _quantile,
    QuestionKind.RANGES: _range,
    QuestionKind.ATTRIBUTES: _attributes,
    QuestionKind.PAIRS: _attributes,
}
