"""A fitted model as a file: JSON that says everything, is read without scikit-learn, and runs no code.

    {"format": "hearsay-model", "version": 1, "question": ..., "collection_id": ..., "epsilon": ..., "label": ...,
     "classes": [...], "columns": [{"name": ..., "mean": ..., "spread": ...} or {"name": ..., "values": [...]}],
     "linear": {"constants": [...], "coefficients": [[...], ...]}  or  "tree": [{...}, ...],
     "accuracy": {...}}

The features are those of the columns one after the other (rows.py). A **linear** model gives each class the constant
and the sum of coefficient times feature; the class with the most is told, and the softmax of them are its
probabilities. A **tree** begins at its node 0. A node has a feature, a limit and the nodes `below` (at most the limit)
and `above`; or it is a leaf, with the share of each class. Limits are compared in single precision.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from ldp_client.errors import InvalidSpec
from ldp_server.answers.to_json import dump
from ldp_server.learning.rows import Column, Encoding, FeatureColumn
from ldp_server.oracles.base import Floats

__all__ = ["SavedModel", "TreeNode", "read_model"]

_FORMAT, _VERSION = "hearsay-model", 1


@dataclass(frozen=True)
class TreeNode:
    """A node of a tree: a leaf, or a feature with its limit and the two nodes behind it."""

    feature: int | None = None
    limit: float = 0.0
    below: int = 0
    above: int = 0
    shares: tuple[float, ...] = ()
    """Of a leaf."""


@dataclass(frozen=True)
class SavedModel:
    """What was fitted, and to which features."""

    classes: tuple[str, ...]
    encoding: Encoding
    constants: tuple[float, ...] = ()
    coefficients: tuple[tuple[float, ...], ...] = ()
    """Of a linear model, a line for each class."""
    tree: tuple[TreeNode, ...] = ()
    about: Mapping[str, Any] = field(default_factory=dict)
    """What else stands in the file: question, collection_id, epsilon, label, accuracy."""

    def likely(self, columns: Mapping[str, Column]) -> Floats:
        """Return P(class | features): a line for each row, a column for each class."""
        features = self.encoding.matrix(columns)
        return self._of_tree(features) if self.tree else self._of_line(features)

    def predict(self, columns: Mapping[str, Column]) -> list[str]:
        """Return the class that is told for each row."""
        return [self.classes[place] for place in self.likely(columns).argmax(axis=1)]

    def _of_line(self, features: Floats) -> Floats:
        with np.errstate(over="ignore", invalid="ignore"):
            scores = features @ np.array(self.coefficients).T + np.array(self.constants)
        if not np.isfinite(scores).all():
            raise InvalidSpec("the numbers of the rows are too large for this model")
        grown = np.exp(scores - scores.max(axis=1, keepdims=True))
        return np.asarray(grown / grown.sum(axis=1, keepdims=True))

    def _of_tree(self, features: Floats) -> Floats:
        with np.errstate(over="ignore"):
            single, at = features.astype(np.float32), np.zeros(len(features), np.intp)
        for place, node in enumerate(self.tree):  # a node stands before those behind it
            if node.feature is not None:
                here = at == place
                at[here] = np.where(single[here, node.feature] <= np.float64(node.limit), node.below, node.above)
        return np.array([self.tree[place].shares for place in at], np.float64)

    def to_json(self) -> str:
        columns = [
            {"name": one.name, "mean": one.mean, "spread": one.spread}
            if one.values is None
            else {"name": one.name, "values": list(one.values)}
            for one in self.encoding.columns
        ]
        shape = {"format": _FORMAT, "version": _VERSION, **self.about, "classes": list(self.classes)}
        shape["columns"] = columns
        if self.tree:
            shape["tree"] = [_node_json(node) for node in self.tree]
        else:
            shape["linear"] = {"constants": self.constants, "coefficients": self.coefficients}
        return dump(shape)


def _node_json(node: TreeNode) -> dict[str, Any]:
    if node.feature is None:
        return {"shares": list(node.shares)}
    return {"feature": node.feature, "limit": node.limit, "below": node.below, "above": node.above}


def read_model(file: Path) -> SavedModel:
    """Read a model's file."""
    try:
        shape = json.loads(file.read_text(encoding="utf-8"))
        if (shape.pop("format"), shape.pop("version")) != (_FORMAT, _VERSION):
            raise ValueError
        made = _of(shape)
    except (OSError, ValueError, TypeError, KeyError, AttributeError, OverflowError, RecursionError):
        raise InvalidSpec(f"{file} is no model that `ldp-server learn` has written") from None
    return made


def _of(shape: dict[str, Any]) -> SavedModel:
    columns = tuple(
        FeatureColumn(_text(one["name"]), float(one.get("mean", 0.0)), float(one.get("spread", 1.0)), _values(one))
        for one in shape.pop("columns")
    )
    classes, linear = tuple(map(str, shape.pop("classes"))), shape.pop("linear", {})
    tree = tuple(_node(one) for one in shape.pop("tree", []))
    made = SavedModel(
        classes,
        Encoding(columns),
        tuple(map(float, linear.get("constants", ()))),
        tuple(tuple(map(float, line)) for line in linear.get("coefficients", ())),
        tree,
        shape,
    )
    _check(made)
    return made


def _text(written: Any) -> str:
    if not isinstance(written, str):
        raise TypeError
    return written


def _values(column: Mapping[str, Any]) -> tuple[str, ...] | None:
    return tuple(map(str, column["values"])) if "values" in column else None


def _node(node: Mapping[str, Any]) -> TreeNode:
    if "shares" in node:
        return TreeNode(shares=tuple(map(float, node["shares"])))
    return TreeNode(int(node["feature"]), float(node["limit"]), int(node["below"]), int(node["above"]))


def _check(made: SavedModel) -> None:
    """A `ValueError` unless numbers, columns, classes and nodes fit each other."""
    names = [one.name for one in made.encoding.columns]
    if not names or not made.classes or any(len(set(one)) < len(one) for one in (names, made.classes)):
        raise ValueError
    classes, features = len(made.classes), sum(one.features for one in made.encoding.columns)
    numbers = [*made.constants, *(one for line in made.coefficients for one in line)]
    numbers += [value for one in made.encoding.columns for value in (one.mean, one.spread)]
    numbers += [node.limit for node in made.tree]
    fits = np.isfinite(numbers).all() and all(one.spread > 0 for one in made.encoding.columns)
    if made.tree:
        fits = fits and all(_fits(place, node, made.tree, features, classes) for place, node in enumerate(made.tree))
    else:
        fits = fits and len(made.constants) == classes == len(made.coefficients)
        fits = fits and all(len(line) == features for line in made.coefficients)
    if not fits:
        raise ValueError


def _fits(place: int, node: TreeNode, tree: tuple[TreeNode, ...], features: int, classes: int) -> bool:
    if node.feature is None:
        return len(node.shares) == classes and all(0 <= one <= 1 for one in node.shares)
    return 0 <= node.feature < features and all(place < one < len(tree) for one in (node.below, node.above))
