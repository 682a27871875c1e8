"""A place where servers keep what must last."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, Protocol

from ldp_server.store.interface.reading import LogReader
from ldp_server.store.interface.tokens import AccessTokens
from ldp_server.store.interface.writing import ReportLog
from ldp_server.store.log import CollectionRecord

__all__ = ["Changed", "CosignedList", "Store", "StoreUsage"]


class CosignedList(NamedTuple):
    """A witness's signature of the signed list, as servers tell it to each other. Whoever reads it checks it."""

    public_key: bytes
    serial: int
    """How many collections the list had."""
    list_bytes: bytes
    signature: bytes


class Changed(Protocol):
    """Who is told of changes."""

    asked: bool
    """Whether all rows are to be read soon, whatever changed."""

    def changed(self, records: Sequence[CollectionRecord]) -> None:
        """Take all rows of collections, as they are now. Called on a thread of the store's."""

    def cosigned(self, signatures: Sequence[CosignedList]) -> None:
        """Take the witnesses' signatures that are kept, after the rows of the collections that they are about."""


@dataclass(frozen=True)
class StoreUsage:
    """How much space a store takes."""

    used: int
    free: int | None
    """None: the store cannot tell."""


class Store(ABC):
    """Opens everything else. An object of this type holds no file and no connection."""

    name: str
    """For people: a path, or an address without its password."""
    shared: bool
    """Whether other servers may write to it at the same time."""
    shards: int = 1
    """How many databases it has."""

    @abstractmethod
    def serving(self) -> AbstractContextManager[object]:
        """The right to serve, for as long as the block lasts. `InUse` if the store is not shared and has a server."""

    @abstractmethod
    def prepare(self, *, roles: bool = False) -> None:
        """Make what is missing, and bring an older schema up to date; with `roles` also the roles that it knows."""

    @abstractmethod
    def require_rights(self, *, keeps: bool) -> None:
        """Raise `ReadOnly` and name what is missing, unless this user may append and, with `keeps`, do the rest."""

    @abstractmethod
    def writer(self) -> ReportLog:
        """A log to write to. It is opened here, and checked."""

    def writers(self) -> Sequence[ReportLog]:
        """A log to append to for each database, for a thread of its own."""
        return [self.writer()]

    @abstractmethod
    def reader(self) -> LogReader:
        """A log to read from."""

    @abstractmethod
    def access(self, clock: Callable[[], float]) -> AccessTokens:
        """Analysts' tokens."""

    @abstractmethod
    def watch(self, changed: Changed) -> AbstractContextManager[object]:
        """Tell of collections that other servers change, for as long as the block lasts."""

    def keep_cosignatures(self, signatures: Sequence[CosignedList]) -> None:
        """Keep the newest signature of each witness for all servers. Only for a store that is shared."""
        raise NotImplementedError

    @abstractmethod
    def usage(self) -> StoreUsage:
        """How much space it takes. It may take some milliseconds."""

    @abstractmethod
    def backup(self, target: Path) -> None:
        """Copy everything to a new file, as of one moment. `InvalidSpec` if the store has tools of its own for that."""

    @abstractmethod
    def environment(self) -> Mapping[str, str]:
        """What a child process needs in its environment to open the same store (`engines.inherited`)."""
