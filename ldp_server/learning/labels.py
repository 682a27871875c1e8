r"""Rows whose features are known, and whose label was randomized by a device: weights that undo the randomizing.

**What is private here, and what is not.** The label of a row is randomized on its person's device, with the epsilon of
the question. The features are not: whoever trains has them in the clear, beside the report, and knows whose row it is.
Hearsay's own wire carries no features and its server joins reports with nothing. So such rows exist only where the
operator has the features anyway (an account, an order) and its app hands over the report together with a name for the
row. Where features are private too, ask for a record of features and label (`examples_of`).

A is the table of the randomizer's probabilities: a person whose label is x sends report r with A[x][r]. M is its
inverse by weighted least squares, as in oracles/compiled_channel.py:

    sum over r of A[x][r] M[y][r] = [x = y].

**Unbiased.** A row with report r counts once for each class y, with the weight M[y][r]. For every loss l, the mean of
sum over y of M[y][r] l(f(features), y) over the randomizing is l(f(features), x): the weighted loss is that of the true
labels, in the mean (Natarajan, Dhillon, Ravikumar and Tewari, NeurIPS 2013). Some weights are negative. The logistic
loss stays convex: l(t, 1) - l(t, -1) = -t is linear, so that l''(t) is only multiplied by the sum of a row's weights,
which is 1. Estimators for which negative weights make no sense (trees, neighbours) say no, or overfit them.

**Posterior.** For those: the weight of class y in a row is P(y | features, report), which is proportional to
P(y | features) A[y][r]. The first factor is the estimator's own `predict_proba`, so fitting and weighing alternate,
which is expectation maximisation of the likelihood of the reports. A row's weight comes from a fit to the other half of
the rows: otherwise an estimator that fits its rows closely would believe each report more in every round. No weight is
negative.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from ldp_client.collection import Collection
from ldp_client.errors import InvalidSpec
from ldp_client.protocol.domain import FieldItem, Item
from ldp_server.answers.estimates import Estimate, Estimates
from ldp_server.arrays.packing import unpack
from ldp_server.oracles.base import Floats

__all__ = ["Examples", "RandomizedLabels", "cells_of", "examples_of", "fit"]

Reports = npt.NDArray[np.integer[Any]]

_MOST_CELLS = 1 << 16
_WORST = 1e9
"""Above this condition number, the reports do not tell the labels apart."""
_ROUNDS = 10
_SETTLED = 1e-2


@dataclass(frozen=True)
class RandomizedLabels:
    """One report for each row, and what is known of how it came about."""

    classes: tuple[Item, ...]
    """The labels, in the order of the columns of `weights`."""
    reports: Reports
    table: Floats
    """A: a line for each label, a column for each report. `none` is the first, unless it is one of the classes."""
    inverse: Floats
    """M: the same shape."""
    unlabelled: bool
    """Whether the first line is that of people without a label, who count in no class."""

    @classmethod
    def of(cls, collection: Collection, payload: bytes | Reports, none: Item = None) -> RandomizedLabels:
        """Read the reports of a collection, one for each row, packed one after the other or as numbers.

        Its domain lists the labels. `none` names the class that `none` stands for: a label of two classes is best asked
        as one category, `Categories(("yes",))`, with `none="no"`. Without it, people who send `none` have no label.
        """
        made = collection.randomizer
        size = collection.domain.size
        if size * made.bound > _MOST_CELLS:
            raise InvalidSpec(
                f"labels are few: {size} elements and {made.bound} reports are too many; "
                "ask with randomized-response or compiled-channel"
            )
        table = np.array([[float(made.probability(x, r)) for r in range(made.bound)] for x in range(size)])
        names = [collection.domain.item(index) for index in range(size)]
        if none is not None:
            if none in names:
                raise InvalidSpec("the class that stands for none is one of the question's own labels: name another")
            names[0] = none
        return cls(
            tuple(names if none is not None else names[1:]),
            _checked(payload, made.report_bytes, made.bound),
            table,
            _inverse(table),
            none is None,
        )

    def __len__(self) -> int:
        return len(self.reports)

    def __repr__(self) -> str:
        return f"RandomizedLabels({len(self.reports)} rows, {len(self.classes)} classes)"

    def part(self, rows: slice | npt.ArrayLike) -> RandomizedLabels:
        """Return those of some rows, named by numbers, a mask or a slice."""
        return RandomizedLabels(
            self.classes,
            self.reports[rows if isinstance(rows, slice) else np.asarray(rows)],
            self.table,
            self.inverse,
            self.unlabelled,
        )

    @property
    def weights(self) -> Floats:
        """The unbiased weight of each class in each row: a line for a row."""
        return np.asarray(self.inverse.T[self.reports][:, int(self.unlabelled) :])

    @property
    def shares(self) -> Floats:
        """How frequent each class seems to be among all rows, made possible: a start for posterior weights."""
        found = np.maximum(self.weights.mean(axis=0), 1.0 / max(1, len(self)))
        return np.asarray(found / max(1.0, float(found.sum())))

    def posterior(self, likely: Floats) -> Floats:
        """Return P(class | features, report), a line for a row; `likely` is P(class | features) for those with a label.

        With people without a label, the probability that a row has one is taken to be the same for all features.
        """
        own = self.table.T[self.reports]
        if not self.unlabelled:
            joint = likely * own
            return np.asarray(joint / np.maximum(joint.sum(axis=1, keepdims=True), 1e-300))
        labelled = min(1.0, float(self.weights.sum(axis=1).mean()))
        joint = max(labelled, 1.0 / len(self)) * likely * own[:, 1:]
        total = joint.sum(axis=1, keepdims=True) + max(0.0, 1 - labelled) * own[:, :1]
        return np.asarray(joint / np.maximum(total, 1e-300))


def _checked(payload: bytes | Reports, width: int, bound: int) -> Reports:
    if isinstance(payload, bytes):
        return unpack(payload, width, bound).astype(np.intp)
    found = np.asarray(payload)
    if found.ndim != 1 or (found.size and not np.issubdtype(found.dtype, np.integer)):
        raise InvalidSpec("reports are whole numbers, one for each row")
    if found.size and (int(found.min()) < 0 or int(found.max()) >= bound):
        raise InvalidSpec(f"a report of this question is a whole number from 0 to {bound - 1}")
    return found.astype(np.intp)


def _inverse(table: Floats) -> Floats:
    weighed = table / table.mean(axis=0)
    grown = weighed @ table.T
    if table.shape[1] < table.shape[0] or np.linalg.cond(grown) > _WORST:
        raise InvalidSpec("the reports of this question do not tell its labels apart, so that nothing can be learned")
    return np.asarray(np.linalg.solve(grown, weighed))


def fit(
    estimator: Any,
    features: Any,
    labels: RandomizedLabels,
    how: Literal["unbiased", "posterior"] = "unbiased",
    rounds: int = _ROUNDS,
) -> Any:
    """Fit an estimator with scikit-learn's interface to rows with randomized labels, and return it.

    `features` has a row for each report: an array, a sparse matrix or a data frame. The estimator's `fit` takes
    `sample_weight` (a pipeline has to pass it on). `how` is explained above: "unbiased" for losses that are linear in
    the label (logistic, softmax, least squares on 0/1), "posterior" for all that predict probabilities.
    """
    if features.shape[0] != len(labels):
        raise InvalidSpec(f"there are {features.shape[0]} rows of features and {len(labels)} reports")
    if len(labels) < 2:
        raise InvalidSpec("there are no two rows to learn from")
    if how == "unbiased":
        return _weighed(estimator, features, labels, labels.weights)
    if how != "posterior":
        raise InvalidSpec("labels are corrected in two ways: unbiased and posterior")
    if rounds < 1:
        raise InvalidSpec("give at least one round")
    weights = labels.posterior(np.broadcast_to(labels.shares, (len(labels), len(labels.classes))))
    for _ in range(rounds):
        before, weights = weights, labels.posterior(_crossed(estimator, features, labels, weights))
        if float(np.abs(weights - before).max()) < _SETTLED:
            break
    return _weighed(estimator, features, labels, weights)


def _crossed(estimator: Any, features: Any, labels: RandomizedLabels, weights: Floats) -> Floats:
    """P(class | features) for each row, from a fit to the other half of the rows."""
    try:
        from sklearn.base import clone  # noqa: PLC0415 - an extra
    except ModuleNotFoundError:
        raise InvalidSpec("posterior weights need scikit-learn: pip install 'hearsay[learn]'") from None
    found, even = np.empty(weights.shape), np.arange(len(labels)) % 2 == 0
    for half in (even, ~even):
        near, far = _chosen(features, half), _chosen(features, ~half)
        other = _weighed(clone(estimator), far, labels.part(~half), weights[~half])
        found[half] = _likely(other, near, labels)
    return found


def _chosen(features: Any, rows: npt.NDArray[Any]) -> Any:
    return features.iloc[rows] if hasattr(features, "iloc") else features[rows]


def _weighed(estimator: Any, features: Any, labels: RandomizedLabels, weights: Floats) -> Any:
    """Fit every row once for each class, with its weight."""
    rows, classes = len(labels), len(labels.classes)
    places = np.tile(np.arange(rows), classes)
    repeated = _chosen(features, places)
    targets = np.repeat(np.array(labels.classes), rows)
    try:
        return estimator.fit(repeated, targets, sample_weight=weights.T.ravel())
    except TypeError as error:
        if "sample_weight" not in str(error):
            raise
        raise InvalidSpec(
            f"{type(estimator).__name__} takes no sample_weight: choose an estimator whose fit does"
        ) from None
    except ValueError as error:
        if "egative" not in str(error):
            raise
        raise InvalidSpec(f"{type(estimator).__name__} takes no negative weights: use how='posterior'") from None


def _likely(estimator: Any, features: Any, labels: RandomizedLabels) -> Floats:
    """P(class | features), in the order of the classes."""
    if not hasattr(estimator, "predict_proba"):
        raise InvalidSpec(f"{type(estimator).__name__} predicts no probabilities: use how='unbiased'")
    order = [list(estimator.classes_).index(one) for one in labels.classes]
    return np.clip(np.asarray(estimator.predict_proba(features), np.float64)[:, order], 1e-9, 1.0)


@dataclass(frozen=True)
class Examples:
    """The cells of a table as weighted examples: nothing in them is anybody's row."""

    features: Floats
    names: tuple[str, ...]
    """Of the columns of features."""
    labels: npt.NDArray[Any]
    weights: Floats
    """How many users each cell has: raw estimates, some below 0, or possible ones."""


def examples_of(answer: Estimates, label: str, *, possible: bool = True) -> Examples:
    """Return the cells of a table of fields as examples for an estimator that takes weights.

    One field is the label, the others are features: integers and yes/no as numbers, categories as a column of 0 and 1
    for each name. Cells in which a field is `none` are left out. Everything was randomized here, features and label
    alike. With `possible`, no weight is negative; without it, sums over cells are unbiased.
    """
    if label not in answer.fields or len(answer.fields) < 2:
        raise InvalidSpec("name one field of the answer as the label, beside at least one other field")
    others = [name for name in answer.fields if name != label]
    listed = cells_of(answer)
    cells, known = [cell for cell, _ in listed], [row for _, row in listed]
    columns: list[tuple[str, Sequence[float]]] = []
    for name in others:
        held = [cell[name] for cell in cells]
        if all(isinstance(one, str) for one in held):
            columns += [(f"{name} = {one}", [float(x == one) for x in held]) for one in sorted(set(map(str, held)))]
        else:
            columns.append((name, [float(one) for one in held]))  # type: ignore[arg-type] # None was left out
    weights = [row.consistent if possible else row.estimate for row in known]
    return Examples(
        np.array([values for _, values in columns], np.float64).T,
        tuple(name for name, _ in columns),
        np.array([cell[label] for cell in cells]),
        np.array(weights, np.float64),
    )


def cells_of(answer: Estimates) -> list[tuple[Mapping[str, FieldItem], Estimate]]:
    """Return the cells of a table in which no field is `none`: what the fields hold, and the estimate."""
    listed = [(_cell(answer, row.item), row) for row in answer.rows]
    found = [(cell, row) for cell, row in listed if None not in cell.values()]
    if not found:
        raise InvalidSpec("every cell of this answer has a none: ask for the whole table")
    return found


def _cell(answer: Estimates, item: Item) -> Mapping[str, FieldItem]:
    """What the fields hold in a cell. The first cell of a table is None: each field has its `none`, which may be no."""
    if isinstance(item, Mapping):
        return item
    others = [row.item for row in answer.rows if isinstance(row.item, Mapping)]
    return {name: None if any(one[name] is None for one in others) or not others else False for name in answer.fields}
