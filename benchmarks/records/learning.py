"""Learning and fairness: accuracy from randomized labels, rules out of tables, the time of an audit."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt

from benchmarks.row import Options, Row, row
from ldp_client.collection import Collection
from ldp_client.protocol.domain import Categories, Domain, Field, Integers, Record, YesNo
from ldp_server.arrays.packing import pack
from ldp_server.fairness.gaps import gaps_answer
from ldp_server.learning.accuracy import accuracy
from ldp_server.learning.labels import RandomizedLabels, fit
from ldp_server.learning.rules import RuleKind, rules_answer
from ldp_server.oracles import Oracle, oracle_for
from simulator import crowd

__all__ = ["labels", "run"]

_FEATURES, _ROWS, _TEST = 20, 100_000, 100_000


def _asked(domain: Domain, epsilon: str) -> Collection:
    return Collection.create("Benchmark?", domain, "randomized-response", epsilon, opens=0, closes=1)


def _reports(collection: Collection, indexes: npt.NDArray[np.integer], seed: int) -> npt.NDArray[np.integer]:
    return np.concatenate(list(crowd.simulate(collection.randomizer, indexes.astype(np.uint64), seed)))


def _counted(collection: Collection, indexes: npt.NDArray[np.integer], seed: int) -> Oracle:
    oracle = oracle_for(collection)
    for reports in crowd.simulate(collection.randomizer, indexes.astype(np.uint64), seed):
        oracle.accumulate(pack(reports, collection.randomizer.report_bytes))
    return oracle


def run(options: Options) -> Iterator[Row]:
    """Measure them; `--full` takes five data sets instead of two."""
    sets = 5 if options.full else 2
    yield from labels(sets)
    yield from _rules(10 * sets)
    yield from _audit()


def labels(sets: int, epsilons: Sequence[str] = ("0.5", "1", "2")) -> Iterator[Row]:
    """Logistic regression on made-up rows: accuracy on rows that it has not seen, with true and randomized labels."""
    from sklearn.linear_model import LogisticRegression  # noqa: PLC0415 - an extra

    for epsilon in epsilons:
        collection = _asked(Categories(("yes",)), epsilon)
        lost, held, widths = [], 0, []
        for seed in range(sets):
            rng = np.random.default_rng(seed)
            x = rng.normal(size=(_ROWS + _TEST, _FEATURES))
            weights = rng.normal(size=_FEATURES) / 2
            y = (rng.random(len(x)) < 1 / (1 + np.exp(-x @ weights))).astype(np.intp)
            told_labels = RandomizedLabels.of(collection, _reports(collection, y, seed), "no")
            names = np.array(["no", "yes"])[y]
            plain = LogisticRegression().fit(x[:_ROWS], names[:_ROWS])
            private = fit(LogisticRegression(), x[:_ROWS], told_labels.part(slice(0, _ROWS)))
            told = private.predict(x[_ROWS:])
            score = float(np.mean(told == names[_ROWS:]))
            lost.append(float(np.mean(plain.predict(x[_ROWS:]) == names[_ROWS:])) - score)
            found = accuracy(told, told_labels.part(slice(_ROWS, None)))
            held += found.low <= score <= found.high
            widths.append((found.high - found.low) / 2)
        name = f"labels, epsilon {epsilon}, 20 features, {_ROWS:,} rows"
        target = "<= 0.01" if epsilon == "1" else None
        yield row(f"{name}: accuracy lost against true labels, largest", max(lost), "share", target)
        yield row(f"{name}: half width of the accuracy's interval, {_TEST:,} rows", float(np.mean(widths)), "share")
        yield row(f"{name}: intervals that hold the accuracy of true labels", held / sets, "share")


def _rules(crowds: int) -> Iterator[Row]:
    """A threshold among 8 ages, with a tenth of the labels wrong, from 20,000 users at epsilon 1."""
    record = Record((Field("age", Integers(0, 8)), Field("buys", YesNo(none_is_no=True))))
    collection = _asked(record, "1")
    right, better = 0, 0
    for seed in range(crowds):
        rng = np.random.default_rng(seed)
        ages = rng.integers(0, 8, 20_000)
        labels = (ages >= 5) != (rng.random(20_000) < 0.1)
        indexes = (1 + ages) + record.strides[1] * labels.astype(np.intp)
        answer = rules_answer(collection, _counted(collection, indexes, seed), ("age",), "buys")
        (found,) = [one for one in answer.rows if one.form is RuleKind.THRESHOLD]
        right += found.values == ("5..7",)
        better += found.verdict.value == "yes"
    yield row("rules, a threshold of 8 ages, 20,000 users, epsilon 1: the right one is found", right / crowds, "share")
    yield row("rules, the same: it is said to be better than a constant", better / crowds, "share")


def _audit() -> Iterator[Row]:
    """Six groups, a million users: the time of the answer out of counts."""
    record = Record((Field("group", Categories(tuple("abcdef"))), Field("hired", YesNo())))
    collection = _asked(record, "1")
    rng = np.random.default_rng(1)
    groups = 1 + rng.integers(0, 6, 1_000_000)
    indexes = groups + record.strides[1] * (1 + (rng.random(1_000_000) < 0.4).astype(np.intp))
    oracle = _counted(collection, indexes, 1)
    started = time.process_time()
    answer = gaps_answer(collection, oracle, ("group", "hired"))
    taken = time.process_time() - started
    yield row("gaps, 6 groups, 1,000,000 users: processor time of the answer", taken, "s")
    widest = max(one.high - one.low for one in answer.gaps) / 2
    yield row("gaps, the same at epsilon 1: half width of the widest of 15 intervals at once", widest, "share")
