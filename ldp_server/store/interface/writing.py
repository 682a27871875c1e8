"""Writing a store, in three parts: batches, the catalogue, and what is kept of both in the long run.

A method that raises `StorageError` has changed nothing. One object is used by one thread (commit.py).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

from ldp_server.store.interface.reading import LogReader
from ldp_server.store.log import (
    AppendOutcome,
    CollectionRecord,
    Fold,
    FoldPart,
    NewCollection,
    PeriodRecord,
    Submission,
)

__all__ = ["BatchWriter", "CatalogueWriter", "LogKeeper", "ReportLog"]


class BatchWriter(ABC):
    """Takes batches."""

    @abstractmethod
    def append(self, submissions: Sequence[Submission]) -> list[AppendOutcome]:
        """Make the submissions durable, all in one transaction, and say what became of each."""

    @abstractmethod
    def tend(self) -> None:
        """Do the housekeeping that is due after a commit."""

    @abstractmethod
    def recover(self) -> None:
        """After an error that leaves open what the disk holds: open the log anew, and make all that it holds durable.

        Raises `StorageError` if that cannot be done, or not yet.
        """


class CatalogueWriter(ABC):
    """Enters collections, and notes what operators decide about them."""

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


class LogKeeper(ABC):
    """Blocks, counts in the place of reports, and dropping what nothing needs any more."""

    @abstractmethod
    def lead(self) -> bool:
        """Whether this one is to do what one server does for all; if another one does, this one takes over from it."""

    @abstractmethod
    def finish(self, number: int) -> None:
        """Put a period's recent batches into a block, however few: for a period that takes no more of them."""

    @abstractmethod
    def gather(self) -> bool:
        """Put recent batches into a block where there are enough for one; False when there is no such period left.

        Not for a log that does so while it appends.
        """

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


class ReportLog(LogReader, BatchWriter, CatalogueWriter, LogKeeper):
    """A log that is read and written."""
