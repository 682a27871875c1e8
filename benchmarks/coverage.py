"""Coverage of the intervals that answers state, and how wide they are.

For each setting (mechanism, items, users, epsilon, crowd) simulated reports are estimated in many runs of the same
crowd. The rows give

- the share of the runs in which the stated interval (or all of several) held the truth. The claim is 95%. A row is a
  miss if the runs show, with a chance of error of about 0.1%, that it is below 94%;
- the width of the intervals beside the narrowest valid ones that can be constructed with the truth at hand. For items
  these are the estimate and z true standard errors on each side, cut to [0, n] like the stated ones, z for as many
  intervals as hold at once. For sums, averages and ranges they are 3.92 true standard deviations, measured over the
  runs (after picking: the middle 95% of the errors of the point value).

The default grid takes a few minutes; `--full` is larger, with more runs.
"""

from __future__ import annotations

import itertools
import math
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from statistics import NormalDist
from typing import Any

import numpy as np
import numpy.typing as npt

from benchmarks.row import Options, Row, row
from ldp_client.collection import Collection
from ldp_client.mechanisms import bounded_number, hierarchy
from ldp_client.protocol.domain import Integers
from ldp_server.answers import estimates, numbers
from ldp_server.answers.choose import choose
from ldp_server.answers.estimates import Coverage, Estimates, Verdict
from ldp_server.arrays.packing import pack
from ldp_server.oracles import Oracle, as_frequency, oracle_for
from simulator import crowd

__all__ = ["Setting", "Tally", "measure", "run"]

PICKED = 20
FIXED = 30
_NORMAL = NormalDist()


@dataclass(frozen=True)
class Setting:
    """One point of the grid."""

    size: int
    users: int
    epsilon: str
    crowd: str
    """flat, zipf, or the share of the users who hold the first item."""
    mechanism: str = ""
    """Empty: the chooser's."""
    parameters: tuple[tuple[str, int], ...] = ()

    def question(self, run: int) -> Collection:
        mechanism, parameters = self.mechanism, dict(self.parameters)
        if not mechanism:
            pick = choose(users=self.users, size=self.size + 1, epsilon=self.epsilon)
            mechanism, parameters = pick.mechanism, dict(pick.parameters)
        return Collection.create(
            "?",
            Integers(0, self.size),
            mechanism,
            self.epsilon,
            parameters=parameters,
            opens=0,
            closes=1,
            nonce=run,
        )

    def people(self) -> npt.NDArray[np.uint64]:
        rng, items = np.random.default_rng(1), np.arange(1, self.size + 1, dtype=np.uint64)
        if self.crowd == "zipf":
            weights = np.arange(1.0, self.size + 1) ** -1.1
            return rng.choice(items, self.users, p=weights / weights.sum())
        users = rng.choice(items, self.users)
        if self.crowd != "flat":
            users[: int(float(self.crowd) * self.users)] = 1
        return users

    def name(self, collection: Collection) -> str:
        shown = " ".join(f"{key}={value}" for key, value in collection.randomizer.parameters().items())
        return " ".join(
            part
            for part in (
                collection.randomizer.name,
                shown,
                f"d={self.size} n={self.users} eps={self.epsilon} {self.crowd}",
            )
            if part
        )


@dataclass
class Tally:
    """What one kind of interval did over the runs."""

    held: list[float] = field(default_factory=list)
    widths: list[float] = field(default_factory=list)
    narrowest: list[float] = field(default_factory=list)
    errors: list[float] = field(default_factory=list)

    def add_items(self, found: Estimates, truth: npt.NDArray[np.float64], best: npt.NDArray[np.float64]) -> None:
        """Add intervals that claim to hold together, with the narrowest ones' reach; or one by one (EACH)."""
        low, high, raw = (np.asarray(found.rows.columns[name], float) for name in ("low", "high", "estimate"))
        inside = (low <= truth) & (truth <= high)
        self.held.append(float(inside.mean() if found.coverage is Coverage.EACH else inside.all()))
        self.widths.append(float((high - low).mean()))
        ends = np.clip([raw - best, raw + best], 0, found.reports)
        self.narrowest.append(float((ends[1] - ends[0]).mean()))

    def add_one(self, ends: tuple[float, float], point: float, truth: float) -> None:
        self.held.append(float(ends[0] <= truth <= ends[1]))
        self.widths.append(ends[1] - ends[0])
        self.errors.append(point - truth)

    def rows(self, name: str) -> Iterator[Row]:
        """Return the coverage and the width."""
        runs, spread = len(self.held), math.sqrt(0.95 * 0.05 / len(self.held))
        yield row(f"{name}: held", float(np.mean(self.held)), f"of {runs} runs", f">= {0.94 - 3 * spread:.4f}")
        narrowest = float(np.mean(self.narrowest)) if self.narrowest else self._from_errors()
        if narrowest > 0:
            yield row(f"{name}: width", float(np.mean(self.widths)), "", None, ("narrowest valid", narrowest))

    def _from_errors(self) -> float:
        low, high = np.quantile(self.errors, [0.025, 0.975])
        return max(3.92 * float(np.std(self.errors)) if len(self.errors) < 200 else 0.0, float(high - low))


def measure(setting: Setting, runs: int) -> Iterator[Row]:
    """Return the rows of one setting for frequencies."""
    people = setting.people()
    truth = np.bincount(people.astype(np.intp), minlength=setting.size + 1).astype(float)
    tallies: dict[str, Tally] = defaultdict(Tally)
    wrong = 0
    for run_number in range(runs):
        collection = setting.question(run_number)
        wrong += _one_run(collection, _reports(collection, people, run_number), truth, tallies)
    name = setting.name(collection)
    for kind, tally in tallies.items():
        yield from tally.rows(f"{name}: {kind}")
    yield row(f"{name}: verdicts that are wrong, in all top {PICKED}", wrong, "", f"<= {0.05 * runs + 4:.0f}")


def _one_run(collection: Collection, oracle: Oracle, truth: npt.NDArray[np.float64], tallies: dict[str, Tally]) -> int:
    n, size = float(oracle.reports), collection.domain.size
    threshold = n / 50

    def reach(held: npt.NDArray[np.float64], intervals: int) -> npt.NDArray[np.float64]:
        spread: npt.NDArray[np.float64] = np.sqrt(as_frequency(oracle).variance(held))
        return -_NORMAL.inv_cdf(0.025 / intervals) * spread

    best = estimates.top(collection, oracle, PICKED, threshold=threshold)
    held = truth[np.asarray(best.rows.columns["item"], np.intp) + 1]
    tallies[f"all of the top {PICKED}"].add_items(best, held, reach(held, size))
    _add_rest(tallies["everything else, after picking"], best, n - float(held.sum()))
    wanted = list(range(min(FIXED, size // 2)))
    held = truth[np.asarray(wanted) + 1]
    for kind, coverage in (("each item", Coverage.EACH), (f"all of {len(wanted)} items", Coverage.TOGETHER)):
        found = estimates.given_items(collection, oracle, wanted, coverage=coverage)
        tallies[kind].add_items(found, held, reach(held, 1 if coverage is Coverage.EACH else len(wanted)))
    _add_rest(tallies["everything else, items fixed"], found, n - float(held.sum()))
    verdicts = zip(best.rows.columns["verdict"], best.rows.columns["item"], strict=True)
    said = {Verdict.YES: True, Verdict.NO: False}
    return sum(said.get(v, truth[i + 1] >= threshold) != (truth[i + 1] >= threshold) for v, i in verdicts)


def _add_rest(tally: Tally, found: Estimates, truth: float) -> None:
    rest = found.everything_else
    if rest is not None:
        tally.add_one((rest.low, rest.high), rest.estimate, truth)


def _reports(collection: Collection, people: npt.NDArray[np.uint64], seed: int) -> Oracle:
    oracle = oracle_for(collection)
    for part in crowd.simulate(collection.randomizer, people, seed):
        oracle.accumulate(pack(part, collection.randomizer.report_bytes))
    return oracle


_LAST = 500
_CROWDS: dict[str, Callable[[int], npt.NDArray[Any]]] = {
    "both ends": lambda n: np.arange(n) % 2 * _LAST,
    "bell": lambda n: np.clip(np.random.default_rng(1).normal(200, 60, n), 0, _LAST).astype(int),
}


def _numbers(epsilon: str, shape: str, users: int, runs: int) -> Iterator[Row]:
    """Averages and ranges."""
    values = _CROWDS[shape](users)
    people, tallies = values.astype(np.uint64) + np.uint64(1), defaultdict[str, Tally](Tally)
    for mechanism, parameters in (
        ("bounded-number", bounded_number.design(epsilon)),
        ("hierarchy", hierarchy.design(epsilon, _LAST + 1)),
    ):
        setting = Setting(_LAST + 1, users, epsilon, shape, mechanism, tuple(parameters.items()))
        for run_number in range(runs):
            collection = setting.question(run_number)
            oracle = _reports(collection, people, run_number)
            if mechanism == "bounded-number":
                mean = numbers.average(collection, oracle)
                tallies["average"].add_one((mean.low, mean.high), mean.estimate, float(values.mean()))
                continue
            for first, last in ((0, 250), (100, 150), (37, 437)):
                found = numbers.count_between(collection, oracle, first, last)
                reach = 1.96 * found.standard_error
                truth = float(((values >= first) & (values <= last)).sum())
                ends = found.estimate - reach, found.estimate + reach
                tallies[f"range {first} to {last}"].add_one(ends, found.estimate, truth)
    for kind, tally in tallies.items():
        yield from tally.rows(f"numbers n={users} eps={epsilon} {shape}: {kind}")


_RESPONSE = "randomized-response"
DEFAULT = (
    (Setting(50, 20_000, "0.3", "zipf"), 100),
    (Setting(50, 1000, "6", "zipf", _RESPONSE), 200),
    (Setting(50, 5000, "8", "zipf", _RESPONSE), 200),
    (Setting(50, 20_000, "10", "zipf", _RESPONSE), 100),
    (Setting(1000, 20_000, "1", "zipf"), 100),
    (Setting(1000, 20_000, "3", "0.5", "linear-hash", (("q", 13), ("t", 3))), 100),
    (Setting(1000, 20_000, "6", "0.5", "linear-hash", (("q", 263), ("t", 2))), 60),
    (Setting(65_536, 20_000, "1", "zipf"), 30),
    (Setting(50_000, 100_000, "4", "0.2", "hashtogram", (("rows", 8), ("q", 79), ("t", 2))), 40),
    (Setting(50_000, 100_000, "4", "0.5", "hashtogram", (("rows", 8), ("q", 79), ("t", 2))), 40),
)
"""Settings, each with its number of runs."""


def _full() -> Iterator[tuple[Setting, int]]:
    yield from ((setting, 4 * runs) for setting, runs in DEFAULT)
    grid = itertools.product((50, 1000, 65_536), (1000, 100_000), ("0.3", "1", "3", "6", "10"))
    for size, users, epsilon in grid:
        for shape in ("flat", "zipf", "0.5", "0.95"):
            yield Setting(size, users, epsilon, shape), 40 if size * users > 1e9 else 100
    yield Setting(1000, 1_000_000, "1", "zipf"), 40


def run(options: Options) -> Iterator[Row]:
    """Measure the grid."""
    for setting, runs in _full() if options.full else DEFAULT:
        yield from measure(setting, runs)
    for epsilon in ("1", "3", "6"):
        for shape in _CROWDS:
            yield from _numbers(epsilon, shape, 5000, 400 if options.full else 100)
