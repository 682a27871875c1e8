"""What an analyst asks about a collection: one method a question, one call each, one dataclass an answer.

| method | answered by collections of |
|---|---|
| `estimate` | every mechanism but bounded-number and sampled-attribute |
| `heavy_hitters` | the mechanisms for large domains |
| `average` | bounded-number |
| `quantiles`, `ranges`, `histogram` | hierarchy |
| `attributes` | any mechanism over attributes |
| `pairs`, `table` | the same but sampled-attribute |

Any other collection refuses in a sentence that says which mechanism answers: `ServerRefused`, FAILED_PRECONDITION.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Any, Literal

from google.protobuf.message import Message

from ldp_client.collection import Collection
from ldp_client.errors import InvalidSpec, Unavailable
from ldp_client.protocol.domain import Item
from ldp_client.protocol.v1 import analyst_pb2 as pb
from ldp_server.analyst.answers import (
    CollectionAttributes,
    CollectionAverage,
    CollectionEstimates,
    CollectionHeavyHitters,
    CollectionQuantiles,
    CollectionRanges,
)
from ldp_server.analyst.connection import Connection, Timeouts
from ldp_server.answers.numbers import Between
from ldp_server.answers.wire import item_to_wire
from ldp_server.heavy_hitters import BETA, check_beta

__all__ = ["Questions", "Which", "named"]

_COPIES = {"weighed": pb.WEIGHED, "once": pb.ONCE}

Which = Collection | bytes | str
"""A collection: itself, its id, or the first digits of its id (at least four)."""


class Questions:
    """The questions about one collection, over a connection."""

    def __init__(self, connection: Connection, timeouts: Timeouts) -> None:
        self._connection = connection
        self._timeouts = timeouts

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
    ) -> CollectionEstimates:
        """Estimate how many users hold an item: the given `items`, the `top` N of them, or every item of the domain.

        Without a choice: the ten most frequent. `threshold` also asks whether each item is held by at least so many
        users. With `together`, the intervals of given items are right for all of them at once.
        """
        if (items is not None) + (top is not None) + every_item > 1:
            raise InvalidSpec("choose one of items, top and every_item")
        request = pb.EstimateRequest(
            **named(which), confidence=confidence, threshold=threshold or 0.0, together=together
        )
        if items is not None:
            request.given.items.extend(item_to_wire(item) for item in items)
        elif every_item:
            request.all.SetInParent()
        else:
            request.top.count = 10 if top is None else top
        return CollectionEstimates.of(self._ask("Estimate", request, long=True))

    def heavy_hitters(
        self,
        which: Which,
        *,
        limit: int = 0,
        beta: float = BETA,
        copies: Literal["weighed", "once"] = "weighed",
        progress: Callable[[str, float], None] | None = None,
    ) -> CollectionHeavyHitters:
        """Find the items that many users hold, in a domain too large to list.

        `limit` is the most items to return (0: as many as the server allows). `beta` is the failure probability of the
        list: half for missing an item that `threshold_all` users hold, half for items from noise. `copies` says how
        reports count that are copies of others: all of them, weighed down, or each different report once. `progress` is
        called with what is being done and how much of it is, from 0 to 1.
        """
        if copies not in _COPIES:
            raise InvalidSpec(f"copies are {' or '.join(_COPIES)}, not {copies!r}")
        request = pb.HeavyHittersRequest(**named(which), limit=limit, beta=check_beta(beta), copies=_COPIES[copies])
        for event in self._connection.stream("HeavyHitters", request, self._timeouts.stream):
            if event.WhichOneof("event") == "result":
                return CollectionHeavyHitters.of(event.result)
            if progress is not None:
                progress(event.progress.stage, event.progress.fraction)
        raise Unavailable("the server ended the search without a result: try again")

    def average(self, which: Which, *, confidence: float = 0.95) -> CollectionAverage:
        """Estimate the average number of those who have one."""
        request = pb.NumbersRequest(**named(which), confidence=confidence, average=pb.AverageQuestion())
        return CollectionAverage.of(self._ask("Numbers", request, long=True))

    def quantiles(
        self, which: Which, shares: Iterable[float] = (0.5,), *, confidence: float = 0.95, together: bool = False
    ) -> CollectionQuantiles:
        """Estimate the numbers at or below which these shares of the numbers lie; 0.5 is the median.

        With `together`, the intervals are right for all quantiles at once.
        """
        asked = pb.QuantilesQuestion(shares=shares)
        request = pb.NumbersRequest(**named(which), confidence=confidence, together=together, quantiles=asked)
        return CollectionQuantiles.of(self._ask("Numbers", request, long=True))

    def ranges(
        self, which: Which, between: Iterable[Between], *, confidence: float = 0.95, together: bool = False
    ) -> CollectionRanges:
        """Estimate how many users' numbers lie in each of these ranges, given by their first and last integers."""
        wanted = [pb.Between(first=str(first), last=str(last)) for first, last in between]
        return self._ranges(which, pb.RangesQuestion(between=wanted), confidence, together=together)

    def histogram(
        self, which: Which, bins: int = 10, *, confidence: float = 0.95, together: bool = False
    ) -> CollectionRanges:
        """Cut the domain into so many ranges and estimate how many users' numbers lie in each."""
        return self._ranges(which, pb.RangesQuestion(bins=bins), confidence, together=together)

    def _ranges(self, which: Which, asked: pb.RangesQuestion, confidence: float, *, together: bool) -> CollectionRanges:
        request = pb.NumbersRequest(**named(which), confidence=confidence, together=together, ranges=asked)
        return CollectionRanges.of(self._ask("Numbers", request, long=True))

    def attributes(
        self, which: Which, *, top: int | None = None, confidence: float = 0.95, together: bool = False
    ) -> CollectionAttributes:
        """Estimate how many users hold each attribute: all of them, or the `top` N.

        With `together` or `top`, the intervals are right for all attributes at once.
        """
        request = pb.AttributesRequest(**named(which), confidence=confidence, top=_top(top), together=together)
        return CollectionAttributes.of(self._ask("Attributes", request, long=True))

    def pairs(
        self, which: Which, *, top: int | None = None, confidence: float = 0.95, together: bool = False
    ) -> CollectionAttributes:
        """Estimate how many users hold both attributes of each pair: all pairs, or the `top` N."""
        request = pb.AttributesRequest(
            **named(which), pairs=True, confidence=confidence, top=_top(top), together=together
        )
        return CollectionAttributes.of(self._ask("Attributes", request, long=True))

    def table(self, which: Which, *, top: int | None = None, confidence: float = 0.95) -> CollectionEstimates:
        """Estimate how many users hold exactly which set of attributes: every set, or the `top` N."""
        return self.estimate(which, top=top, every_item=top is None, confidence=confidence)

    def _ask(self, method: str, request: Message, *, long: bool = False) -> Any:
        timeout = self._timeouts.long if long else self._timeouts.call
        return self._connection.call(method, request, timeout)


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
