"""Kinds of questions that volunteers and everybody else answer: reports, a release, and both merged.

Each kind draws its people from a population, and says how far an answer is from the truth about all of them. The
reports go through the packed bytes and the oracles of production, the release through the curator's own mechanisms, and
the merge is that of the commands.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from ldp_client.collection import Collection
from ldp_client.mechanisms import bounded_number, hierarchy
from ldp_client.protocol.domain import Categories, Domain, Field, Integers, Record, YesNo
from ldp_server.answers import estimates, numbers
from ldp_server.answers.choose import choose
from ldp_server.answers.merging.sources import LocalFrequencies, merged_averages, merged_frequencies
from ldp_server.answers.records import RecordTable
from ldp_server.answers.to_json import item_json
from ldp_server.arrays.packing import pack
from ldp_server.curator.draws import Draws
from ldp_server.curator.people import Record as Held
from ldp_server.curator.releases.base import CentralMechanism, Outcome
from ldp_server.curator.releases.histogram import LaplaceHistogram
from ldp_server.curator.releases.quantile import ExponentialQuantile
from ldp_server.curator.workloads.average import LaplaceAverage
from ldp_server.curator.workloads.fourier import LaplaceFourier
from ldp_server.curator.workloads.universe import Workload, pairs
from ldp_server.oracles import oracle_for
from ldp_server.oracles.base import Oracle
from ldp_server.planning.tables import design_tables
from simulator import crowd

__all__ = [
    "Floats",
    "HybridKind",
    "ListedItems",
    "MeanNumber",
    "MedianNumber",
    "PairTables",
    "People",
    "counted_reports",
    "released_content",
]

People = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
_STEP = 1 << 16


class HybridKind(ABC):
    """A question, its central release, and the truth."""

    merges: ClassVar[bool] = True
    repeats: ClassVar[int] = 1
    """How often a run is repeated: the error of one number says little."""
    text: ClassVar[str]

    def __init__(self, users: int, epsilon: str) -> None:
        self.users, self.epsilon = users, epsilon

    @abstractmethod
    def people(self, rng: np.random.Generator) -> People:
        """Return what each user holds, as an index of the domain."""

    @abstractmethod
    def truth(self, people: People) -> Floats:
        """Return what is asked for."""

    @abstractmethod
    def reported(self, people: People, seed: int) -> Any:
        """Return what the reports of these users say."""

    @abstractmethod
    def released(self, people: People, epsilon: Fraction, draws: Draws) -> dict[str, Any]:
        """Return a release about these users, as its content is signed."""

    @abstractmethod
    def of_reports(self, told: Any) -> Floats: ...

    def of_release(self, content: dict[str, Any]) -> Floats:
        """The share of each row of a release."""
        return np.array([row["count"] for row in content["rows"]], np.float64) / int(content["people"])

    def merged(self, content: dict[str, Any], told: Any) -> Floats:
        raise NotImplementedError

    def error(self, found: Floats, truth: Floats) -> float:
        """Return the root mean square error."""
        return float(np.sqrt(np.mean((found - truth) ** 2)))


def counted_reports(
    domain: Domain, mechanism: str, epsilon: str, parameters: Any, people: People, seed: int
) -> tuple[Collection, Oracle]:
    """Return a collection and its oracle, which has counted a report of each of these indexes."""
    asked = Collection.create("hybrid", domain, mechanism, epsilon, parameters=parameters, opens=0, closes=1)
    oracle, randomizer = oracle_for(asked), asked.randomizer
    for reports in crowd.simulate(randomizer, people.astype(np.uint64), seed):
        for start in range(0, len(reports), _STEP):
            oracle.accumulate(pack(reports[start : start + _STEP], randomizer.report_bytes))
    return asked, oracle


def released_content(made: CentralMechanism, outcome: Outcome, people: int) -> dict[str, Any]:
    """Return a release as its content is signed, as far as a merge reads it."""
    rows = [{"item": item_json(row.item), "count": row.count} for row in outcome.rows]
    found = {"kind": made.kind, "people": people, "variance": outcome.variance, "rows": rows, "statement": []}
    return found | {"details": dict(outcome.details), "parameters": made.parameters()}


def _shares(rows: Sequence[Any]) -> Floats:
    return np.array([row.share for row in rows])


class ListedItems(HybridKind):
    """Frequencies of 64 listed items."""

    text = "the share of each of 64 items"
    ITEMS = tuple(f"i{k}" for k in range(64))

    def people(self, rng: np.random.Generator) -> People:
        weights = 1 / np.arange(1, len(self.ITEMS) + 1)
        return rng.choice(np.arange(1, len(self.ITEMS) + 1), self.users, p=weights / weights.sum())

    def truth(self, people: People) -> Floats:
        return np.asarray(np.bincount(people, minlength=65)[1:] / len(people), np.float64)

    def reported(self, people: People, seed: int) -> estimates.Estimates:
        chosen = choose(len(people), 65, self.epsilon)
        asked = counted_reports(Categories(self.ITEMS), chosen.mechanism, self.epsilon, chosen.parameters, people, seed)
        return estimates.given_items(asked[0], asked[1], self.ITEMS)

    def released(self, people: People, epsilon: Fraction, draws: Draws) -> dict[str, Any]:
        made = LaplaceHistogram(self.ITEMS, epsilon)
        records: list[Held] = [self.ITEMS[index - 1] for index in people.tolist()]
        return released_content(made, made.run(records, draws), len(people))

    def of_reports(self, told: estimates.Estimates) -> Floats:
        return np.array([row.estimate for row in told.rows]) / told.reports

    def merged(self, content: dict[str, Any], told: estimates.Estimates) -> Floats:
        return _shares(merged_frequencies(content, LocalFrequencies.of(told)).rows)


class PairTables(HybridKind):
    """All pairs of eight yes/no fields."""

    text = "every cell of all pairs of 8 yes/no fields"
    RECORD = Record(tuple(Field(f"f{k}", YesNo(none_is_no=True)) for k in range(8)))

    def __init__(self, users: int, epsilon: str) -> None:
        super().__init__(users, epsilon)
        self._work = Workload(self.RECORD, pairs(self.RECORD))

    def people(self, rng: np.random.Generator) -> People:
        """Three kinds of people, each with its own frequency of each field."""
        kinds = rng.choice(3, self.users, p=(0.5, 0.3, 0.2))
        held = rng.random((self.users, 8)) < rng.random((3, 8))[kinds]
        found: People = held.astype(np.int64) @ (1 << np.arange(8))
        return found

    def truth(self, people: People) -> Floats:
        counts = self._work.histogram(people.tolist())
        cells = [np.asarray(self._work.of_cells(table, counts)) for table in range(len(self._work.tables))]
        return np.asarray(np.concatenate(cells) / len(people), np.float64)

    def reported(self, people: People, seed: int) -> list[estimates.Estimates]:
        design = design_tables(self.RECORD, self.epsilon, "pairs")[0]
        asked, oracle = counted_reports(self.RECORD, "sampled-table", self.epsilon, design.parameters, people, seed)
        found = []
        for names in self._work.tables:
            table = RecordTable(asked, names)
            found.append(table.named(estimates.every_item(table.collection, table.oracle(oracle))))
        return found

    def released(self, people: People, epsilon: Fraction, draws: Draws) -> dict[str, Any]:
        made = LaplaceFourier(self._work, epsilon)
        return released_content(made, made.run(people.tolist(), draws), len(people))

    def of_reports(self, told: list[estimates.Estimates]) -> Floats:
        return np.concatenate([[row.estimate / one.reports for row in one.rows] for one in told])

    def merged(self, content: dict[str, Any], told: list[estimates.Estimates]) -> Floats:
        return np.concatenate([_shares(merged_frequencies(content, LocalFrequencies.of(one)).rows) for one in told])


class MeanNumber(HybridKind):
    """An average of numbers."""

    repeats = 10
    text = "the average of numbers from 0 to 100, over 100"
    _ENDS = (0, 100)

    def people(self, rng: np.random.Generator) -> People:
        return rng.binomial(100, rng.choice([0.1, 0.3, 0.7], self.users, p=(0.5, 0.3, 0.2))) + 1

    def truth(self, people: People) -> Floats:
        return np.array([people.mean() - 1]) / 100

    def reported(self, people: People, seed: int) -> numbers.AverageAnswer:
        parameters = bounded_number.design(self.epsilon)
        asked, oracle = counted_reports(Integers(0, 101), "bounded-number", self.epsilon, parameters, people, seed)
        return numbers.average_answer(asked, oracle)

    def released(self, people: People, epsilon: Fraction, draws: Draws) -> dict[str, Any]:
        made = LaplaceAverage(*self._ENDS, epsilon)
        return released_content(made, made.run([*(people - 1).tolist()], draws), len(people))

    def of_reports(self, told: numbers.AverageAnswer) -> Floats:
        return np.array([told.average.estimate]) / 100

    def of_release(self, content: dict[str, Any]) -> Floats:
        found = content["details"]["average"]["average"]
        return np.array([50.0 if found is None else found]) / 100

    def merged(self, content: dict[str, Any], told: numbers.AverageAnswer) -> Floats:
        return np.array([merged_averages(content, told).average.estimate]) / 100


class MedianNumber(HybridKind):
    """A median of numbers: its error is by how many ranks it is off, as a share of the people."""

    merges, repeats = False, 10
    text = "the median of numbers from 0 to 1,023, its rank as a share"
    _ENDS = (0, 1023)

    def people(self, rng: np.random.Generator) -> People:
        return rng.normal(rng.choice([200, 600], self.users), 80).round().clip(*self._ENDS).astype(np.int64) + 1

    def truth(self, people: People) -> Floats:
        return np.sort(people)

    def reported(self, people: People, seed: int) -> tuple[Collection, Oracle]:
        domain = Integers(0, 1024)
        parameters = hierarchy.design(self.epsilon, domain.size - 1)
        return counted_reports(domain, "hierarchy", self.epsilon, parameters, people, seed)

    def released(self, people: People, epsilon: Fraction, draws: Draws) -> dict[str, Any]:
        made = ExponentialQuantile(Fraction(1, 2), 10, epsilon)
        return released_content(made, made.run([*(people - 1).tolist()], draws), len(people))

    def of_reports(self, told: tuple[Collection, Oracle]) -> Floats:
        return np.array([numbers.quantile(told[0], told[1], 0.5).estimate])

    def of_release(self, content: dict[str, Any]) -> Floats:
        (row,) = content["rows"]
        return np.array([float(row["item"]["integer"])])

    def error(self, found: Floats, truth: Floats) -> float:
        value = math.floor(found[0]) + 1
        low, high = np.searchsorted(truth, value, "left"), np.searchsorted(truth, value, "right")
        half = len(truth) / 2
        return float(max(0.0, low - half, half - high)) / len(truth)
