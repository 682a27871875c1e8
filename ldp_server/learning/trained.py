"""A model of rows with known features and randomized labels: fitted to some of them, measured on the others.

Which rows are which is drawn before a report is looked at. The intervals are about new people of the same kind, if the
rows are of different people who were drawn independently: one row for each person. Features are moved to mean 0 and
spread 1, both of the rows to learn from.

| kind | estimator | labels corrected |
|---|---|---|
| logistic | scikit-learn's LogisticRegression | unbiased |
| tree | scikit-learn's DecisionTreeClassifier, at most 4 questions deep, leaves of 1% of the rows or more | posterior |
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Any

import numpy as np
import numpy.typing as npt

from ldp_client.collection import Collection
from ldp_client.errors import InvalidSpec
from ldp_server.answers.estimates import Verdict
from ldp_server.answers.to_json import to_json
from ldp_server.answers.words import item_text
from ldp_server.learning.accuracy import Accuracy, Advantage, accuracy, advantage
from ldp_server.learning.labels import RandomizedLabels, fit
from ldp_server.learning.rows import Column, Encoding, reports_of
from ldp_server.learning.saved import SavedModel, TreeNode
from ldp_server.oracles.base import Floats

__all__ = ["LearnGoal", "LearnedModel", "ModelKind", "estimator_of", "learn", "saved_model"]

_DEPTH, _LEAF = 4, 0.01
_ROUNDS = 1000


class ModelKind(Enum):
    """What is fitted."""

    LOGISTIC = "logistic"
    TREE = "tree"


@dataclass(frozen=True)
class LearnGoal:
    """What is wanted of a model."""

    kind: ModelKind = ModelKind.LOGISTIC
    none: str | None = None
    """The class that `none` stands for; None: people who send it have no label."""
    test: float = 0.3
    """Which part of the rows the accuracy is measured on."""
    seed: int = 1
    confidence: float = 0.95
    most: int = 50
    """How many values a column of texts may have."""


@dataclass(frozen=True)
class LearnedModel:
    """A model and what it is worth: the output of `ldp-server learn rows --json`."""

    collection_id: bytes
    question: str
    epsilon: str
    form: ModelKind
    classes: tuple[str, ...]
    features: tuple[str, ...]
    """The columns."""
    learned_from: int
    """Rows."""
    tested_on: int
    accuracy: Accuracy
    constant: str
    """The class that seems most frequent among the rows to learn from."""
    constant_accuracy: Accuracy
    """Of always saying this class."""
    gain: Advantage
    """The accuracy minus that of the constant."""
    verdict: Verdict
    """Whether the model is better than the constant: yes, or "cannot tell"."""
    settled: bool
    """Whether the fit came to its end."""
    model: SavedModel = field(repr=False, metadata={"json": "never"})


def learn(
    collection: Collection, columns: Mapping[str, Column], report: str, goal: LearnGoal | None = None
) -> LearnedModel:
    """Fit a model to rows; `columns` are the features and one with the reports, whose name is `report`."""
    goal = goal or LearnGoal()
    features = {name: cells for name, cells in columns.items() if name != report}
    if report not in columns or not features:
        raise InvalidSpec(f"the rows have a column {report!r} with reports, and at least one other column")
    labels = _labels(collection, report, columns[report], goal.none)
    train, test = _split(len(labels), goal)
    known = {name: _taken(cells, train) for name, cells in features.items()}
    encoding = Encoding.of(known, goal.most)
    fitted, settled = _fitted(goal, encoding.matrix(known), labels.part(train))
    model = saved_model(fitted, encoding)
    fresh = labels.part(test)
    told = model.predict({name: _taken(cells, test) for name, cells in features.items()})
    constant = str(labels.classes[int(labels.part(train).shares.argmax())])
    always = [constant] * len(told)
    gain = advantage(told, always, fresh, goal.confidence)
    found = LearnedModel(
        collection.id, collection.question, collection.epsilon.text, goal.kind,
        tuple(map(str, labels.classes)), tuple(features), len(train), len(test),
        accuracy(told, fresh, goal.confidence), constant, accuracy(always, fresh, goal.confidence), gain,
        Verdict.YES if gain.low > 0 else Verdict.CANNOT_TELL, settled, model,
    )  # fmt: skip
    return replace(found, model=replace(model, about=_about(found)))


def _labels(collection: Collection, report: str, cells: Column, none: str | None) -> RandomizedLabels:
    """The reports with the classes as words, as the command and the model's file have them."""
    labels = RandomizedLabels.of(collection, reports_of(collection, report, cells))
    names = tuple(map(item_text, labels.classes))
    if none is not None:
        if none in names:
            raise InvalidSpec("the class that stands for none is one of the question's own labels: name another")
        labels, names = replace(labels, unlabelled=False), (none, *names)
    if len(names) < 2:
        raise InvalidSpec(
            f"this question has one label, {names[0]!r}: say which class those have who send none (--none), such as no"
        )
    return replace(labels, classes=names)


def _split(rows: int, goal: LearnGoal) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]]:
    if not 0 < goal.test < 1:
        raise InvalidSpec("the part to test with is a share between 0 and 1, such as 0.3")
    tested = round(rows * goal.test)
    if min(tested, rows - tested) < 2:
        raise InvalidSpec(f"{rows:,} rows are too few: two to learn from, and two to measure the accuracy with")
    drawn = np.random.default_rng(goal.seed).permutation(rows)
    return np.sort(drawn[tested:]), np.sort(drawn[:tested])


def _taken(cells: Column, rows: npt.NDArray[np.intp]) -> Column:
    return [cells[row] for row in rows.tolist()]


def estimator_of(kind: ModelKind, seed: int) -> Any:
    """Return an estimator that is not fitted yet."""
    try:
        from sklearn.linear_model import LogisticRegression  # noqa: PLC0415 - an extra
        from sklearn.tree import DecisionTreeClassifier  # noqa: PLC0415 - an extra
    except ModuleNotFoundError:
        raise InvalidSpec("learning from rows needs scikit-learn: pip install 'hearsay[learn]'") from None
    if kind is ModelKind.LOGISTIC:
        return LogisticRegression(max_iter=_ROUNDS)
    return DecisionTreeClassifier(max_depth=_DEPTH, min_weight_fraction_leaf=_LEAF, random_state=seed)


def _fitted(goal: LearnGoal, features: Floats, labels: RandomizedLabels) -> tuple[Any, bool]:
    """The estimator, and whether its fit came to an end."""
    estimator = estimator_of(goal.kind, goal.seed)
    how: Any = "unbiased" if goal.kind is ModelKind.LOGISTIC else "posterior"
    from sklearn.exceptions import ConvergenceWarning  # noqa: PLC0415 - an extra

    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always", ConvergenceWarning)
        fitted = fit(estimator, features, labels, how)
    return fitted, not any(issubclass(one.category, ConvergenceWarning) for one in seen)


def saved_model(fitted: Any, encoding: Encoding) -> SavedModel:
    """Return what a fitted estimator has learned, without the estimator."""
    classes = tuple(map(str, fitted.classes_))
    if not hasattr(fitted, "tree_"):
        constants, lines = np.atleast_1d(fitted.intercept_), np.atleast_2d(fitted.coef_)
        if len(lines) == 1:  # of two classes, the second one against the first
            constants, lines = np.append(0.0, constants), np.vstack([np.zeros_like(lines), lines])
        rows = tuple(tuple(line) for line in lines.tolist())
        return SavedModel(classes, encoding, tuple(constants.tolist()), rows)
    grown = fitted.tree_
    nodes = []
    for place in range(grown.node_count):
        below, above = int(grown.children_left[place]), int(grown.children_right[place])
        if below < 0:
            shares = grown.value[place][0]
            nodes.append(TreeNode(shares=tuple((shares / max(float(shares.sum()), 1e-300)).tolist())))
        else:
            nodes.append(TreeNode(int(grown.feature[place]), float(grown.threshold[place]), below, above))
    return SavedModel(classes, encoding, tree=tuple(nodes))


def _about(found: LearnedModel) -> dict[str, Any]:
    named = {name: to_json(found)[name] for name in ("question", "collection_id", "epsilon")}
    return {**named, "learned_from": found.learned_from, "accuracy": to_json(found.accuracy)}
