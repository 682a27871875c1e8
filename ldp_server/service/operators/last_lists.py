"""The last lists of popular items that this server found, for searches that begin with one or take one as a dictionary.

They are held in memory, so a server that was started anew has none. A list to begin with that is missing, old or of
other periods costs time and changes nothing else: its items must reach what all others must reach.

A dictionary lowers bars, so it must not know the reports that are searched (ldp_server/heavy_hitters/dictionary.py). A
search of periods takes the list of the latest earlier ones. Reports of other periods have coins of their own, so what
they say is independent of the noise here. For every list the server knows the newest period that had a part in it: its
own, that of the list which its search began with, and that of its dictionary. Only lists of which all this is earlier
are taken. Nobody knows where items and dictionaries come from that an analyst gave. So a list that was found with them
is no dictionary.

The noise is new in each period, but the cells of items are the same. So such candidates have one more test
(ldp_server/heavy_hitters/search/candidates.py).
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable
from dataclasses import dataclass

from ldp_client.collection import Collection
from ldp_client.errors import InvalidSpec
from ldp_client.protocol.v1 import analyst_pb2 as pb
from ldp_server.answers.over_time.periods import PeriodSpan, span_of
from ldp_server.answers.wire import item_from_wire
from ldp_server.heavy_hitters.dictionary import nameable, packed

__all__ = ["LastLists", "Prepared", "asked_span"]

MOST_BYTES = 8 << 20
_BEGINNINGS = (pb.BEGINNING_UNSPECIFIED, pb.BLANK, pb.LAST)
_SOURCES = (pb.DICTIONARY_UNSPECIFIED, pb.NO_DICTIONARY, pb.EARLIER_LIST)
_MOST_ITEMS = 2000


@dataclass(frozen=True)
class Prepared:
    """A request with what the server adds to it."""

    request: pb.HeavyHittersRequest
    newest: int | None
    """The newest period that has a part in the list that will be found; None: nobody knows."""
    earlier: PeriodSpan | None
    """The periods whose list is the dictionary."""


@dataclass(frozen=True)
class _List:
    span: PeriodSpan | None
    """The periods that it is about; None: all reports."""
    items: tuple[pb.Item, ...]
    size: int
    newest: int | None

    @property
    def ends(self) -> int | None:
        return None if self.span is None else self.span.last


class LastLists:
    """The newest list of each collection and span of periods, at most so many bytes of them."""

    def __init__(self, most_bytes: int = MOST_BYTES) -> None:
        self._most = most_bytes
        self._lists: OrderedDict[tuple[int, int | None, int | None], _List] = OrderedDict()

    @property
    def bytes(self) -> int:
        return sum(one.size for one in self._lists.values())

    def prepared(self, number: int, span: PeriodSpan | None, request: pb.HeavyHittersRequest) -> Prepared:
        """Return the request with what its search begins with, and with its dictionary.

        `LAST` and `EARLIER_LIST` say that they are lists of this server.
        """
        _check(request, span)
        found = pb.HeavyHittersRequest()
        found.CopyFrom(request)
        newest = None if span is None or request.start or request.dictionary else span.last
        asked = request.beginning
        if asked == pb.LAST or (asked == pb.BEGINNING_UNSPECIFIED and span is not None and not request.start):
            found.beginning = pb.LAST
            last = self._last(number, span)
            if last is not None:
                found.start.extend(last.items)
                newest = None if newest is None or last.newest is None else max(newest, last.newest)
        earlier = self._earlier(number, span) if _takes_earlier(request, span) else None
        words = [] if earlier is None else [*filter(nameable, map(item_from_wire, earlier.items))]
        if earlier is None or not words:
            return Prepared(found, newest, None)
        found.dictionary, found.dictionary_source = packed(words), pb.EARLIER_LIST
        return Prepared(found, newest, earlier.span)

    def remember(self, number: int, span: PeriodSpan | None, items: Iterable[pb.Item], newest: int | None) -> None:
        """Take the list of the collection with this number; an empty one does not replace an older one."""
        kept = tuple(items)[:_MOST_ITEMS]
        if not kept:
            return
        first, last = (None, None) if span is None else (span.first, span.last)
        self._lists.pop((number, first, last), None)
        self._lists[number, first, last] = _List(span, kept, sum(item.ByteSize() for item in kept), newest)
        while self.bytes > self._most:
            self._lists.popitem(last=False)

    def recall(self, number: int, span: PeriodSpan | None) -> tuple[pb.Item, ...]:
        """Return the list of these periods, or else the latest of periods that ended before or with them.

        Without a span: the list of the whole collection, or else the latest of any of its periods.
        """
        found = self._last(number, span)
        return () if found is None else found.items

    def _last(self, number: int, span: PeriodSpan | None) -> _List | None:
        mine = {key[1:]: one for key, one in self._lists.items() if key[0] == number}
        same = mine.get((None, None) if span is None else (span.first, span.last))
        if same is not None:
            return same
        earlier = [one for one in mine.values() if span is None or (one.ends is not None and one.ends <= span.last)]
        return max(earlier, key=lambda one: one.ends or 0, default=None)

    def _earlier(self, number: int, span: PeriodSpan | None) -> _List | None:
        """Return the latest list in which only periods before these had a part."""
        if span is None:
            return None
        mine = [one for key, one in self._lists.items() if key[0] == number]
        earlier = [one for one in mine if one.newest is not None and one.newest < span.first]
        return max(earlier, key=lambda one: one.ends or 0, default=None)

    def forget(self, number: int) -> None:
        """Forget the lists of a collection."""
        for key in [key for key in self._lists if key[0] == number]:
            del self._lists[key]


def _check(request: pb.HeavyHittersRequest, span: PeriodSpan | None) -> None:
    """Refuse what contradicts itself."""
    if request.beginning not in _BEGINNINGS:
        raise InvalidSpec("a search begins with no items, with given ones or with the last list")
    if request.start and request.beginning != pb.BEGINNING_UNSPECIFIED:
        raise InvalidSpec("begin with given items or with the last list, not with both")
    if request.dictionary_source not in _SOURCES:
        raise InvalidSpec("a search takes no dictionary, a given one or the list of earlier periods")
    if request.dictionary and request.dictionary_source != pb.DICTIONARY_UNSPECIFIED:
        raise InvalidSpec("give a dictionary, or take the list of earlier periods, not both")
    if request.dictionary_source == pb.EARLIER_LIST and span is None:
        raise InvalidSpec("the list of earlier periods is a dictionary for a search of periods: name the periods")


def _takes_earlier(request: pb.HeavyHittersRequest, span: PeriodSpan | None) -> bool:
    """Whether the dictionary is the list of earlier periods, if there is one."""
    if request.dictionary:
        return False
    asked = request.dictionary_source
    return asked == pb.EARLIER_LIST or (asked == pb.DICTIONARY_UNSPECIFIED and span is not None)


def asked_span(collection: Collection, request: pb.HeavyHittersRequest) -> PeriodSpan | None:
    """Return the periods that a request names; None: all reports."""
    return span_of(collection, request.periods) if request.HasField("periods") else None
