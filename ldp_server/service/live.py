"""The collections as the running server holds them, and when they take batches.

A live collection is all that ingest needs to know of one collection, worked out once. It is replaced only when an
operator creates, closes, deletes or compacts the collection.

Clocks differ. So batches are taken from a little before a window opens until a little after it closes, on the server's
clock (`WINDOW_SLACK_SECONDS`). Where reports pass through a relay, they are taken for a week after the window, because
the relay releases the last ones when it is over (`RELAY_SLACK_SECONDS`). Only then a collection has ended and may be
compacted. What an operator has closed, and what is compacted, takes nothing at any time: the batch ids of a compacted
collection are gone, and with them the means to count a batch once.
"""

from __future__ import annotations

import logging
import re
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import Protocol

import grpc

from ldp_client.collection import Collection
from ldp_client.errors import InvalidSpec, ServerRefused
from ldp_client.privacy.statement import privacy_statement
from ldp_client.protocol.reasons import RELAY_SLACK_SECONDS, WINDOW_SLACK_SECONDS
from ldp_server.arrays.packing import unpack
from ldp_server.service.logs import event
from ldp_server.service.signed_list import ListPublisher
from ldp_server.service.wire import CallStatus
from ldp_server.store import CollectionRecord
from ldp_server.store.damage import check_spec
from ldp_server.store.errors import Corrupt

__all__ = ["PREFIX", "Arrivals", "LiveCollection", "LiveCollections", "Naming"]

PREFIX = re.compile("[0-9a-f]{4,64}")


class Naming(Protocol):
    """A request that names a collection."""

    collection_id: bytes
    id_prefix: str


_HOUR = 3600
_HOURS = 7 * 24
_DAY = 86_400


class Arrivals:
    """How many reports a collection takes, as this process has seen it: by the hour, for a week. It is not stored."""

    def __init__(self) -> None:
        self._hours: deque[tuple[int, int]] = deque(maxlen=_HOURS + 1)
        self._since: float | None = None

    def note(self, reports: int, now: float) -> None:
        """Count reports that were made durable now."""
        if self._since is None:
            self._since = now
        hour = int(now // _HOUR)
        before = self._hours.pop() if self._hours and self._hours[-1][0] >= hour else (hour, 0)
        self._hours.append((before[0], before[1] + reports))

    def rate(self, now: float) -> tuple[float, int]:
        """Return the reports a day and over how many seconds that is; both 0 if less than an hour was seen."""
        if self._since is None:
            return 0.0, 0
        first = int(now // _HOUR) - _HOURS + 1
        begins = max(self._since, first * _HOUR)
        seconds = int(now - begins)
        if seconds < _HOUR:
            return 0.0, 0
        reports = sum(count for hour, count in self._hours if hour >= first)
        return reports * _DAY / seconds, seconds


class LiveCollection:
    """One collection, as ingest sees it."""

    __slots__ = (
        "arrivals", "beside", "bound", "closes", "collection", "label", "opens", "period_seconds", "periods", "record",
        "sealed_reason", "statement",
        "takes_from", "takes_until", "width",
    )  # fmt: skip

    def __init__(self, record: CollectionRecord, collection: Collection, label: str) -> None:
        self.record = record
        self.collection = collection
        self.label = label
        self.width = collection.randomizer.report_bytes
        self.bound = collection.randomizer.bound
        self.opens = collection.opens
        self.closes = collection.closes
        self.periods = collection.periods
        self.period_seconds = 0 if collection.schedule is None else collection.schedule.period_seconds
        self.takes_from = collection.opens - WINDOW_SLACK_SECONDS
        self.takes_until = collection.closes + (RELAY_SLACK_SECONDS if collection.relayed else WINDOW_SLACK_SECONDS)
        self.sealed_reason = _sealed_reason(record)
        self.arrivals = Arrivals()
        self.statement: tuple[str, ...] = ()
        """The privacy statement, once it has been asked for."""
        self.beside: dict[str, tuple[float, bytes]] = {}
        """What stands beside an answer of each kind, and when it was written."""

    def write_statement(self) -> tuple[str, ...]:
        """Write the privacy statement, which is the same for every answer. It may take some milliseconds."""
        self.statement = privacy_statement(self.collection).lines
        return self.statement

    def refusal_reason(self, now: float) -> str | None:
        """Why no batch is taken at this time, or None."""
        if self.sealed_reason is not None:
            return self.sealed_reason
        if now < self.takes_from:
            return "NOT_YET_OPEN"
        return "WINDOW_CLOSED" if now >= self.takes_until else None

    def period_reason(self, period: int, now: float) -> str | None:
        """Why no batch of this period is taken at this time, or None.

        A period comes from the sender's own clock and lies in the window by this clock. So it is the begin of a period
        that clocks may differ about.
        """
        if not self.periods[0] <= period <= self.periods[1]:
            return "WRONG_PERIOD"
        if period < self.record.oldest:
            return "PERIOD_OVER"
        if period * self.period_seconds > now + WINDOW_SLACK_SECONDS:
            return "PERIOD_NOT_BEGUN"
        return None


def _sealed_reason(record: CollectionRecord) -> str | None:
    if record.deleted is not None:
        return "COLLECTION_DELETED"
    if record.closed is not None:
        return "COLLECTION_CLOSED"
    return "WINDOW_CLOSED" if record.compacted else None


class LiveCollections:
    """All collections of one server, deleted ones included. Every change goes on to the public list."""

    def __init__(self, label: Callable[[bytes], str], publisher: ListPublisher) -> None:
        self._label = label
        self.publisher = publisher
        self._by_id: dict[bytes, LiveCollection] = {}
        self._by_number: dict[int, LiveCollection] = {}
        self.unreadable: list[bytes] = []
        """Ids of collections that this version does not understand (written by a newer one)."""
        self.surely_missing: Callable[[bytes], bool] = lambda _: True
        """Whether an id that is not here is nowhere in the store; False: that is being looked up."""
        self.damaged: list[bytes] = []
        """Ids of collections whose row does not fit its id; the others are served."""

    def put(self, record: CollectionRecord) -> None:
        """Hold a collection as its row says it is now."""
        known = self._by_id.get(record.id)
        try:
            check_spec(record)
        except Corrupt as error:
            self.damaged.append(record.id)
            if record.public and not self.publisher.lists(record.id):
                self.publisher.withhold("the row of a collection is damaged")
            event(logging.ERROR, "a collection is not served", collection=record.id.hex()[:12], reason=str(error))
            return
        try:
            collection = known.collection if known else Collection.from_bytes(record.spec)
        except InvalidSpec:
            self.unreadable.append(record.id)
            return
        live = LiveCollection(record, collection, self._label(record.id))
        if known is not None:
            live.arrivals = known.arrivals
        self._by_id[record.id] = live
        self._by_number[record.number] = live
        self.publisher.put(record)

    def __len__(self) -> int:
        return len(self._by_id)

    def __iter__(self) -> Iterator[LiveCollection]:
        """In the order of creation."""
        return iter(sorted(self._by_number.values(), key=lambda live: live.record.number))

    @property
    def list_is_full(self) -> bool:
        """Whether the public list can take no further collection."""
        return self.publisher.is_full

    def get(self, collection_id: bytes) -> LiveCollection | None:
        return self._by_id.get(collection_id)

    def numbered(self, number: int) -> LiveCollection:
        return self._by_number[number]

    def find(self, request: Naming) -> LiveCollection:
        """The collection that a request names by its id or by the first digits of it, deleted ones included."""
        if request.id_prefix:
            return self._find_prefix(request)
        live = self._by_id.get(request.collection_id)
        if live is None:
            raise CallStatus(grpc.StatusCode.NOT_FOUND, "no such collection here")
        return live

    def find_kept(self, request: Naming) -> LiveCollection:
        """The collection that a request names, unless it was deleted."""
        live = self.find(request)
        if live.record.deleted is not None:
            raise CallStatus(grpc.StatusCode.NOT_FOUND, "this collection was deleted")
        return live

    def _find_prefix(self, request: Naming) -> LiveCollection:
        prefix = request.id_prefix
        if request.collection_id:
            raise InvalidSpec("name a collection by collection_id or by id_prefix, not by both")
        if not PREFIX.fullmatch(prefix):
            raise InvalidSpec("id_prefix is 4 to 64 digits of an id, in lower-case hexadecimal")
        found = [live for live in self._by_id.values() if live.record.id.hex().startswith(prefix)]
        if not found:
            raise CallStatus(grpc.StatusCode.NOT_FOUND, f"no collection has an id that begins with {prefix}")
        if len(found) > 1:
            raise InvalidSpec(f"{len(found)} collections have an id that begins with {prefix}: give more digits")
        return found[0]

    def in_range(self, number: int, payloads: Sequence[bytes]) -> Sequence[bool]:
        """Which payloads hold only reports below the bound: all of them are checked at once, then one by one if needed.

        Called on the writer thread.
        """
        live = self._by_number[number]
        if _sound(b"".join(payloads), live):
            return [True] * len(payloads)
        return [_sound(payload, live) for payload in payloads]


def _sound(payload: bytes, live: LiveCollection) -> bool:
    try:
        unpack(payload, live.width, live.bound)
    except ServerRefused:
        return False
    return True
