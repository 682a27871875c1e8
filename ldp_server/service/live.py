"""What a batch must pass before it may wait for the disk: the collection, its window, the lengths, admission.

A gate is all that ingest needs to know of one collection, worked out once. Gates change only when an operator
creates, closes, deletes or compacts a collection.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ldp_client.collection import Collection
from ldp_client.errors import InvalidSpec, ServerRefused
from ldp_server.arrays.packing import unpack

if TYPE_CHECKING:
    from ldp_server.store import CollectionRecord

__all__ = ["Gate", "Gates"]


class Gate:
    """One collection, as ingest sees it."""

    __slots__ = ("bound", "closes", "collection", "kind", "label", "opens", "per_token", "reason", "record", "width")

    def __init__(self, record: CollectionRecord, collection: Collection, label: str) -> None:
        self.record = record
        self.collection = collection
        self.label = label
        self.width = collection.randomizer.report_bytes
        self.bound = collection.randomizer.bound
        self.opens = collection.opens
        self.closes = collection.closes
        self.kind = record.admission.kind
        self.per_token = record.admission.reports_per_token
        self.reason = _sealed_reason(record)

    def window(self, now: float) -> str | None:
        """Why no batch is taken at this time, or None."""
        if self.reason is not None:
            return self.reason
        if now < self.opens:
            return "NOT_YET_OPEN"
        return "WINDOW_CLOSED" if now >= self.closes else None


def _sealed_reason(record: CollectionRecord) -> str | None:
    if record.deleted is not None:
        return "COLLECTION_DELETED"
    if record.closed is not None:
        return "COLLECTION_CLOSED"
    return None if record.generation is None else "WINDOW_CLOSED"


class Gates:
    """The gates of all collections, by id and by number."""

    def __init__(self) -> None:
        self.by_id: dict[bytes, Gate] = {}
        self._by_number: dict[int, Gate] = {}
        self.unreadable: list[bytes] = []
        """Ids of collections that this version does not understand (written by a newer one)."""

    def put(self, record: CollectionRecord, label: str) -> Gate | None:
        """Make or renew the gate of a collection."""
        known = self.by_id.get(record.id)
        try:
            collection = known.collection if known else Collection.from_bytes(record.spec)
        except InvalidSpec:
            self.unreadable.append(record.id)
            return None
        gate = Gate(record, collection, label)
        self.by_id[record.id] = gate
        self._by_number[record.number] = gate
        return gate

    def __len__(self) -> int:
        return len(self.by_id)

    def in_range(self, number: int, payloads: Sequence[bytes]) -> Sequence[bool]:
        """Which payloads hold only reports below the bound: one look at all of them, then at each if need be."""
        gate = self._by_number[number]
        if _sound(b"".join(payloads), gate):
            return [True] * len(payloads)
        return [_sound(payload, gate) for payload in payloads]


def _sound(payload: bytes, gate: Gate) -> bool:
    try:
        unpack(payload, gate.width, gate.bound)
    except ServerRefused:
        return False
    return True
