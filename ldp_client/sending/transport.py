"""The seam between the client and the wire: what is sent, what comes back, and how patience is spent.

`Transport` is what a sender needs; channel.py speaks gRPC, testing.py keeps everything in memory. An outcome is final
for its batch: accepted, or refused for good. Everything else ("nobody answered", "not now", an answer that makes no
sense) is `Unavailable`: the same bytes go out again later.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

from ldp_client.errors import InvalidSpec, Unavailable

__all__ = [
    "Accepted",
    "Backoff",
    "Batch",
    "BatchOutcome",
    "Garbled",
    "PublicCollections",
    "Refused",
    "Tls",
    "Transport",
    "is_loopback",
]


class Batch(NamedTuple):
    """One batch: the same four fields on every retry."""

    collection_id: bytes
    batch_id: bytes
    payload: bytes
    token: bytes | None = None

    def __repr__(self) -> str:
        return f"Batch({self.batch_id.hex()[:8]}, {len(self.payload)} bytes)"


class Accepted(NamedTuple):
    """Durable at the server, counted once."""

    batch_id: bytes
    reports: int = 1
    duplicate: bool = False


class Refused(NamedTuple):
    """Refused for good, for `reason` (the name of a Reason in proto/ldp/v1/collector.proto)."""

    batch_id: bytes
    reason: str
    detail: str = ""

    def __repr__(self) -> str:
        return f"Refused({self.reason})"


BatchOutcome = Accepted | Refused


class PublicCollections(NamedTuple):
    """The server's public collections; the signed list where the operator has a key."""

    spec_bytes: tuple[bytes, ...]
    list_bytes: bytes = b""
    signature: bytes = b""
    public_key: bytes = b""


class Garbled(Unavailable):
    """The server did answer, but not as it should: the first batch without an outcome may be what it chokes on."""


class Transport(Protocol):
    """How batches leave the device. Used by one thread at a time; `close` may come from another."""

    def submit(self, batches: Sequence[Batch], timeout: float) -> Iterator[BatchOutcome]:
        """Send batches; yield an outcome for each, in order, once the server has answered. May raise Unavailable."""
        ...

    def get_collection(self, collection_id: bytes, timeout: float) -> bytes:
        """Return what the server says are this collection's bytes. The caller checks them."""
        ...

    def list_collections(self, timeout: float) -> PublicCollections:
        """Return the server's public list. The caller checks it."""
        ...

    def close(self) -> None:
        """Stop what is under way; the next use begins afresh."""
        ...

    def forked(self) -> None:
        """In a child process: forget what belongs to the parent, without touching it."""
        ...


@dataclass(frozen=True)
class Tls:
    """Where the TLS files are; read again whenever a channel is built, so that they may change.

    No `ca`: the public roots that gRPC ships. `certificate` and `key`: this device's own, where the server asks.
    """

    ca: str | None = None
    certificate: str | None = None
    key: str | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        if (self.certificate is None) != (self.key is None):
            raise InvalidSpec("a client certificate needs both `certificate` and `key`")


class Backoff:
    """Exponential backoff with full jitter: delay n is uniform on [0, min(cap, first * 2^n)].

    A server's own wish (`retry_after`) is a lower bound on the delay, within reason.
    """

    LONGEST_WISH = 86_400.0

    def __init__(self, uniform: Callable[[], float], first: float = 1.0, cap: float = 3600.0) -> None:
        self._uniform = uniform
        self._first = first
        self._cap = cap
        self.failures = 0

    def reset(self) -> None:
        """It worked: begin again with short delays."""
        self.failures = 0

    def delay(self, retry_after: float | None = None) -> float:
        """Return how long to wait after one more failure."""
        ceiling = min(self._cap, self._first * 2.0 ** min(self.failures, 40))
        self.failures += 1
        wish = min(max(retry_after or 0.0, 0.0), self.LONGEST_WISH)
        return wish + self._uniform() * ceiling


def is_loopback(target: str) -> bool:
    """Whether a target can only be this machine."""
    if target.startswith(("unix:", "unix-abstract:")):
        return True
    host = target.removeprefix("dns:///").removeprefix("ipv4:").removeprefix("ipv6:").rsplit(":", 1)[0].strip("[]")
    parts = host.split(".")
    return host in {"localhost", "::1"} or (len(parts) == 4 and parts[0] == "127" and all(p.isdigit() for p in parts))
