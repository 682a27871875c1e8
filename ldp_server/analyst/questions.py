"""What an analyst asks about a collection: one method a question, one call each, one dataclass an answer.

Each method is written once and serves `Analyst`, which waits, and `AsyncAnalyst`, which is awaited (asking.py). It
returns what its annotation has in brackets.

| method | answered by collections of |
|---|---|
| `estimate`, `top` | every mechanism but bounded-number and those whose names begin with averaged or sampled |
| `heavy_hitters` | the mechanisms for large domains |
| `average` | bounded-number |
| `averages` | averaged-table |
| `map` | sampled-grid |
| `quantiles`, `ranges`, `histogram` | hierarchy |
| `attributes` | any mechanism over attributes |
| `pairs`, `table` | the same but sampled-attribute |
| `tables`, `conditions`, `table` of some fields | sampled-table, every-field, others over records that can be listed |
| `gaps`, `rules` (relating.py) | the same |

Any other collection refuses in a sentence that says which mechanism answers: `ServerRefused`, FAILED_PRECONDITION.

Each question may name `periods`, if the collection's question has a schedule: one period or the first and the last of a
span, as numbers or as dates (ldp_server/answers/over_time/periods.py). Without it the answer is about all reports.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any, Literal, TypedDict, Unpack

from ldp_client.collection import Collection
from ldp_client.errors import InvalidSpec, Unavailable
from ldp_client.protocol.domain import FieldItem, Item
from ldp_client.protocol.v1 import analyst_pb2 as pb
from ldp_server.analyst.answers import (
    CollectionAreas,
    CollectionAttributes,
    CollectionAverage,
    CollectionAverages,
    CollectionEstimates,
    CollectionHeavyHitters,
    CollectionPeriods,
    CollectionQuantiles,
    CollectionRanges,
)
from ldp_server.analyst.asking import Call, Pieces, asked
from ldp_server.analyst.synthetic.records import CollectionTables
from ldp_server.answers.fields.areas import Area
from ldp_server.answers.fields.conditions import Condition
from ldp_server.answers.numbers import Between
from ldp_server.answers.over_time.periods import Periods, asked_periods
from ldp_server.answers.records import Where
from ldp_server.answers.wire import item_to_wire
from ldp_server.heavy_hitters import BETA, check_beta
from ldp_server.heavy_hitters.dictionary import Words, packed
from ldp_server.heavy_hitters.results import HeavyHitters

__all__ = ["EveryLook", "HowFound", "Questions", "Which", "about", "areas_to_wire", "at", "named", "value_to_wire"]

_COPIES = {"weighed": pb.WEIGHED, "once": pb.ONCE}

Which = Collection | bytes | str
"""A collection: itself, its id, or the first digits of its id (at least four)."""


class HowFound(TypedDict, total=False):
    """How the items of a list are found."""

    copies: Literal["weighed", "once"]
    exploratory: bool


class EveryLook(float):
    """A confidence that holds at every look: the intervals are right at all numbers of reports at once.

    For whoever looks at an answer while reports come in: `analyst.estimate(which, confidence=EveryLook(0.95))`. These
    intervals are 1.5 to 4 times as wide (docs/planning.md). Frequencies, tables, averages, maps, ranges and
    attributes have them.
    """


class Questions:
    """The questions about one collection."""

    @asked
    def estimate(
        self,
        which: Which,
        *,
        items: Iterable[Item] | None = None,
        top: int | None = None,
        every_item: bool = False,
        confidence: float = 0.95,
        threshold: float | None = None,
        together: bool = False,
        periods: Periods | None = None,
    ) -> Call[CollectionEstimates]:
        """Estimate how many users hold an item: the given `items`, the `top` N of them, or every item of the domain.

        Without a choice: the ten most frequent. `threshold` also asks whether each item is held by at least so many
        users. With `together`, the intervals of given items, or of every item, are right for all of them at once.
        """
        if (items is not None) + (top is not None) + every_item > 1:
            raise InvalidSpec("choose one of items, top and every_item")
        request = _estimating(which, confidence, threshold, periods)
        request.together = together
        if items is not None:
            request.given.items.extend(item_to_wire(item) for item in items)
        elif every_item:
            request.all.SetInParent()
        else:
            request.top.count = 10 if top is None else top
        return _estimates(request)

    @asked
    def top(
        self,
        which: Which,
        count: int = 10,
        *,
        confidence: float = 0.95,
        threshold: float | None = None,
        periods: Periods | None = None,
    ) -> Call[CollectionEstimates]:
        """Estimate how many users hold each of the most frequent items of a domain that can be listed."""
        request = _estimating(which, confidence, threshold, periods)
        request.top.count = count
        return _estimates(request)

    @asked
    def heavy_hitters(
        self,
        which: Which,
        *,
        limit: int = 0,
        beta: float = BETA,
        dictionary: Words | Literal["earlier"] | None = None,
        start: Iterable[Item] | HeavyHitters | Literal["last"] | None = None,
        progress: Callable[[str, float], None] | None = None,
        periods: Periods | None = None,
        **how: Unpack[HowFound],
    ) -> Pieces[CollectionHeavyHitters]:
        """Find the items that many users hold, in a domain too large to list.

        `limit` is the most items to return (0: as many as the server allows). `beta` is the failure probability of the
        list: half for missing an item that `threshold_all` users hold, half for items from noise. `progress` is called
        with what is being done and how much of it is, from 0 to 1.

        Items of a `dictionary` (items, or a mapping from items to weights) are listed from lower frequencies. None: of
        `periods`, the list that the server found for earlier ones, if it found one (`"earlier"`); otherwise, and always
        with `()`, there is no dictionary.

        `copies="once"`: each different report counts once while items are searched for; by default copies are weighed
        down. `exploratory=True`: a longer list, of which a part may be false, on average 5% of its items at most.

        `start` saves time, and changes nothing that an item must reach: the search begins with these items, those of an
        earlier answer, or the last list that the server found (`"last"`). None: with the server's last list if
        `periods` are named, otherwise with nothing, as `()` always does.
        """
        request = pb.HeavyHittersRequest(**about(which, periods), **_how(how), limit=limit, beta=check_beta(beta))
        _name(request, dictionary)
        _begin(request, start)
        return _searched(request, progress)

    @asked
    def average(
        self, which: Which, *, confidence: float = 0.95, periods: Periods | None = None
    ) -> Call[CollectionAverage]:
        """Estimate the average number of those who have one."""
        request = pb.NumbersRequest(**about(which, periods), **at(confidence), average=pb.AverageQuestion())
        return Call("Numbers", request, CollectionAverage.of, long=True)

    @asked
    def averages(
        self, which: Which, *, confidence: float = 0.95, together: bool = False, periods: Periods | None = None
    ) -> Call[CollectionAverages]:
        """Estimate the average number in each cell of a table, and how many users of the cell have one.

        With `together`, all intervals of the answer are right at once.
        """
        request = pb.NumbersRequest(
            **about(which, periods), **at(confidence), together=together, averages=pb.AveragesQuestion()
        )
        return Call("Numbers", request, CollectionAverages.of, long=True)

    @asked
    def map(
        self,
        which: Which,
        areas: Iterable[Area] | None = None,
        *,
        confidence: float = 0.95,
        together: bool = False,
        periods: Periods | None = None,
    ) -> Call[CollectionAreas]:
        """Estimate how many users are in each of these areas of a map: ((first, last), (first, last)) of both fields.

        Without areas: in each tile of the map. With `together`, all intervals are right at once.
        """
        question = areas_to_wire(areas or ())
        if areas is not None and not question.areas:
            raise InvalidSpec("ask for at least one area, or for the whole map")
        request = pb.NumbersRequest(**about(which, periods), **at(confidence), together=together, areas=question)
        return Call("Numbers", request, CollectionAreas.of, long=True)

    @asked
    def quantiles(
        self,
        which: Which,
        shares: Iterable[float] = (0.5,),
        *,
        confidence: float = 0.95,
        together: bool = False,
        periods: Periods | None = None,
    ) -> Call[CollectionQuantiles]:
        """Estimate the numbers at or below which these shares of the numbers lie; 0.5 is the median.

        With `together`, the intervals are right for all quantiles at once.
        """
        shares_asked = pb.QuantilesQuestion(shares=shares)
        request = pb.NumbersRequest(
            **about(which, periods), **at(confidence), together=together, quantiles=shares_asked
        )
        return Call("Numbers", request, CollectionQuantiles.of, long=True)

    @asked
    def ranges(
        self,
        which: Which,
        between: Iterable[Between],
        *,
        confidence: float = 0.95,
        together: bool = False,
        periods: Periods | None = None,
    ) -> Call[CollectionRanges]:
        """Estimate how many users' numbers lie in each of these ranges, given by their first and last integers."""
        wanted = [pb.Between(first=str(first), last=str(last)) for first, last in between]
        return _ranges(about(which, periods), pb.RangesQuestion(between=wanted), confidence, together=together)

    @asked
    def histogram(
        self,
        which: Which,
        bins: int = 10,
        *,
        confidence: float = 0.95,
        together: bool = False,
        periods: Periods | None = None,
    ) -> Call[CollectionRanges]:
        """Cut the domain into so many ranges and estimate how many users' numbers lie in each."""
        return _ranges(about(which, periods), pb.RangesQuestion(bins=bins), confidence, together=together)

    @asked
    def attributes(
        self,
        which: Which,
        *,
        top: int | None = None,
        confidence: float = 0.95,
        together: bool = False,
        periods: Periods | None = None,
    ) -> Call[CollectionAttributes]:
        """Estimate how many users hold each attribute: all of them, or the `top` N.

        With `together` or `top`, the intervals are right for all attributes at once.
        """
        request = pb.AttributesRequest(**about(which, periods), **at(confidence), top=_top(top), together=together)
        return Call("Attributes", request, CollectionAttributes.of, long=True)

    @asked
    def pairs(
        self,
        which: Which,
        *,
        top: int | None = None,
        confidence: float = 0.95,
        together: bool = False,
        periods: Periods | None = None,
    ) -> Call[CollectionAttributes]:
        """Estimate how many users hold both attributes of each pair: all pairs, or the `top` N."""
        request = pb.AttributesRequest(
            **about(which, periods), pairs=True, **at(confidence), top=_top(top), together=together
        )
        return Call("Attributes", request, CollectionAttributes.of, long=True)

    @asked
    def table(
        self,
        which: Which,
        fields: Iterable[str] = (),
        *,
        where: Where | None = None,
        top: int | None = None,
        confidence: float = 0.95,
        threshold: float | None = None,
        together: bool = False,
        periods: Periods | None = None,
    ) -> Call[CollectionEstimates]:
        """Estimate how many users are in each cell of a table: every cell, or the `top` N.

        Of a domain of attributes: who holds exactly which set. Of a domain of records: the table of these `fields`, for
        all users or for those of a slice: `where={"age": range(18, 26)}`. `where` alone counts those whom it names.
        """
        request = _estimating(which, confidence, threshold, periods)
        request.fields.extend(fields)
        request.where.extend(_slices(where or {}))
        request.together = together
        if top is None:
            request.all.SetInParent()
        else:
            request.top.count = top
        return _estimates(request)

    @asked
    def conditions(
        self,
        which: Which,
        conditions: Iterable[Condition | str],
        *,
        confidence: float = 0.95,
        threshold: float | None = None,
        together: bool = False,
        periods: Periods | None = None,
    ) -> Call[CollectionEstimates]:
        """Estimate how many users fulfil each of some conditions on the fields of records, up to 1,000 in one answer.

        A condition may be a text, such as "age: 2..5; dark: yes". An item of the answer is a condition's name.
        """
        request = _estimating(which, confidence, threshold, periods)
        request.together = together
        request.conditions.extend(
            pb.Condition(name=one)
            if isinstance(one, str)
            else pb.Condition(name=one.name, where=_slices(one.where), otherwise=one.otherwise)
            for one in conditions
        )
        if not request.conditions:
            raise InvalidSpec("ask for at least one condition")
        return _estimates(request)

    @asked
    def tables(self, which: Which, *, periods: Periods | None = None) -> Call[CollectionTables]:
        """Estimate all tables of the fields of records at once, and which sets of fields have a signal.

        `.synthetic(records)` of the answer makes synthetic records that have these tables.
        """
        request = pb.TablesRequest(**about(which, periods))
        return Call("Tables", request, CollectionTables.of, long=True)

    @asked
    def periods(self, which: Which, periods: Periods | None = None) -> Call[CollectionPeriods]:
        """List the periods that have reports, of a question with a schedule."""
        request = pb.ListPeriodsRequest(**about(which, periods))
        return Call("ListPeriods", request, CollectionPeriods.of, long=True)


def _how(how: HowFound) -> dict[str, Any]:
    """Return the fields of a request that say how its items are found."""
    unknown = set(how) - HowFound.__annotations__.keys()
    if unknown:
        raise TypeError(f"heavy_hitters() got an unexpected keyword argument {unknown.pop()!r}")
    copies = how.get("copies", "weighed")
    if copies not in _COPIES:
        raise InvalidSpec(f"copies are {' or '.join(_COPIES)}, not {copies!r}")
    return {"copies": _COPIES[copies], "exploratory": how.get("exploratory", False)}


def _name(request: pb.HeavyHittersRequest, dictionary: Words | str | None) -> None:
    """Write the dictionary of a search, or where the server takes it from."""
    if isinstance(dictionary, str) and dictionary == "earlier":
        request.dictionary_source = pb.EARLIER_LIST
    elif isinstance(dictionary, tuple) and not dictionary:
        request.dictionary_source = pb.NO_DICTIONARY
    elif dictionary is not None:
        request.dictionary = packed(dictionary)


def _begin(request: pb.HeavyHittersRequest, start: Iterable[Item] | HeavyHitters | str | None) -> None:
    """Write what a search begins with."""
    if isinstance(start, str):
        if start != "last":
            raise InvalidSpec("a search starts with a list of items, with an earlier answer, or with 'last'")
        request.beginning = pb.LAST
    elif start is not None:
        items = (row.item for row in start.items) if isinstance(start, HeavyHitters) else start
        request.start.extend(item_to_wire(item) for item in items)
        if not request.start:
            request.beginning = pb.BLANK


def _searched(
    request: pb.HeavyHittersRequest, progress: Callable[[str, float], None] | None
) -> Pieces[CollectionHeavyHitters]:
    """Return the call: messages of progress, and last the list."""

    def take(event: pb.HeavyHittersResponse) -> CollectionHeavyHitters | None:
        if event.WhichOneof("event") == "result":
            return CollectionHeavyHitters.of(event.result)
        if progress is not None:
            progress(event.progress.stage, event.progress.fraction)
        return None

    def end() -> CollectionHeavyHitters:
        raise Unavailable("the server ended the search without a result: try again")

    return Pieces("HeavyHitters", request, take, end)


def about(which: Which, periods: Periods | None) -> dict[str, Any]:
    """Return the fields of a request that name a collection and its periods."""
    return {**named(which), "periods": asked_periods(periods)}


def _estimating(
    which: Which, confidence: float, threshold: float | None, periods: Periods | None
) -> pb.EstimateRequest:
    return pb.EstimateRequest(**about(which, periods), **at(confidence), threshold=threshold or 0.0)


def _estimates(request: pb.EstimateRequest) -> Call[CollectionEstimates]:
    def read(response: pb.EstimateResponse) -> CollectionEstimates:
        return replace(CollectionEstimates.of(response), threshold=request.threshold or None)

    return Call("Estimate", request, read, long=True)


def _slices(where: Where) -> list[pb.Slice]:
    return [pb.Slice(field=name, items=[value_to_wire(one) for one in values]) for name, values in where.items()]


def areas_to_wire(areas: Iterable[Area]) -> pb.AreasQuestion:
    """Return the message for areas of a map."""
    wanted = [
        pb.Area(**{name: pb.Between(first=str(a), last=str(b)) for name, (a, b) in zip("xy", area, strict=True)})
        for area in areas
    ]
    return pb.AreasQuestion(areas=wanted)


def value_to_wire(value: FieldItem) -> pb.Item:
    """Return the message for a value of a field."""
    return item_to_wire(("no", "yes")[value] if isinstance(value, bool) else value)


def _ranges(
    about: dict[str, Any], asking: pb.RangesQuestion, confidence: float, *, together: bool
) -> Call[CollectionRanges]:
    request = pb.NumbersRequest(**about, **at(confidence), together=together, ranges=asking)
    return Call("Numbers", request, CollectionRanges.of, long=True)


def at(confidence: float) -> dict[str, Any]:
    """The fields of a request that say how sure its intervals are."""
    return {"confidence": float(confidence), "every_look": isinstance(confidence, EveryLook)}


def _top(top: int | None) -> int:
    if top is not None and top < 1:
        raise InvalidSpec("ask for at least one attribute")
    return top or 0


def named(which: Which) -> dict[str, Any]:
    """The fields of a request that name a collection."""
    if isinstance(which, Collection):
        return {"collection_id": which.id}
    if isinstance(which, bytes):
        return {"collection_id": which}
    if not isinstance(which, str) or not re.fullmatch(r"[0-9a-f]{4,64}", which):
        raise InvalidSpec("name a collection by its id, by at least the first four digits of its id, or by its file")
    return {"id_prefix": which}
