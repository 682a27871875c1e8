"""The report log: what a store must do, whatever it is made of.

A log keeps batches exactly once. `append` returns when they are durable and says what became of each; a batch id
that returns with the same payload is a `DUPLICATE` and is not kept again, with another payload a `CONFLICT`.
`read` gives the batches of one collection in the order of their sequence numbers, which only grow. Everything else
that the server knows (counts, estimates) is additive state that can be rebuilt from `read`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import NamedTuple

__all__ = ["Admission", "AppendOutcome", "CollectionRecord", "ReportLog", "StoredBatch", "Submission"]


class AppendOutcome(IntEnum):
    """What became of an appended batch."""

    STORED = 0
    DUPLICATE = 1
    CONFLICT = 2
    TOKEN_USED = 3
    SEALED = 4
    """The collection was closed, deleted or compacted while the batch waited."""
    OUT_OF_RANGE = 5


class Submission(NamedTuple):
    """A checked batch on its way into the log."""

    collection: int
    batch_id: bytes
    digest: bytes
    payload: bytes
    token_id: bytes | None = None

    def __repr__(self) -> str:
        return f"Submission(collection={self.collection}, {len(self.payload)} bytes)"


class StoredBatch(NamedTuple):
    """A batch as the log holds it."""

    sequence: int
    batch_id: bytes
    payload: bytes

    def __repr__(self) -> str:
        return f"StoredBatch(sequence={self.sequence}, {len(self.payload)} bytes)"


class Admission(NamedTuple):
    """Who may submit to a collection: `open`, `certificate` or `token`."""

    kind: str = "open"
    reports_per_token: int = 1


@dataclass(frozen=True, slots=True)
class CollectionRecord:
    """What the store knows of a collection. Times are unix seconds."""

    number: int
    id: bytes
    spec: bytes
    public: bool
    admission: Admission
    created: int
    closed: int | None
    deleted: int | None
    folded: int
    folded_batches: int
    folded_reports: int
    generation: int | None

    @property
    def sealed(self) -> bool:
        """Whether the log takes no more batches of it, whatever the clock says."""
        return self.closed is not None or self.deleted is not None or self.generation is not None


class ReportLog(ABC):
    """Durable batches, exactly once."""

    @abstractmethod
    def append(self, batches: Sequence[Submission]) -> list[AppendOutcome]:
        """Make the batches durable, all in one transaction, and say what became of each.

        Raises `StorageError`, and then keeps none of them.
        """

    @abstractmethod
    def read(self, collection: int, after: int, *, max_bytes: int = ...) -> Iterator[list[StoredBatch]]:
        """The batches of a collection with a sequence above `after`, in order, in lists of about `max_bytes`."""

    @abstractmethod
    def last(self, collection: int) -> int:
        """The newest sequence of a collection, 0 before the first."""
