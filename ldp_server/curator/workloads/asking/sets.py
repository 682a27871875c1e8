"""How many people hold any of a set of yes/no fields, for all sets of up to k fields, after some sets were asked.

Conjunctions are the rest: nobody of the fields turned round. Three methods, all through the oracle (oracle.py):

    counts          every set is asked: the classical baseline
    decomposition   some sets are asked, and answer for all sets that differ by little (submodular functions)
    thresholds      some sets are asked, and a classifier for each level of the share learns from them (PrivLearn)

The last two are those of ldp_server/learning/release.py, where randomized reports answer. Their printed limits say
nothing: for errors of 0.1 on nine of ten sets the first theorem asks for a cut of 0.00056, and so for more parts than
there are sets; the second one for 4,410 ln(number of sets) / error^2 asked sets, two million. So they are run with cuts
and numbers that one can pay for, and the error is measured.

Privacy. Nine tenths of epsilon pay for the queries. The rest pays for the largest error over all sets: the answers are
public by then, and one person moves each true count by 1, so the largest error by 1. Which sets are asked first is
drawn without looking at a record. Both parts add up.

Accuracy. With 95% all sets lie in their intervals at once: the measured error and its noise. No error is promised
beforehand but for `counts`. Benchmarks show that tables and parities are better wherever they can be kept.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import combinations
from math import comb, log
from typing import Any, ClassVar

from ldp_client.errors import InvalidSpec
from ldp_client.protocol.domain import Record as Fields
from ldp_server.curator.draws import Draws, laplace_scale
from ldp_server.curator.laws import laplace_half_width, laplace_variance
from ldp_server.curator.people import Record
from ldp_server.curator.prices import CentralPrice
from ldp_server.curator.releases.base import BETA, Outcome, ReleasedRow, bounds
from ldp_server.curator.workloads.asking.oracle import CuratorQueries
from ldp_server.curator.workloads.tables import FieldsMechanism
from ldp_server.curator.workloads.universe import indexes_of
from ldp_server.learning.queries import AnyOf
from ldp_server.learning.release import decompose, learn_thresholds, proved_cut

__all__ = ["METHODS", "AnyOfSets"]

METHODS = ("counts", "decomposition", "thresholds")
_CHECK = Fraction(1, 10)
_MOST_FIELDS, _MOST_SETS = 12, 5_000
_LEVELS = 19

Places = frozenset[int]


@dataclass(frozen=True)
class AnyOfSets(FieldsMechanism):
    """Counts of all sets of up to `width` fields."""

    kind: ClassVar[str] = "any-of"
    record: Fields
    epsilon: Fraction
    width: int
    method: str = "counts"
    asks: int = 0
    """How many sets are asked at most; `counts` asks all."""
    cut: Fraction = Fraction(1, 20)
    """Of a decomposition: which share a field adds that matters."""

    def __post_init__(self) -> None:
        count = len(self.record.names)
        if not all(field.binary for field in self.record.fields) or count > _MOST_FIELDS:
            raise InvalidSpec(f'sets are of up to {_MOST_FIELDS} fields with two values ("dark: yes")')
        if not 1 <= self.width <= count or self._number > _MOST_SETS:
            raise InvalidSpec(f"--k: sets of 1 to {count} fields, and at most {_MOST_SETS:,} sets")
        if self.method not in METHODS:
            raise InvalidSpec(f"--method: one of {', '.join(METHODS)}")
        if self.method != "counts" and not 2 <= self.asks <= self._number:
            raise InvalidSpec(f"--rounds: how many sets are asked, 2 to {self._number:,}")
        if not 0 < self.cut < 1:
            raise InvalidSpec("--cut: a share between 0 and 1, such as 0.05")

    @property
    def fields(self) -> Fields:
        return self.record

    @property
    def price(self) -> CentralPrice:
        return CentralPrice.pure(self.epsilon)

    def parameters(self) -> dict[str, Any]:
        how = {"width": self.width, "method": self.method, "asks": self.queries, "cut": str(self.cut)}
        return {"fields": self.record.describe()["fields"], "epsilon": str(self.epsilon)} | how

    @property
    def _number(self) -> int:
        return sum(comb(len(self.record.names), size) for size in range(1, self.width + 1))

    @cached_property
    def sets(self) -> tuple[Places, ...]:
        """The sets, by the numbers of their fields."""
        count = range(len(self.record.names))
        return tuple(frozenset(one) for size in range(1, self.width + 1) for one in combinations(count, size))

    @property
    def queries(self) -> int:
        """How many queries are paid for."""
        return self._number if self.method == "counts" else self.asks

    def oracle(self, records: Sequence[Record], draws: Draws) -> CuratorQueries:
        """Return what answers the queries."""
        return CuratorQueries(self.record, records, self.queries, (1 - _CHECK) * self.epsilon, draws)

    def run(self, records: Sequence[Record], draws: Draws) -> Outcome:
        people, queries = len(records), self.oracle(records, draws)
        names = self.record.names

        def ask(fields: Places) -> float:
            return queries.ask(AnyOf(frozenset(names[place] for place in fields))).estimate

        answer, more = self._learned(ask, draws)
        counts = [min(max(round(answer(one) * people), 0), people) for one in self.sets]
        cells = indexes_of(records)
        truth = [int((cells & sum(1 << place for place in one) != 0).sum()) for one in self.sets]
        worst = max(abs(a - b) for a, b in zip(truth, counts, strict=True))
        scale = laplace_scale(1, _CHECK * self.epsilon)
        told = draws.laplace([worst], scale)[0]

        def most(chance: float) -> int:
            return max(told + laplace_half_width(scale, 2 * chance), 0)

        width = most(BETA)
        rows = tuple(
            ReleasedRow(_named(names, one), count, max(count - width, 0), min(count + width, people))
            for one, count in zip(self.sets, counts, strict=True)
        )
        note = f"all sets lie in their intervals at once with probability 95%; {self.queries:,} queries are paid for"
        if self.method == "counts":
            return Outcome(rows, note + more, laplace_variance(queries.scale))
        return Outcome(rows, note + more, details={"bounds": bounds(most)})

    def _learned(self, ask: Callable[[Places], float], draws: Draws) -> tuple[Callable[[Places], float], str]:
        """Return what answers a set, and what the theorem would ask for."""
        if self.method == "counts":
            return ask, ""
        if self.method == "thresholds":
            made = learn_thresholds(ask, len(self.record.names), self._drawn(self.asks, draws), _LEVELS)
            needed = round(4410 * log(self._number) / 0.01)
            return made.answer, f"; for errors of 0.1 the theorem asks for {needed:,} sets"
        drawn = self._drawn(self.asks // 2, draws)
        for one in drawn:
            ask(one)
        # the parts are built from what is left; without a query left no field adds anything
        found = decompose(ask, len(self.record.names), float(self.cut), drawn, most=1 << len(self.record.names))
        said = f"{len(found.parts):,} parts; for errors of 0.1 the theorem asks for a cut of {proved_cut(0.1, 0.1):.2g}"
        return found.answer, f"; {said}"

    def _drawn(self, count: int, draws: Draws) -> list[Places]:
        """Return so many sets, drawn without replacement before any record is looked at."""
        left = list(self.sets)
        return [left.pop(draws.uniform(len(left))) for _ in range(count)]


def _named(names: Sequence[str], fields: Places) -> str:
    return " or ".join(names[place] for place in sorted(fields))
