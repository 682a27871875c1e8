"""Which kinds of release there are about several fields together, and what each of them needs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TypeVar

from ldp_client.errors import InvalidSpec
from ldp_client.protocol.domain import Record
from ldp_server.curator.releases.base import CentralMechanism
from ldp_server.curator.workloads.average import LaplaceAverage
from ldp_server.curator.workloads.fourier import GaussianFourier, LaplaceFourier
from ldp_server.curator.workloads.knorm.counts import KNormCounts
from ldp_server.curator.workloads.matrix.answers import LinearAnswers
from ldp_server.curator.workloads.matrix.plans import Price
from ldp_server.curator.workloads.matrix.queries import LinearQueries, condition, ranges_of, table_queries
from ldp_server.curator.workloads.mwem import MwemTables
from ldp_server.curator.workloads.online import OnlineTables
from ldp_server.curator.workloads.tables import GaussianTables, LaplaceTables
from ldp_server.curator.workloads.universe import Workload, pairs

__all__ = ["WORKLOAD_KINDS", "WorkloadKind", "WorkloadWish", "workload_mechanism"]

T = TypeVar("T")


@dataclass(frozen=True)
class WorkloadWish:
    """What is wanted of several fields. What a kind does not need is None, or empty."""

    kind: str
    noise: str
    epsilon: Fraction | None = None
    rho: Fraction | None = None
    record: Record | None = None
    tables: tuple[tuple[str, ...], ...] = ()
    """Empty: all pairs."""
    ends: tuple[int, int] | None = None
    """Of an average."""
    rounds: int | None = None
    groups: Sequence[str] | None = None
    """Lines of items, separated by tabs."""
    queries: tuple[str, ...] = ()
    """Conditions on fields."""
    ranges: tuple[str, ...] = ()
    """Fields all of whose ranges are asked for."""
    strategy: str | None = None

    def need(self, value: T | None, option: str) -> T:
        if value is None:
            raise InvalidSpec(f"a release of the kind {self.kind!r} with {self.noise} noise needs {option}")
        return value

    @property
    def fields(self) -> Record:
        return self.need(self.record, '--field for each field, such as --field "age: 0..8"')

    @property
    def workload(self) -> Workload:
        return Workload(self.fields, self.tables or pairs(self.fields))

    @property
    def asked(self) -> LinearQueries:
        """The queries: tables, ranges and conditions; all pairs of fields if there are none."""
        record = self.fields
        alone = bool(self.queries or self.ranges)
        found = [
            *table_queries(record, self.tables or (() if alone else pairs(record))),
            *(query for name in self.ranges for query in ranges_of(record, name)),
            *(condition(record, text) for text in self.queries),
        ]
        return LinearQueries(record, tuple({query.item: query for query in found}.values()))

    @property
    def paid(self) -> Price:
        return Price(epsilon=self.needed_epsilon) if self.noise == "laplace" else Price(rho=self.needed_rho)

    @property
    def needed_epsilon(self) -> Fraction:
        return self.need(self.epsilon, "--epsilon")

    @property
    def needed_rho(self) -> Fraction:
        return self.need(self.rho, "--rho")


def _tables(wish: WorkloadWish) -> CentralMechanism:
    if wish.noise == "gaussian":
        return GaussianTables(wish.workload, wish.needed_rho)
    return LaplaceTables(wish.workload, wish.needed_epsilon)


def _fourier(wish: WorkloadWish) -> CentralMechanism:
    if wish.noise == "gaussian":
        return GaussianFourier(wish.workload, wish.needed_rho)
    return LaplaceFourier(wish.workload, wish.needed_epsilon)


def _mwem(wish: WorkloadWish) -> CentralMechanism:
    return MwemTables(wish.workload, wish.needed_epsilon, wish.rounds or 0)


def _online(wish: WorkloadWish) -> CentralMechanism:
    return OnlineTables(wish.workload, wish.needed_epsilon, wish.need(wish.rounds, "--rounds"))


def _overlapping(wish: WorkloadWish) -> CentralMechanism:
    lines = wish.need(wish.groups, "--items with a line for each group, its items separated by tabs")
    return KNormCounts(tuple(tuple(dict.fromkeys(line.split("\t"))) for line in lines), wish.needed_epsilon)


def _linear(wish: WorkloadWish) -> CentralMechanism:
    made = LinearAnswers(wish.asked, wish.paid, wish.strategy)
    made.plan  # noqa: B018 - found before a record is read: it says what cannot be answered
    return made


def _average(wish: WorkloadWish) -> CentralMechanism:
    lowest, highest = wish.need(wish.ends, "--range")
    return LaplaceAverage(lowest, highest, wish.needed_epsilon)


@dataclass(frozen=True)
class WorkloadKind:
    """A kind of release about several fields."""

    make: Callable[[WorkloadWish], CentralMechanism]
    noises: tuple[str, ...]
    text: str


WORKLOAD_KINDS = {
    "average": WorkloadKind(_average, ("laplace",), "the average of whole numbers of a --range"),
    "tables": WorkloadKind(
        _tables, ("laplace", "gaussian"), "every cell of every --table of the --fields; of all pairs without --table"
    ),
    "fourier": WorkloadKind(
        _fourier, ("laplace", "gaussian"), "the same for fields with two values, by parities: smaller errors"
    ),
    "online": WorkloadKind(
        _online, ("laplace",), "the same one cell after the other: a fit answers, and at most --rounds cells cost"
    ),
    "linear": WorkloadKind(
        _linear,
        ("laplace", "gaussian"),
        "how many people fulfil each --query, all --ranges of a field, --tables: measured through the best strategy",
    ),
    "overlapping": WorkloadKind(
        _overlapping, ("laplace",), "how many people hold one of the items of each line of --items; lines may overlap"
    ),
    "mwem": WorkloadKind(_mwem, ("laplace",), "the same by a distribution that is fitted: for few people"),
}
"""Each kind: how it is made, with which noises, and what it releases."""


def workload_mechanism(wish: WorkloadWish) -> CentralMechanism:
    """Return the mechanism of a wish. InvalidSpec says which option is missing."""
    kind = WORKLOAD_KINDS[wish.kind]
    if wish.noise not in kind.noises:
        raise InvalidSpec(f"a release of the kind {wish.kind!r} has --noise {' or '.join(kind.noises)}")
    if (wish.epsilon is None) == (wish.rho is None):
        raise InvalidSpec("give the price of this release: --epsilon, or --rho with gaussian noise")
    return kind.make(wish)
