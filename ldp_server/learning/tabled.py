r"""A model of the table of some fields of a live collection: everything was randomized, and there are no rows.

The cells of the table become weighted examples (labels.py), an estimator is fitted to them, and it says a label for
each value of the features. How often it is right is a sum over cells: with N[x, y] the users at features x and label y,

    a = sum over x of N[x, h(x)] / sum of N.

The same reports chose the model h, so a looks better than it is. The interval allows for that: the intervals of the
table's cells hold all at once, so with the stated confidence the ends L and U of the cells give, for **every** h,

    sum of L right / (sum of L right + sum of U wrong) <= a <= sum of U right / (sum of U right + sum of L wrong),

also for one that was picked after looking. That is wide where there are many cells. `ldp-server rules` has narrower
intervals, for few rules of a simple kind.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from ldp_client.errors import InvalidSpec
from ldp_client.protocol.domain import FieldItem
from ldp_server.answers.estimates import Coverage, Estimates, Verdict
from ldp_server.answers.words import item_text
from ldp_server.learning.labels import cells_of
from ldp_server.learning.rows import Encoding, FeatureColumn
from ldp_server.learning.saved import SavedModel
from ldp_server.learning.shares import least_surplus
from ldp_server.learning.trained import ModelKind, estimator_of, saved_model
from ldp_server.oracles.base import Floats

__all__ = ["CellsShare", "TableModel", "learn_table"]


@dataclass(frozen=True)
class CellsShare:
    """A share of the users who have a label and all features."""

    estimate: float
    low: float
    high: float


@dataclass(frozen=True)
class TableModel:
    """A model of a table and what it is worth: the output of `ldp-server learn table --json`."""

    form: ModelKind
    label: str
    classes: tuple[str, ...]
    features: tuple[str, ...]
    """The fields."""
    reports: int
    counted: float
    """How many users have a label and all features, as an estimate."""
    confidence: float
    accuracy: CellsShare
    """Right for every model at once, however it was chosen."""
    constant: str
    """The label that seems most frequent."""
    gain: CellsShare
    """The accuracy minus that of always saying the constant."""
    verdict: Verdict
    """Whether the model is better than this constant: yes, or "cannot tell"."""
    model: SavedModel = field(repr=False, metadata={"json": "never"})


def learn_table(answer: Estimates, label: str, kind: ModelKind = ModelKind.LOGISTIC, seed: int = 1) -> TableModel:
    """Fit a model to the table of the features and a label; its cells have intervals that hold together."""
    if label not in answer.fields or len(answer.fields) < 2:
        raise InvalidSpec("name one field of the answer as the label, beside at least one other field")
    if answer.coverage is not Coverage.TOGETHER:
        raise InvalidSpec("the model is chosen by the table: ask for intervals that hold for all cells together")
    cells = cells_of(answer)
    names = [name for name in answer.fields if name != label]
    columns = {name: [_value(cell[name]) for cell, _ in cells] for name in names}
    weights = np.array([row.consistent for _, row in cells], np.float64)
    labels = np.array([_word(cell[label]) for cell, _ in cells])
    held = {one: float(weights[labels == one].sum()) for one in sorted(set(labels.tolist()))}
    if len(held) < 2 or weights.sum() <= 0 or sum(held[one] > 0 for one in held) < 2:
        raise InvalidSpec("fewer than two labels are above the noise: more users are needed, or another label")
    encoding = _encoding(columns, weights)
    model = saved_model(estimator_of(kind, seed).fit(encoding.matrix(columns), labels, sample_weight=weights), encoding)
    told, constant = np.array(model.predict(columns)), max(held, key=held.__getitem__)
    ends = np.array([[row.estimate, max(0.0, row.low), max(0.0, row.high)] for _, row in cells]).T
    gain = _gained(ends, labels == told, labels == constant)
    found = TableModel(
        kind, label, tuple(held), tuple(names), answer.reports, float(ends[0].sum()), answer.confidence,
        _share(ends, labels == told), constant, gain,
        Verdict.YES if gain.low > 0 else Verdict.CANNOT_TELL, model,
    )  # fmt: skip
    about = {"label": label, "accuracy": {"low": found.accuracy.low, "high": found.accuracy.high}}
    return replace(found, model=replace(model, about=about))


def _value(held: FieldItem) -> Any:
    """A value of a field as a cell of a column: yes and no are texts."""
    return _word(held) if isinstance(held, bool) else held


def _word(held: FieldItem) -> str:
    return {True: "yes", False: "no"}[held] if isinstance(held, bool) else item_text(held)


def _encoding(columns: Mapping[str, list[Any]], weights: Floats) -> Encoding:
    """The encoding with means and spreads over the users, and not over the cells."""
    found = []
    for name, cells in columns.items():
        one = FeatureColumn.of(name, cells, len(cells))
        if one.values is None:
            numbers, shares = np.array(cells, np.float64), weights / weights.sum()
            mean = float(numbers @ shares)
            one = replace(one, mean=mean, spread=float(np.sqrt(np.square(numbers - mean) @ shares)) or 1.0)
        found.append(one)
    return Encoding(tuple(found))


def _share(ends: Floats, right: Any) -> CellsShare:
    """The share of some cells, with what the ends of all cells leave for it."""
    (some, low, high), (others, low_others, high_others) = ends[:, right].sum(axis=1), ends[:, ~right].sum(axis=1)
    least = low / (low + high_others) if low > 0 else 0.0
    most = high / (high + low_others) if high > 0 else 1.0
    return CellsShare(float(some / (some + others)) if some + others > 0 else 0.0, float(least), float(most))


def _gained(ends: Floats, model: Any, constant: Any) -> CellsShare:
    """What the cells about which both differ leave for the difference of their shares of all users."""
    ours, theirs, same = model & ~constant, constant & ~model, model == constant
    (up, up_low, up_high), (down, down_low, down_high) = (ends[:, part].sum(axis=1) for part in (ours, theirs))
    rest_low, rest_high = ends[1, same].sum(), ends[2, same].sum()
    total = float(ends[0].sum())
    least = least_surplus(up_low, down_high, (rest_low, rest_high))
    most = -least_surplus(down_low, up_high, (rest_low, rest_high))
    return CellsShare(float((up - down) / total) if total > 0 else 0.0, least, most)
