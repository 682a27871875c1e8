"""From a collection and its oracle to the list of heavy hitters: one door for every mechanism and decoder.

    decode(collection, oracle)                         the mechanism's default decoder
    decode(collection, oracle, decoder="paths")        another one of the mechanism's

`progress(stage, part)` is called along the way; `cancelled()` is asked often, and `Cancelled` is raised soon after it
says yes. With an `executor` (threads or processes) the teams' transforms and the searches run on it. Work and memory
are bounded by the sketch's parameters and `limits`, whatever the reports hold.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from concurrent.futures import Executor
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ldp_client.collection import Collection
from ldp_client.errors import Cancelled, InvalidSpec
from ldp_client.mechanisms.expander_sketch import ExpanderSketch
from ldp_client.mechanisms.team_sketch import TeamSketch
from ldp_server.arrays.items import to_ints
from ldp_server.arrays.team_cells import BulkCode, BulkTreeCode, bulk_code
from ldp_server.heavy_hitters.paper import decoder
from ldp_server.heavy_hitters.promise import MIXTURES, least_users, reliable_score
from ldp_server.heavy_hitters.results import (
    HeavyHitter,
    HeavyHitters,
    heavy_hitters,
    selected_interval,
    surest_interval,
)
from ldp_server.heavy_hitters.search import tree
from ldp_server.heavy_hitters.search.acceptance import Noise, Settings
from ldp_server.heavy_hitters.search.model import decode_scores
from ldp_server.heavy_hitters.search.tails import threshold
from ldp_server.oracles.base import Oracle
from ldp_server.oracles.expander_sketch import ExpanderSketchOracle
from ldp_server.oracles.team_sketch import TeamSketchOracle
from ldp_server.oracles.transform import support

__all__ = ["DECODERS", "Limits", "Scored", "decode", "team_scores"]

_AGAINST = 3.5  # standard errors
_TREE_WIDER, _TREE_LAST = 4, 4

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Progress = Callable[[str, float], None]

DECODERS = {
    "expander-sketch": ("soft", "cluster"),
    "tree-sketch": ("paths", "levels"),
    "prefix-tree": ("levels", "paths"),
}
"""The decoders of each mechanism, the default first."""


@dataclass(frozen=True)
class Limits:
    """What a decoding may spend, whatever the reports hold."""

    width: int = 1 << 13
    """Partial paths kept by each of an expander's searches; a tree's only search keeps four times as many, and sixteen
    times in its last rounds."""
    rounds: int = 16
    items: int = 2000
    """Items modelled."""
    keep: int = 64
    """Prefixes kept at each level by the classical tree."""


def decode(
    collection: Collection,
    oracle: Oracle,
    *,
    decoder: str | None = None,
    false_items: float = 0.05,
    limits: Limits | None = None,
    progress: Progress | None = None,
    cancelled: Callable[[], bool] | None = None,
    executor: Executor | None = None,
) -> HeavyHitters:
    """List the heavy hitters, with at most `false_items` expected ones that nobody holds."""
    sketch = collection.randomizer
    if not isinstance(oracle, TeamSketchOracle) or not isinstance(sketch, TeamSketch):
        known = ", ".join(DECODERS)
        raise InvalidSpec(f"heavy hitters are found in a sketch ({known}); this collection has {sketch.name}")
    if oracle.randomizer != sketch:
        raise InvalidSpec("the oracle counts reports of another collection")
    if not 0 < false_items < 1:
        raise InvalidSpec("false_items lies strictly between 0 and 1, such as 0.05")
    names = DECODERS[sketch.name]
    split = isinstance(oracle, ExpanderSketchOracle) and oracle.second is not None
    name = decoder or ("cluster" if split else names[0])
    if name not in names:
        raise InvalidSpec(f"{sketch.name} has the decoders {' and '.join(names)}")
    if split != (name == "cluster"):
        raise InvalidSpec(
            "the cluster decoder reads the paper's form (two reports, oracle_rows above 0), and only that"
        )
    run = _Run(collection, oracle, name, false_items, limits or Limits(), progress, cancelled, executor)
    return run.answer()


def team_scores(counts: npt.NDArray[np.unsignedinteger], q: int, t: int, p: float, s: float, cells: int) -> Scored:
    """One team's E: its cell estimates less the expected background, in units of their standard error."""
    reports = int(counts.sum(dtype=np.int64))
    scores = support(counts, q, t)[:cells]
    if reports == 0:
        return Scored(np.zeros(cells, np.float32), 0)
    sd = math.sqrt(reports * s * (1 - s))
    scores = scores - (reports * s + (p - s) * reports / cells)
    scores /= sd
    return Scored(scores.astype(np.float32, copy=False), reports)


@dataclass(frozen=True)
class Scored:
    """A team's scores and how many users it has."""

    scores: npt.NDArray[np.float32]
    reports: int


class _Run:
    """One decoding."""

    def __init__(
        self,
        collection: Collection,
        oracle: TeamSketchOracle,
        decoder: str,
        false_items: float,
        limits: Limits,
        progress: Progress | None,
        cancelled: Callable[[], bool] | None,
        executor: Executor | None,
    ) -> None:
        self.collection, self.oracle, self.decoder = collection, oracle, decoder
        self.false_items, self.limits, self.executor = false_items, limits, executor
        self._progress, self._cancelled = progress, cancelled
        self.sketch = sketch = oracle.sketch
        self.code: BulkCode = bulk_code(sketch)
        self.p, self.s = (float(x) for x in sketch.inner.support)
        self.reports = oracle.reports
        self.log_items = math.log(collection.domain.size)

    def tick(self) -> None:
        """Stop here if asked to."""
        if self._cancelled is not None and self._cancelled():
            raise Cancelled("the decoding was cancelled")

    def say(self, stage: str, part: float) -> None:
        """Report progress, and stop if asked to."""
        self.tick()
        if self._progress is not None:
            self._progress(stage, part)

    def answer(self) -> HeavyHitters:
        """Run the decoder."""
        if self.reports == 0:
            return self._nothing()
        if self.decoder == "cluster":
            return self._cluster()
        return self._levels() if self.decoder == "levels" else self._soft()

    def _scores(self) -> list[Scored]:
        sketch, oracle = self.sketch, self.oracle
        lines = oracle.counts.values.reshape(sketch.teams, -1)
        rest = (sketch.inner.q, sketch.inner.t, self.p, self.s, oracle.cells)
        out: list[Scored] = []
        if self.executor is None:
            for m in range(sketch.teams):
                self.say("transform", m / sketch.teams)
                out.append(team_scores(lines[m], *rest))
            return out
        jobs = [self.executor.submit(team_scores, lines[m], *rest) for m in range(sketch.teams)]
        for m, job in enumerate(jobs):
            self.say("transform", m / sketch.teams)
            out.append(job.result())
        return out

    def _in_domain(self, messages: Ints) -> npt.NDArray[np.bool_]:
        size = self.collection.domain.size
        if size == 1 << self.code.bits:
            return np.ones(len(messages), bool)
        return np.array([index < size for index in to_ints(self.code.indexes(messages))], bool)

    def _noise(self, share: float = 1.0) -> Noise:
        """The inner oracle's law for a part of the users."""
        p, s = self.p, self.s
        return Noise(int(self.reports * share), s * (1 - s) / (p - s) ** 2, p * (1 - p) / (s * (1 - s)))

    def _soft(self) -> HeavyHitters:
        bar = threshold(self.reports, self.s, self.log_items, self.false_items) + MIXTURES
        if not math.isfinite(bar):
            return self._nothing()
        scored = self._scores()
        noise = self._noise()
        width, last = self.limits.width, 1
        if isinstance(self.code, BulkTreeCode):  # one start instead of one in every team
            width, last = _TREE_WIDER * width, _TREE_LAST
        settings = Settings(bar, width=width, last=last, rounds=self.limits.rounds, most=self.limits.items)
        rounds = 0

        def search(round_: int) -> None:
            nonlocal rounds
            rounds = round_
            self.say("search", 1 - 0.7**round_)

        found = decode_scores(
            self.code,
            [part.scores for part in scored],
            [part.reports for part in scored],
            noise,
            settings,
            in_domain=self._in_domain,
            tick=self.tick,
            on_round=search,
            executor=self.executor,
        )
        unit = math.sqrt(noise.reports * noise.variance)
        items = self._items(to_ints(self.code.indexes(found.messages)), found.scores, found.errors, unit, bar)
        return self._result(items, bar, unit)

    def _levels(self) -> HeavyHitters:
        code = self.code
        if not isinstance(code, BulkTreeCode):
            raise InvalidSpec("only trees have levels")
        scored = self._scores()
        keep = self.limits.keep
        messages = tree.levels(code, [part.scores for part in scored], keep, self.tick)
        last = len(code.starts) - 1
        users = max(1, scored[last].reports)
        bar = threshold(users, self.s, math.log(max(2, len(messages))), self.false_items)
        if not math.isfinite(bar):
            return self._nothing()
        z = scored[last].scores[code.block_cells(code.blocks(messages), last)].astype(float)
        chosen = np.flatnonzero(z >= bar)
        chosen = chosen[self._in_domain(messages[chosen])] if len(chosen) else chosen
        chosen = self._one_per_cell(chosen, messages, scored, last)
        chosen = chosen[np.argsort(-z[chosen], kind="stable")]
        noise = self._noise(users / self.reports)
        scale = self.reports / users
        errors = np.sqrt(noise.spread(z[chosen]) + (1 - 1 / scale) * z[chosen] / math.sqrt(users * noise.variance))
        unit = scale * math.sqrt(noise.reports * noise.variance)
        items = self._items(to_ints(code.indexes(messages[chosen])), z[chosen], errors, unit, bar)
        return self._result(items, bar, unit)

    def _one_per_cell(self, chosen: Ints, messages: Ints, scored: list[Scored], last: int) -> Ints:
        """Refuse what only the last level likes: a wrong prefix whose hash met a popular one's.

        Earlier levels must not speak against the item, and of several in one cell they choose the best.
        """
        if not len(chosen) or last == 0:
            return chosen
        cells = self.code.cells(messages[chosen])
        values = np.stack([scored[g].scores[cells[:, g]].astype(float) for g in range(last + 1)], axis=1)
        early, z = values[:, :last].mean(axis=1), values[:, last]
        spread = np.sqrt((1 + 1 / last) * self._noise(1 / (last + 1)).team_spread(z) + (0.1 * z) ** 2)
        order = np.flatnonzero(early - z >= -_AGAINST * spread)
        order = order[np.argsort(-early[order], kind="stable")]
        _, first = np.unique(cells[order, last], return_index=True)
        return np.asarray(chosen[order[first]])

    def _cluster(self) -> HeavyHitters:
        oracle, sketch = self.oracle, self.sketch
        if not isinstance(oracle, ExpanderSketchOracle) or not isinstance(sketch, ExpanderSketch) or not oracle.second:
            raise InvalidSpec("the cluster decoder reads the paper's form of the expander sketch")
        if sketch.symbol_pointers:
            raise InvalidSpec("the cluster decoder reads item pointers (symbol_pointers = 0)")
        scores = [part.scores for part in self._scores()]
        indexes = decoder.candidates(sketch, scores, self.log_items, self.say)
        indexes = [index for index in indexes if index < self.collection.domain.size]
        estimates, errors, unit, bar = decoder.estimates(oracle, oracle.second, indexes, self.false_items)
        if not math.isfinite(bar):
            return self._nothing()
        order = [int(i) for i in np.argsort(-estimates, kind="stable") if estimates[i] >= bar * unit]
        items = self._items([indexes[i] for i in order], estimates[order] / unit, errors[order] / unit, unit, bar)
        return self._result(items, bar, unit)

    def _items(self, indexes: list[int], z: Floats, errors: Floats, unit: float, bar: float) -> list[HeavyHitter]:
        out = []
        skewness = (1 - 2 * self.s) / math.sqrt(self.reports * self.s * (1 - self.s))
        for index, score, error in zip(indexes, z, errors, strict=True):
            estimate, se = float(score) * unit, float(error) * unit
            low, high = selected_interval(estimate, se, bar * unit, skewness)
            surest_low, surest_high = surest_interval(estimate, se, self.log_items, skewness)
            item = self.collection.domain.item(index)
            out.append(HeavyHitter(item, estimate, se, low, high, surest_low, surest_high, float(score)))
        return out

    def _result(self, items: list[HeavyHitter], bar: float, unit: float) -> HeavyHitters:
        self.say("done", 1.0)
        users = self.reports / self.sketch.teams if self.decoder == "levels" else float(self.reports)
        reliable = reliable_score(self.sketch, self.decoder, bar, users) * unit
        return heavy_hitters(
            items,
            reports=self.reports,
            decoder=self.decoder,
            threshold=reliable,
            false_items=self.false_items,
            users_needed=None if reliable <= self.reports else self._needed(),
            least_estimate=bar * unit,
        )

    def _needed(self) -> int:
        return least_users(self.sketch, self.decoder, self.log_items, self.false_items)

    def _nothing(self) -> HeavyHitters:
        return heavy_hitters(
            (),
            reports=self.reports,
            decoder=self.decoder,
            threshold=math.inf,
            false_items=self.false_items,
            users_needed=self._needed(),
            least_estimate=None,
        )
