"""The report log: what every store must do.

A log keeps submissions exactly once. `append` returns when they are durable and says what became of each. A batch id
that returns with the same payload and period is a `DUPLICATE` and is not kept again; with others it is a `CONFLICT`.

Batches are kept by period. Each period of a collection has a record with a number of its own, and a question without a
schedule has one period. A batch is recent at first. It gets a sequence number when the recent batches of its period
become a block. A block keeps nothing of the order in which its batches came, and is final: sequence numbers only grow.
`read` gives what is in blocks, `recent` the rest, `read_all` both; all of them go by the number of a period's record.
Everything else that the server knows (counts, estimates) is additive state
that can be rebuilt from them.

These are the types that go in and out. What a store does with them is in interface/.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import IntEnum
from typing import NamedTuple

__all__ = [
    "KINDS",
    "NUMBER_BITS",
    "TOKEN_KINDS",
    "Admission",
    "AppendOutcome",
    "CollectionRecord",
    "Fold",
    "FoldPart",
    "NewCollection",
    "PeriodRecord",
    "StoredBatch",
    "Submission",
    "fold_parts",
]

PART = 4_000_000
"""Bytes of folded counts in one transaction."""
NUMBER_BITS = 23
"""Numbers of collections and of periods' records have so many bits. Of a store of several databases, the bits above
them say in which one a period's record is.
"""


class AppendOutcome(IntEnum):
    """What became of a submission."""

    STORED = 0
    DUPLICATE = 1
    CONFLICT = 2
    TOKEN_USED = 3
    SEALED = 4
    """The collection was closed, deleted or compacted while the submission waited."""
    OUT_OF_RANGE = 5
    PERIOD_OVER = 6
    """The collection takes no more reports of this period (retention)."""


class Submission(NamedTuple):
    """A batch that passed the service's checks, on its way into the log."""

    collection: int
    batch_id: bytes
    digest: bytes
    """The first 16 bytes of SHA-256(payload)."""
    payload: bytes
    token_id: bytes | None = None
    period: int = 0
    units: bytes = b""
    """Digests (protocol/sealing.py) of the sealed units that the reports were in, each once. Stored with the batch."""

    def __repr__(self) -> str:
        return f"Submission(collection={self.collection}, {len(self.payload)} bytes)"


class StoredBatch(NamedTuple):
    """A batch as the log holds it."""

    sequence: int
    """0 while the batch is recent."""
    batch_id: bytes
    payload: bytes

    def __repr__(self) -> str:
        return f"StoredBatch(sequence={self.sequence}, {len(self.payload)} bytes)"


TOKEN_KINDS = frozenset({"linkable-token", "unlinkable-token"})
KINDS = frozenset({"open", "certificate"}) | TOKEN_KINDS
"""The kinds of admission."""


class Admission(NamedTuple):
    """Who may submit to a collection: one of `KINDS`."""

    kind: str = "open"
    reports_per_token: int = 1


class NewCollection(NamedTuple):
    """A collection that is to be entered."""

    id: bytes
    spec: bytes
    public: bool
    admission: Admission
    created: int


@dataclass(frozen=True, slots=True)
class CollectionRecord:
    """What the store knows of a collection. Times are seconds since 1970."""

    number: int
    id: bytes
    spec: bytes
    public: bool
    admission: Admission
    created: int
    closed: int | None
    deleted: int | None
    compacted: bool = False
    """All its reports are counts."""
    oldest: int = 0
    """The first period of which it takes reports."""
    periods: int = 0
    """How many periods it has had reports of; of a store of several databases, in the first of them."""
    shards: int = 1
    """Over how many databases of a store its batches are spread. It never changes (store/sharded)."""

    @property
    def sealed(self) -> bool:
        """Whether the log takes no more batches of it, at any time."""
        return self.closed is not None or self.deleted is not None or self.compacted


@dataclass(frozen=True, slots=True)
class PeriodRecord:
    """What the store knows of one period of a collection. In a store of several databases a period has such a record in
    each of them that has reports of it, with counts of its own.
    """

    number: int
    """Of this record. The only period of a question without a schedule has the number of its collection, in the first
    database.
    """
    collection: int
    period: int
    folded: int
    """The last sequence whose reports are in the folded counts."""
    folded_batches: int
    folded_reports: int
    generation: int | None
    """Which folded counts are in force; None before folding."""
    dropped: bool
    """Its counts were dropped too."""
    deleted: bool
    """Its collection was deleted."""

    @property
    def shard(self) -> int:
        """In which database of a store this record is; 0 where there is one."""
        return self.number >> NUMBER_BITS


class FoldPart(NamedTuple):
    """A piece of a period's folded counts."""

    number: int
    generation: int
    part: int
    data: bytes


@dataclass(frozen=True, slots=True)
class Fold:
    """Counts that take the place of a period's reports: written in parts before, `size` bytes in all."""

    number: int
    generation: int
    size: int
    sequence: int
    batches: int
    reports: int


def fold_parts(number: int, generation: int, state: bytes, size: int = PART) -> Iterator[FoldPart]:
    """Cut folded counts into parts, so that ingest never waits for a long transaction."""
    for part, start in enumerate(range(0, max(1, len(state)), size)):
        yield FoldPart(number, generation, part, state[start : start + size])
