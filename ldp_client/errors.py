"""Every error that Hearsay raises on purpose, in one tree.

    LdpError
    |-- InvalidSpec        a collection, setting or file breaks a rule: correct it (also a ValueError)
    |-- WrongType          an argument has a type that cannot be used, such as a list as an item (also a TypeError)
    |   `-- WrongFields        a record lacks a field, or has a name that is no field of the domain
    |-- PolicyRefused      this device's policy does not allow the collection: do not retry
    |   |-- BudgetExceeded     the device's privacy budget is spent
    |   |-- Stopped            the user has stopped reports on this device
    |   `-- ListForked         a signed list contradicts one that was seen before, here or elsewhere
    |-- ServerRefused      the server (or a strict decoder) refused these bytes: count, do not retry
    |-- Unavailable        no answer, or "not now": retry later with the same bytes
    |   `-- NotWitnessed       too few witnesses have signed the server's list yet
    |-- StorageError       a file of the device or the server cannot be used
    |   `-- StorageUntrusted   the device's ledger cannot be trusted (also a BudgetExceeded: it counts as spent)
    `-- Cancelled          a long computation was asked to stop, and stopped

No error depends on the value of an item. No error text contains an item, a report or a token.
"""

from __future__ import annotations

__all__ = [
    "BudgetExceeded",
    "Cancelled",
    "InvalidSpec",
    "LdpError",
    "ListForked",
    "NotWitnessed",
    "PolicyRefused",
    "ServerRefused",
    "Stopped",
    "StorageError",
    "StorageUntrusted",
    "Unavailable",
    "WrongFields",
    "WrongType",
    "unread",
]


class LdpError(Exception):
    """The root of the tree: catch it to catch everything that Hearsay raises on purpose."""


class InvalidSpec(LdpError, ValueError):
    """A collection, setting or file breaks a rule. The text says which rule and what to do."""


class WrongType(LdpError, TypeError):
    """An argument has a type that cannot be used there. The text names types only, never values."""


class WrongFields(WrongType):
    """A record lacks a field of its domain or has another name. The text names fields of the domain alone."""


class PolicyRefused(LdpError):
    """The device's policy does not allow this collection. Decided before the item is looked at."""


class BudgetExceeded(PolicyRefused):
    """The device's privacy budget does not cover another report. Decided before the item is looked at."""


class Stopped(PolicyRefused):
    """The user has stopped reports on this device. Decided before the item is looked at."""

    def __init__(self, message: str = "") -> None:
        super().__init__(
            message
            or "the user has stopped reports on this device: nothing is made, sent or fetched until the user resumes"
        )


class ListForked(PolicyRefused):
    """A signed list is shorter than one that was seen before, or another one. Whoever signed both has broken a rule."""


class ServerRefused(LdpError):
    """The server refused these bytes for `reason`, the name of a `Reason` in proto/ldp/v1/collector.proto."""

    def __init__(self, reason: str, detail: str = "") -> None:
        super().__init__(f"{reason}: {detail}" if detail else reason)
        self.reason = reason
        self.detail = detail

    def __reduce__(self) -> tuple[type[ServerRefused], tuple[str, str]]:
        return type(self), (self.reason, self.detail)


class Unavailable(LdpError):
    """No answer, or "not now". The same bytes may be sent again after `retry_after` seconds, if that is given."""

    def __init__(self, message: str, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class NotWitnessed(Unavailable):
    """Too few of the policy's witnesses have signed the server's list. They may be slow, or were not shown it."""


class StorageError(LdpError):
    """A file that should hold state cannot be read, written or trusted."""


class StorageUntrusted(BudgetExceeded, StorageError):
    """The ledger is missing, damaged or rolled back. Its whole budget counts as spent until a reset."""


class Cancelled(LdpError):
    """A long computation was asked to stop, and stopped."""


def unread(error: Exception, form: str) -> str:
    """Return why a file could not be read: what the system says of it, or the form that it should have."""
    return error.strerror if isinstance(error, OSError) and error.strerror else form
