"""What an analyst asks about several periods, or about two collections: trends, changes, comparisons.

Each takes `items`, `attributes`, `ranges`, `quantiles`, `average=True`, a table, `averages=True` or `areas`: exactly
one of them. A table is the `fields` of records, `where` for a slice, or both; `cells` are those of its cells that are
wanted. What can be asked depends on the mechanism, as for the questions about one set of reports.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypedDict, Unpack

from ldp_client.errors import InvalidSpec
from ldp_client.protocol.domain import Item
from ldp_client.protocol.v1 import analyst_pb2 as pb
from ldp_server.analyst.answers_over_time import CollectionChange, CollectionComparison, CollectionTrend
from ldp_server.analyst.asking import Call, asked
from ldp_server.analyst.questions import Which, areas_to_wire, named, value_to_wire
from ldp_server.analyst.relating import Relating
from ldp_server.answers.fields.areas import Area
from ldp_server.answers.numbers import Between
from ldp_server.answers.over_time.periods import Periods, asked_periods
from ldp_server.answers.over_time.trend import ONE_KIND
from ldp_server.answers.records import Where
from ldp_server.answers.wire import item_to_wire

__all__ = ["AcrossPeriods", "AskedValues", "Side"]

Side = Which | tuple[Which, Periods]
"""One side of a comparison: a collection, or a collection and some of its periods."""


class AskedValues(TypedDict, total=False):
    """What is asked of each period or side: exactly one of these."""

    items: Iterable[Item]
    attributes: Iterable[str]
    ranges: Iterable[Between]
    quantiles: Iterable[float]
    average: bool
    fields: Iterable[str]
    where: Where
    cells: Iterable[Item]
    averages: bool
    areas: Iterable[Area]


class AcrossPeriods(Relating):
    """The questions about several periods or two collections, over a connection."""

    @asked
    def trend(
        self,
        which: Which,
        *,
        periods: Periods | None = None,
        confidence: float = 0.95,
        together: bool = False,
        **values: Unpack[AskedValues],
    ) -> Call[CollectionTrend]:
        """Estimate values for each period, with intervals.

        With `together`, the intervals of all lines and periods are right at once.
        """
        request = pb.TrendRequest(
            **named(which),
            periods=asked_periods(periods),
            asked=_asked(values),
            confidence=confidence,
            together=together,
        )
        return Call("Trend", request, CollectionTrend.of, long=True)

    @asked
    def change(
        self,
        which: Which,
        *,
        periods: Periods | None = None,
        confidence: float = 0.95,
        **values: Unpack[AskedValues],
    ) -> Call[CollectionChange]:
        """Say whether shares of items, attributes, cells or areas, or averages of cells, changed over the periods.

        If nothing changes, the probability of ever saying so is at most 1 - confidence, however often this is asked
        about periods with the same beginning.
        """
        request = pb.TrendRequest(
            **named(which), periods=asked_periods(periods), asked=_asked(values), confidence=confidence
        )
        return Call("Change", request, CollectionChange.of, long=True)

    @asked
    def compare(
        self,
        first: Side,
        second: Side,
        *,
        confidence: float = 0.95,
        together: bool = False,
        **values: Unpack[AskedValues],
    ) -> Call[CollectionComparison]:
        """Estimate by how much the second side's shares (or average) differ from the first's.

        analyst.compare(("3fa9", 2954), ("3fa9", 2955), items=["www.example.org"])
        """
        request = pb.CompareRequest(
            first=_side(first), second=_side(second), asked=_asked(values), confidence=confidence, together=together
        )
        return Call("Compare", request, CollectionComparison.of, long=True)


def _side(side: Side) -> pb.Side:
    which, periods = side if isinstance(side, tuple) else (side, None)
    return pb.Side(**named(which), periods=asked_periods(periods))


def _asked(values: AskedValues) -> pb.Asked:
    given = {name for name, value in values.items() if value is not None and value is not False}
    table = given & {"fields", "where", "cells"}
    if len(given - table) + bool(table) != 1:
        raise InvalidSpec(ONE_KIND)
    if table:
        return pb.Asked(table=_table(values))
    if "items" in given:
        return pb.Asked(given=pb.GivenItems(items=[item_to_wire(item) for item in values["items"]]))
    if "attributes" in given:
        return pb.Asked(attributes=pb.AttributeSet(names=list(values["attributes"])))
    if "ranges" in given:
        between = [pb.Between(first=str(first), last=str(last)) for first, last in values["ranges"]]
        return pb.Asked(ranges=pb.RangesQuestion(between=between))
    if "quantiles" in given:
        return pb.Asked(quantiles=pb.QuantilesQuestion(shares=values["quantiles"]))
    return _asked_of_records(values, given)


def _asked_of_records(values: AskedValues, given: set[str]) -> pb.Asked:
    if "averages" in given:
        return pb.Asked(averages=pb.AveragesQuestion())
    if "areas" in given:
        return pb.Asked(areas=areas_to_wire(values["areas"]))
    return pb.Asked(average=pb.AverageQuestion())


def _table(values: AskedValues) -> pb.TableQuestion:
    where = {name: list(held) for name, held in (values.get("where") or {}).items()}
    return pb.TableQuestion(
        fields=list(values.get("fields") or ()),
        where=[pb.Slice(field=name, items=[value_to_wire(one) for one in held]) for name, held in where.items()],
        cells=[item_to_wire(item) for item in values.get("cells") or ()],
    )
