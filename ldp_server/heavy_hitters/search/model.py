"""The soft decoder: search by scores, accept like a statistician.

The score of an item is its estimate in units of the standard error an unheld item has, z = fhat / sqrt(n v). With the
teams' cell estimates in units of *their* standard errors, E_m, and u_m = sqrt(n_m / n), it is the sum of
u_m E_m[cell_m]: the same number for equal and for unequal teams.

Rounds of search (beam.py) on the residual scores propose candidates down to `margin` below the threshold. They are
fitted together, for a mixture of two items may score higher than either; the best of the fit join the model, unless
the teams disagree about them, and what they explain is subtracted. Items just below the threshold are modelled but not
listed: unexplained, a few of them together make mixtures that look like an item. At the end all modelled items are
estimated jointly, and those are listed whose estimate passes the threshold of tails.py over the whole domain, whatever
the search was.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ldp_server.arrays.team_cells import BulkCode, BulkExpanderCode, BulkTreeCode
from ldp_server.heavy_hitters.search import beam, tree
from ldp_server.heavy_hitters.search.acceptance import Acceptance, Noise, Settings

__all__ = ["Found", "decode_scores"]

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Scores = npt.NDArray[np.float32]
Tick = Callable[[], None]

_MOST_CANDIDATES = 20_000
_MOST_JOINT = 400
_CROWD, _WIDER = 20, 4
_DESCENTS = 300
_MOST_SHARED = 1.0  # of a suspect's score, what may be lost in the joint fit


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
    tests = Acceptance(code, weights, noise, settings)
    messages: Ints = np.empty((0, len(code.starts)), np.int64)
    seen: set[bytes] = set()
    suspect = settings.threshold - settings.margin
    low, rounds = settings.threshold, 0
    while rounds < settings.rounds and len(messages) < settings.most:
        rounds += 1
        if on_round is not None:
            on_round(rounds)
        width = settings.width if low == settings.threshold else settings.last * settings.width
        found = _candidates(code, model, suspect, width, tick, executor)
        if _crowded(code, model, tests, found, settings.threshold):
            found = _candidates(code, model, suspect, _WIDER * width, tick, executor)
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
            low = suspect - _MOST_SHARED  # now what lies just below it
        model.refit()
    errors = model.refit()
    values = model.at(model.cells) + model.scores[:, None] * weights if len(messages) else np.empty((0, code.teams))
    misfits = tests.misfit(values, model.scores)
    listed = tests.proved(values, model.scores) if len(messages) else np.empty(0, bool)
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


def _crowded(code: BulkCode, model: _Model, tests: Acceptance, found: Ints, threshold: float) -> bool:
    """Whether so many candidates could be listed that others, from which they borrow, may have found no room."""
    if len(found) <= _CROWD:
        return False
    values = model.at(code.cells(found))
    z = values @ model.weights
    return int(((z >= threshold) & tests.passed(values, z)).sum()) > _CROWD


def _joint(cells: Ints, z: Floats, weights: Floats) -> Floats:
    """What of its score each candidate keeps when all are fitted together (non-negative least squares).

    A chimera of two items may score higher than either of them; beside both, nothing of it is left.
    """
    shared = (cells[:, None, :] == cells[None, :, :]) @ weights**2
    step = 1 / max(1.0, float(shared.sum(axis=1).max(initial=0.0)))
    fitted = np.zeros(len(z))
    for _ in range(_DESCENTS):
        fitted = np.maximum(0.0, fitted + step * (z - shared @ fitted))
    return fitted


def _accept(code: BulkCode, model: _Model, tests: Acceptance, found: Ints, low: float, settings: Settings) -> Ints:
    """Add candidates to the model: the best of the joint fit first, each tested on what the ones before it have left.

    If nothing passes, the best of what passes when capped is added. If nothing does, and some could have been listed,
    the best of them is modelled all the same (the last tests will not list it): unexplained, it would fill every beam
    to come and hide what is still to be found.
    """
    if not len(found):
        return found
    cells = code.cells(found)
    values = model.at(cells)
    z = values @ model.weights
    good = np.flatnonzero(tests.passed(values, z))[:_MOST_JOINT]
    fitted = _joint(cells[good], z[good], model.weights)
    added: list[int] = []
    for j in np.argsort(-fitted, kind="stable"):
        i, score = good[j], float(fitted[j])
        if score < max(low, settings.peel * fitted.max()) or len(model.cells) >= settings.most:
            break
        here = model.at(cells[i : i + 1])
        if tests.passed(here, here @ model.weights)[0]:
            model.add(cells[i], score)
            added.append(int(i))
    strong = np.flatnonzero(z >= settings.threshold)[:_MOST_JOINT]
    if added or not len(strong):
        return found[added]
    cut, left = tests.capped(values[strong])
    robust = np.flatnonzero((left >= settings.threshold) & tests.passed(cut, left))
    chosen = strong[robust] if len(robust) else strong[:1]
    best = int(np.argmax(_joint(cells[chosen], z[chosen], model.weights)))
    model.add(cells[chosen[best]], float(left[robust[best]] if len(robust) else z[chosen[best]]))
    return found[chosen[best : best + 1]]
