"""What psycopg raises, as the errors of the store: one clear line each.

`Lost` says that a connection ended, so that it is open what became of the last statement. The ids of batches make it
safe to send the statement again.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
from psycopg import errors
from psycopg_pool import PoolTimeout

from ldp_server.store.errors import Corrupt, DiskFull, InUse, ReadOnly, StorageError, WrongVersion

__all__ = ["Again", "Lost", "failure", "translated"]


class Lost(StorageError):
    """The connection ended, or the server said that it ends all of them."""


class Again(StorageError):
    """The server asks for the transaction once more: a deadlock was broken up, or somebody was first."""


def failure(error: Exception, name: str) -> StorageError:
    """Return the error of the store for one of psycopg's; `name` is that of the store."""
    if isinstance(error, errors.DiskFull):
        return DiskFull(f"no space left for {name}: free some, nothing acknowledged was lost")
    if isinstance(error, errors.ReadOnlySqlTransaction):
        return ReadOnly(f"{name} takes no writes, as a standby does: name the primary (target_session_attrs=read-write)")
    if isinstance(error, (errors.UndefinedTable, errors.UndefinedFunction, errors.InvalidSchemaName)):
        return WrongVersion(f"{name} has no complete Hearsay schema: run `ldp-server store prepare`")
    if isinstance(error, errors.InsufficientPrivilege):
        return ReadOnly(f"{name}: {_line(error)}; grant this user hearsay_collector or hearsay_keeper")
    if isinstance(error, (errors.DeadlockDetected, errors.SerializationFailure)):
        return Again(f"{name}: {_line(error)}")
    if isinstance(error, (errors.DataCorrupted, errors.IndexCorrupted)):
        return Corrupt(f"{name} is damaged ({_line(error)}): restore a backup (docs/scale-out.md)")
    if isinstance(error, (errors.LockNotAvailable, errors.UniqueViolation, errors.TooManyConnections)):
        return InUse(f"{name} is busy: {_line(error)}")
    if isinstance(error, PoolTimeout):
        return InUse(f"all connections to {name} are in use: try again, or look at what blocks them")
    if isinstance(error, (psycopg.OperationalError, psycopg.InterfaceError)):
        return Lost(f"the connection to {name} was lost: {_line(error)}")
    return StorageError(f"{name}: {_line(error)}")


def _line(error: Exception) -> str:
    """The first line, without what PostgreSQL quotes of a statement or of values."""
    said = getattr(getattr(error, "diag", None), "message_primary", None) or str(error)
    return said.strip().splitlines()[0] if said.strip() else type(error).__name__


@contextmanager
def translated(name: str) -> Iterator[None]:
    """Raise a `StorageError` in place of any error of psycopg's in the block."""
    try:
        yield
    except (psycopg.Error, PoolTimeout) as error:
        raise failure(error, name) from error
