"""What every kind of release has: a price, a smallest data set, and a way from records to rows."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, ClassVar

from ldp_client.errors import InvalidSpec
from ldp_client.protocol.domain import FieldItems
from ldp_server.curator.draws import Draws
from ldp_server.curator.people import Record
from ldp_server.curator.prices import CentralPrice

__all__ = [
    "BETA",
    "CHANCES",
    "CentralMechanism",
    "Outcome",
    "ReleasedRow",
    "TooFewPeople",
    "bounds",
    "clipped",
    "counted",
    "distinct",
    "in_order",
]

BETA = 0.05
"""Every interval of a release holds with probability 1 - BETA."""
CHANCES = (0.05, 0.025, 0.005, 0.0005, 0.00005)
"""Where an error is no noise but bounded: the chances of larger ones, for which a release states the bound."""


class TooFewPeople(InvalidSpec):
    """The data set is smaller than the kind of release needs. The text says how many people it takes."""


@dataclass(frozen=True)
class ReleasedRow:
    """One line of a release. `low` to `high` is an interval for the count among these people."""

    item: Record | FieldItems
    count: int | None = None
    """None: the release names the item and does not count it."""
    low: int | None = None
    """None: there is no interval, as for the cells of a synthetic table."""
    high: int | None = None


@dataclass(frozen=True)
class Outcome:
    """What a mechanism gave: rows, and a sentence for whoever reads them."""

    rows: tuple[ReleasedRow, ...]
    note: str
    variance: float | None = None
    """Of the noise on each count, if that is the same for all and did not choose them."""
    details: Mapping[str, Any] = field(default_factory=dict)
    """What else is released, as plain data."""


class CentralMechanism(ABC):
    """A kind of release with its parameters. Subclasses are frozen dataclasses."""

    kind: ClassVar[str]

    @property
    @abstractmethod
    def price(self) -> CentralPrice:
        """What it costs, for replacement of one person's record, whatever the data set."""

    @abstractmethod
    def run(self, records: Sequence[Record], draws: Draws) -> Outcome:
        """Return the outcome for these records, one of each person."""

    def run_columns(self, columns: Sequence[Sequence[Record]], draws: Draws) -> Outcome:
        """Return the outcome for what each person holds in these columns; most kinds read one."""
        if len(columns) != 1:
            raise InvalidSpec(f"{self.kind} reads one column, and {len(columns)} were given (--column, --label)")
        return self.run(columns[0], draws)

    @property
    def about(self) -> str:
        """A sentence of the statement, if the price is about less than a whole record; or nothing."""
        return ""

    @property
    def smallest(self) -> int:
        """How many people the data set must have. Privacy or use fails below it."""
        return 1

    def check(self, people: int) -> None:
        """Refuse a data set that is too small; the number of people is public."""
        if people < self.smallest:
            raise TooFewPeople(
                f"{self.kind} with these parameters needs {self.smallest:,} people, and this data set has "
                f"{people:,}: nothing was released or charged"
            )

    def parameters(self) -> dict[str, Any]:
        """Return the parameters as plain data, for the signed release."""
        return {name: _plain(value) for name, value in vars(self).items()}


def _plain(value: Any) -> Any:
    if isinstance(value, Fraction):
        return str(value)
    return [_plain(part) for part in value] if isinstance(value, tuple) else value


def counted(records: Sequence[Record]) -> Counter[Record]:
    """Return how many people hold each item; those without one are not counted."""
    counts: Counter[Record] = Counter(records)
    counts.pop(None, None)
    return counts


def in_order(items: Iterable[Record]) -> list[Record]:
    """Return items in an order of their own: the order of the records is nobody's business."""
    return sorted(items, key=lambda item: (isinstance(item, str), item))


def bounds(most: Callable[[float], int]) -> list[dict[str, float]]:
    """Return by how much all answers are off at most, but for each of some chances; whoever merges them needs it."""
    return [{"chance": chance, "most": most(chance)} for chance in CHANCES]


def clipped(item: Record | FieldItems, count: int, width: int, people: int) -> ReleasedRow:
    """Return a row with the interval count +- width, as far as it is possible."""
    low, high = (min(max(end, 0), people) for end in (count - width, count + width))
    return ReleasedRow(item, count, low, high)


def distinct(items: Sequence[Record], what: str, smallest: int = 1) -> tuple[Record, ...]:
    """Check a list of items that was made before the records were seen."""
    found = tuple(items)
    if len(found) < smallest or len(set(found)) != len(found) or None in found:
        raise InvalidSpec(f"{what}: give at least {smallest}, each once")
    return found
