"""What a store of volunteers' sealed records does. A record is kept under a name until it is withdrawn.

    held    given, not used: whoever knows the secret of its name may withdraw it
    used    a curator has taken it for a release: it stays, and a withdrawal is refused

The collection server gives and withdraws. The curator, a process with the key, takes. All three are one transaction
each, so that a record is either withdrawn or used. A curator that then releases nothing gives the records back, so that
they can be withdrawn again.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from enum import Enum

from ldp_client.errors import Unavailable

__all__ = ["Given", "SealedRecords", "another_curator"]

CURATOR_SECONDS = 60.0
"""How long a curator waits for another one to end."""


def another_curator(where: object) -> Unavailable:
    """The error of who has waited for another curator."""
    return Unavailable(
        f"another curator is making a release of the volunteers' records in {where}: nothing was released or charged; "
        "try again when it has ended"
    )


class Given(Enum):
    """What became of a record that somebody gave. The values are those of the function in the database."""

    KEPT = 0
    """Also if the same bytes were kept before."""
    OTHER_RECORD = 1
    """Its name holds other bytes, which stay."""
    OVER = 2
    """The collection was closed or deleted, perhaps through another server."""


class SealedRecords(ABC):
    """The sealed records of all collections. They may be used from any thread."""

    @abstractmethod
    def give(self, collection_id: bytes, name: bytes, sealed: bytes, now: int) -> Given:
        """Keep a record."""

    @abstractmethod
    def withdraw(self, collection_id: bytes, name: bytes) -> bool:
        """Delete a record; return False if a release has used it. What is not there counts as deleted."""

    @abstractmethod
    def take(self, collection_id: bytes, now: int) -> list[tuple[bytes, bytes]]:
        """Mark all records of a collection as used, and return each name with its sealed bytes, in the names' order."""

    @abstractmethod
    def fresh(self, collection_id: bytes) -> list[bytes]:
        """Return the names of the records that no release has used."""

    @abstractmethod
    def used(self, collection_id: bytes) -> list[bytes]:
        """Return the names of the records that a release has used."""

    @abstractmethod
    def curating(self) -> AbstractContextManager[Callable[[], bool]]:
        """Let one curator at a time take records and give them back; yield what says whether it still is this one.

        Otherwise one curator could give back what another one has used in between. Raises Unavailable if another one
        does not end for long.
        """

    @abstractmethod
    def give_back(self, collection_id: bytes, names: Sequence[bytes]) -> None:
        """Mark records as not used, because nothing was released."""

    @abstractmethod
    def forget(self, collection_id: bytes) -> int:
        """Delete all records of a collection, used or not; return how many there were."""

    @abstractmethod
    def close(self) -> None:
        """Give back files and connections."""
