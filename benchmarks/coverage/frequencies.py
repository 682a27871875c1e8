"""The grid of frequencies: what every kind of interval and verdict about items did in each cell.

A cell is a mechanism, a number of items d, of users n, an epsilon and a crowd. The parameters are those that the
chooser offers for the mechanism. Cells that are left out: a mechanism that the chooser does not offer, and one whose
variance is more than ten times that of the best for the same question (nobody is advised to use it).

The narrowest valid intervals are those of someone who knows the truth and wants to cover it in every such crowd:
- items: the estimate and z true standard errors to both sides, cut to [0, n]. z is that of one interval; of the largest
  of as many normal errors as there are fixed items; or of as many as the domain has items, where they are picked. Where
  a count's variance is below 25 the normal law does not serve: the exact law inverted, the ends randomised so that they
  err with exactly the chance they may;
- everything else: 1.96 standard deviations of the point value, measured over the runs, to both sides. For picked items
  the row "beside a fixed set's" compares with 1.96 standard errors of the sum of those items, fixed beforehand. That is
  narrower than any interval can be that holds after picking: the sum's bias has to be estimated.
"""

from __future__ import annotations

import zlib
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
import numpy.typing as npt

from benchmarks.coverage.laws import counted
from benchmarks.coverage.tally import Tally
from benchmarks.row import Row
from ldp_client.collection import Collection
from ldp_client.protocol.domain import Integers
from ldp_client.protocol.epsilon import Epsilon
from ldp_server.answers import estimates
from ldp_server.answers.candidates import Kind, Wish, candidates
from ldp_server.answers.choose import DEFAULT_MEMORY, DEFAULT_SKEW
from ldp_server.answers.estimates import Coverage, Estimates, Verdict
from ldp_server.oracles import FrequencyOracle, as_frequency

__all__ = ["CROWDS", "Setting", "settings"]

PICKED = 20
FIXED = 30
CROWDS = ("flat", "zipf", "0.5", "0.95")
_TOO_MUCH = 10.0
_FEW_COUNTS = 25.0
_EVALUATION = 0xC0FFEE
"""Seeds of crowds and runs. The intervals were designed with others."""

Floats = npt.NDArray[np.float64]
Tallies = dict[str, Tally]


@dataclass(frozen=True)
class Setting:
    """One cell of the grid."""

    mechanism: str
    parameters: tuple[tuple[str, int], ...]
    size: int
    users: int
    epsilon: str
    crowd: str
    """flat, zipf, or the share of the users who hold the first item."""

    @property
    def name(self) -> str:
        shown = "".join(f" {key}={value}" for key, value in self.parameters)
        return f"{self.mechanism}{shown} d={self.size} n={self.users} eps={self.epsilon} {self.crowd}"

    @property
    def seed(self) -> int:
        return zlib.crc32(self.name.encode()) ^ _EVALUATION

    def question(self, run: int) -> Collection:
        domain, nonce = Integers(1, self.size), (self.seed + run) & 0xFFFF
        parameters = dict(self.parameters)
        return Collection.create(
            "?", domain, self.mechanism, self.epsilon, parameters=parameters, opens=0, closes=1, nonce=nonce
        )

    def people(self) -> npt.NDArray[np.uint64]:
        rng, items = np.random.default_rng(self.seed), np.arange(1, self.size + 1, dtype=np.uint64)
        if self.crowd == "zipf":
            weights = np.arange(1.0, self.size + 1) ** -1.1
            return rng.choice(items, self.users, p=weights / weights.sum())
        users = rng.choice(items, self.users)
        if self.crowd != "flat":
            users[: int(float(self.crowd) * self.users)] = 1
        return users

    def measure(self, runs: int) -> Iterator[Row]:
        """Return the rows of this cell."""
        people = self.people()
        truth = np.bincount(people.astype(np.intp), minlength=self.size + 1).astype(float)
        tallies: Tallies = defaultdict(Tally)
        for run in range(runs):
            collection = self.question(run)
            oracle = as_frequency(counted(collection, people, self.seed + run))
            _picked(collection, oracle, truth, tallies)
            _fixed(collection, oracle, truth, tallies)
        for kind, tally in tallies.items():
            yield from tally.rows(f"{self.name}: {kind}")


def settings(size: int, users: int, epsilon: str) -> Iterator[Setting]:
    """Return the cells of a question: every mechanism that is not left out, with every crowd."""
    wish = Wish(users, size + 1, Epsilon.parse(epsilon), DEFAULT_MEMORY, DEFAULT_SKEW)
    offered = {one.randomizer.name: one for one in reversed(candidates(Kind.FREQUENCIES, wish)) if one.randomizer}
    best = min(one.per_user for one in offered.values())
    for name, one in sorted(offered.items()):
        if one.randomizer is not None and one.per_user <= _TOO_MUCH * best:
            parameters = tuple(one.randomizer.parameters().items())
            yield from (Setting(name, parameters, size, users, epsilon, shape) for shape in CROWDS)


def _picked(collection: Collection, oracle: FrequencyOracle, truth: Floats, tallies: Tallies) -> None:
    n, tally = float(oracle.reports), tallies["all that were picked"]
    best = estimates.top(collection, oracle, PICKED, threshold=n / 50)
    held = truth[np.asarray(best.rows.columns["item"], np.intp)]
    low, high = _ends(best)
    tally.add(low, high, held, together=True)
    tally.narrowest += _narrowest(oracle, best, held, collection.domain.size)
    said = np.array([{Verdict.YES: 1, Verdict.NO: 0}.get(v, -1) for v in best.rows.columns["verdict"]])
    tallies["verdicts, all that were picked"].add_flag(not ((said >= 0) & (said != (held >= n / 50))).any())
    rest = best.everything_else
    if rest is not None:
        tally = tallies["everything else, after picking"]
        tally.add_one((rest.low, rest.high), rest.estimate, n - float(held.sum()))
        tally.fixed += 3.92 * float(np.sqrt(oracle.variance(held).sum()))


def _fixed(collection: Collection, oracle: FrequencyOracle, truth: Floats, tallies: Tallies) -> None:
    wanted = list(range(1, FIXED + 1))
    held = truth[wanted]
    for kind, coverage in (("each item", Coverage.EACH), ("all fixed items", Coverage.TOGETHER)):
        found, each = estimates.given_items(collection, oracle, wanted, coverage=coverage), coverage is Coverage.EACH
        low, high = _ends(found)
        tallies[kind].add(low, high, held, together=not each)
        tallies[kind].narrowest += _narrowest(oracle, found, held, 1 if each else FIXED)
    rest = found.everything_else
    if rest is not None:
        ends = rest.low, rest.high
        tallies["everything else, items fixed"].add_one(ends, rest.estimate, oracle.reports - float(held.sum()))


def _ends(found: Estimates) -> tuple[Floats, Floats]:
    return np.asarray(found.rows.columns["low"], float), np.asarray(found.rows.columns["high"], float)


def _narrowest(oracle: FrequencyOracle, found: Estimates, held: Floats, intervals: int) -> float:
    """The mean width of the narrowest valid intervals around these estimates."""
    raw, n, law = np.asarray(found.rows.columns["estimate"], float), float(oracle.reports), oracle.law
    tail = (1 - 0.95 ** (1 / intervals)) / 2
    if law is not None and n * law.s * (1 - law.s) < _FEW_COUNTS:
        low, high = law.intervals(raw, tail)
        low = (low + law.intervals(raw + law.unit, tail)[0]) / 2
        high = (high + law.intervals(raw - law.unit, tail)[1]) / 2
    else:
        reach = -NormalDist().inv_cdf(tail) * np.sqrt(oracle.variance(held))
        low, high = raw - reach, raw + reach
    return float((np.clip(high, 0, n) - np.clip(low, 0, n)).mean())
