"""The soft decoder: rounds of search for candidates, of which those that pass statistical tests are accepted.

A round searches (beam.py, tree.py) the scores that the model leaves unexplained, and proposes candidates down to
`margin` below the threshold. They are fitted together, because a mixture of two items may score higher than either. The
best of the fit join the model unless the teams disagree about them, and what they explain is subtracted. Items just
below the threshold are modelled but not listed. Otherwise mixtures of a few of them would look like an item. At the end
all modelled items are estimated jointly. An item is listed if its estimate passes the threshold of tails.py for the
whole domain, however it was found.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ldp_server.arrays.team_cells import BulkCode, BulkExpanderCode, BulkTreeCode
from ldp_server.heavy_hitters.search import beam, tree
from ldp_server.heavy_hitters.search.acceptance import Acceptance, Noise, Settings
from ldp_server.heavy_hitters.search.model import Model, joint_fit
from ldp_server.heavy_hitters.search.scores import TeamScores

__all__ = ["Hooks", "Listed", "decode_scores"]

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

_MOST_CANDIDATES = 20_000
_MOST_JOINT = 400
_MANY, _WIDER = 20, 4
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


@dataclass(frozen=True)
class Listed:
    """The listed items, best first: messages (rows of symbols), joint scores, standard errors in the same units."""

    messages: Ints
    scores: Floats
    errors: Floats


def decode_scores(
    code: BulkCode, teams: Sequence[TeamScores], noise: Noise, settings: Settings, hooks: Hooks | None = None
) -> Listed:
    """Return the items that explain the teams' scores. The score arrays are used up."""
    return _Search(code, teams, noise, settings, hooks or Hooks()).run()


Proposals = Callable[[int, float], Iterator[Ints]]
"""From the width of a search, and the least score of interest, to the messages that it finds."""


def _proposals(code: BulkCode, teams: Sequence[TeamScores], weights: Floats, hooks: Hooks) -> Proposals:
    """Return the search that a code needs; what it sorts is kept between rounds."""
    if isinstance(code, BulkTreeCode):
        levels = [tree.Level(code, g, teams[g], float(weights[g])) for g in range(len(code.starts))]
        return lambda width, least: tree.propose(code, levels, teams, weights, width, least, hooks.tick)
    if not isinstance(code, BulkExpanderCode):
        raise TypeError("no search is known for this code")
    lists = [beam.TeamCells(code, m, teams[m], float(weights[m])) for m in range(code.teams)]

    def proposed(width: int, _: float) -> Iterator[Ints]:
        for cells, team in zip(lists, teams, strict=True):
            if not cells.is_of(team):
                cells.renew(team)
        return beam.propose(code, lists, width, hooks.tick, hooks.executor)

    return proposed


class _Search:
    """The rounds of one decoding."""

    def __init__(
        self, code: BulkCode, teams: Sequence[TeamScores], noise: Noise, settings: Settings, hooks: Hooks
    ) -> None:
        share = np.array([team.reports for team in teams], float)
        self.code, self.settings, self.hooks = code, settings, hooks
        self.weights = np.sqrt(share / share.sum())
        self.model = Model(teams, self.weights, noise)
        self.proposals = _proposals(code, teams, self.weights, hooks)
        self.tests = Acceptance(code, self.weights, noise, settings)
        self.messages: Ints = np.empty((0, len(code.starts)), np.int64)
        self.seen: set[bytes] = set()
        self.suspect = settings.threshold - settings.margin

    def run(self) -> Listed:
        """Search until nothing new is found: first what could be listed, then what lies just below it."""
        threshold = self.settings.threshold
        low = threshold
        for number in range(1, self.settings.rounds + 1):
            if len(self.messages) >= self.settings.most:
                break
            if self.hooks.on_round is not None:
                self.hooks.on_round(number)
            if self._round(low) < threshold:  # nothing that could be listed is new
                if low < threshold:
                    break
                low = self.suspect - _MOST_SHARED
            self.model.refit()
        return self._listed()

    def _round(self, low: float) -> float:
        """Search once; return the largest score that was added to the model."""
        settings = self.settings
        width = settings.width if low == settings.threshold else settings.last * settings.width
        found = self._candidates(width)
        if self._has_many(found):
            found = self._candidates(_WIDER * width)
        if self.hooks.in_domain is not None and len(found):
            found = found[self.hooks.in_domain(found)]
        fresh = [i for i, row in enumerate(found) if row.tobytes() not in self.seen]
        before = len(self.messages)
        added = self._accept(found[fresh], low)
        self.seen.update(row.tobytes() for row in added)
        self.messages = np.concatenate([self.messages, added])
        return float(self.model.scores[before:].max(initial=0.0))

    def _candidates(self, width: int) -> Ints:
        """The messages that a search proposes and whose score is not too far below the threshold, best first."""
        code, model = self.code, self.model
        good: list[tuple[Ints, Floats]] = []
        for messages in self.proposals(width, self.suspect):
            z = model.at(code.cells(messages)) @ model.weights
            good.append((messages[z >= self.suspect], z[z >= self.suspect]))
        messages = np.concatenate([m for m, _ in good])
        z = np.concatenate([z for _, z in good])
        messages, first = np.unique(messages, axis=0, return_index=True)
        return messages[np.argsort(-z[first], kind="stable")][:_MOST_CANDIDATES]

    def _has_many(self, found: Ints) -> bool:
        """True if more than 20 candidates pass all tests.

        True items that share their cells may then have been cut from the beam.
        """
        if len(found) <= _MANY:
            return False
        values = self.model.at(self.code.cells(found))
        z = values @ self.weights
        return int(((z >= self.settings.threshold) & self.tests.passed(values, z)).sum()) > _MANY

    def _accept(self, found: Ints, low: float) -> Ints:
        """Add candidates to the model: the best of the joint fit first, each tested on what the earlier ones left.

        If none passes, at most one is added by `_accept_one`.
        """
        if not len(found):
            return found
        model, settings = self.model, self.settings
        cells = self.code.cells(found)
        values = model.at(cells)
        z = values @ model.weights
        good = np.flatnonzero(self.tests.passed(values, z))[:_MOST_JOINT]
        fitted = joint_fit(cells[good], z[good], model.weights)
        added: list[int] = []
        for j in np.argsort(-fitted, kind="stable"):
            i, score = good[j], float(fitted[j])
            if score < max(low, settings.peel * fitted.max()) or len(model.cells) >= settings.most:
                break
            here = model.at(cells[i : i + 1])
            if self.tests.passed(here, here @ model.weights)[0]:
                model.add(cells[i], score)
                added.append(int(i))
        strong = np.flatnonzero(z >= settings.threshold)[:_MOST_JOINT]
        if added or not len(strong):
            return found[added]
        best = self._accept_one(cells[strong], values[strong], z[strong])
        return found[strong[best : best + 1]]

    def _accept_one(self, cells: Ints, values: Floats, z: Floats) -> int:
        """Add the best of the candidates that pass when capped; if none does, the first; return its place.

        The first is modelled although the last tests will not list it. Otherwise it would fill every later beam and
        hide the items that are still to be found.
        """
        cut, left = self.tests.capped(values)
        robust = np.flatnonzero((left >= self.settings.threshold) & self.tests.passed(cut, left))
        if not len(robust):
            self.model.add(cells[0], float(z[0]))
            return 0
        best = int(robust[np.argmax(joint_fit(cells[robust], z[robust], self.weights))])
        self.model.add(cells[best], float(left[best]))
        return best

    def _listed(self) -> Listed:
        model = self.model
        errors = model.refit()
        if not len(self.messages):
            return Listed(self.messages, model.scores, errors)
        values = model.at(model.cells) + model.scores[:, None] * self.weights
        listed = self.tests.proved(values, model.scores)
        order = np.flatnonzero(listed)[np.argsort(-model.scores[listed], kind="stable")]
        return Listed(self.messages[order], model.scores[order], errors[order])
