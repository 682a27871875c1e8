"""Every error that Hearsay raises on purpose, one tree.

    LdpError
    |-- InvalidSpec        a collection, a parameter or a file that is not what it should be: mend it
    |-- PolicyRefused      this device's policy does not allow the collection: do not retry
    |   `-- BudgetExceeded     ... because its privacy budget is spent
    |-- ServerRefused           the server (or a strict decoder) refused these bytes: count, do not retry
    |-- Unavailable        nobody answered, or "not now": retry later with the same bytes
    |-- StorageError       the device's or the server's own files cannot be used
    |   `-- StorageUntrusted   the device's ledger cannot be believed (a BudgetExceeded too: it counts as spent)
    `-- Cancelled          a long computation was asked to stop, and did

None of them depends on the value of an item, and none of their texts contains an item, a report or a token.
"""

from __future__ import annotations

__all__ = [
    "BudgetExceeded",
    "Cancelled",
    "InvalidSpec",
    "LdpError",
    "PolicyRefused",
    "ServerRefused",
    "StorageError",
    "StorageUntrusted",
    "Unavailable",
]


class LdpError(Exception):
    """The root: catch it to catch everything that Hearsay raises on purpose."""


class InvalidSpec(LdpError, ValueError):
    """A collection, parameter or file that breaks a rule; the text says which and what to do."""


class PolicyRefused(LdpError):
    """The device's policy does not allow this collection. Decided before any item is looked at."""


class BudgetExceeded(PolicyRefused):
    """The device's privacy budget does not cover another report. Decided before any item is looked at."""


class ServerRefused(LdpError):
    """These bytes were refused for `reason`, the name of a `Reason` in proto/ldp/v1/collector.proto."""

    def __init__(self, reason: str, detail: str = "") -> None:
        super().__init__(f"{reason}: {detail}" if detail else reason)
        self.reason = reason
        self.detail = detail

    def __reduce__(self) -> tuple[type[ServerRefused], tuple[str, str]]:
        return type(self), (self.reason, self.detail)


class Unavailable(LdpError):
    """No answer, or "not now". The same bytes may be sent again after `retry_after` seconds, if given."""

    def __init__(self, message: str, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class StorageError(LdpError):
    """A file that should hold state cannot be read, written or trusted."""


class StorageUntrusted(BudgetExceeded, StorageError):
    """The ledger cannot be believed (missing, damaged, rolled back), so its budget counts as spent until a reset."""


class Cancelled(LdpError):
    """A long computation was asked to stop."""
