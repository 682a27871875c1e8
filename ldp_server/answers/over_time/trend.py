"""Values over time: the same question for each period, with an interval for each.

What is asked is fixed beforehand: given items, attributes, ranges, quantiles, the average, cells of a table of fields,
averages of cells, or areas of a map. A value is about the reports of its period. The randomization of a report is
independent of all others given its item, also where one person reports in several periods. So the errors of different
periods are independent of each other. The values themselves are as alike as the people who reported.

Coverage.EACH: each interval is right with the stated confidence, taken alone. Coverage.TOGETHER: all intervals of the
answer, of every line and every period, are right at once. With m of them each errs with (1 - confidence)/m at most
(Bonferroni), and m is known before a value is looked at.

Where the reports of a period are not independent, its intervals and standard errors are wider (copies.py).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ldp_client.collection import Collection
from ldp_client.errors import InvalidSpec
from ldp_client.protocol.domain import Attributes, FieldItem, Item
from ldp_server.answers import numbers
from ldp_server.answers.attributes import attributes_answer
from ldp_server.answers.estimates import Coverage, item_indexes
from ldp_server.answers.fields.areas import Area, AreaCount, areas_answer
from ldp_server.answers.fields.averages import CellAverage, averages_answer, cells_with_averages
from ldp_server.answers.numbers import share_of
from ldp_server.answers.over_time.copies import accepted_set, worst_of
from ldp_server.answers.records import RecordTable
from ldp_server.answers.sets import single_items
from ldp_server.answers.words import item_text
from ldp_server.oracles import as_frequency
from ldp_server.oracles.base import FrequencyOracle, Oracle, Unsupported
from ldp_server.oracles.bounded_number import Average
from ldp_server.oracles.independence.judge import accepted, widening
from ldp_server.oracles.independence.result import INDEPENDENT, Independence

__all__ = [
    "ONE_KIND",
    "TrendAnswer",
    "TrendLine",
    "TrendPoint",
    "TrendQuestion",
    "Value",
    "attribute_place",
    "trend",
    "values_of",
]

MOST_LINES = 100
TOO_MANY = f"ask for at most {MOST_LINES} items, attributes, ranges, quantiles, cells or areas at a time"
ONE_KIND = (
    "ask for items, attributes, ranges, quantiles, the average, a table of fields, averages of cells or areas: for one "
    "of them"
)


@dataclass(frozen=True)
class TrendQuestion:
    """One kind of value: exactly one of these fields is given."""

    items: tuple[Item, ...] = ()
    attributes: tuple[str, ...] = ()
    ranges: tuple[tuple[int, int], ...] = ()
    quantiles: tuple[float, ...] = ()
    average: bool = False
    fields: tuple[str, ...] = ()
    """Of a table of records; with `where` for those of a slice alone. `where` without fields counts the slice."""
    where: tuple[tuple[str, tuple[FieldItem, ...]], ...] = ()
    cells: tuple[Item, ...] = ()
    """Those of the table that are asked for; none: all of them."""
    averages: bool = False
    """Of a number, in each cell of its table."""
    areas: tuple[Area, ...] = ()

    def __post_init__(self) -> None:
        kinds = (self.items, self.attributes, self.ranges, self.quantiles, self.average, self.averages, self.areas)
        if sum(map(bool, kinds)) + self.of_table != 1 or (self.cells and not self.fields):
            raise InvalidSpec(ONE_KIND)

    @property
    def of_table(self) -> bool:
        """Whether a table of fields is asked for."""
        return bool(self.fields or self.where or self.cells)

    def table(self, collection: Collection) -> RecordTable:
        """Return the table of fields that is asked for."""
        return RecordTable(collection, self.fields, dict(self.where))

    def items_of(self, collection: Collection) -> tuple[Item, ...]:
        """Return the cells of the table that are asked for."""
        table = self.table(collection)
        if table.counted or self.cells:
            return table.counted or self.cells
        domain = table.collection.domain
        if domain.size > MOST_LINES:
            raise InvalidSpec(f"{TOO_MANY}: this table has {domain.size:,} cells, so name some of them")
        return tuple(domain.item(index) for index in range(domain.size))

    def labels(self, collection: Collection) -> list[str]:
        """Return what each line is about; `InvalidSpec` if there are too many, or if the collection has none."""
        found = [item_text(item) for item in self.items] + list(self.attributes)
        found += [f"{first} to {last}" for first, last in self.ranges]
        found += [f"quantile {share:g}" for share in self.quantiles]
        found += [f"{x[0]} to {x[1]}, {y[0]} to {y[1]}" for x, y in self.areas]
        found += ["average"] * self.average
        if self.of_table:
            said = "; ".join(self.table(collection).where)
            cells = [item_text(item) for item in self.items_of(collection)]
            found = [said] if not self.fields else [f"{cell} ({said})" if said else cell for cell in cells]
        if self.averages:
            found = [item_text(item) for item in cells_with_averages(collection, MOST_LINES)]
        if len(found) > MOST_LINES:
            raise InvalidSpec(TOO_MANY)
        return found

    @property
    def counts_users(self) -> bool:
        """Whether the values are numbers of users, and not numbers in the unit of the domain."""
        return not (self.average or self.quantiles or self.averages)


@dataclass(frozen=True)
class Value:
    """What is asked about, and its estimate."""

    label: str
    estimate: float
    standard_error: float
    """Infinite if it is not known."""
    low: float
    high: float


@dataclass(frozen=True)
class TrendPoint:
    """The value of one period. `begins` and `ends` are seconds since 1970."""

    period: int
    begins: int
    ends: int
    reports: int
    estimate: float
    standard_error: float
    low: float
    high: float


@dataclass(frozen=True)
class TrendLine:
    """The values of one item, attribute, range or quantile, or of the average, oldest first."""

    label: str
    points: tuple[TrendPoint, ...]


@dataclass(frozen=True)
class TrendAnswer:
    """The answer to one question about values over time."""

    confidence: float
    coverage: Coverage
    unit: str
    """users (divide by the reports of the point to get a share), or number: in the unit of the domain."""
    lines: tuple[TrendLine, ...]
    independence: Independence = INDEPENDENT
    """The worst of the periods."""


def values_of(collection: Collection, oracle: Oracle, asked: TrendQuestion, confidence: float) -> list[Value]:
    """Return the values of one set of reports, each with an interval of this confidence, taken alone."""
    if asked.items:
        return _items(
            collection,
            accepted(as_frequency(single_items(oracle)))[0],
            (asked.items, asked.labels(collection)),
            confidence,
        )
    if asked.of_table:
        table, lines = asked.table(collection), (asked.items_of(collection), asked.labels(collection))
        return _items(table.collection, table.oracle(oracle), lines, confidence)
    if asked.averages:
        averages = averages_answer(collection, oracle, confidence=confidence).averages
        return [Value(label, *_four(one)) for label, one in zip(asked.labels(collection), averages, strict=True)]
    if asked.areas:
        areas = areas_answer(collection, oracle, asked.areas, confidence=confidence).areas
        return [Value(label, *_four(one)) for label, one in zip(asked.labels(collection), areas, strict=True)]
    return _numbers(collection, oracle, asked, confidence)


def _numbers(collection: Collection, oracle: Oracle, asked: TrendQuestion, confidence: float) -> list[Value]:
    """Return the values of attributes, ranges, quantiles or the average."""
    if asked.attributes:
        return _attributes(collection, oracle, asked.attributes, confidence)
    if asked.ranges:
        ranges = numbers.ranges_answer(collection, oracle, asked.ranges, confidence=confidence).ranges
        return [Value(label, *_four(one)) for label, one in zip(asked.labels(collection), ranges, strict=True)]
    if asked.quantiles:
        cuts = numbers.quantiles_answer(collection, oracle, asked.quantiles, confidence=confidence).quantiles
        unknown = float("inf")
        return [
            Value(label, one.estimate, unknown, one.low, one.high)
            for label, one in zip(asked.labels(collection), cuts, strict=True)
        ]
    return [Value("average", *_four(numbers.average_answer(collection, oracle, confidence=confidence).average))]


def _items(
    collection: Collection, oracle: FrequencyOracle, lines: tuple[Sequence[Item], Sequence[str]], confidence: float
) -> list[Value]:
    """Return the frequencies of items with labels, without those of everything else, which take the most time."""
    indexes, widened = item_indexes(collection, lines[0]), widening(oracle)
    raw = oracle.estimate(indexes)
    low, high = oracle.intervals(indexes, raw, widened.tail((1 - confidence) / 2))
    columns = (raw, widened.errors(oracle.standard_errors(indexes, raw)), low, high)
    numbers_of_each = zip(*(column.tolist() for column in columns), strict=True)
    return [Value(label, *four) for label, four in zip(lines[1], numbers_of_each, strict=True)]


def _four(one: numbers.Range | Average | CellAverage | AreaCount) -> tuple[float, float, float, float]:
    return one.estimate, one.standard_error, one.low, one.high


def attribute_place(collection: Collection, name: str) -> int:
    """Return the place of an attribute in the collection's domain."""
    domain = collection.domain
    if not isinstance(domain, Attributes):
        raise Unsupported("this collection is not about attributes: ask a collection of attributes")
    if name not in domain.names:
        raise InvalidSpec("an attribute asked for is not one of the collection's")
    return domain.names.index(name)


def _attributes(collection: Collection, oracle: Oracle, names: Sequence[str], confidence: float) -> list[Value]:
    places = [attribute_place(collection, name) for name in names]
    rows = attributes_answer(collection, oracle, confidence=confidence).rows
    return [Value(rows[place].attributes[0], *(getattr(rows[place], field) for field in _FIELDS)) for place in places]


_FIELDS = ("estimate", "standard_error", "low", "high")


def trend(
    collection: Collection,
    periods: Iterable[tuple[tuple[int, int, int], Oracle]],
    asked: TrendQuestion,
    *,
    count: int,
    confidence: float = 0.95,
    coverage: Coverage = Coverage.EACH,
) -> TrendAnswer:
    """Return the values of `count` periods. Each comes as its number, its begin and its end, and its counts."""
    labels = asked.labels(collection)
    each = share_of(confidence, coverage, len(labels) * count)
    points: list[list[TrendPoint]] = [[] for _ in labels]
    shown: list[tuple[str, Independence]] = []
    for (period, begins, ends), counted in periods:
        oracle, seen = accepted_set(counted, f"period {period}")
        shown.append((f"period {period}", seen))
        for line, value in zip(points, values_of(collection, oracle, asked, each), strict=True):
            point = TrendPoint(
                period, begins, ends, oracle.reports, value.estimate, value.standard_error, value.low, value.high
            )
            line.append(point)
    lines = tuple(TrendLine(label, tuple(found)) for label, found in zip(labels, points, strict=True))
    return TrendAnswer(confidence, coverage, "users" if asked.counts_users else "number", lines, worst_of(shown))
