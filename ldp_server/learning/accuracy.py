r"""How often a classifier is right, from rows whose labels were randomized.

Row i has the report r_i, and the classifier says y_i. g_i = M[y_i][r_i] (labels.py) has the mean 1 if y_i is the true
label, else 0. So the mean of g over rows that the classifier has not seen is an unbiased estimate of its accuracy a.
The interval is about new people of the same kind as the rows, which are taken to be drawn independently:

- **Randomized response in which everybody has a class.** The report agrees with the classifier with probability
  P = q + (p - q) a, and the agreements of n rows are Binomial(n, P). The ends are those of Clopper and Pearson for P,
  moved to a: they hold for every n and every a.
- **All other tables.** With h_i = sum over y of M[y][r_i] (1 where everybody has a class, else whether the person has
  one, in the mean), a is the number for which g_i - a h_i has the mean 0. The ends are where the mean of g_i - a h_i is
  so far from 0 as an empirical Bernstein bound allows (Maurer and Pontil, COLT 2009, Theorem 4):
  sqrt(2 V l/n) + 7 R l/(3 (n - 1)) with l = ln(2/tail), sample variance V and range R. It holds for every law, and is
  some 1.4 times as wide as a normal interval.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ldp_client.errors import InvalidSpec
from ldp_server.learning.labels import RandomizedLabels
from ldp_server.oracles.base import Floats
from ldp_server.oracles.laws.binomial import binomial_tail_log

__all__ = ["Accuracy", "Advantage", "accuracy", "advantage", "known_accuracy"]

_HALVINGS = 60
_ALIKE = 1e-9


@dataclass(frozen=True)
class Accuracy:
    """How often a classifier is right about new people."""

    rows: int
    estimate: float
    """Unbiased; noise may take it below 0 or above 1."""
    standard_error: float
    low: float
    high: float
    confidence: float


def accuracy(predicted: npt.ArrayLike, labels: RandomizedLabels, confidence: float = 0.95) -> Accuracy:
    """Estimate how often the predictions for rows are right, from the rows' randomized labels.

    The classifier must not have been fitted to these rows.
    """
    said = _places(predicted, labels)
    weights = labels.weights
    g, h = weights[np.arange(len(said)), said], weights.sum(axis=1)
    n, tail = len(said), _tail(confidence)
    base = float(h.mean())
    if base <= 0:
        return Accuracy(n, 0.0, math.inf, 0.0, 1.0, confidence)
    found = float(g.mean()) / base
    error = float(np.std(g - found * h, ddof=1)) / math.sqrt(n) / base
    law = None if labels.unlabelled else _response(labels.table)
    if law is not None:
        p, q = law
        hits = int(np.count_nonzero(labels.reports == said))
        low, high = ((end - q) / (p - q) for end in _clopper_pearson(hits, n, tail))
    else:
        low, high = _bernstein((g, h), found, tail, _range(labels))
    low, high = (min(1.0, max(0.0, end)) for end in (low, high))
    return Accuracy(n, found, error, low, high, confidence)


@dataclass(frozen=True)
class Advantage:
    """By how much one classifier is right more often than another one about new people."""

    estimate: float
    low: float
    high: float
    confidence: float


def advantage(
    predicted: npt.ArrayLike, other: npt.ArrayLike, labels: RandomizedLabels, confidence: float = 0.95
) -> Advantage:
    """Estimate the accuracy of predictions minus that of others for the same rows, from randomized labels.

    Neither classifier must have been fitted to these rows. Rows about which both say the same add no noise: row i has
    d_i = M[y_i][r_i] - M[z_i][r_i] in the place of g_i, and the interval is the empirical Bernstein bound.
    """
    said, told = _places(predicted, labels), _places(other, labels)
    weights, rows = labels.weights, np.arange(len(said))
    d, h = weights[rows, said] - weights[rows, told], weights.sum(axis=1)
    base = float(h.mean())
    if base <= 0:
        return Advantage(0.0, -1.0, 1.0, confidence)
    found = float(d.mean()) / base
    low, high = _bernstein((d, h), found, _tail(confidence), _differences(labels), -1.0)
    return Advantage(found, low, high, confidence)


def _differences(labels: RandomizedLabels) -> tuple[Floats, Floats]:
    """Every value that d may have for new people, whatever the two classifiers say, and the h that comes with it."""
    shown, sums = _range(labels)
    classes = range(len(shown))
    return np.concatenate([shown - shown[one] for one in classes]), np.concatenate([sums for _ in classes])


def known_accuracy(predicted: npt.ArrayLike, truth: npt.ArrayLike, confidence: float = 0.95) -> Accuracy:
    """Return how often the predictions for rows are right, from labels that are known, with the interval of a share."""
    told, true = np.asarray(predicted), np.asarray(truth)
    if told.shape != true.shape or len(told) < 2:
        raise InvalidSpec("give a known label for each prediction, and at least two of them")
    hits, n = int(np.count_nonzero(told == true)), len(told)
    share = hits / n
    low, high = _clopper_pearson(hits, n, _tail(confidence))
    return Accuracy(n, share, math.sqrt(share * (1 - share) / n), low, high, confidence)


def _tail(confidence: float) -> float:
    if not 0 < confidence < 1:
        raise InvalidSpec("confidence lies strictly between 0 and 1, such as 0.95")
    return (1 - confidence) / 2


def _places(predicted: npt.ArrayLike, labels: RandomizedLabels) -> npt.NDArray[np.intp]:
    """The number of the predicted class in each row."""
    told: list[Any] = np.asarray(predicted).tolist()
    if len(told) != len(labels):
        raise InvalidSpec(f"there are {len(told)} predictions and {len(labels)} reports")
    if len(told) < 2:
        raise InvalidSpec("an accuracy takes at least two rows")
    known = {name: place for place, name in enumerate(labels.classes)}
    if any(one not in known for one in set(told)):
        raise InvalidSpec("a prediction is none of the question's labels")
    return np.array([known[one] for one in told], np.intp)


def _response(table: Floats) -> tuple[float, float] | None:
    """The probabilities p and q, if the table is that of randomized response."""
    if table.shape[0] != table.shape[1]:
        return None
    own, others = np.diag(table), table[~np.eye(len(table), dtype=bool)]
    alike = np.ptp(own) < _ALIKE and np.ptp(others) < _ALIKE
    return (float(own.min()), float(others.max())) if alike else None


def _clopper_pearson(hits: int, n: int, tail: float) -> tuple[float, float]:
    """The probabilities for which so many hits, or more (fewer), have the probability `tail`."""

    def least(count: int) -> float:
        low, high = 0.0, count / n
        for _ in range(_HALVINGS):
            middle = (low + high) / 2
            unlikely = middle == 0 or binomial_tail_log(n, middle, count) < math.log(tail)
            low, high = (middle, high) if unlikely else (low, middle)
        return low

    return (least(hits) if hits else 0.0), (1 - least(n - hits) if hits < n else 1.0)


def _range(labels: RandomizedLabels) -> tuple[Floats, Floats]:
    """Every value that g may have, and the h that comes with it."""
    shown = labels.inverse[int(labels.unlabelled) :]
    return shown, np.broadcast_to(shown.sum(axis=0), shown.shape)


def _bernstein(
    rows: tuple[Floats, Floats], found: float, tail: float, values: tuple[Floats, Floats], least: float = 0.0
) -> tuple[float, float]:
    """The ends for g and h of the rows, from `least` to 1."""
    g, h = rows
    n, log = len(g), math.log(2 / tail)

    def fits(share: float) -> bool:
        moved, possible = g - share * h, values[0] - share * values[1]
        reach = math.sqrt(2 * float(np.var(moved, ddof=1)) * log / n) + 7 * float(np.ptp(possible)) * log / 3 / (n - 1)
        return abs(float(moved.mean())) <= reach

    return tuple(_furthest(fits, min(1.0, max(least, found)), end) for end in (least, 1.0))  # type: ignore[return-value]


def _furthest(fits: Any, start: float, end: float) -> float:
    """The last share on the way to an end that fits."""
    if fits(end):
        return end
    near, far = start, end
    for _ in range(_HALVINGS):
        middle = (near + far) / 2
        near, far = (middle, far) if fits(middle) else (near, middle)
    return far
