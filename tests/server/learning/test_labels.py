"""Randomized labels: exact identities of the weights, estimators near the non-private ones, intervals that hold."""

from __future__ import annotations

import numpy as np
import pandas
import pytest
from scipy.sparse import csr_array
from scipy.stats import binom
from sklearn.ensemble import AdaBoostClassifier
from sklearn.linear_model import LogisticRegression, Perceptron
from sklearn.neighbors import KNeighborsClassifier
from sklearn.tree import DecisionTreeClassifier

from ldp_client.errors import InvalidSpec, ServerRefused
from ldp_client.protocol.domain import Categories, Field, Integers, Record, YesNo
from ldp_client.protocol.epsilon import Epsilon
from ldp_server.answers import estimates
from ldp_server.answers.records import RecordTable
from ldp_server.arrays.packing import pack
from ldp_server.learning.accuracy import accuracy, known_accuracy
from ldp_server.learning.labels import RandomizedLabels, examples_of, fit
from ldp_server.planning.channels import ChannelGoal, compile_channel, line_distances, named_loss
from tests.server.learning.populations import asked, counted, reports

TWO, THREE = Categories(("yes",)), Categories(("low", "middle", "high"))


def compiled(elements=4, epsilon="2"):
    """A table whose reports are not those of randomized response."""
    return compile_channel(
        ChannelGoal(Epsilon(epsilon), named_loss("truth", elements), line_distances(elements))
    ).parameters


QUESTIONS = {
    "two classes": lambda: (asked(TWO), "no"),
    "three classes and none": lambda: (asked(THREE), None),
    "compiled": lambda: (asked(THREE, "compiled-channel", "2", compiled()), None),
}


@pytest.mark.parametrize("name", QUESTIONS)
def test_weights_undo_the_randomizing(name):
    """The mean of a row's weights over the reports is 1 for its own class and 0 for the others."""
    collection, none = QUESTIONS[name]()
    made = collection.randomizer
    every = RandomizedLabels.of(collection, np.arange(made.bound), none)
    table = np.array([[float(made.probability(x, r)) for r in range(made.bound)] for x in range(made.size)])
    mean = table @ every.weights
    first = 0 if none else 1
    assert mean[first:] == pytest.approx(np.eye(made.size - first), abs=1e-9)
    if not none:
        assert mean[0] == pytest.approx(np.zeros(made.size - 1), abs=1e-9)


def test_a_weighted_loss_is_the_loss_of_the_true_labels_in_the_mean():
    collection = asked(TWO)
    every = RandomizedLabels.of(collection, np.arange(2), "no")
    loss = np.array([[0.3, 2.0]])  # of the two classes, for some prediction
    table = np.array([[float(collection.randomizer.probability(x, r)) for r in range(2)] for x in range(2)])
    assert table @ (every.weights * loss).sum(axis=1) == pytest.approx(loss[0])


def rows(users, seed, features=6):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(users, features))
    return x, (rng.random(users) < 1 / (1 + np.exp(-2 * x @ np.arange(1, features + 1) / features))).astype(int)


def test_logistic_regression_is_near_the_one_with_true_labels():
    """20,000 rows at epsilon 1: within three points of the accuracy of true labels, on rows it has not seen."""
    x, y = rows(30_000, 1)
    collection = asked(TWO)
    labels = RandomizedLabels.of(collection, pack(reports(collection, y, 1), 1), "no")
    train, test = slice(0, 20_000), slice(20_000, None)
    names = np.array(["no", "yes"])[y]
    plain = LogisticRegression().fit(x[train], names[train]).score(x[test], names[test])
    for given in (x, csr_array(x), pandas.DataFrame(x)):
        kept = (
            (given.iloc[train], given.iloc[test])
            if isinstance(given, pandas.DataFrame)
            else (given[train], given[test])
        )
        model = fit(LogisticRegression(), kept[0], labels.part(train))
        told = model.predict(kept[1])
        assert known_accuracy(told, names[test]).estimate > plain - 0.03
        found = accuracy(told, labels.part(test))
        assert found.low <= plain + 0.02
        assert found.high >= plain - 0.03


@pytest.mark.long
def test_trees_learn_from_posterior_weights():
    """A tree of depth 4, out of three classes with none; half as good as true labels above chance, at least."""
    rng = np.random.default_rng(3)
    x = rng.uniform(size=(20_000, 3))
    y = 1 + (x[:, 0] > 0.4) + (x[:, 0] > 0.8)
    y[rng.random(len(y)) < 0.2] = 0
    collection = asked(THREE, epsilon="2")
    labels = RandomizedLabels.of(collection, reports(collection, y, 3))
    model = fit(DecisionTreeClassifier(max_depth=4), x, labels, "posterior", rounds=3)
    fresh = rng.uniform(size=(2000, 3))
    true = np.array(["low", "middle", "high"])[(fresh[:, 0] > 0.4).astype(int) + (fresh[:, 0] > 0.8)]
    assert np.mean(model.predict(fresh) == true) > 0.85


@pytest.mark.parametrize("name", QUESTIONS)
@pytest.mark.thinned(1)
def test_intervals_of_accuracy_hold(name, request):
    """A classifier that is right about 3 in 4 with a label: 80% intervals, several crowds."""
    collection, none = QUESTIONS[name]()
    size = collection.domain.size
    first = 0 if none else 1
    classes = RandomizedLabels.of(collection, np.zeros(1, int), none).classes
    crowds = 120 if request.config.getoption("--long") else 30
    right, found = 0, []
    for seed in range(crowds):
        rng = np.random.default_rng(seed)
        true = rng.integers(0, size, 400)
        says = np.where(rng.random(400) < 0.75, true, first + (true + 1 - first) % (size - first))
        said = np.array(classes, object)[np.maximum(says - first, 0)]
        one = accuracy(said, RandomizedLabels.of(collection, reports(collection, true, seed), none), 0.8)
        right += one.low <= 0.75 <= one.high
        found.append(one)
    assert right >= binom.ppf(1 / 400, crowds, 0.8)
    mean, spread = np.mean([one.estimate for one in found]), np.std([one.estimate for one in found])
    assert abs(mean - 0.75) < 4 * spread / np.sqrt(crowds) + 0.01  # a ratio is biased by less than that
    assert np.mean([one.standard_error for one in found]) == pytest.approx(spread, rel=0.25 if crowds == 120 else 0.5)


def test_known_accuracy_has_the_interval_of_a_share():
    none_right, all_right = known_accuracy(["a"] * 20, ["b"] * 20), known_accuracy(["a"] * 20, ["a"] * 20)
    assert (none_right.low, all_right.high) == (0.0, 1.0)
    assert none_right.high == pytest.approx(1 - 0.025 ** (1 / 20), abs=1e-6)
    assert all_right.low == pytest.approx(0.025 ** (1 / 20), abs=1e-6)


def test_examples_of_a_table():
    record = Record((Field("age", Integers(0, 3)), Field("plan", Categories(("x", "y"))), Field("left", YesNo(True))))
    collection = asked(record, epsilon="6")
    people = [({"age": age, "plan": "x", "left": age == 2}, 500) for age in range(3)]
    oracle = counted(collection, [*people, ({"age": None, "plan": "y", "left": None}, 100)], 1)
    table = RecordTable(collection, ("age", "plan", "left"))
    answer = table.named(estimates.every_item(table.collection, table.oracle(oracle)))
    found = examples_of(answer, "left")
    assert found.names == ("age", "plan = x", "plan = y")
    assert len(found.labels) == 3 * 2 * 2
    assert set(found.labels.tolist()) == {True, False}
    assert (found.weights >= 0).all()
    assert abs(found.weights.sum() - 1500) < 100
    model = DecisionTreeClassifier().fit(found.features, found.labels, sample_weight=found.weights)
    assert model.predict([[2, 1, 0], [0, 1, 0]]).tolist() == [True, False]
    few = RecordTable(collection, ("plan", "left"))
    both = few.named(estimates.every_item(few.collection, few.oracle(oracle)))
    assert len(examples_of(both, "plan", possible=False).labels) == 4  # the first cell is nobody's plan, and no
    with pytest.raises(InvalidSpec, match="name one field of the answer as the label"):
        examples_of(answer, "age is")


def test_what_cannot_be_learned_from_says_what_to_do():
    collection = asked(TWO)
    x, y = rows(40, 2)
    labels = RandomizedLabels.of(collection, y, "no")
    for estimator, how, message in (
        (KNeighborsClassifier(), "unbiased", "takes no sample_weight"),
        (AdaBoostClassifier(), "unbiased", "takes no negative weights: use how='posterior'"),
        (Perceptron(), "posterior", "predicts no probabilities"),
        (LogisticRegression(), "guessing", "unbiased and posterior"),
    ):
        with pytest.raises(InvalidSpec, match=message):
            fit(estimator, x, labels, how)
    with pytest.raises(InvalidSpec, match="39 rows of features and 40 reports"):
        fit(LogisticRegression(), x[1:], labels)
    with pytest.raises(InvalidSpec, match="no two rows"):
        fit(LogisticRegression(), x[:1], labels.part([0]))
    with pytest.raises(InvalidSpec, match="labels are few"):
        RandomizedLabels.of(asked(Integers(0, 400)), b"")
    with pytest.raises(InvalidSpec, match="name another"):
        RandomizedLabels.of(collection, b"", "yes")
    with pytest.raises(InvalidSpec, match="a whole number from 0 to 1"):
        RandomizedLabels.of(collection, np.array([0, 2]), "no")
    with pytest.raises(ServerRefused):
        RandomizedLabels.of(collection, b"\x02", "no")
    with pytest.raises(InvalidSpec, match="none of the question's labels"):
        accuracy(["maybe"] * 40, labels)
    with pytest.raises(InvalidSpec, match="39 predictions and 40 reports"):
        accuracy(["no"] * 39, labels)
    with pytest.raises(InvalidSpec, match="confidence lies strictly"):
        accuracy(["no"] * 40, labels, 1.0)


def test_labels_do_not_show_their_reports():
    labels = RandomizedLabels.of(asked(TWO), np.array([1, 0, 1]), "no")
    assert repr(labels) == "RandomizedLabels(3 rows, 2 classes)"
