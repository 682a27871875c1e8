"""The report log: what every store must do.

A log keeps submissions exactly once. `append` returns when they are durable and says what became of each. A batch id
that returns with the same payload and period is a `DUPLICATE` and is not kept again; with others it is a `CONFLICT`.

Batches are kept by period. Each period of a collection has a record with a number of its own, and a question without a
schedule has one period. A batch is recent at first. It gets a sequence number when the recent batches of its period
become a block. A block keeps nothing of the order in which its batches came, and is final: sequence numbers only grow.
`read` gives what is in blocks, `recent` the rest, `read_all` both; all of them go by the number of a period's record.
Everything else that the server knows (counts, estimates) is additive state
that can be rebuilt from them.

    LogReader   reading: any number of readers, in any thread or process
    ReportLog   writing as well: one object, used by one thread (commit.py)

The service and the worker use these two types only. SQLite is the present implementation (sqlite.py).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import NamedTuple

from ldp_server.store.errors import Corrupt

__all__ = [
    "KINDS",
    "TOKEN_KINDS",
    "Admission",
    "AppendOutcome",
    "CollectionRecord",
    "Fold",
    "FoldPart",
    "LogReader",
    "NewCollection",
    "PeriodRecord",
    "ReportLog",
    "StoredBatch",
    "Submission",
    "fold_parts",
]

PART = 4_000_000
"""Bytes of folded counts in one transaction."""


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
    """How many periods it has had reports of."""

    @property
    def sealed(self) -> bool:
        """Whether the log takes no more batches of it, at any time."""
        return self.closed is not None or self.deleted is not None or self.compacted


@dataclass(frozen=True, slots=True)
class PeriodRecord:
    """What the store knows of one period of a collection."""

    number: int
    """Of this record. The only period of a question without a schedule has the number of its collection."""
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


class LogReader(ABC):
    """Reading a log. Every method raises `StorageError` if the log cannot be read."""

    @abstractmethod
    def records(self) -> list[CollectionRecord]:
        """Every collection ever entered, deleted ones included, in the order of their numbers."""

    @abstractmethod
    def record(self, number: int) -> CollectionRecord | None:
        """The collection with this number."""

    @abstractmethod
    def record_of(self, collection_id: bytes) -> CollectionRecord | None:
        """The collection with this id."""

    @abstractmethod
    def periods(self, collection: int) -> list[PeriodRecord]:
        """The periods of a collection that ever had a batch, oldest first."""

    @abstractmethod
    def period(self, number: int) -> PeriodRecord | None:
        """The period whose record has this number."""

    @abstractmethod
    def read(self, number: int, after: int, *, max_bytes: int = ...) -> Iterator[list[StoredBatch]]:
        """The batches in blocks with a sequence above `after`, in order, in lists of about `max_bytes`."""

    @abstractmethod
    def recent(self, number: int, after: int) -> list[StoredBatch] | None:
        """The batches in no block, as of a moment at which `after` was the newest sequence; None if it is not."""

    def read_all(self, number: int, after: int, *, max_bytes: int = 4_000_000) -> Iterator[list[StoredBatch]]:
        """The batches in blocks with a sequence above `after`, then the recent ones; each batch once."""
        recent = None
        while recent is None:
            newest = self.last(number)
            for batches in self.read(number, after, max_bytes=max_bytes):
                yield batches
                after = batches[-1].sequence
            if after < newest:
                record = self.period(number)
                if record is None or record.deleted or record.generation is not None:
                    return  # its reports were dropped meanwhile
                raise Corrupt("the newest batches of a collection cannot be read: restore a backup (docs/operating.md)")
            recent = self.recent(number, after)
        if recent:
            yield recent

    @abstractmethod
    def last(self, number: int) -> int:
        """The newest sequence of a period, 0 before the first block."""

    @abstractmethod
    def count(self, number: int) -> int:
        """How many batches of a period were taken, folded ones included."""

    @abstractmethod
    def held_bytes(self, number: int) -> int:
        """How many bytes of reports of a period the log holds."""

    @abstractmethod
    def check_recent(self, collection: int) -> None:
        """Raise `Corrupt` if recent batches of a collection are in none of its periods."""

    @abstractmethod
    def tie(self, number: int, sequence: int) -> bytes | None:
        """The random tie of the block that ends with `sequence`: it ties a checkpoint of counts to this very log."""

    @abstractmethod
    def known(self, record: PeriodRecord, ids: Sequence[bytes]) -> bool:
        """Whether the log has all of these batches in this period."""

    @abstractmethod
    def counted_units(self, collection: int, digests: Sequence[bytes]) -> set[bytes]:
        """Those of these digests whose sealed units are in a batch of the collection already."""

    @abstractmethod
    def folded_state(self, record: PeriodRecord) -> bytes | None:
        """The folded counts of a period, if there are any."""

    @abstractmethod
    def check(self) -> None:
        """Raise `Corrupt` if the structure of the log is damaged."""

    @abstractmethod
    def interrupt(self) -> None:
        """Make a check that runs in another thread end, with an error."""

    @abstractmethod
    def renew(self) -> None:
        """Open the log anew if its files were replaced since. Nothing may be read at the time."""

    @abstractmethod
    def close(self) -> None:
        """Give back files and connections."""


class ReportLog(LogReader):
    """Writing a log. A method that raises `StorageError` has changed nothing."""

    @abstractmethod
    def append(self, submissions: Sequence[Submission]) -> list[AppendOutcome]:
        """Make the submissions durable, all in one transaction, and say what became of each."""

    @abstractmethod
    def add(self, new: NewCollection) -> CollectionRecord:
        """Enter a collection whose id is not known yet."""

    @abstractmethod
    def close_collection(self, number: int, when: int) -> CollectionRecord:
        """Note that the operator closed a collection; its batches are refused from now on."""

    @abstractmethod
    def delete_collection(self, number: int, when: int) -> CollectionRecord:
        """Note that a collection was deleted; `sweep` drops what it held."""

    @abstractmethod
    def seal(self, number: int) -> None:
        """Refuse the collection's batches from now on, until `unseal` or the end of the process."""

    @abstractmethod
    def unseal(self, number: int) -> None:
        """Take `seal` back, unless the collection was closed, deleted or compacted."""

    @abstractmethod
    def take_from(self, number: int, oldest: int) -> CollectionRecord:
        """Take no more batches of periods before `oldest`. The latest period that was ever given stands."""

    @abstractmethod
    def finish(self, number: int) -> None:
        """Put a period's recent batches into a block, however few: for a period that takes no more of them."""

    @abstractmethod
    def write_part(self, part: FoldPart) -> None:
        """Write a piece of folded counts. Nothing refers to it before `fold`."""

    @abstractmethod
    def fold(self, fold: Fold) -> PeriodRecord:
        """Put folded counts in force; the period takes no more batches.

        Refused if there are batches after `fold.sequence`, or if parts are missing.
        """

    @abstractmethod
    def drop_period(self, number: int) -> PeriodRecord:
        """Drop the folded counts of a period. `sweep` removes them."""

    @abstractmethod
    def compact(self, number: int) -> CollectionRecord:
        """Note that all reports of a collection are counts. Refused while a period is not folded."""

    @abstractmethod
    def sweep(self) -> bool:
        """Drop one slice of what nothing refers to any more; False when nothing is left."""

    @abstractmethod
    def lay_anew(self) -> bool:
        """Make recent batches of a few periods forget the order of arrival; False when those of all periods have."""

    @abstractmethod
    def purge(self) -> bool:
        """Clear the write-ahead log of what was deleted or laid anew; False if it is in use: try again."""

    @abstractmethod
    def recover(self) -> None:
        """After an error that leaves open what the disk holds: open the log anew, and make all that it holds durable.

        Raises `StorageError` if that cannot be done, or not yet.
        """

    @abstractmethod
    def tend(self) -> None:
        """Do the housekeeping that is due after a commit."""
