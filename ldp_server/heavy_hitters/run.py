"""One decoding: its inputs, what all decoders compute from them, and the answer."""

from __future__ import annotations

import itertools
import math
import os
from collections import deque
from collections.abc import Callable
from concurrent.futures import Executor, Future
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from ldp_client.collection import Collection
from ldp_client.errors import Cancelled, InvalidSpec
from ldp_client.mechanisms.expander_sketch import ExpanderSketch
from ldp_client.mechanisms.shared.team_sketch import TeamSketch
from ldp_server.arrays.items import below, from_ints, to_ints
from ldp_server.arrays.team_cells import BulkCode, bulk_code
from ldp_server.arrays.transform import support
from ldp_server.heavy_hitters.copies import Copies, Counting, meeting
from ldp_server.heavy_hitters.dictionary import CANDIDATES, Dictionary, candidate_bars
from ldp_server.heavy_hitters.paper import promise as paper_promise
from ldp_server.heavy_hitters.promise import (
    EXPLORATORY,
    PROBABILITY,
    Promise,
    false_items_of,
    least_users,
    promised_at,
    promised_candidate,
)
from ldp_server.heavy_hitters.results import (
    HeavyHitter,
    HeavyHitters,
    UsedDictionary,
    begun,
    heavy_hitters,
    item_intervals,
)
from ldp_server.heavy_hitters.search.acceptance import Noise
from ldp_server.heavy_hitters.search.candidates import Candidates, candidates_of
from ldp_server.heavy_hitters.search.model import fitted_together
from ldp_server.heavy_hitters.search.scores import TeamScores
from ldp_server.oracles.expander_sketch import ExpanderSketchOracle
from ldp_server.oracles.independence.result import Independence
from ldp_server.oracles.laws.support import SupportLaw
from ldp_server.oracles.shared.team_sketch import TeamSketchOracle

__all__ = ["DecodeLimits", "Estimated", "OnProgress", "Run", "Watch", "team_scores"]

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
_AHEAD = max(2, os.cpu_count() or 1)
"""How many teams are transformed at once, given an executor."""
OnProgress = Callable[[str, float], None]


@dataclass(frozen=True)
class DecodeLimits:
    """Limits on the work and memory of a decoding, which hold for any reports, hostile ones too; what may be listed."""

    width: int = 1 << 13
    """Partial paths kept by each of an expander's searches; a tree's only search keeps four times as many, and sixteen
    times in its last rounds."""
    rounds: int = 16
    items: int = 2000
    """Items modelled."""
    keep: int = 64
    """Prefixes kept at each level by the classical tree."""
    copies: Copies = Copies.WEIGHED
    """How copied reports count while items are found (copies.py)."""
    exploratory: bool = False
    """Whether a part of the list may be false (`EXPLORATORY` of promise.py): a longer list, to look for ideas."""


class Watch:
    """The caller's two functions: one is called with the progress, the other says whether to stop."""

    def __init__(self, progress: OnProgress | None, cancelled: Callable[[], bool] | None) -> None:
        self._progress, self._cancelled = progress, cancelled

    def tick(self) -> None:
        """Raise `Cancelled` if the decoding was cancelled."""
        if self._cancelled is not None and self._cancelled():
            raise Cancelled("the decoding was cancelled")

    def say(self, stage: str, part: float) -> None:
        self.tick()
        if self._progress is not None:
            self._progress(stage, part)


@dataclass(frozen=True)
class Estimated:
    """The items that a decoder lists, best first, in units of the standard error of an item that nobody holds."""

    indexes: list[int]
    scores: Floats
    errors: Floats
    unit: float
    """That standard error, as a number of users."""
    bar: float
    """The least score that is listed, of an item that is no candidate."""
    searched: float
    """The same in the units in which items were found: another number if these count each report once."""
    bars: Floats | None = None
    """The least score at which each of these is listed, where they differ."""
    candidates: npt.NDArray[np.bool_] | None = None
    """Which were tested as candidates of the dictionary."""
    mixtures: float | None = None
    """How many of these are expected to be false because others that share their cells are held; None: not counted."""


@dataclass(frozen=True)
class Run:
    """The inputs of one decoding, and what all decoders compute from them."""

    collection: Collection
    oracle: TeamSketchOracle
    decoder: str
    beta: float
    limits: DecodeLimits
    watch: Watch
    executor: Executor | None
    independence: Independence
    dictionary: Dictionary | None = None
    start: tuple[int, ...] = ()
    """Indexes of items that are proposed before the first search."""

    @property
    def sketch(self) -> TeamSketch:
        return self.oracle.sketch

    @cached_property
    def code(self) -> BulkCode:
        return bulk_code(self.sketch)

    @cached_property
    def support(self) -> tuple[float, float]:
        """(p, s): the probability that a report supports a cell that its user holds, and one that it does not."""
        p, s = self.sketch.inner.support
        return float(p), float(s)

    @property
    def false_items(self) -> float:
        """The number of items that nobody holds and the noise may list; of an exploratory list, for each item."""
        return EXPLORATORY if self.limits.exploratory else false_items_of(self.beta)

    @property
    def weighed(self) -> Counting:
        """All reports, so that copies are allowed for. The paper's form measures its errors on cells that have them."""
        return Counting(False, 1.0 if self._has_second else self.independence.widened)

    @cached_property
    def finding(self) -> Counting:
        """How reports count while items are found."""
        if self.limits.copies is Copies.WEIGHED:
            return self.weighed
        if self.decoder not in ("soft", "paths"):
            raise InvalidSpec("each report is counted once by the decoders 'soft' and 'paths' only")
        by_team = self.oracle.by_team
        different = sum(int(np.count_nonzero(by_team.line(team))) for team in range(by_team.teams))
        return Counting(True, self.reports / max(1, different), meeting(different, by_team.counts.cells))

    @property
    def _has_second(self) -> bool:
        return isinstance(self.oracle, ExpanderSketchOracle) and self.oracle.second is not None

    @property
    def law(self) -> SupportLaw:
        """The law of an item's supports: those of all users, or of the second reports where there are two.

        It is that of the reports which the counted ones are worth.
        """
        users = max(1, self.worth(self.weighed))
        if isinstance(self.oracle, ExpanderSketchOracle) and self.oracle.second is not None:
            counts = self.oracle.second.by_team
            return SupportLaw(users, counts.p, counts.s)
        return SupportLaw(users, *self.support)

    @property
    def reports(self) -> int:
        return self.oracle.reports

    @property
    def log_items(self) -> float:
        return math.log(self.collection.domain.size)

    def worth(self, counting: Counting) -> int:
        """Return how many independent reports these are worth."""
        return int(self.reports / counting.factor)

    def noise(self, counting: Counting, share: float = 1.0) -> Noise:
        """The inner oracle's law for a part of the users."""
        p, s = self.support
        users = int(self.worth(counting) * share)
        return Noise(users, s * (1 - s) / (p - s) ** 2, p * (1 - p) / (s * (1 - s)), s)

    def unit(self, counting: Counting, noise: Noise) -> float:
        """Return the standard error of an item that nobody holds, as a number of users."""
        return counting.factor * math.sqrt(noise.reports * noise.variance)

    def scores(self, counting: Counting, only_best: int = 0) -> list[TeamScores]:
        """Return every team's scores; with `only_best`, about as many of those that a tree's paths can be made of."""
        inner, teams = self.sketch.inner, range(self.sketch.teams)
        joined = len(self.code.starts) - 1 if only_best else 0

        def lot(team: int) -> tuple[npt.NDArray[np.unsignedinteger], int, int, float, float, int, int, float]:
            kept, line = only_best if team < joined else 0, counting.counted(self.oracle.by_team.line(team))
            return line, inner.q, inner.t, *self.support, self.oracle.cells, kept, counting.spread

        out: list[TeamScores] = []
        jobs: deque[Future[TeamScores]] = deque()
        waiting = iter(teams)
        for m in teams:
            self.watch.say("transform", m / len(teams))
            if self.executor is None:
                out.append(team_scores(*lot(m)))
                continue
            for ahead in itertools.islice(waiting, _AHEAD - len(jobs)):  # no more: a line is up to 100 MB
                jobs.append(self.executor.submit(team_scores, *lot(ahead)))
            out.append(jobs.popleft().result())
        return out

    def candidates(self) -> tuple[Candidates | None, float]:
        """Return the dictionary's candidates with their bars, and the part of the false items left for the others."""
        words = self.dictionary
        if words is None:
            return None, 1.0
        self.watch.say("candidates", 0.0)
        return candidates_of(self.code, words.indexes, self.bars(words.log_shares), self._levels(words)), 1 - CANDIDATES

    def _levels(self, words: Dictionary) -> Floats | None:
        """Return the logarithm of the probability with which each related candidate may be listed falsely."""
        return words.log_shares + math.log(CANDIDATES * self.false_items) if words.related else None

    def bars(self, log_shares: Floats) -> Floats:
        """Return the least scores of candidates with these shares.

        Like the one bar of all other items, they are those of the reports which the counted ones are worth. With copies
        a score has the variance of n/f reports, but more skew than their binomial: r = sum c^3 / (n f^2) times as much,
        where each different report came c times. (r >= 1 by Cauchy and Schwarz; 18% sent twice have r = 1.12.) To first
        order this raises the tail at z by the factor exp((r - 1) g z^3 / 6), g being the skew of the binomial. That is
        2% at z = 4.5 for 80,000 reports with s = 1/7. f is an upper bound of the variance factor, which outweighs it:
        an f that is 1% larger lowers this tail by 10%.
        """
        return candidate_bars(self.worth(self.finding), self.support[1], log_shares, self.false_items)

    def indexes(self, messages: Ints) -> list[int]:
        return to_ints(self.code.indexes(messages))

    @property
    def beginning(self) -> Ints:
        """The messages of the items that are proposed before the first search."""
        return self.code.messages(from_ints(self.start, self.collection.domain.bits))

    def in_domain(self, messages: Ints) -> npt.NDArray[np.bool_]:
        """Return which messages are those of an item."""
        size = self.collection.domain.size
        if size == 1 << self.code.bits:
            return np.ones(len(messages), bool)
        return below(self.code.indexes(messages), size)

    def estimated(self, messages: Ints) -> tuple[Floats, Floats]:
        """Return the scores and errors of found items, fitted together, with all reports."""
        return fitted_together(self.code.cells(messages), self.scores(self.weighed), self.noise(self.weighed))

    def answer(self, found: Estimated) -> HeavyHitters:
        """Return the answer that lists what was found."""
        self.watch.say("done", 1.0)
        promise, tested = self._promised(found.searched), self._tested()
        enough = promise.each <= self.reports or (tested is not None and tested.each is not None)
        answer = heavy_hitters(
            self._items(found),
            promise,
            decoder=self.decoder,
            users_needed=None if enough else self._needed(),
            least_estimate=found.bar * found.unit,
            dictionary=tested,
            independence=self.independence,
            mixtures=found.mixtures,
        )
        return begun(answer, len(self.start))

    def _tested(self) -> UsedDictionary | None:
        """Return what the answer says of the dictionary."""
        words = self.dictionary
        if words is None:
            return None
        bar, counting, levels = float(np.median(self.bars(words.log_shares))), self.finding, self._levels(words)
        level = None if levels is None else float(np.median(levels))
        each = counting.promised * promised_candidate(self.sketch, self.decoder, bar, self.worth(counting), level)
        return UsedDictionary(len(words), words.outside, each if each <= self.reports else None)

    def nothing(self) -> HeavyHitters:
        """Return the answer that there are too few reports."""
        return heavy_hitters(
            (),
            Promise(self.reports, self.beta, math.inf, math.inf, self.limits.exploratory),
            decoder=self.decoder,
            users_needed=self._needed(),
            least_estimate=None,
            independence=self.independence,
        )

    def _promised(self, bar: float) -> Promise:
        """Return the promise of a list whose least score is `bar`; the paper's form has a law of its own."""
        whole = self.oracle.randomizer
        if not isinstance(whole, ExpanderSketch) or whole.oracle is None:
            found, f = (
                promised_at(self.sketch, self.decoder, bar, self.beta, self.worth(self.finding)),
                self.finding.promised,
            )
            explored = self.limits.exploratory
            return Promise(self.reports, self.beta, f * found.each, f * found.all_at_once, explored)
        each = paper_promise.promised(whole, self.reports, 1 - PROBABILITY, self.false_items)
        together = paper_promise.promised(whole, self.reports, self.beta / 2, self.false_items)
        return Promise(self.reports, self.beta, each, together)

    def _needed(self) -> int:
        whole = self.oracle.randomizer
        if isinstance(whole, ExpanderSketch) and whole.oracle is not None:
            return paper_promise.users_needed(whole, 1 - PROBABILITY, self.false_items)
        return least_users(self.sketch, self.decoder, self.log_items, self.beta)

    def _items(self, found: Estimated) -> list[HeavyHitter]:
        estimates, errors, f = found.scores * found.unit, found.errors * found.unit, self.weighed.factor
        bars = np.full(len(estimates), found.bar) if found.bars is None else found.bars
        named = np.zeros(len(estimates), bool) if found.candidates is None else found.candidates
        ends = item_intervals(self.law, estimates / f, errors / f, bars * found.unit / f, self.log_items)
        ends = [(f * a, f * b, f * c, f * d) for a, b, c, d in ends]
        columns = zip(
            found.indexes,
            estimates.tolist(),
            errors.tolist(),
            ends,
            found.scores.tolist(),
            bars.tolist(),
            named.tolist(),
            strict=True,
        )
        return [
            HeavyHitter(self.collection.domain.item(index), estimate, error, *four, *rest)
            for index, estimate, error, four, *rest in columns
        ]


def team_scores(
    counts: npt.NDArray[np.unsignedinteger],
    q: int,
    t: int,
    p: float,
    s: float,
    cells: int,
    only_best: int = 0,
    spread: float = 1.0,
) -> TeamScores:
    """Return one team's E: its cell estimates less the expected background, in units of their standard error.

    `spread` is the variance of a sum over the reports, over that of independent ones.
    """
    reports = int(counts.sum(dtype=np.int64))
    scores = support(counts, q, t)[:cells]
    if reports == 0:
        return TeamScores(np.zeros(cells, np.float32), 0, only_best)
    sd = math.sqrt(spread * reports * s * (1 - s))
    scores -= reports * s + (p - s) * reports / cells
    scores /= sd
    return TeamScores(scores.astype(np.float32, copy=False), reports, only_best)
