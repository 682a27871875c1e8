"""The soft decoder: rounds of search for candidates, of which those that pass statistical tests are accepted.

A round searches (beam.py, tree.py) the scores that the model leaves unexplained, and proposes candidates down to
`margin` below the threshold. They are fitted together, because a mixture of two items may score higher than either. The
best of the fit join the model unless the teams disagree about them, and what they explain is subtracted. Items just
below the threshold are modelled but not listed. Otherwise mixtures of a few of them would look like an item. At the end
all modelled items are estimated jointly. An item is listed if its estimate passes the threshold of tails.py for the
whole domain, and the bar that follows from unexplained cells (mixtures.py), however it was found.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ldp_server.arrays.team_cells import BulkCode, BulkExpanderCode, BulkTreeCode
from ldp_server.heavy_hitters.search import beam, tree
from ldp_server.heavy_hitters.search.acceptance import Acceptance, Noise, Settings
from ldp_server.heavy_hitters.search.candidates import Candidates
from ldp_server.heavy_hitters.search.halves import by_halves
from ldp_server.heavy_hitters.search.joins import MOST_CANDIDATES, first_rows, keys_of
from ldp_server.heavy_hitters.search.mixtures import Judged, Mixtures, step_down
from ldp_server.heavy_hitters.search.model import Model, joint_fit
from ldp_server.heavy_hitters.search.scores import TeamScores

__all__ = ["Hooks", "Listed", "decode_scores"]

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

_MOST_JOINT = 400
_MANY, _WIDER = 20, 4
_MOST_ORIGINS, _FROM_ONE = 100, 1 << 11  # items whose relatives are searched for, and paths kept for each
_CLEAR = 1.15  # over the threshold: no mixture of items below it gets so high
_MOST_SHARED = 1.0  # the part of its score that a candidate may lose in the joint fit


@dataclass(frozen=True)
class Hooks:
    """The functions that a search calls."""

    in_domain: Callable[[Ints], npt.NDArray[np.bool_]] | None = None
    """Which messages are those of an item."""
    tick: Callable[[], None] | None = None
    """Called often; may raise to end the search."""
    on_round: Callable[[int], None] | None = None
    executor: Executor | None = None

    @property
    def threads(self) -> ThreadPoolExecutor | None:
        """The executor, if it shares this process's memory."""
        return self.executor if isinstance(self.executor, ThreadPoolExecutor) else None


@dataclass(frozen=True)
class Listed:
    """The listed items, best first: messages (rows of symbols), joint scores, standard errors in the same units."""

    messages: Ints
    scores: Floats
    errors: Floats
    bars: Floats
    """The least score at which each is listed."""
    candidates: npt.NDArray[np.bool_]
    """Which were tested as candidates of a dictionary."""
    doubts: Floats
    """The likelihood of each one's relatives over its own (acceptance.py)."""
    bar: float
    """The least score at which an item that is no candidate is listed."""
    mixtures: float
    """The expected number of mixtures among the listed items."""


def decode_scores(
    code: BulkCode,
    teams: Sequence[TeamScores],
    noise: Noise,
    settings: Settings,
    hooks: Hooks | None = None,
    candidates: Candidates | None = None,
    start: Ints | None = None,
) -> Listed:
    """Return the items that explain the teams' scores. The score arrays are used up.

    The messages of `start` are proposed before the first search and in every round. They pass the same tests as what a
    search finds, which hold for the whole domain. So it does not matter where they come from, and a wrong one costs
    nothing. Before the search only those are taken that are far above the threshold. One near it may be a mixture or a
    relative of items that only the search finds, so it waits for them.
    """
    search = _Search(code, teams, noise, settings, hooks or Hooks())
    if start is not None and len(start):
        search.begin(start)
    if candidates is None:
        return search.run()
    search.take(candidates)
    search.search()
    search.take(candidates)
    return search.listed(candidates)


Proposals = Callable[[int, float, Ints | None], Iterator[Ints]]
"""From the width of a search, the least score of interest, and the cells to start from (None: all), to messages."""


def _proposals(
    code: BulkCode, teams: Sequence[TeamScores], weights: Floats, threshold: float, hooks: Hooks
) -> Proposals:
    """Return the search that a code needs; what it sorts is kept between rounds."""
    if isinstance(code, BulkTreeCode):
        levels = [tree.Level(code, g, teams[g], float(weights[g]), threshold) for g in range(len(code.starts))]
        return lambda width, least, _: tree.propose(
            code, levels, teams, weights, width, least, hooks.tick, hooks.threads
        )
    if not isinstance(code, BulkExpanderCode):
        raise TypeError("no search is known for this code")
    lists = [beam.TeamCells(code, m, teams[m], float(weights[m])) for m in range(code.teams)]

    def proposed(width: int, _: float, origins: Ints | None) -> Iterator[Ints]:
        for cells, team in zip(lists, teams, strict=True):
            if not cells.is_of(team):
                cells.renew(team)
        return beam.propose(code, lists, width, hooks.tick, hooks.executor, origins)

    return proposed


@dataclass(frozen=True)
class _Found:
    """Candidates: messages, their cells, the scores of these and of the candidates."""

    messages: Ints
    cells: Ints
    values: Floats
    z: Floats
    passed: npt.NDArray[np.bool_]
    """Which pass the tests as they are."""

    def part(self, which: Ints | npt.NDArray[np.bool_]) -> _Found:
        return _Found(self.messages[which], self.cells[which], self.values[which], self.z[which], self.passed[which])

    @staticmethod
    def joined(parts: Sequence[_Found]) -> _Found:
        columns = zip(*((one.messages, one.cells, one.values, one.z, one.passed) for one in parts), strict=True)
        return _Found(*(np.concatenate(column) for column in columns))


class _Search:
    """The rounds of one decoding."""

    def __init__(
        self, code: BulkCode, teams: Sequence[TeamScores], noise: Noise, settings: Settings, hooks: Hooks
    ) -> None:
        share = np.array([team.reports for team in teams], float)
        self.code, self.settings, self.hooks = code, settings, hooks
        self.weights = np.sqrt(share / share.sum())
        self.model = Model(teams, self.weights, noise)
        self.proposals = _proposals(code, teams, self.weights, settings.threshold, hooks)
        self.tests = Acceptance(code, self.weights, noise, settings)
        self.messages: Ints = np.empty((0, len(code.starts)), np.int64)
        self.doubts: list[float] = []
        self.known: Ints = self.messages
        """Messages that every round looks at: those of the start."""
        self.compared: set[bytes] = set()
        """Messages near the threshold whose relatives were searched for."""
        self.seen = np.empty(0, np.uint64)
        """Hashes of the messages that were taken in."""
        self.suspect = settings.threshold - settings.margin
        self.compares = math.isfinite(settings.doubt)
        """Whether items are compared with their relatives."""
        self.origins = self.compares and not isinstance(code, BulkTreeCode)
        """Whether relatives are searched for: an expander searches from the cells of an item."""

    def run(self) -> Listed:
        """Search, and list what was found."""
        self.search()
        return self.listed(None)

    def take(self, candidates: Candidates) -> None:
        """Add the candidates that pass to the model."""
        if len(self.messages):
            places = candidates.find(self.messages)
            candidates.taken[places[places >= 0]] = True
        if self.hooks.tick is not None:
            self.hooks.tick()
        added = candidates.take(self.model, self.tests, self.settings.most)
        self.seen = np.concatenate([self.seen, keys_of(added)])
        self.messages = np.concatenate([self.messages, added])
        self.doubts += [0.0] * len(added)

    def begin(self, messages: Ints) -> None:
        """Add those of the messages to the model that are clear and pass all tests: rounds without a search."""
        self.known, clear = messages[first_rows(messages)], _CLEAR * self.settings.threshold
        for _ in range(self.settings.rounds):
            if self.hooks.tick is not None:
                self.hooks.tick()
            found = self._scored(self.known, clear)
            before = len(self.messages)
            self._take_in(found.part(found.passed), clear)
            if len(self.messages) == before:
                break
            self.model.refit()

    def search(self) -> None:
        """Search until nothing new is found: first what is clear, then what could be listed, then what lies below it.

        An expander's first rounds take only items far above the threshold. Near it, a candidate may be a mixture of
        others that lie just below, and only the last rounds' wide searches find these, so that all are fitted together.
        In a tree, elements that nobody holds were modelled in the place of what a later search finds. So at the end
        those that failed the tests are put back once, and the last rounds search again.
        """
        lows = [self.settings.threshold, self.suspect - _MOST_SHARED]
        if self.origins:
            lows.insert(0, _CLEAR * self.settings.threshold)
        stage, again, given = 0, not self.origins, len(self.messages)
        for number in range(1, self.settings.rounds + 1):
            if len(self.messages) >= self.settings.most:
                break
            if self.hooks.on_round is not None:
                self.hooks.on_round(number)
            done = self._done(stage, lows, self._round(lows[stage], stage > 0))
            if done and stage == len(lows) - 1:
                if not (again and self._put_back(given)):
                    break
                again = done = False
            stage += done
            self.model.refit()

    def _put_back(self, given: int) -> bool:
        """Leave out of the model what reached the threshold and fails the tests; return whether there was any.

        What was in the model before the first search, the first so many, stays: candidates have other tests.
        """
        model = self.model
        model.refit()
        values = model.at(model.cells) + model.scores[:, None] * self.weights
        failed = (model.scores >= self.settings.threshold) & ~self.tests.proved(values, model.scores)
        failed[:given] = False
        if not failed.any():
            return False
        model.keep(~failed)
        self.messages = self.messages[~failed]
        self.doubts = [doubt for doubt, left_out in zip(self.doubts, failed, strict=True) if not left_out]
        return True

    def _done(self, stage: int, lows: list[float], best: float) -> bool:
        """Return whether a stage is over after a round that added a candidate with this score, the best one."""
        if stage and stage < len(lows) - 1:
            return True  # the next stage takes such candidates too
        if not stage and self.origins:
            return best * self.settings.peel < lows[0]  # then the round took all that are clear
        return best < self.settings.threshold  # nothing that could be listed is new

    def _round(self, low: float, last: bool) -> float:
        """Search once; return the largest score that was added to the model."""
        settings = self.settings
        width = settings.last * settings.width if last else settings.width
        found = self._candidates(width)
        if self.origins and last:
            found = self._with_relatives(found)
        elif not self.origins and self._has_many(found):
            found = self._candidates(_WIDER * width)
        if self.hooks.in_domain is not None and len(found.z):
            found = found.part(self.hooks.in_domain(found.messages))
        before = len(self.messages)
        self._take_in(found, low, last)
        return float(self.model.scores[before:].max(initial=0.0))

    def _take_in(self, found: _Found, low: float, last: bool = False) -> None:
        """Add the best of what is new to the model."""
        found = found.part(~np.isin(keys_of(found.messages), self.seen))
        added = found.messages[self._accept(found, low, last)]
        self.seen = np.concatenate([self.seen, keys_of(added)])
        self.messages = np.concatenate([self.messages, added])

    def _with_relatives(self, found: _Found) -> _Found:
        """Add the elements that share a cell with a candidate near the threshold: they may be what is held instead."""
        threshold = self.settings.threshold
        near = np.flatnonzero((found.z >= threshold) & (found.z < _CLEAR * threshold) & found.passed)
        new = [i for i in near if found.messages[i].tobytes() not in self.compared][:_MOST_ORIGINS]
        if not new:
            return found
        self.compared.update(found.messages[i].tobytes() for i in new)
        width = min(self.settings.last * self.settings.width, max(self.settings.width // 2, _FROM_ONE * len(new)))
        return self._candidates(width, found.cells[new], found.messages)

    def _candidates(self, width: int, origins: Ints | None = None, known: Ints | None = None) -> _Found:
        """Return what a search proposes, where its score is not too far below the threshold, best first."""
        proposed = list(self.proposals(width, self.suspect, origins))
        messages = np.concatenate([self.known if known is None else known, *proposed])
        return self._scored(messages[first_rows(messages)], self.suspect)

    def _scored(self, messages: Ints, least: float) -> _Found:
        """Return those of the messages whose score is at least `least`, best first."""

        def scored(rows: slice) -> _Found:
            cells = self.code.cells(messages[rows])
            values = self.model.at(cells)
            z = values @ self.weights
            high = z >= least
            values, z = values[high], z[high]
            return _Found(messages[rows][high], cells[high], values, z, self.tests.passed(values, z))

        found = _Found.joined(by_halves(scored, len(messages), self.hooks.threads))
        return found.part(np.argsort(-found.z, kind="stable")[:MOST_CANDIDATES])

    def _has_many(self, found: _Found) -> bool:
        """True if more than 20 candidates pass all tests.

        True items that share their cells may then have been cut from the beam.
        """
        if len(found.z) <= _MANY:
            return False
        return int(((found.z >= self.settings.threshold) & found.passed).sum()) > _MANY

    def _accept(self, found: _Found, low: float, last: bool) -> list[int]:
        """Add candidates to the model: the best of the joint fit first, each tested on what the earlier ones left.

        If none passes, at most one is added by `_accept_one`. Return the places of those added.
        """
        if not len(found.z):
            return []
        model, settings, cells, z = self.model, self.settings, found.cells, found.z
        good = np.flatnonzero(found.passed)[:_MOST_JOINT]
        fitted = joint_fit(cells[good], z[good], model.weights)
        added: list[int] = []
        for j in np.argsort(-fitted, kind="stable"):
            i, score = int(good[j]), float(fitted[j])
            if score < max(low, settings.peel * fitted.max()) or len(model.cells) >= settings.most:
                break
            here = model.at(cells[i : i + 1])
            if self.tests.passed(here, here @ model.weights)[0]:
                self.doubts.append(self._doubt(found, i, float(here[0] @ model.weights)))
                model.add(cells[i], score)
                added.append(i)
        strong = np.flatnonzero(z >= max(low, settings.threshold))[:_MOST_JOINT]
        if added or not len(strong):
            return added
        return self._accept_one(found, strong, last)

    def _doubt(self, found: _Found, place: int, score: float) -> float:
        """Return the likelihood of the candidate's relatives over its own, on what better candidates leave."""
        if not self.compares:
            return 0.0
        related = (found.cells == found.cells[place]).any(axis=1)
        related[place] = False
        return self.tests.doubt(score, self.model.at(found.cells[related]) @ self.weights)

    def _accept_one(self, found: _Found, strong: Ints, last: bool) -> list[int]:
        """Add the best of the strong candidates that pass when capped; if none does, the first; return its place.

        The first is modelled although the last tests will not list it. Otherwise it would fill every later beam and
        hide the items that are still to be found. A tree's last rounds alone do so: a wider search may find what the
        first is a near-copy of.
        """
        cells, z = found.cells[strong], found.z[strong]
        cut, left = self.tests.capped(found.values[strong])
        robust = np.flatnonzero((left >= self.settings.threshold) & self.tests.passed(cut, left))
        best, score = 0, float(z[0])
        if len(robust):
            best = int(robust[np.argmax(joint_fit(cells[robust], z[robust], self.weights))])
            score = float(left[best])
        elif not (last or self.origins):
            return []
        self.doubts.append(self._doubt(found, int(strong[best]), float(z[best])))
        self.model.add(cells[best], score)
        return [int(strong[best])]

    def listed(self, candidates: Candidates | None) -> Listed:
        """Fit everything together once more, and list what passes. In a crowd the bar rises (mixtures.py)."""
        model, settings = self.model, self.settings
        errors = model.refit()
        named, certain = np.zeros(len(self.messages), bool), np.zeros(len(self.messages), bool)
        listed, doubts, bars = named, np.array(self.doubts), np.zeros(len(self.messages))
        if len(self.messages):
            values = model.at(model.cells) + model.scores[:, None] * self.weights
            listed = self.tests.proved(values, model.scores) & (doubts <= settings.doubt)
            if candidates is not None:
                places = candidates.find(self.messages)
                named, bars = places >= 0, candidates.bars[places]
                certain = named & candidates.reached(self.tests, values, model.scores, places)
        judged = self._judged(listed, certain)
        listed, bars = listed & (model.scores >= judged.bars) | certain, np.where(named, bars, judged.bars)
        order = np.flatnonzero(listed)[np.argsort(-model.scores[listed], kind="stable")]
        scores, errors, doubts = model.scores[order], errors[order], doubts[order]
        return Listed(
            self.messages[order], scores, errors, bars[order], named[order], doubts, judged.bar, judged.expected
        )

    def _judged(self, passed: npt.NDArray[np.bool_], certain: npt.NDArray[np.bool_]) -> Judged:
        settings = self.settings
        if math.isinf(settings.allowed):
            return Judged(np.full(len(passed), settings.threshold), settings.threshold, 0.0)
        law = Mixtures(self.code, self.model, settings.log_items, self.hooks.threads)
        return step_down(law, self.model, settings, passed, certain)
