"""The soft decoder: search by scores, accept like a statistician.

The score of an item is its estimate in units of the standard error an unheld item has, z = fhat / sqrt(n v). With the
teams' cell estimates in units of *their* standard errors, E_m, and u_m = sqrt(n_m / n), it is the sum of
u_m E_m[cell_m]: the same number for equal and for unequal teams.

Rounds of search (beam.py) on the residual scores propose candidates down to `margin` below the threshold. Best first,
each is scored again on the current residual and, unless the teams disagree about it (a chimera of several strong
items; chi-square), it joins the model and what it explains is subtracted. Items just below the threshold are modelled
but not listed: unexplained, a few of them together make mixtures that look like an item. At the end all modelled
items are estimated jointly (they may share cells), and those are listed whose joint estimate passes the threshold of
tails.py over the whole domain, whatever the search was.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ldp_server.bulk.team_cells import BulkCode, BulkExpanderCode, BulkTreeCode
from ldp_server.heavy_hitters import beam, tree
from ldp_server.heavy_hitters.tails import chi_square_quantile, normal_quantile

__all__ = ["Found", "Noise", "Settings", "decode_scores"]

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Scores = npt.NDArray[np.float32]
Tick = Callable[[], None]

_MOST_CANDIDATES = 20_000


@dataclass(frozen=True)
class Settings:
    """How wide to search and when to believe."""

    threshold: float
    """The joint score from which an item is listed."""
    width: int = 1 << 14
    margin: float = 2.0
    """How far below the threshold candidates are still modelled."""
    chi_tail: float = 5e-3
    """How often balance across teams may refuse a true item."""
    copy_tail: float = 0.005
    """How often the near-copies of one true item may produce one that is not told from it."""
    rounds: int = 8
    most: int = 4000
    """No more modelled items than this."""
    peel: float = 0.5
    """A round accepts nothing below this part of its best."""


@dataclass(frozen=True)
class Noise:
    """The inner oracle's law for one report: v of an unheld item, r = p(1-p)/(s(1-s)) for holders; and n."""

    reports: int
    variance: float
    holder_ratio: float

    def share(self, z: npt.ArrayLike) -> Floats:
        """The part of all users that holds an item with score z."""
        return np.clip(np.asarray(z, float) * np.sqrt(self.variance / self.reports), 0.0, 1.0)

    def spread(self, z: npt.ArrayLike) -> Floats:
        """The variance of an item's score, relative to that of an unheld one: holders answer by another law."""
        return 1.0 + self.share(z) * (self.holder_ratio - 1.0)

    def team_spread(self, z: npt.ArrayLike) -> Floats:
        """The same for one team's part, whose number of holders is a draw as well."""
        share = self.share(z)
        return self.spread(z) + share * (1 - share) / self.variance


@dataclass(frozen=True)
class Found:
    """The listed items: messages (rows of symbols), cells, joint scores, standard errors in the same units, misfit."""

    messages: Ints
    cells: Ints
    scores: Floats
    errors: Floats
    misfits: Floats
    modelled: int
    rounds: int


class _Tests:
    """What an item must pass besides the threshold, from its teams' values and its score.

    *Balance*: chi-square of the teams' values about the item's score refuses chimeras of several strong items.
    *Near-copies*: the elements that share part of their cells with a true item borrow its evidence there. So the teams
    that tell them apart must prove the item by themselves, against as many rivals as there are near-copies.
    """

    def __init__(self, code: BulkCode, weights: Floats, noise: Noise, settings: Settings) -> None:
        self._weights, self._noise = weights, noise
        self.limit = chi_square_quantile(code.teams - 1, settings.chi_tail)
        parts = code.near_copies()
        self._parts = np.zeros((len(parts), code.teams))
        self._needed = np.zeros(len(parts))
        for i, (teams, log_count) in enumerate(parts):
            share = weights[teams]
            self._parts[i, teams] = share / max(1e-9, math.sqrt(float(share @ share)))
            self._needed[i] = normal_quantile(math.log(settings.copy_tail) - log_count)

    def misfit(self, values: Floats, z: Floats) -> Floats:
        """Chi-square; the tenth of z allows for unequal sampling."""
        spread = self._noise.team_spread(z) + (0.1 * np.asarray(z)) ** 2 / len(self._weights)
        return (((values - np.asarray(z)[..., None] * self._weights) ** 2).sum(axis=-1)) / spread

    def passed(self, values: Floats, z: Floats) -> npt.NDArray[np.bool_]:
        """Which rows of values pass."""
        own = (values @ self._parts.T >= self._needed).all(axis=-1)
        return np.asarray((self.misfit(values, z) <= self.limit) & own)


class _Model:
    """The items accepted so far, and the scores that they leave unexplained (in the arrays handed in, in place)."""

    def __init__(self, scores: Sequence[Scores], weights: Floats, noise: Noise) -> None:
        self.residual = scores
        self.weights, self.noise = weights, noise
        self.teams = len(scores)
        self.cells: Ints = np.empty((0, self.teams), np.int64)
        self.scores: Floats = np.empty(0)

    def at(self, cells: Ints) -> Floats:
        """The residual E of each cell, shape (n, M)."""
        return np.stack([self.residual[m][cells[:, m]].astype(float) for m in range(self.teams)], axis=1)

    def add(self, cells: Ints, z: float) -> None:
        """Take an item into the model and subtract it."""
        self.cells = np.concatenate([self.cells, cells[None]])
        self.scores = np.append(self.scores, z)
        for m in range(self.teams):
            self.residual[m][cells[m]] -= np.float32(z * self.weights[m])

    def _overlap(self) -> Floats:
        """Entry (i, j): the sum of u_m^2 over the teams in which items i and j share a cell."""
        gram = np.zeros((len(self.cells), len(self.cells)))
        for m in range(self.teams):
            column = self.cells[:, m]
            order = np.argsort(column, kind="stable")
            for group in np.split(order, np.flatnonzero(np.diff(column[order])) + 1):
                if len(group) == 1:
                    gram[group[0], group[0]] += self.weights[m] ** 2
                else:
                    gram[np.ix_(group, group)] += self.weights[m] ** 2
        return gram

    def refit(self) -> Floats:
        """Estimate all items jointly by least squares, put the residual right, and return the standard errors."""
        if not len(self.cells):
            return np.empty(0)
        gram = self._overlap()
        left = self.at(self.cells) @ self.weights  # what the present scores leave unexplained of each item
        inverse = np.linalg.inv(gram + 1e-9 * np.eye(len(gram)))
        change = inverse @ left
        for m in range(self.teams):
            np.subtract.at(self.residual[m], self.cells[:, m], (change * self.weights[m]).astype(np.float32))
        self.scores = self.scores + change
        return np.sqrt(np.diag(inverse) * self.noise.spread(self.scores))


def decode_scores(
    code: BulkCode,
    scores: Sequence[Scores],
    sizes: npt.ArrayLike,
    noise: Noise,
    settings: Settings,
    *,
    in_domain: Callable[[Ints], npt.NDArray[np.bool_]] | None = None,
    tick: Tick | None = None,
    on_round: Callable[[int], None] | None = None,
    executor: Executor | None = None,
) -> Found:
    """Decode score arrays E_m (float32, one value a cell), which are used up. `tick` is called often and may raise."""
    share = np.asarray(sizes, float)
    weights = np.sqrt(share / share.sum())
    model = _Model(scores, weights, noise)
    tests = _Tests(code, weights, noise, settings)
    messages: Ints = np.empty((0, len(code.starts)), np.int64)
    seen: set[bytes] = set()
    low, rounds = settings.threshold, 0
    while rounds < settings.rounds and len(messages) < settings.most:
        rounds += 1
        if on_round is not None:
            on_round(rounds)
        found = _candidates(code, model, low, settings.width, tick, executor)
        if in_domain is not None and len(found):
            found = found[in_domain(found)]
        fresh = [i for i, row in enumerate(found) if row.tobytes() not in seen]
        added = _accept(code, model, tests, found[fresh], low, settings)
        seen.update(row.tobytes() for row in added)
        messages = np.concatenate([messages, added])
        fitted = model.scores[len(messages) - len(added) :]
        if fitted.max(initial=0.0) < settings.threshold:  # nothing that could be listed is new
            if low < settings.threshold:
                break
            low = settings.threshold - settings.margin  # now what lies just below it
        model.refit()
    errors = model.refit()
    values = model.at(model.cells) + model.scores[:, None] * weights if len(messages) else np.empty((0, code.teams))
    misfits = tests.misfit(values, model.scores)
    listed = (model.scores >= settings.threshold) & tests.passed(values, model.scores)
    order = np.flatnonzero(listed)[np.argsort(-model.scores[listed], kind="stable")]
    return Found(
        messages[order], model.cells[order], model.scores[order], errors[order], misfits[order], len(messages), rounds
    )


def _candidates(
    code: BulkCode, model: _Model, low: float, width: int, tick: Tick | None, executor: Executor | None
) -> Ints:
    """The messages that a search of the residual proposes and whose score is at least `low`, best first."""
    if isinstance(code, BulkExpanderCode):
        proposed = beam.propose(code, model.residual, model.weights, width, tick, executor)
    elif isinstance(code, BulkTreeCode):
        proposed = tree.propose(code, model.residual, model.weights, width, tick)
    else:
        raise TypeError("no search is known for this code")
    good: list[tuple[Ints, Floats]] = []
    for messages in proposed:
        z = model.at(code.cells(messages)) @ model.weights
        good.append((messages[z >= low], z[z >= low]))
    messages = np.concatenate([m for m, _ in good])
    z = np.concatenate([z for _, z in good])
    messages, first = np.unique(messages, axis=0, return_index=True)
    return messages[np.argsort(-z[first], kind="stable")][:_MOST_CANDIDATES]


def _accept(
    code: BulkCode, model: _Model, tests: _Tests, found: Ints, low: float, settings: Settings
) -> Ints:
    """Add candidates to the model, best first, each scored on what the ones before it have left."""
    added: list[int] = []
    cells = code.cells(found) if len(found) else np.empty((0, model.teams), np.int64)
    best = 0.0
    for i in range(len(found)):
        values = model.at(cells[i : i + 1])[0]
        z = float(values @ model.weights)
        if z < low or z < settings.peel * best:
            continue
        if not tests.passed(values, np.array(z)):
            continue
        best = max(best, z)
        model.add(cells[i], z)
        added.append(i)
        if len(model.cells) >= settings.most:
            break
    return found[added]
