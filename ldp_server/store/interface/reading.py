"""Reading a store: the catalogue, and the batches of a period.

Any number of readers, in any thread or process; one reader is used by one thread at a time.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence

from ldp_server.store.errors import Corrupt
from ldp_server.store.log import CollectionRecord, PeriodRecord, StoredBatch

__all__ = ["BatchReader", "CatalogueReader", "LogReader"]


class CatalogueReader(ABC):
    """The rows of collections and of their periods."""

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


class BatchReader(ABC):
    """What the log holds of one period, by the number of its record."""

    @abstractmethod
    def read(self, number: int, after: int, *, max_bytes: int = ...) -> Iterator[list[StoredBatch]]:
        """The batches in blocks with a sequence above `after`, in order, in lists of about `max_bytes`."""

    @abstractmethod
    def recent(self, number: int, after: int) -> list[StoredBatch] | None:
        """The batches in no block, as of a moment at which `after` was the newest sequence; None if it is not."""

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


class LogReader(CatalogueReader, BatchReader):
    """A whole reader. Every method raises `StorageError` if the log cannot be read."""

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
