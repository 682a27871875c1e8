"""What psycopg raises, as the errors of the store: one clear line each.

`Lost` says that a connection ended, so that it is open what became of the last statement. The ids of batches make it
safe to send the statement again.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
from psycopg import errors
from psycopg_pool import PoolTimeout

from ldp_server.store.errors import Corrupt, DiskFull, InUse, ReadOnly, StorageError, WrongVersion

__all__ = ["Again", "Interrupted", "Lost", "failure", "translated"]


# What psycopg cannot undo, it also says in its log. A command without a log would print that beside its one line.
logging.getLogger("psycopg").addHandler(logging.NullHandler())


class Lost(StorageError):
    """The connection ended, or the server said that it ends all of them."""


class Interrupted(Lost):
    """Somebody ended the statement on purpose: `interrupt`, or an administrator."""


class Again(StorageError):
    """The server asks for the transaction once more: a deadlock was broken up, or somebody was first."""


_KINDS: tuple[tuple[tuple[type[Exception], ...], type[StorageError], str], ...] = (
    ((errors.DiskFull,), DiskFull, "no space left for {name}: free some, nothing acknowledged was lost"),
    (
        (errors.ReadOnlySqlTransaction,),
        ReadOnly,
        "{name} takes no writes, as a standby does: name the primary (target_session_attrs=read-write)",
    ),
    (
        (errors.UndefinedTable, errors.UndefinedFunction, errors.InvalidSchemaName),
        WrongVersion,
        "{name} has no complete Hearsay schema: run `ldp-server store prepare`",
    ),
    (
        (errors.InsufficientPrivilege,),
        ReadOnly,
        "{name}: {said}; grant this user hearsay_collector or hearsay_keeper",
    ),
    ((errors.DeadlockDetected, errors.SerializationFailure), Again, "{name}: {said}"),
    (
        (errors.DataCorrupted, errors.IndexCorrupted),
        Corrupt,
        "{name} is damaged ({said}): restore a backup (docs/scale-out.md)",
    ),
    (
        (errors.LockNotAvailable, errors.UniqueViolation, errors.TooManyConnections),
        InUse,
        "{name} is busy: {said}",
    ),
    (
        (PoolTimeout,),
        InUse,
        "all connections to {name} are in use, or it does not answer: try again, or look at what blocks them",
    ),
    ((errors.QueryCanceled,), Interrupted, "{name}: {said}"),
    ((psycopg.OperationalError, psycopg.InterfaceError), Lost, "the connection to {name} was lost: {said}"),
)
"""The first one that fits is taken: most of them are operational errors too."""


def failure(error: Exception, name: str) -> StorageError:
    """Return the error of the store for one of psycopg's; `name` is that of the store."""
    for kinds, kind, text in _KINDS:
        if isinstance(error, kinds):
            return kind(text.format(name=name, said=_line(error)))
    return StorageError(f"{name}: {_line(error)}")


def _line(error: Exception) -> str:
    """The first line, without what PostgreSQL quotes of a statement or of values."""
    said = getattr(getattr(error, "diag", None), "message_primary", None) or str(error)
    return said.strip().splitlines()[0] if said.strip() else type(error).__name__


@contextmanager
def translated(name: str) -> Iterator[None]:
    """Raise a `StorageError` in place of any error of psycopg's in the block.

    Ctrl-C stays Ctrl-C. When it comes in the middle of a pipeline, psycopg may fail to undo the transaction and raise
    that failure in its place. PostgreSQL undoes the transaction when the connection ends.
    """
    try:
        yield
    except (psycopg.Error, PoolTimeout) as error:
        if _interrupted(error):
            raise KeyboardInterrupt from error
        raise failure(error, name) from error


def _interrupted(error: BaseException | None) -> bool:
    """Whether the error was raised while Ctrl-C was dealt with."""
    while error is not None and not isinstance(error, KeyboardInterrupt):
        error = error.__context__
    return error is not None
