"""Counts of all sets of fields: what learns from some of them, beside all of them, parities and the best constant."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from benchmarks.curator import wrong
from benchmarks.curator.outcomes import largest_loss, law_of
from benchmarks.curator.workloads import binary, people
from benchmarks.row import Row, row
from ldp_server.curator.draws import Draws
from ldp_server.curator.noise import ExactDraws
from ldp_server.curator.people import Record as Held
from ldp_server.curator.workloads.asking.oracle import CuratorQueries
from ldp_server.curator.workloads.asking.sets import AnyOfSets
from ldp_server.curator.workloads.fourier import LaplaceFourier
from ldp_server.curator.workloads.universe import Workload
from ldp_server.learning.queries import AnyOf
from ldp_server.learning.release import best_constant

__all__ = ["adaptive_loss", "rows"]

_FIELDS, _WIDTH, _RUNS = 8, 3, 5


def adaptive_loss(kind: type[CuratorQueries], epsilon: int) -> float:
    """Return the largest loss of two queries, the second of which depends on the first answer."""

    def answers(record: int, draws: Draws) -> tuple[float, float]:
        queries = kind(binary(2), [record], 2, Fraction(epsilon), draws)
        first = queries.ask(AnyOf(frozenset({"f0"}))).estimate
        second = AnyOf(frozenset({"f1"} if first > 0 else {"f0", "f1"}))
        return first, queries.ask(second).estimate

    laws = [law_of(lambda draws, record=record: answers(record, draws), 1e-6) for record in range(4)]  # type: ignore[misc]
    return max(largest_loss(one, other) for one, other in itertools.combinations(laws, 2))


def rows() -> Iterator[Row]:
    """Yield the rows."""
    for kind, name, target in (
        (CuratorQueries, "audit, any-of, queries that depend on answers: realised epsilon / declared", "<= 1.001"),
        (wrong.PrintedQueries, "control, queries with the printed noise: realised epsilon / declared", ">= 1.9"),
    ):
        yield row(name, adaptive_loss(kind, 6) / 6, "", target)
    for count in (500, 5_000, 50_000):
        found = np.mean([_errors(count, run) for run in range(_RUNS)], axis=0).tolist()
        names = ("counts", "decomposition", "thresholds", "parities", "the best constant")
        for name, error in zip(names, found, strict=True):
            label = (
                f"any-of, {count:,} people x {_FIELDS} fields, sets of up to {_WIDTH}, epsilon 1: mean error of a share"
            )
            yield row(f"{label}, {name}", error, "")


def _errors(count: int, run: int) -> list[float]:
    fields, epsilon = binary(_FIELDS), Fraction(1)
    records = people(np.random.default_rng([41, run]), count, _FIELDS)
    made = [
        AnyOfSets(fields, epsilon, _WIDTH),
        AnyOfSets(fields, epsilon, _WIDTH, "decomposition", 40, Fraction(1, 20)),
        AnyOfSets(fields, epsilon, _WIDTH, "thresholds", 40),
    ]
    cells = np.array(records, np.int64)
    masks = [sum(1 << place for place in one) for one in made[0].sets]
    truth = np.array([float((cells & mask != 0).mean()) for mask in masks])
    found = [np.array([one.count or 0 for one in kind.run(records, ExactDraws()).rows]) / count for kind in made]
    return [*(float(np.abs(one - truth).mean()) for one in (*found, _parities(made[0], records), best_constant(truth)))]


def _parities(asked: AnyOfSets, records: Sequence[Held]) -> npt.NDArray[np.float64]:
    """The shares from tables of all the sets, by parities: all but the cell in which nobody has any."""
    names = asked.record.names
    work = Workload(asked.record, tuple(tuple(names[place] for place in sorted(one)) for one in asked.sets))
    counts = [one.count or 0 for one in LaplaceFourier(work, asked.epsilon).run(records, ExactDraws()).rows]
    firsts = np.cumsum([0, *work.lengths[:-1]])
    return np.asarray(1 - np.array(counts, np.float64)[firsts] / len(records))
