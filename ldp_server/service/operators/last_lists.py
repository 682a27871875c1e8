"""The last lists of popular items that this server found, for searches that begin with one of them.

They are held in memory, so a server that was started anew has none. A list that is missing, old or of other periods
costs time and changes nothing else: its items must reach what all others must reach (ldp_server/heavy_hitters).
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable
from dataclasses import dataclass

from ldp_client.collection import Collection
from ldp_client.errors import InvalidSpec
from ldp_client.protocol.v1 import analyst_pb2 as pb
from ldp_server.answers.over_time.periods import PeriodSpan, span_of

__all__ = ["LastLists", "asked_span"]

MOST_BYTES = 8 << 20
_BEGINNINGS = (pb.BEGINNING_UNSPECIFIED, pb.BLANK, pb.LAST)
_MOST_ITEMS = 2000


@dataclass(frozen=True)
class _List:
    ends: int | None
    """The last period that it is about; None for a question without a schedule."""
    items: tuple[pb.Item, ...]
    size: int


class LastLists:
    """The newest list of each collection and span of periods, at most so many bytes of them."""

    def __init__(self, most_bytes: int = MOST_BYTES) -> None:
        self._most = most_bytes
        self._lists: OrderedDict[tuple[int, int | None, int | None], _List] = OrderedDict()

    @property
    def bytes(self) -> int:
        return sum(one.size for one in self._lists.values())

    def beginning(
        self, number: int, span: PeriodSpan | None, request: pb.HeavyHittersRequest
    ) -> pb.HeavyHittersRequest:
        """Return the request with what its search begins with; `LAST` says that it is a list of this server."""
        asked = request.beginning
        if asked not in _BEGINNINGS:
            raise InvalidSpec("a search begins with no items, with given ones or with the last list")
        if request.start:
            if asked != pb.BEGINNING_UNSPECIFIED:
                raise InvalidSpec("begin with given items or with the last list, not with both")
            return request
        found = pb.HeavyHittersRequest()
        found.CopyFrom(request)
        if asked == pb.LAST or (asked == pb.BEGINNING_UNSPECIFIED and span is not None):
            found.beginning = pb.LAST
            found.start.extend(self.recall(number, span))
        return found

    def remember(self, number: int, span: PeriodSpan | None, items: Iterable[pb.Item]) -> None:
        """Take the list of the collection with this number; an empty one does not replace an older one."""
        kept = tuple(items)[:_MOST_ITEMS]
        if not kept:
            return
        first, last = (None, None) if span is None else (span.first, span.last)
        self._lists.pop((number, first, last), None)
        self._lists[number, first, last] = _List(last, kept, sum(item.ByteSize() for item in kept))
        while self.bytes > self._most:
            self._lists.popitem(last=False)

    def recall(self, number: int, span: PeriodSpan | None) -> tuple[pb.Item, ...]:
        """Return the list of these periods, or else the latest of periods that ended before or with them.

        Without a span: the list of the whole collection, or else the latest of any of its periods.
        """
        mine = {key[1:]: one for key, one in self._lists.items() if key[0] == number}
        same = mine.get((None, None) if span is None else (span.first, span.last))
        if same is not None:
            return same.items
        earlier = [one for one in mine.values() if span is None or (one.ends is not None and one.ends <= span.last)]
        return max(earlier, key=lambda one: one.ends or 0).items if earlier else ()

    def forget(self, number: int) -> None:
        """Forget the lists of a collection."""
        for key in [key for key in self._lists if key[0] == number]:
            del self._lists[key]


def asked_span(collection: Collection, request: pb.HeavyHittersRequest) -> PeriodSpan | None:
    """Return the periods that a request names; None: all reports."""
    return span_of(collection, request.periods) if request.HasField("periods") else None
